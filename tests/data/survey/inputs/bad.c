#include <stdlib.h>
#include <string.h>
#include <stdio.h>
int main(int c,char**v){char*p=malloc(10);memset(p,1,10);int r=p[c+9-1+1];printf("%d\n",r);free(p);return 0;}
