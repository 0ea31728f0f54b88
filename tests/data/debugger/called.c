#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct account { int id; long sum; } one = {1, 10};
int count;
int add(int a, int b) { count++; return a + b; }
long deposit(struct account *who, long amount) { who->sum += amount; return who->sum; }
double half(double x) { return x / 2; }
float third(float x, double y) { return x / 3 + y; }
size_t length(const char *text) { return strlen(text); }
int digits(int a, int b, int c, int d, int e, int f)
{
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}
void say(const char *text) { printf("said %s\n", text); fflush(stdout); }
int follow(int *p) { return *p; }
int leave(int code) { _exit(code); return 0; }
int wait_for(int fd) { char byte; return read(fd, &byte, 1); }
int grow(void) { return sbrk(1 << 20) != (void *)-1; }
int raised(void) { raise(SIGUSR1); return count; }
int forever(void) { for (;;) count++; }
struct account make(int id) { struct account made = {id, id}; return made; }
int main(void)
{
    char before[64], *top = sbrk(0);
    int local = add(3, 4);
    local = add(local, 1);
    sprintf(before, "%d %d %ld %d\n", local, count, one.sum, top == sbrk(0));
    fputs(before, stdout);
    return 0;
}
