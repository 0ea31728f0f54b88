#include <stdlib.h>
#include <stdio.h>
int main(){for(int i=0;i<3;i++){volatile char*p=malloc(100+i);*p=1;}puts("l");return 0;}
