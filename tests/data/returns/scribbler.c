/* Writes to memory that it has no business with, at argv[1] (hexadecimal) and words beside it. */
#include <stdio.h>
#include <stdlib.h>
#define N __attribute__((noinline, noclone, used))

static volatile long sink;
static unsigned long state;

static unsigned long draw(void)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return state >> 33;
}

N long leaf(long n) { return sink += n; }
N long down(long n) { return n ? down(n - 1) + 1 : leaf(n); }

N long scribble(volatile unsigned long *words, unsigned long count, unsigned long near)
{
    unsigned long at = draw() % count, value = draw() << 31 ^ draw();
    switch (draw() % 6) {
    case 0: break;
    case 1: value %= 1024; break;
    case 2: value = words[draw() % count]; break;
    case 3: value = words[at] + (draw() % 5 - 2) * 8; break;
    case 4: value = near + draw() % 512 * 64; break;
    default: value = (unsigned long)&value - draw() % 4096 * 8;
    }
    words[at] = value;
    return leaf(at);
}

int main(int argc, char **argv)
{
    unsigned long start = strtoul(argv[1], 0, 16), count = strtoul(argv[2], 0, 0);
    unsigned long near = strtoul(argv[3], 0, 16);
    state = strtoul(argv[4], 0, 0);
    for (int i = 0; i < 400; i++) {
        down(draw() % 9);
        if (i > 100)
            scribble((volatile unsigned long *)start, count, near);
        leaf(i);
    }
    printf("done\n");
    return 0;
}
