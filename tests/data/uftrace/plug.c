#define N __attribute__((noinline))
volatile long plugged;
N long inner(long n){ for(long i=0;i<n;i++) plugged+=i; return n; }
long plug_go(long n, long (*back)(long)){ return inner(n)+back(n)+inner(2); }
