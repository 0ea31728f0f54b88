#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#define N __attribute__((noinline))
volatile long sink;
N long back(long n){ sink+=n; return n; }
N int cmp(const void *a,const void *b){ return *(int*)a-*(int*)b; }
N long drive(void *h){ long (*go)(long,long(*)(long))=(long(*)(long,long(*)(long)))dlsym(h,"plug_go"); long s=0; for(long i=0;i<4;i++) s+=go(i,back); return s; }
int main(int c,char**v){ int a[]={3,1,2,9,4,7}; qsort(a,6,sizeof*a,cmp); void *h=dlopen(v[1],RTLD_NOW); if(!h){puts(dlerror());return 2;} long r=drive(h); dlclose(h); return r>0?0:1; }
