// Functions in all their forms: methods, closures, goroutines, defers, panics, inlined calls.
package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"

	"flow/lanes"
)

type account struct {
	owner   string
	balance int
	history []int
	hooks   map[string]func(int) int
	parent  *account
}

type ledger struct {
	*account
	sync.Mutex
	open bool
}

type auditor interface {
	audit(depth int) (string, error)
}

type strict struct{ level int }

type refused struct {
	code int
	why  string
}

func (r refused) Error() string { return fmt.Sprint(r.code, " ", r.why) }

var (
	bank     = map[string]*account{}
	total    int
	sentinel = errors.New("sentinel")
	version  = "1.2"
	handlers = []func(string) int{func(s string) int { return len(s) }, nil}
)

//go:noinline
func (a account) snapshot(note string) (copied account, size int) {
	copied = a
	copied.owner += note
	size = len(copied.history)
	use(copied, size)
	return copied, size
}

//go:noinline
func (a *account) deposit(amounts ...int) (after int, err error) {
	before := a.balance
	for at, amount := range amounts {
		a.balance += amount
		a.history = append(a.history, amount)
		if at == len(amounts)-1 {
			use(before, at, amount)
		}
	}
	after = a.balance
	if after < 0 {
		err = refused{code: after, why: "negative"}
	}
	use(after, err)
	return
}

//go:noinline
func (s strict) audit(depth int) (result string, err error) {
	defer func() {
		if depth > 2 {
			err = fmt.Errorf("depth %d: %w", depth, sentinel)
			use(result, err, depth)
		}
	}()
	if depth < 3 {
		return s.audit(depth + 1)
	}
	result = strings.Repeat("=", depth)
	return result, nil
}

//go:noinline
func shadowed(n int, names []string) int {
	err := errors.New("outer")
	total := n
	if n := n * 2; n > 3 {
		err := n + 1
		total += err
		{
			total := "inner total"
			n := []int{n}
			use(total, n, err, names)
		}
	}
	for i, n := range names {
		switch err := len(n); {
		case err > i:
			use(err, n, i, total)
		}
	}
	use(err, total)
	return total
}

//go:noinline
func counting(start int, prefix string) (func(int) string, *int) {
	count, step := start, 2
	seen := map[int]bool{}
	inner := func(by int) string {
		count += by * step
		seen[count] = true
		again := func(text string) string {
			local := fmt.Sprint(text, prefix, count)
			use(local, text, step, seen)
			return local
		}
		return again("n")
	}
	return inner, &count
}

//go:noinline
func recovering(depth int, why any) (text string, failed bool) {
	defer func() {
		if r := recover(); r != nil {
			failed = true
			text = fmt.Sprint("recovered: ", r)
			use(r, text, failed)
		}
	}()
	falling(depth, why)
	return "never", false
}

//go:noinline
func falling(depth int, why any) {
	if depth == 0 {
		panic(why)
	}
	defer func(at int) { use(at) }(depth)
	falling(depth-1, why)
}

//go:noinline
func working(jobs []int) map[int]string {
	results := make(chan string, 1)
	queue := make(chan int)
	var group sync.WaitGroup
	var lock sync.Mutex
	found := map[int]string{}
	for id := 0; id < 3; id++ {
		group.Add(1)
		go func(id int) {
			defer group.Done()
			for job := range queue {
				lock.Lock()
				found[job] = fmt.Sprint("job ", job)
				lock.Unlock()
			}
		}(id)
	}
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	group.Wait()
	results <- "all"
	use(results, found, &group)
	return found
}

func square(n int) int { return n * n }

func clamp(v, low, high int) int {
	if v < low {
		return low
	}
	if v > high {
		return high
	}
	return v
}

func scaled(v float64, by int) float64 {
	f := float64(by)
	return v * f
}

//go:noinline
func inlining(values []int, name string) (sum int) {
	for i, v := range values {
		s := square(v)
		c := clamp(s, 2, 20)
		sum += c
		if i == len(values)-1 {
			use(s, c, name, scaled(1.5, c))
		}
	}
	return sum
}

//go:noinline
func kinds(v any) string {
	switch t := v.(type) {
	case int:
		use(t)
		return "int"
	case string:
		use(t, len(t))
		return "string"
	case fmt.Stringer, error:
		use(t)
		return "method"
	case []int:
		use(t)
		return "slice"
	case *account:
		use(t, t.owner)
		return "account"
	}
	return ""
}

//go:noinline
func best[T int | float64 | string](values []T, less func(a, b T) bool) (top T, at int) {
	top = values[0]
	for i, v := range values[1:] {
		if less(top, v) {
			top, at = v, i+1
		}
	}
	use(top, at, values)
	return
}

type byLoad []lanes.Truck

func (b byLoad) Len() int      { return len(b) }
func (b byLoad) Swap(i, j int) { b[i], b[j] = b[j], b[i] }

//go:noinline
func (b byLoad) Less(i, j int) bool {
	first, second := b[i], b[j]
	use(first, second)
	return first.Load < second.Load
}

//go:noinline
func packed(a int8, b uint16, c float32, d bool, e string, f []byte, g point, h *point, i any, j error, k map[string]int, l func() int, m [3]int32, n chan int, o complex128) int {
	sum := int(a) + int(b) + len(e) + len(f)
	use(sum, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
	return sum
}

type point struct{ X, Y int }

//go:noinline
func use(v ...any) { total += len(v) }

func main() {
	own := &account{owner: "ann", balance: 10, hooks: map[string]func(int) int{"square": square}}
	bank["ann"] = own
	own.deposit(5, 7, -2)
	own.snapshot(" (copy)")
	strict{1}.audit(1)
	shadowed(3, []string{"x", "yy"})
	next, counter := counting(100, "<")
	next(3)
	recovering(2, refused{7, "why"})
	working([]int{4, 5, 6})
	inlining([]int{1, 3, 9}, "in")
	kinds(5)
	kinds("five")
	kinds(sentinel)
	kinds(own)
	best([]int{3, 9, 4}, func(a, b int) bool { return a < b })
	best([]string{"b", "a"}, func(a, b string) bool { return a < b })
	trucks := byLoad{{Plate: "Q", Load: 9}, {Plate: "R", Load: 1}}
	sort.Sort(trucks)
	lanes.Default.Total(func(t lanes.Truck) {
		use(t, own)
	})
	packed(-1, 2, 1.5, true, "eee", []byte{1, 2}, point{1, 2}, &point{3, 4}, 5, sentinel, map[string]int{"k": 1}, func() int { return *counter }, [3]int32{1, 2, 3}, make(chan int, 2), complex(1, 2))
	l := &ledger{account: &account{owner: "led", parent: own}, open: true}
	l.Lock()
	deposit := l.deposit
	deposit(1)
	var au auditor = strict{2}
	state := lanes.Moving
	use(l, au, state, version, len(handlers))
	fmt.Fprintln(os.Stdout, "done")
}
