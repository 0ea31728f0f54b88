package main

/*
#include <stdio.h>
#include <stdlib.h>
struct point { int x; double y; char name[8]; };
typedef int (*callback)(int);
extern int goDouble(int);
static int twice(int n) { int r = n * 2; return r; }
static int through(int n) { int v = goDouble(n); return v + 1; }
static double length(struct point *p) { double d = p->x * p->x + p->y; return d; }
static void say(const char *s) { puts(s); fflush(stdout); }
*/
import "C"
import (
	"fmt"
	"unsafe"
)

//export goDouble
func goDouble(n C.int) C.int {
	m := n * 2
	return m
}

type pair struct {
	A int
	P C.struct_point
}

func work(n int) int {
	p := pair{A: n}
	p.P.x = C.int(n)
	p.P.y = 1.5
	l := C.length(&p.P)
	s := C.CString("from C")
	C.say(s)
	C.free(unsafe.Pointer(s))
	t := C.through(C.int(n))
	return int(l) + int(t) + int(C.twice(3))
}

func main() {
	fmt.Println(work(4))
}
