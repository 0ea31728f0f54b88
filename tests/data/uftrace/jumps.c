#include <setjmp.h>
#include <stdlib.h>
#include <signal.h>
#define N __attribute__((noinline))
volatile long sink; static jmp_buf env, outer;
N void leaf(void){ sink++; }
N void thrower(int n){ leaf(); if(n==0) longjmp(env,1); thrower(n-1); sink++; }
N void again(void){ leaf(); longjmp(outer,2); }
N void mid(void){ again(); sink++; }
N int catcher(int n){ if(setjmp(env)) return 1; thrower(n); return 0; }
N void handler(int s){ leaf(); }
N void raiser(void){ raise(SIGUSR1); leaf(); }
N int tail2(int n){ sink+=n; leaf(); return n; }
N int tail1(int n){ sink+=n; return tail2(n+1); }
int main(void){ signal(SIGUSR1,handler); for(int i=0;i<3;i++) catcher(i); int r=setjmp(outer); if(r==0) mid(); for(int i=0;i<5;i++) tail1(i); raiser(); leaf(); return 0; }
