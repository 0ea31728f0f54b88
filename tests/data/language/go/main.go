// Values of all kinds of types of Go, and functions with all kinds of results.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"values/geo"
)

type color int

const (
	red color = iota
	green
	blue
)

const answer = 42

type pair struct {
	A int
	S string
}

type base struct {
	ID   int
	Name string
}

type inner struct {
	*base
	Weight float32
}

type outer struct {
	inner
	pair
	Tags map[string]int
}

type node struct {
	Value int
	Left  *node
	Right *node
}

type problem struct{ Code int }

func (p problem) Error() string { return fmt.Sprint("problem ", p.Code) }

type celsius float64

type callback func(int, string) (bool, error)

type matrix [2][3]int

var global = pair{7, "seven"}
var table = map[string]*pair{"x": {1, "one"}}
var empty []int

//go:noinline
func (p pair) sum(n int) int { return p.A + n }

//go:noinline
func (p *pair) grow(n int) { p.A += n }

//go:noinline
func numbers() int {
	yes, no := true, false
	i8, i16, i32, i64 := int8(-8), int16(-16), int32(-32), int64(-64)
	u8, u16, u32, u64 := uint8(200), uint16(60000), uint32(4000000000), uint64(18446744073709551615)
	i, u, ptr := -1, uint(1), uintptr(0xdeadbeef)
	f32, f64 := float32(1.5), 3.14159265358979
	c64, c128 := complex64(complex(1, 2)), complex(-1.5, 2.25)
	letter, omega := 'a', 'Ω'
	hue := blue
	warm := celsius(36.6)
	wait := 1500 * time.Millisecond
	big, tiny, third := 1e100, 1e-9, float32(1)/3
	use(yes, no, i8, i16, i32, i64, u8, u16, u32, u64, i, u, ptr, f32, f64, c64, c128)
	use(letter, omega, hue, warm, wait, big, tiny, third)
	return i
}

//go:noinline
func texts() int {
	none, short, accents := "", "hello", "héllo, wörld"
	quotes := "say \"hi\"\n\ttab\\\x00\xff"
	long := "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	bytes := []byte("bytes")
	runes := []rune("rünes")
	use(none, short, accents, quotes, long, bytes, runes)
	return len(short)
}

//go:noinline
func sequences() int {
	var none []int
	blank := []int{}
	ints := []int{1, 2, 3}
	cut := ints[:2:3]
	many := make([]int, 100)
	for n := range many {
		many[n] = n * n
	}
	strs := []string{"a", "bb", "ccc"}
	nested := [][]int{{1}, {2, 3}, nil}
	fixed := [4]int{1, 2, 3, 4}
	mat := matrix{{1, 2, 3}, {4, 5, 6}}
	pairs := []pair{{1, "one"}, {2, "two"}}
	refs := []*pair{{3, "three"}, nil}
	zero := [0]int{}
	ptrs := &fixed
	sptr := &ints
	any_ := []interface{}{1, "two", 3.5, nil, pair{4, "four"}, &pair{5, "five"}, []int{6}}
	flags := [3]bool{true, false, true}
	use(none, blank, ints, cut, many, strs, nested, fixed, mat, pairs, refs, zero, ptrs, sptr, any_, flags)
	return len(ints)
}

//go:noinline
func maps() int {
	var none map[string]int
	blank := map[int]int{}
	one := map[string]int{"a": 1}
	lists := map[string][]int{"k": {1, 2, 3}}
	byPair := map[pair]string{{1, "x"}: "first"}
	byInt := map[int]string{5: "five"}
	toPtr := map[string]*pair{"p": {9, "nine"}}
	nested := map[string]map[string]int{"o": {"i": 1}}
	byAny := map[interface{}]int{"s": 1}
	byBool := map[bool]float64{true: 1.5}
	big := map[int]int{}
	for n := 0; n < 200; n++ {
		big[n] = n * 2
	}
	set := map[string]struct{}{"in": {}}
	use(none, blank, one, lists, byPair, byInt, toPtr, nested, byAny, byBool, big, set)
	return len(big)
}

//go:noinline
func structs() int {
	p := pair{3, "three"}
	pp := &p
	ppp := &pp
	var none *pair
	o := outer{inner{&base{11, "base"}, 2.5}, pair{1, "in"}, map[string]int{"t": 1}}
	op := &o
	tree := &node{1, &node{2, nil, &node{3, nil, nil}}, nil}
	anon := struct {
		X, Y int
		s    string
	}{1, 2, "z"}
	void := struct{}{}
	when := time.Duration(90)
	loop := &node{Value: 7}
	loop.Left = loop
	use(p, pp, ppp, none, o, op, tree, anon, void, when, loop)
	return p.A
}

//go:noinline
func interfaces() int {
	var nothing error
	var blank interface{}
	var err error = problem{4}
	wrapped := fmt.Errorf("wrap: %w", err)
	plain := errors.New("plain")
	var num, str, real interface{} = 42, "text", 2.5
	var sh geo.Shape = geo.Rect{W: 2, H: 3}
	var ci geo.Shape = &geo.Circle{Radius: 1, Tags: []string{"t"}}
	var st interface{} = pair{6, "six"}
	var sp interface{} = &pair{8, "eight"}
	var sl interface{} = []int{1, 2}
	var mp interface{} = map[string]int{"m": 1}
	var fn interface{} = numbers
	var nilptr interface{} = (*pair)(nil)
	perr := &err
	list := []error{err, nil, plain}
	use(nothing, blank, err, wrapped, plain, num, str, real, sh, ci, st, sp, sl, mp, fn, nilptr, perr, list)
	return 0
}

//go:noinline
func channels() int {
	var none chan int
	plain := make(chan int)
	buffered := make(chan string, 3)
	buffered <- "one"
	buffered <- "two"
	var send chan<- int = plain
	var recv <-chan int = plain
	var nofn func()
	fn := maps
	method := global.sum
	var cb callback = func(n int, s string) (bool, error) { return n > 0, nil }
	file := os.Stdout
	use(none, plain, buffered, send, recv, nofn, fn, method, cb, file)
	return cap(buffered)
}

//go:noinline
func closures(start int) func(int) int {
	total := start
	name := "closure"
	return func(by int) int {
		total += by
		use(name)
		return total
	}
}

//go:noinline
func (o *outer) describe(prefix string, n ...int) (text string, err error) {
	text = prefix + o.base.Name
	for _, v := range n {
		text += fmt.Sprint(v)
	}
	return text, err
}

//go:noinline
func results(a int, s string, f float64, l []int, e error, m map[string]int, p pair) (int, string, float64, error, pair) {
	a += len(l)
	use(a, s, f, l, e, m, p)
	return a, s, f, e, p
}

//go:noinline
func shadows(x int) int {
	if x > 0 {
		x := "inner"
		use(x)
	}
	for i := 0; i < 2; i++ {
		x := float64(i)
		use(x)
	}
	return x
}

//go:noinline
func use(v ...interface{}) { sink = len(v) }

var sink int

func main() {
	numbers()
	texts()
	sequences()
	maps()
	structs()
	interfaces()
	channels()
	add := closures(10)
	add(5)
	o := &outer{inner: inner{base: &base{1, "n"}}}
	t, _ := o.describe("p-", 1, 2)
	results(1, t, 2.5, []int{1, 2}, problem{1}, table2(), pair{1, "p"})
	shadows(1)
	returns()
	var shapes = []geo.Shape{geo.Rect{W: 2, H: 3}, &geo.Circle{Radius: 1}}
	for _, sh := range shapes {
		use(sh.Area())
	}
	(&global).grow(2)
	s := global.sum(geo.Count)
	use(s, answer, table, empty, red, green)
	fmt.Println("done", s)
}

type pt struct{ X, Y float64 }
type big struct{ A [4]int }
type small struct {
	A int8
	B bool
	C float32
	S string
}

//go:noinline
func one() int { return 42 }

//go:noinline
func two(a int, s string) (n int, t string) { return a + 1, s + "!" }

//go:noinline
func flo() (float64, float32, complex128) { return 1.5, 2.5, complex(1, -2) }

//go:noinline
func str() pt { return pt{1, 2} }

//go:noinline
func bigs(b big) (big, error) { b.A[0]++; return b, fmt.Errorf("e%d", 1) }

//go:noinline
func sm() (small, []int, map[string]int) {
	return small{-3, true, 0.5, "s"}, []int{1, 2}, map[string]int{"k": 1}
}

//go:noinline
func many() (a, b, c, d, e, f, g, h, i, j int) { return 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }

//go:noinline
func none() {}

//go:noinline
func iface(x int) interface{} { return x }

//go:noinline
func arr() ([1]int, [2]int, struct{}) { return [1]int{7}, [2]int{8, 9}, struct{}{} }

//go:noinline
func ptr(p *pt) (*pt, func() int, chan int, int8, uint16, bool) { return p, one, nil, -1, 65535, true }

//go:noinline
func returns() {
	a := one()
	b, c := two(1, "x")
	d, e, f := flo()
	g := str()
	h, i := bigs(big{[4]int{1, 2, 3, 4}})
	j, k, l := sm()
	m, _, _, _, _, _, _, _, _, n := many()
	none()
	o := iface(5)
	p, q, r := arr()
	s, t, u, v, w, x := ptr(&pt{3, 4})
	fmt.Println(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t == nil, u, v, w, x)
}

func table2() map[string]int { return map[string]int{"q": 1} }
