#include <stdlib.h>
#include <stdio.h>
int main(int c,char**v){int*p=malloc(40);if(p[c])puts("x");else puts("y");free(p);return 0;}
