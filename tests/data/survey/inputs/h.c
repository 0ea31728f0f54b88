#include <stdio.h>
#include <stdlib.h>
int f(int n){return n<2?n:f(n-1)+f(n-2);}
int main(int c,char**v){printf("%d\n",f(c>1?atoi(v[1]):15));return 3;}
