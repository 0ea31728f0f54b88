/* Optimised code: arguments that are gone, calls in tail position, inlined functions. */
#include <stdio.h>
#include <stdlib.h>

struct pair {
    long left, right;
};

volatile int sink;
static long store[4];

static inline int twice(int n)
{
    int doubled = n * 2;
    sink = doubled;
    return doubled + 1;
}

__attribute__((noinline)) void note(int what)
{
    sink = what;
    sink++;
}

__attribute__((noinline)) int work(int n, const char *name)
{
    note(n + 1);
    n = n * 3;
    note(n);
    sink = name[0];
    note(7);
    return sink;
}

__attribute__((noinline)) int lost(int a, int b, int c)
{
    sink = a;
    note(b);
    return c + sink;
}

__attribute__((noinline)) struct pair make(long l, long r)
{
    struct pair p = {l + 1, r * 2};
    store[1] = l;
    return p;
}

__attribute__((noinline)) double scale(double by, float f)
{
    sink = (int)by;
    note((int)f);
    return by * f;
}

__attribute__((noinline)) int tail(int n)
{
    sink = n;
    return lost(n, n + 1, 4);
}

int main(int argc, char **argv)
{
    int got = work(5, "abc");
    got += work(argc, argv[0]);
    got += lost(1, got, 3);
    struct pair p = make(got, 4);
    got += p.left + p.right;
    got += (int)scale(2.5, 1.5f);
    got += tail(9);
    got += twice(got);
    printf("%d\n", sink);
    return 0;
}
