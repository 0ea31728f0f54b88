#include <stdio.h>
#include <setjmp.h>
#define N __attribute__((noinline))
volatile long sink;
static jmp_buf env;
N long work(long n){ long i; for(i=0;i<n;i++) sink+=i; return sink; }
N long fib(long n){ return n<2?n:fib(n-1)+fib(n-2); }
N void deep(int n){ work(10); if(n==0) return; deep(n-1); sink++; }
N long even(long n); N long odd(long n){ work(3); return n==0?0:even(n-1)+1; } N long even(long n){ work(2); return n==0?1:odd(n-1)+1; }
N long bar(long n){ return work(n*100)+fib(5); }
N long foo(long n){ return bar(n)+bar(n+1); }
int main(void){ foo(3); deep(4); even(7); bar(1); fib(10); return 0; }
