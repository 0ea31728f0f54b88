/* Functions that are left in other ways than by a return; each counts its own returns. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define N __attribute__((noinline, noclone, used))

static jmp_buf env;
static sigjmp_buf senv;
static volatile long sink;
static struct { const char *name; long returns, sum; } rows[16];

static long count(int row, const char *name, long value)
{
    rows[row].name = name;
    rows[row].returns++;
    rows[row].sum += value;
    return value;
}

N long maybe(long i)
{
    if (i % 3 == 0)
        longjmp(env, 1);
    return count(0, "maybe", i * 7);
}

N long other(long i) { return count(1, "other", i + 1); }

N long outer(long i)
{
    long value = maybe(i) + other(i);
    return count(2, "outer", value);
}

N long last(long i) { return count(3, "last", i * 3); }
N long tail(long i) { rows[4].name = "tail", rows[4].returns++, rows[4].sum += i * 3; return last(i); }

N long deep(long n)
{
    if (!n)
        return count(5, "deep", 0);
    long value = deep(n - 1) + 1;
    return count(5, "deep", value);
}

N long even(long n);
N long odd(long n)
{
    rows[6].name = "odd", rows[6].returns++, rows[6].sum += (n & 1);
    return n ? even(n - 1) : 0;
}
N long even(long n)
{
    rows[7].name = "even", rows[7].returns++, rows[7].sum += !(n & 1);
    return n ? odd(n - 1) : 1;
}

N void handler(int number)
{
    sink += number;
    if (sink % 2)
        siglongjmp(senv, 1);
    count(8, "handler", 0);
}

N long raising(long i)
{
    sink = i - SIGUSR1;
    raise(SIGUSR1);
    return count(9, "raising", i);
}

N long twice(long i)
{
    jmp_buf here;
    volatile long times = 0;
    if (setjmp(here) < i)
        times++, longjmp(here, (int)times);
    return count(10, "twice", times);
}

static long (*const table[])(long) = {maybe, other, outer, last, tail};

int main(void)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
    volatile long i;

    sigaltstack(&alternate, 0);
    sigaction(SIGUSR1, &action, 0);
    for (i = 0; i < 20; i++)
        if (!setjmp(env))
            maybe(i);
    for (i = 0; i < 20; i++)
        if (!setjmp(env))
            outer(i);
    for (i = 0; i < 100; i++)
        if (!setjmp(env))
            table[i % 5](i / 5);
    for (i = 0; i < 10; i++)
        tail(i);
    deep(3000);
    even(101);
    for (i = 0; i < 10; i++)
        if (!sigsetjmp(senv, 1))
            raising(i);
    for (i = 0; i < 5; i++)
        twice(i);
    for (i = 0; i < 11; i++)
        printf("%s %ld %ld\n", rows[i].name, rows[i].returns, rows[i].sum);
    return 0;
}
