/* `deep COUNT`: calls `leaf` so often, twenty frames deep, and prints nothing. */
#include <stdlib.h>

volatile long sink;

__attribute__((noinline)) long leaf(long n) { return sink += n; }

__attribute__((noinline)) long deep(long depth, long n)
{
    long found = depth ? deep(depth - 1, n) + 1 : leaf(n);
    sink ^= found;
    return found;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < count; i++)
        deep(16, i);
    return 0;
}
