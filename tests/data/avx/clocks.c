/* Loops over single instructions, and what the clock is behind them. */
#include <stdio.h>
#include <time.h>

#define LOOP(name, code)                                                                          \
    __attribute__((noinline)) static void loop_##name(void)                                       \
    {                                                                                             \
        for (int turn = 0; turn < 20; turn++)                                                     \
            __asm__ volatile(".globl " #name "\n" #name ": " code                                 \
                             :                                                                    \
                             :                                                                    \
                             : "rax", "rcx", "xmm0", "xmm1", "cc", "memory");                     \
    }

char room[4096] __attribute__((aligned(64)));

LOOP(computes, "vpaddd %%ymm0, %%ymm0, %%ymm0")
LOOP(loads, "vpaddd room(%%rip), %%ymm0, %%ymm0")
LOOP(stores, "vmovdqu %%ymm0, room(%%rip)")
LOOP(counts, "andn %%rax, %%rcx, %%rax")
LOOP(masked, "vpmaskmovd room(%%rip), %%ymm0, %%ymm1")
LOOP(clears, "vzeroupper")
LOOP(shifts, "shld $3, %%rax, room(%%rip)")

int main(void)
{
    unsigned long long before = __builtin_ia32_rdtsc(), after;
    struct timespec now;

    loop_computes();
    loop_loads();
    loop_stores();
    loop_counts();
    loop_masked();
    loop_clears();
    loop_shifts();
    after = __builtin_ia32_rdtsc();
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%llu %ld.%09ld\n", after - before, now.tv_sec, now.tv_nsec);
    return room[0] == 1;
}
