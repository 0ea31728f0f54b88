/* Markers with operands of every kind; constraint "nor" as in <sys/sdt.h>. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "markers.h"

SEMAPHORE(fed_semaphore);
unsigned short unsigned16 = 65533;
long wide = -5;
signed char small = -3;
double real = 2.5;
static int table[8] = {10, 20, 30, 40, 50, 60, 70, 80};
struct box { int a; signed char b; long c; } box = {1, -2, 3000000000L};

__attribute__((noinline)) long feed(int i, long j, signed char c, unsigned char uc, short sh,
                                    const char *text, struct box *p)
{
    volatile int stack[4] = {i, i + 1, i + 2, i + 3};
    MARKER("zoo", "many", "0", "-4@%0 -8@%1 -1@%2 1@%3 -2@%4 8@%5 -4@%6 -1@%7 -8@%8 -4@%9",
           "nor"(i), "nor"(j), "nor"(c), "nor"(uc), "nor"(sh), "nor"(text), "nor"(p->a),
           "nor"(p->b), "nor"(p->c), "nor"(table[i]));
    MARKER("zoo", "globals", "0", "2@%0 -8@%1 -1@%2 8f@%3", "nor"(unsigned16), "nor"(wide),
           "nor"(small), "nor"(real));
    MARKER("zoo", "consts", "0", "-4@%0 -4@%1 -8@%2 4@%3", "n"(5), "n"(-7),
           "n"(0x7fffffffffffffffL), "n"(4000000000u));
    MARKER("zoo", "stack", "0", "-4@%0 -4@%1", "m"(stack[1]), "nor"(stack[i & 3]));
    if (fed_semaphore)
        MARKER("zoo", "fed", "fed_semaphore", "-4@%0", "nor"(i * 3));
    if (i & 1)
        MARKER("zoo", "twice", "0", "-4@%0", "r"(i));
    else
        MARKER("zoo", "twice", "0", "-4@%0", "m"(stack[0]));
    if (i == 2)
        MARKER("zoo", "other", "0", "-4@%0", "r"(i));
    else
        MARKER("zoo", "other", "0", "-8@%0", "r"(j));
    MARKER("zoo", "none", "0", "", "n"(0));
    return i + j + c;
}

int main(int argc, char **argv)
{
    long sum = 0;
    for (int i = 0; i < 4; i++)
        sum += feed(i, i * 1000000007L, -i, 250 + i, -300 * i, "hello", &box);
    printf("%ld %d\n", sum, fed_semaphore);
    fflush(stdout);
    if (argc > 1) {
        int child = fork(), status;
        if (!child) {
            feed(1, 0, 0, 0, 0, argv[1], &box);
            _exit(fed_semaphore);
        }
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    }
    return 0;
}
