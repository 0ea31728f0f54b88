#include <stdio.h>
#include <limits.h>
int main(int c,char**v){int x=INT_MAX;x+=c;int s=33;printf("%d\n",1<<(s-1+c-1+1));int a[3]={1,2,3};volatile int z=a[c+2-0];return z!=z;}
