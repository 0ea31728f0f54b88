#include <pthread.h>
#include <stdio.h>
int g;void*t(void*a){for(int i=0;i<1000;i++)g++;return 0;}int main(){pthread_t a,b;pthread_create(&a,0,t,0);pthread_create(&b,0,t,0);pthread_join(a,0);pthread_join(b,0);puts("end");}
