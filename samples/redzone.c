/* A leaf that keeps its arguments in the red zone, around a no-operation of five bytes . */
#include "rt.h"

#if defined __x86_64__
/* Returns left + right, by way of 32 bytes below the stack pointer, which the ABI leaves to leaf functions. */
PROBEABLE __attribute__((naked)) u64 keep(u64 left, u64 right)
{
    (void)left, (void)right;
    __asm__("mov %rdi, -8(%rsp)\n\t"
            "mov %rsi, -32(%rsp)\n\t"
            ".globl keep_nop\n"
            "keep_nop:\n\t"
            ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t" /* what compilers leave for a tracer */
            "mov -8(%rsp), %rax\n\t"
            "add -32(%rsp), %rax\n\t"
            "ret");
}
#else
/* No other architecture here has a red zone. */
PROBEABLE u64 keep(u64 left, u64 right)
{
    return left + right;
}
#endif

PROBEABLE u32 check(u64 round)
{
    u64 sum = keep(round, 1000);
    print("round ");
    print_u64(round);
    print(sum == round + 1000 ? ": kept\n" : ": damaged\n");
    return sum != round + 1000;
}

int main(int argc, char **argv)
{
    u32 damaged = 0;
    (void)argc, (void)argv;
    for (u64 round = 1; round <= 4; round++)
        damaged += check(round);
    print_u64(damaged);
    print(" of 4 damaged\n");
    return (int)damaged;
}
