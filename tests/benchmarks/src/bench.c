/* Compute kernels for measuring an emulator: `bench NAME ROUNDS` prints one checksum and nothing else.
 * The kernels make no system calls, so that only the processor core is measured. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL __attribute__((noipa))

/* Integer arithmetic, branches and a small table in memory. */
KERNEL uint64_t intloop(long rounds)
{
    static uint32_t table[256];
    uint32_t state = 12345;
    for (long i = 0; i < rounds; i++) {
        state = state * 1664525u + 1013904223u;
        if (state & 0x10000)
            state ^= table[state >> 24];
        else
            state += (uint32_t)i >> 3;
        table[(state >> 8) & 255] += state;
    }
    return state;
}

/* Calls and returns: one round is fib(20), 21,891 calls; the attribute keeps all of them calls. */
KERNEL __attribute__((optimize("no-optimize-sibling-calls"))) unsigned fib(unsigned n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

KERNEL uint64_t recursion(long rounds)
{
    uint64_t sum = 0;
    for (long i = 0; i < rounds; i++)
        sum = sum * 31 + fib(20);
    return sum;
}

/* The C library's memcpy and strlen, from a few bytes to 4 KiB, at all alignments. */
KERNEL uint64_t memstr(long rounds)
{
    static char from[8192], to[8192];
    uint64_t sum = 0;
    memset(from, 'x', sizeof from);
    for (long i = 0; i < rounds; i++) {
        size_t length = (size_t)(i * 37 % 4096) + 1, offset = (size_t)i % 64;
        from[offset + length] = 0;
        memcpy(to + (i & 15), from + offset, length + 1);
        sum = sum * 31 + strlen(to + (i & 15));
        from[offset + length] = 'x';
    }
    return sum;
}

/* Scalar square roots and multiply-adds over arrays; one round is 1,024 elements. */
KERNEL uint64_t floats(long rounds)
{
    enum { COUNT = 1024 };
    static double a[COUNT], b[COUNT];
    double sum = 0;
    uint64_t bits;
    for (int i = 0; i < COUNT; i++) {
        a[i] = i * 0.5 + 1;
        b[i] = 1.0 / (i + 1);
    }
    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < COUNT; i++) {
            a[i] = sqrt(a[i] * a[i] + b[i]);
            sum = sum * 0.999 + a[i] * b[i];
        }
    memcpy(&bits, &sum, sizeof bits);
    return bits;
}

/* qsort with a callback; one round sorts 1,000 numbers. */
KERNEL int compare(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

KERNEL uint64_t sorting(long rounds)
{
    static int32_t numbers[1000];
    uint32_t seed = 1;
    uint64_t sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 1000; i++)
            numbers[i] = (int32_t)(seed = seed * 1103515245u + 12345u);
        qsort(numbers, 1000, sizeof *numbers, compare);
        sum = sum * 31 + (uint32_t)numbers[round % 1000];
    }
    return sum;
}

static const struct {
    const char *name;
    uint64_t (*run)(long rounds);
} KERNELS[] = {
    {"intloop", intloop}, {"recursion", recursion}, {"memstr", memstr},
    {"float", floats},    {"qsort", sorting},
};

int main(int argc, char **argv)
{
    long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : -1;
    for (size_t i = 0; rounds >= 0 && i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (!strcmp(argv[1], KERNELS[i].name)) {
            printf("%016llx\n", (unsigned long long)KERNELS[i].run(rounds));
            return 0;
        }
    fputs("usage: bench intloop|recursion|memstr|float|qsort ROUNDS\n", stderr);
    return 2;
}
