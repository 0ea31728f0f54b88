// Calls that return, and calls that do not, in goroutines whose stacks grow, shrink and panic. The
// program counts them itself. Its size is given to the linker: -X main.size=N.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var size = "2000"

var grown, leafs, spun, areas, failed, recovered, left int64

type shape interface{ area(n int) int }
type square struct{ side int }

//go:noinline
func (s square) area(n int) int {
	defer atomic.AddInt64(&areas, 1)
	return s.side * n
}

//go:noinline
func grow(n int) int {
	var pad [256]byte
	pad[n%256] = byte(n)
	sum := int(pad[255])
	if n > 0 {
		sum += grow(n-1) + int(pad[n%256]&1)
	}
	atomic.AddInt64(&grown, 1)
	return sum
}

//go:noinline
func leaf(n int) int {
	if n%500 == 0 {
		runtime.Gosched()
	}
	atomic.AddInt64(&leafs, 1)
	return n*3 + 1
}

//go:noinline
func spin(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i ^ n
	}
	atomic.AddInt64(&spun, 1)
	return sum
}

//go:noinline
func fail(n int) int {
	var pad [300]byte
	pad[n%300] = 1
	atomic.AddInt64(&failed, 1)
	if n == 0 {
		panic("down")
	}
	return fail(n-1) + int(pad[0])
}

//go:noinline
func plain(n int) int { return n }

// The same instruction calls what panics and what returns, in the same frame.
//
//go:noinline
func dispatch(f func(int) int, n int) (out int) {
	defer func() {
		if recover() != nil {
			atomic.AddInt64(&recovered, 1)
			out = grow(3)
		}
	}()
	return f(n)
}

//go:noinline
func leave(n int) int {
	atomic.AddInt64(&left, 1)
	if n == 0 {
		runtime.Goexit()
	}
	return leave(n-1) + 1
}

func worker(calls int, s shape, done *sync.WaitGroup) {
	defer done.Done()
	sum := 0
	for i := 0; i < calls; i++ {
		switch i % 1000 {
		case 0:
			sum += grow(99)
			i += 99
		case 500:
			sum += dispatch(fail, i/100%40) + dispatch(plain, i)
			runtime.GC()
			sum += spin(20000)
			var other sync.WaitGroup
			other.Add(1)
			go func() { defer other.Done(); leave(5) }()
			other.Wait()
			sum += s.area(i)
		default:
			sum += leaf(i)
		}
	}
}

func main() {
	runtime.GOMAXPROCS(4)
	calls := 0
	for _, digit := range size {
		calls = calls*10 + int(digit-'0')
	}
	var done sync.WaitGroup
	for i := 0; i < 8; i++ {
		done.Add(1)
		go worker(calls, square{i}, &done)
	}
	done.Wait()
	println("grow", grown, "leaf", leafs, "spin", spun, "square.area", areas, "fail", failed,
		"dispatch", 2*recovered, "leave", left)
}
