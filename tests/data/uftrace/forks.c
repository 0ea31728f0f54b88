#include <unistd.h>
#include <sys/wait.h>
#include <stdlib.h>
#define N __attribute__((noinline))
volatile long sink;
N void leaf(int n){ for(int i=0;i<n;i++) sink++; }
N void child(int n){ leaf(n); leaf(n+1); }
N int spawn(int n){ int p=fork(); if(!p){ child(n); exit(0);} leaf(2); return p; }
N void both(void){ int p=fork(); leaf(3); if(!p) { child(7); _exit(0);} waitpid(p,0,0); }
int main(void){ for(int i=1;i<4;i++) waitpid(spawn(i),0,0); both(); leaf(1); return 0; }
