/* A program that has the processor trap behind each of its instructions, and tells where. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static long places[64];
static volatile int count;
extern char first[];

static void trapped(int signal, siginfo_t *info, void *frame)
{
    ucontext_t *context = frame;

    if (count < 64)
        places[count++] = context->uc_mcontext.gregs[REG_RIP] - (long)first;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    __m256i value = _mm256_set1_epi32(-3), mask = _mm256_set1_epi64x(-1);
    int result;

    sigaction(SIGTRAP, &action, 0);
    __asm__ volatile("sub $128, %%rsp\n"
                     "pushfq\n"
                     "orq $0x100, (%%rsp)\n"
                     "popfq\n"
                     ".globl first\n"
                     "first: vpaddd %1, %1, %%ymm3\n"
                     "second: vpmovmskb %%ymm3, %0\n"
                     "third: vmovdqu %%ymm3, -64(%%rsp)\n"
                     "fourth: vpaddd -64(%%rsp), %%ymm3, %%ymm3\n"
                     "fifth: andn %0, %0, %0\n"
                     "sixth: vpmaskmovd -64(%%rsp), %2, %%ymm4\n"
                     "seventh: vptest %%ymm3, %%ymm3\n"
                     "eighth: shld $3, %%rax, place(%%rip)\n"
                     "nop\n"
                     "pushfq\n"
                     "andq $~0x100, (%%rsp)\n"
                     "popfq\n"
                     "add $128, %%rsp\n"
                     ".data\nplace: .quad 5\n.text"
                     : "=&r"(result)
                     : "x"(value), "x"(mask)
                     : "xmm3", "xmm4", "memory", "cc");
    for (int each = 0; each < count; each++)
        printf("%ld ", places[each]);
    printf("%d\n", result);
    return 0;
}
