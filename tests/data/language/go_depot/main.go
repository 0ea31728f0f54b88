// A depot of goods: values of the kinds that programs of Go are made of.
package main

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

type weekday uint8

const (
	monday weekday = iota + 1
	tuesday
	wednesday
)

type access uint32

const (
	canRead access = 1 << iota
	canWrite
	canErase
	all = canRead | canWrite | canErase
)

const (
	greeting       = "hello"
	ratio          = 2.5
	limit    int64 = -9000000000
	grace          = 90 * time.Second
	letter         = 'g'
)

type money int64

func (m money) String() string { return fmt.Sprintf("%d.%02d", int64(m)/100, int64(m)%100) }

type point struct{ X, Y int32 }

type label struct {
	Text string
	Size uint16
}

type place struct {
	label
	point
	Near *place
}

type stamp struct {
	sync.Mutex
	*label
	time.Duration
	fmt.Stringer
	count int
}

type deep struct {
	*place
	stamp
	X string
}

type blob struct {
	Head [160]byte
	Tail int
}

type single struct{ P *point }

type stack[T any] struct {
	items []T
	last  T
	size  int
}

func (s *stack[T]) push(v T) {
	s.items = append(s.items, v)
	s.last = v
	s.size = len(s.items)
	use(s, v)
}

type entry[K comparable, V any] struct {
	Key   K
	Value V
	Next  *entry[K, V]
}

type shortage struct {
	Item string
	Need int
	Err  error
}

func (s *shortage) Error() string { return s.Item + " is short" }
func (s *shortage) Unwrap() error { return s.Err }

type crate interface {
	Weight() float64
}

type box struct{ W, H, D float64 }

func (b box) Weight() float64   { return b.W * b.H * b.D }
func (b *box) widen(by float64) { b.W += by }

var (
	opened   = time.Date(2021, time.March, 4, 5, 6, 7, 8, time.UTC)
	stock    = map[string][]box{"small": {{1, 1, 1}, {1, 2, 1}}}
	errEmpty = errors.New("empty")
	lock     sync.RWMutex
	origin   = point{-1, 1}
	nowhere  *place
	grid     [3][2]int16
)

//go:noinline
func embedded() int {
	home := place{label{"home", 12}, point{3, 4}, nil}
	work := place{label: label{"work", 14}, Near: &home}
	st := stamp{label: &label{"stamp", 1}, Duration: 1500 * time.Millisecond, Stringer: money(1234), count: 5}
	st.Lock()
	d := deep{&work, stamp{count: 9}, "own"}
	var gone deep
	pd := &d
	anon := struct {
		point
		Tags []string
	}{point{7, 8}, []string{"p", "q"}}
	pair := [2]place{home, work}
	use(home, work, &st, &d, &gone, pd, anon, pair)
	return int(home.X)
}

//go:noinline
func slices() int {
	rows := [][]int{{1, 2, 3}, {}, nil, {4}}
	cube := [][][]string{{{"a", "b"}, {"c"}}, {{}}}
	cells := [2][3]point{{{1, 1}, {2, 2}, {3, 3}}, {{4, 4}}}
	raw := []byte{0, 1, 65, 66, 255}
	part := raw[1:3:4]
	thousand := make([]uint16, 1000)
	for n := range thousand {
		thousand[n] = uint16(n * 3)
	}
	words := []string{"short", "a much longer text than the others", ""}
	points := []*point{{5, 6}, nil}
	mixed := []any{int8(-3), "s", nil, []int{1}, map[string]int{"z": 26}, box{1, 2, 3}, &origin, errEmpty}
	funcs := []func() int{embedded, nil}
	maps := []map[string]int{{"one": 1}, nil}
	floats := []float64{0.1, 1e300, -2, math.Inf(1)}
	enums := []weekday{monday, wednesday, 7}
	voids := make([]struct{}, 3)
	onto := &rows
	bools := [3]bool{true, false, true}
	use(rows, cube, cells, raw, part, thousand, words, points, mixed, funcs, maps, floats, enums, voids, onto, bools)
	return len(rows)
}

//go:noinline
func keyed() int {
	byText := map[string]point{"": {0, 0}, "k": {1, 2}}
	byTiny := map[int8]string{-1: "minus"}
	byHuge := map[uint64]bool{math.MaxUint64: true}
	byReal := map[float64]string{2.5: "two and a half", 0: "zero"}
	byTruth := map[bool][]int{true: {1}, false: nil}
	byPoint := map[point]*label{{1, 2}: {"there", 1}, {9, 9}: nil}
	byArray := map[[2]string]int{{"a", "b"}: 12}
	byAny := map[any]string{1: "int", "x": "text", point{1, 1}: "point", nil: "nil", 2.5: "real"}
	byFace := map[crate]int{box{1, 2, 3}: 6}
	byRef := map[*point]string{&origin: "origin"}
	byComplex := map[complex128]int{complex(1, -1): 2}
	byDay := map[weekday]string{tuesday: "tue"}
	byLabel := map[label][]string{{"l", 3}: {"x", "y"}}
	bigKey := map[blob]int{{Tail: 4}: 44}
	bigValue := map[string]blob{"b": {Tail: 5}}
	growing := map[int]int{}
	for n := 0; n < 27; n++ {
		growing[n] = n * n
	}
	holes := map[int]string{}
	for n := 0; n < 300; n++ {
		holes[n] = fmt.Sprint("v", n)
	}
	for n := 0; n < 300; n++ {
		if n%7 != 0 {
			delete(holes, n)
		}
	}
	nans := map[float64]int{math.NaN(): 1}
	nested := map[string]map[int]map[bool]string{"o": {1: {true: "deep"}}}
	var none map[point]int
	set := map[rune]struct{}{'é': {}}
	to := &byText
	use(byText, byTiny, byHuge, byReal, byTruth, byPoint, byArray, byAny, byFace, byRef, byComplex, byDay)
	use(byLabel, bigKey, bigValue, growing, holes, nans, nested, none, set, to)
	return len(growing)
}

//go:noinline
func texts() int {
	empty, ascii, accents := "", "plain ascii", "naïve café"
	wide := "日本語 😀"
	broken := "ok\xff\xfe"
	lines := "one\ntwo\t\"three\"\\"
	long := strings.Repeat("0123456789", 20)
	sixty := strings.Repeat("x", 64)
	accented := strings.Repeat("é", 40)
	data := []byte("dätä")
	runes := []rune(wide)
	var builder strings.Builder
	builder.WriteString("built")
	var buffer bytes.Buffer
	buffer.WriteString("buffered")
	ref := &wide
	many := []string{"α", "β", "γ"}
	var named greetingText = "named"
	fixed := [4]byte{'a', 'b', 0, 0xff}
	use(empty, ascii, accents, wide, broken, lines, long, sixty, accented, data, runes, &builder, &buffer, ref, many, named, fixed)
	return len(long)
}

type greetingText string

//go:noinline
func pointers() int {
	n := 42
	p := &n
	pp := &p
	ppp := &pp
	var none *int
	var nonePP **int = &none
	b := &box{1, 2, 3}
	bb := &b
	arr := &[3]int{7, 8, 9}
	sl := &[]string{"s"}
	mp := &map[string]int{"m": 13}
	var face crate = b
	pf := &face
	raw := unsafe.Pointer(b)
	addr := uintptr(0xcafe)
	sg := single{&point{2, 3}}
	psg := &sg
	ring := &place{label: label{"ring", 0}}
	ring.Near = ring
	chain := &entry[string, int]{"a", 1, &entry[string, int]{"b", 2, nil}}
	text := new(string)
	use(n, p, pp, ppp, none, nonePP, b, bb, arr, sl, mp, face, pf, raw, addr, sg, psg, ring, chain, text)
	return n
}

//go:noinline
func chans() int {
	whole := make(chan int, 4)
	whole <- 1
	whole <- 2
	<-whole
	whole <- 3
	boxes := make(chan box, 2)
	boxes <- box{1, 2, 3}
	refs := make(chan *point, 1)
	refs <- &origin
	names := make(chan string, 3)
	names <- "a"
	close(names)
	bare := make(chan struct{})
	var none chan error
	nested := make(chan chan int, 1)
	nested <- whole
	var in chan<- int = whole
	var out <-chan int = whole
	list := []chan int{whole, nil}
	held := struct {
		C    chan int
		Done <-chan struct{}
	}{whole, bare}
	use(whole, boxes, refs, names, bare, none, nested, in, out, list, held)
	return cap(whole)
}

//go:noinline
func faces() int {
	var nothing any
	var noErr error
	var noCrate crate
	var ofInt, ofText, ofReal, ofBool any = 7, "seven", 7.5, true
	var ofSlice, ofMap, ofChan, ofFunc any = []int{7}, map[string]int{"s": 7}, make(chan int, 1), embedded
	var ofBox, ofRef, ofSingle any = box{1, 2, 3}, &box{4, 5, 6}, single{&origin}
	var ofArray, ofDay, ofMoney any = [2]int{1, 2}, tuesday, money(599)
	var ofNilRef any = (*box)(nil)
	var ofAny any = any(ofInt)
	var weighed crate = box{2, 2, 2}
	var byRef crate = &box{3, 3, 3}
	base := errors.New("base")
	mid := fmt.Errorf("mid: %w", base)
	top := &shortage{"nails", 3, mid}
	var err error = top
	pathErr := error(&os.PathError{Op: "open", Path: "/x", Err: os.ErrNotExist})
	var w io.Writer = os.Stderr
	var r io.Reader = strings.NewReader("read me")
	pe := &err
	crates := map[string]crate{"w": weighed}
	var named fmt.Stringer = money(250)
	use(nothing, noErr, noCrate, ofInt, ofText, ofReal, ofBool, ofSlice, ofMap, ofChan, ofFunc, ofBox, ofRef, ofSingle)
	use(ofArray, ofDay, ofMoney, ofNilRef, ofAny, weighed, byRef, base, mid, top, err, pathErr, w, r, pe, crates, named)
	return top.Need
}

//go:noinline
func numbers() int {
	tiny, least, most := int8(-128), int64(math.MinInt64), uint64(math.MaxUint64)
	small, half := float32(0.1), 0.5
	inf, ninf, nan, zero := math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1)
	huge, little := 1.7976931348623157e308, 5e-324
	c64, c128 := complex64(complex(0.5, -1)), complex(1e10, 0.25)
	day, odd := wednesday, weekday(9)
	rights, strange, noRights := canRead|canErase, access(9), access(0)
	cost := money(12345)
	span, long := 90*time.Minute, time.Duration(math.MaxInt64)
	yes, b, r := true, byte('A'), 'é'
	word := uintptr(1) << 40
	a, z := 17, -5
	x, y := uint8(250), uint8(10)
	mode := os.FileMode(0644)
	month := time.March
	use(tiny, least, most, small, half, inf, ninf, nan, zero, huge, little, c64, c128, day, odd, rights, strange, noRights)
	use(cost, span, long, yes, b, r, word, a, z, x, y, mode, month)
	return a
}

//go:noinline
func library() int {
	when := time.Date(2020, time.February, 29, 12, 30, 45, 123456789, time.UTC)
	var never time.Time
	ref := &when
	var mu sync.Mutex
	mu.Lock()
	var rw sync.RWMutex
	rw.RLock()
	var wg sync.WaitGroup
	wg.Add(2)
	var once sync.Once
	once.Do(func() {})
	var counter atomic.Int64
	counter.Store(77)
	var flag atomic.Bool
	flag.Store(true)
	var value atomic.Value
	value.Store("stored")
	ctx := context.WithValue(context.Background(), monday, "v")
	done, cancel := context.WithCancel(ctx)
	l := list.New()
	l.PushBack("first")
	l.PushBack(2)
	large := big.NewInt(1 << 40)
	zone := time.FixedZone("X", 3600)
	defer cancel()
	use(when, never, ref, &mu, &rw, &wg, &once, &counter, &flag, &value, ctx, done, cancel, l, large, zone)
	return l.Len()
}

//go:noinline
func generic[T any, L ~[]T](first T, rest L, f func(T) string) string {
	text := f(first)
	count := len(rest)
	held := entry[string, T]{text, first, nil}
	table := map[string]T{"first": first}
	var zero T
	ref := &held
	var face any = first
	use(text, count, held, table, zero, ref, face)
	return text
}

//go:noinline
func use(v ...any) { sink = len(v) }

var sink int

func main() {
	grid[1] = [2]int16{5, 6}
	embedded()
	slices()
	keyed()
	texts()
	pointers()
	chans()
	faces()
	numbers()
	library()
	generic(5, []int{6, 7}, func(n int) string { return fmt.Sprint(n) })
	generic("t", []string{"u"}, func(s string) string { return s + "!" })
	generic(&point{1, 2}, []*point{nil}, func(p *point) string { return fmt.Sprint(p.X) })
	si := &stack[int]{}
	si.push(3)
	sb := &stack[box]{}
	sb.push(box{1, 1, 1})
	nowhere = &place{}
	b := box{1, 2, 3}
	b.widen(2)
	use(opened, stock, &lock, limit, grace, greeting, ratio, letter, all, grid, b)
	fmt.Println("done", sink)
}
