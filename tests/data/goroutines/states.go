// Goroutines in all the states that a program brings them into.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

var (
	mutex   sync.Mutex
	group   sync.WaitGroup
	ready   sync.WaitGroup
	started sync.WaitGroup
	cond    = sync.NewCond(&sync.Mutex{})
	sink    int
)

//go:noinline
func receives(c chan int) { started.Done(); sink += <-c }

//go:noinline
func sends(c chan int) { started.Done(); c <- 1 }

//go:noinline
func selects(a, b chan int) {
	started.Done()
	select {
	case <-a:
	case b <- 2:
	}
}

//go:noinline
func locks() { started.Done(); mutex.Lock(); mutex.Unlock() }

//go:noinline
func sleeps() { started.Done(); time.Sleep(time.Hour) }

//go:noinline
func waits() { started.Done(); group.Wait() }

//go:noinline
func reads(f *os.File) { started.Done(); var b [1]byte; f.Read(b[:]) }

//go:noinline
func waitsForCond() { started.Done(); cond.L.Lock(); cond.Wait() }

//go:noinline
func nothing(c chan int) { started.Done(); <-(chan int)(nil) }

//go:noinline
func ends() {}

//go:noinline
func locked(c chan int) { runtime.LockOSThread(); started.Done(); <-c }

//go:noinline
func deep(n int, c chan int) int {
	if n == 0 {
		started.Done()
		return <-c
	}
	return deep(n-1, c) + 1
}

//go:noinline
func place(n int) {
	fmt.Println("all wait", n)
	if len(os.Args) > 1 {
		time.Sleep(time.Hour)
	}
}

func main() {
	c, d := make(chan int), make(chan int)
	r, _, _ := os.Pipe()
	mutex.Lock()
	group.Add(1)
	started.Add(11)
	go receives(c)
	go sends(d)
	go selects(c, make(chan int))
	go locks()
	go sleeps()
	go waits()
	go reads(r)
	go waitsForCond()
	go nothing(c)
	go ends()
	go locked(c)
	go deep(5, c)
	started.Wait()
	time.Sleep(20 * time.Millisecond)
	place(11)
}
