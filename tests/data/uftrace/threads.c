#include <pthread.h>
#include <stdlib.h>
#define N __attribute__((noinline))
volatile long sink;
N long leaf(long n){ long i; for(i=0;i<n;i++) sink+=i; return sink; }
N long tree(int n){ return n==0?leaf(5):tree(n-1)+tree(n-1)+1; }
N void *worker(void *p){ long n=(long)p; for(long i=0;i<n;i++) leaf(i); tree(n); return p; }
N void *outer(void *p){ pthread_t t; pthread_create(&t,0,worker,p); tree(2); pthread_join(t,0); return p; }
int main(void){ pthread_t t[4]; for(long i=0;i<4;i++) pthread_create(&t[i],0,i==3?outer:worker,(void*)(i+2)); for(int i=0;i<4;i++) pthread_join(t[i],0); leaf(9); return 0; }
