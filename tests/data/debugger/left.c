#include <signal.h>
#include <stdio.h>
#include <unistd.h>
struct pair { long first, second, third; };
int count, seen;
int twice(int n)
{
    count++;
    return n * 2;
}
int sum(int n)
{
    if (n == 0)
        return twice(0);
    int below = sum(n - 1);
    return n + below;
}
double half(double x)
{
    double h = x / 2;
    return h;
}
struct pair make(long a)
{
    struct pair p = {a, a + 1, a + 2};
    return p;
}
int follow(int *p)
{
    return *p;
}
int forever(void)
{
    for (;;)
        count++;
}
int raised(int number)
{
    raise(number);
    return count;
}
int leave(int code)
{
    _exit(code);
    return 0;
}
int work(int a)
{
    int local = a + 5;
    seen = local;
    return twice(local);
}
int main(void)
{
    int done = work(1);
    printf("%d %d %d\n", done, count, seen);
    return 0;
}
