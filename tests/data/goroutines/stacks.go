// Stacks that are hard to walk: signals, the scheduler's stack, panics, system calls.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

type node struct {
	next  *node
	value int
}

//go:noinline
func spin(stop *bool) int {
	n := 0
	for !*stop {
		n++
	}
	return n
}

//go:noinline
func blocks(fd int) { var b [1]byte; syscall.Read(fd, b[:]) }

//go:noinline
func grow(n int) int {
	var pad [1024]byte
	pad[n%1024] = 1
	if n == 0 {
		return int(pad[0])
	}
	return grow(n-1) + int(pad[1])
}

//go:noinline
func nilled(p *node) int { return p.next.value }

//go:noinline
func guarded(n *node) {
	defer func() { rescued(recover()) }()
	nilled(n)
}

//go:noinline
func rescued(v any) { fmt.Println("rescued", v) }

//go:noinline
func quiet(n int) {}

func main() {
	var stop bool
	fds := make([]int, 2)
	syscall.Pipe(fds)
	go blocks(fds[0])
	go func() { runtime.LockOSThread(); spin(&stop) }()
	time.Sleep(2 * time.Millisecond)
	quiet(1)
	grow(100)
	runtime.GC()
	quiet(2)
	guarded(&node{})
	stop = true
	if len(os.Args) > 1 {
		<-make(chan int)
	}
	panic("at the end")
}
