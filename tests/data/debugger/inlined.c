#include <stdio.h>

static volatile int total, given;

static inline __attribute__((always_inline)) int weigh(void)
{
    int twice = given * 2;
    total += twice;
    return twice + 1;
}

static __attribute__((noinline)) int first(void)
{
    return weigh() + weigh();
}

static __attribute__((noinline)) int second(void)
{
    for (int i = 0; i < 2; i++)
        total += weigh();
    return total;
}

int main(void)
{
    given = 3;
    int sum = first() + second();
    printf("%d\n", sum);
    return 0;
}
