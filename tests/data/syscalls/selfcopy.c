/* A program that copies its own code away and back over itself, whatever stands in it by then. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest.h"

#define OWN __attribute__((noinline, noclone, aligned(PAGE)))

OWN int first(int x) { __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop"); return x * 3 + 1; }
__attribute__((noinline, noclone)) int second(int x) { return first(x) * 5 + x; }
OWN int behind(int x) { return x; }

static char kept[PAGE];

static int round_trip(int how)
{
    char *page = (char *)((uintptr_t)first & -PAGE);
    int ends[2];

    if (how == 0) {
        memcpy(kept, page, PAGE);
        memcpy(page, kept, PAGE);
    } else if (how == 1) {
        for (int at = 0; at < 64; at++)
            kept[at] = page[at];
        for (int at = 0; at < 64; at++)
            ((volatile char *)page)[at] = kept[at];
    } else {
        if (pipe(ends))
            return -1;
        write(ends[1], page, PAGE);
        read(ends[0], page, PAGE);
        close(ends[0]);
        close(ends[1]);
    }
    __builtin___clear_cache(page, page + PAGE);
    return second(how) + first(how);
}

int main(void)
{
    int sum = behind(0);

    if (mprotect((char *)((uintptr_t)first & -PAGE), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
        return 1;
    for (int how = 0; how < 3; how++)
        for (int times = 0; times < 2; times++)
            sum += round_trip(how);
    printf("%d\n", sum);
    return 0;
}
