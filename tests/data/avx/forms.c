/* Runs instructions of `table` on random state, and tells the state behind each.

   Every one is called several times: with its operand inside a page, across two, reaching into
   a page that may not be accessed, and in one that may only be read; under the usual floating-point
   control and under others. A line has what was raised, and a hash of general registers, flags,
   MXCSR, vectors and memory, at the exception if there is one. With an argument the state itself is
   shown for that instruction.

   An entry of the table is an instruction's address and how many of the controls it is run under:
   those behind the first nine have exceptions that are raised. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096
#define AREA ((unsigned char *)0x10000000)
#define PAGES 4 /* may be written; then one that may not be accessed, one that may be read */
#define XSTATE 0x46505853

typedef uint64_t u64;

extern u64 table[][2], table_size;

struct state {
    u64 general[16];
    u64 flags;
    uint32_t mxcsr, unused;
    unsigned char vectors[16][32];
};

static struct state state;
static u64 seed = 88172645463325252ul;
static sigjmp_buf back;
static struct {
    int signal, code;
    u64 address, pc;
} raised;

extern void go(struct state *, u64);
__asm__(".globl go\n"
        "go: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi; push %rsi\n"
        ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        " vmovups 144+32*\\r(%rdi), %ymm\\r\n"
        ".endr\n"
        "ldmxcsr 136(%rdi)\n"
        "mov 0(%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
        "mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
        ".irp r,8,9,10,11,12,13,14,15\n mov 8*\\r(%rdi), %r\\r\n.endr\n"
        "push 128(%rdi); popfq; mov 56(%rdi), %rdi\n"
        "call *(%rsp)\n"
        "push %rdi; pushfq; mov 24(%rsp), %rdi; pop 128(%rdi); pop 56(%rdi)\n"
        "mov %rax, 0(%rdi); mov %rcx, 8(%rdi); mov %rdx, 16(%rdi); mov %rbx, 24(%rdi)\n"
        "mov %rbp, 40(%rdi); mov %rsi, 48(%rdi)\n"
        ".irp r,8,9,10,11,12,13,14,15\n mov %r\\r, 8*\\r(%rdi)\n.endr\n"
        "stmxcsr 136(%rdi)\n"
        ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        " vmovups %ymm\\r, 144+32*\\r(%rdi)\n"
        ".endr\n"
        "vzeroupper\n"
        "pop %rsi; pop %rdi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n");

static u64 next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, -1, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static void on_signal(int signal, siginfo_t *info, void *frame)
{
    ucontext_t *context = frame;
    unsigned char *image = (void *)context->uc_mcontext.fpregs;

    raised.signal = signal;
    raised.code = info->si_code;
    raised.address = (u64)info->si_addr;
    raised.pc = context->uc_mcontext.gregs[REG_RIP];
    for (int each = 0; each < 16; each++)
        state.general[each] = order[each] < 0 ? 0 : context->uc_mcontext.gregs[order[each]];
    state.flags = context->uc_mcontext.gregs[REG_EFL];
    memcpy(&state.mxcsr, image + 24, 4);
    for (int each = 0; each < 16; each++) {
        memcpy(state.vectors[each], image + 160 + 16 * each, 16);
        memset(state.vectors[each] + 16, 0, 16);
        if (*(uint32_t *)(image + 464) == XSTATE && *(u64 *)(image + 512) & 4)
            memcpy(state.vectors[each] + 16, image + 576 + 16 * each, 16);
    }
    siglongjmp(back, 1);
}

static u64 hash(const void *data, int size, u64 value)
{
    for (const unsigned char *byte = data; size--; byte++)
        value = (value ^ *byte) * 1099511628211ul;
    return value;
}

static u64 number(void)
{
    u64 value = next();
    double wide;
    float narrow[2];

    switch (next() % 12) {
    case 0: return 0;
    case 1: return 0x3f8000003f800000ul;
    case 2: wide = (double)(int)next() / 3; memcpy(&value, &wide, 8); return value;
    case 3: narrow[0] = (int)next() / 7.0f; narrow[1] = 1e-40f; memcpy(&value, narrow, 8); return value;
    case 4: return 0x7ff800007fc00000ul;
    case 5: return 0x7ff4000000000001ul;
    case 6: return 0x0000000100000003ul + (next() & 3);
    case 7: return 0x0010000000800000ul + (next() & 7);
    case 8: return 0x7fefffff7f7fffff;
    case 9: return 0x4000000040000000ul;
    }
    return value;
}

static const uint32_t controls[] = {0x1f80, 0x1f80, 0x1f80, 0x3f80, 0x5f80, 0x7f80, 0x9f80, 0x1fc0,
                                    0xffc0, 0x1f00, 0x1d80, 0x1b80, 0x1780, 0x0f80, 0x1e80, 0x0000,
                                    0x8780, 0x97c0, 0x1fbf, 0x1781, 0x0fa0};

static void prepare(int round, u64 choice)
{
    static const uint32_t usual = 0x1f80;
    u64 *memory = (u64 *)AREA, base;

    __asm__ volatile("ldmxcsr %0" : : "m"(usual));
    memset(&state, 0, sizeof state);
    for (int each = 0; each < 16; each++)
        state.general[each] = next() >> (next() & 63);
    for (int each = 0; each < 16; each++)
        for (int word = 0; word < 4; word++) {
            u64 value = number();

            memcpy(state.vectors[each] + 8 * word, &value, 8);
        }
    for (int word = 0; word < PAGES * PAGE / 8; word++)
        memory[word] = word & 63 ? (u64)word * 0x9e3779b97f4a7c15ul : number();
    switch (round) {
    case 0: case 1: base = 512 + (next() & 0x7e0); break;
    case 2: base = PAGE - (next() & 63); break;
    case 3: base = PAGES * PAGE - (next() & 95); break;
    default: base = (PAGES + 1) * PAGE + 512 + (next() & 0x7e0); break;
    }
    for (int word = 0; word < 16; word++)
        ((u64 *)(AREA + ((base - 64) & -8 & (PAGES * PAGE - 1))))[word % 8] = number();
    state.general[11] = next() & 7;
    state.general[12] = state.general[13] = state.general[15] = (u64)AREA + base;
    state.general[5] = state.general[15] / 2;
    state.mxcsr = controls[round == 1 ? next() % choice : 0];
    state.flags = 0x202 | (next() & 0x8d5);
}

static void show(u64 each, int round)
{
    printf("  %lu %d:", each, round);
    for (int at = 0; at < 16; at++)
        printf(" %lx", state.general[at]);
    printf(" flags %lx mxcsr %x\n", state.flags, state.mxcsr);
    for (int at = 0; at < 16; at++) {
        printf("  ymm%d", at);
        for (int word = 3; word >= 0; word--)
            printf(" %016lx", ((u64 *)state.vectors[at])[word]);
        printf("\n");
    }
}

static int is_vcvtps2ph(const unsigned char *code)
{
    while (strchr("\x65\x67\x3e\x2e\x36\x26", *code))
        code++;
    return code[0] == 0xc4 && (code[1] & 0x1f) == 3 && code[3] == 0x1d;
}

int main(int count, char **words)
{
    static char stack[1 << 16];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    mmap(AREA, (PAGES + 2) * PAGE, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(AREA + (PAGES + 1) * PAGE, 0x5a, PAGE);
    mprotect(AREA + PAGES * PAGE, PAGE, PROT_NONE);
    mprotect(AREA + (PAGES + 1) * PAGE, PAGE, PROT_READ);
    syscall(SYS_arch_prctl, ARCH_SET_GS, 64ul);
    sigaltstack(&own, 0);
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGFPE, &action, 0);
    sigaction(SIGILL, &action, 0);
    sigaction(SIGBUS, &action, 0);
    for (u64 each = 0; each < table_size; each++)
        for (int round = 0; round < 5; round++) {
            u64 value;

            prepare(round, table[each][1]);
            if (count > 1 && (u64)atol(words[1]) == each)
                show(each, round);
            memset(&raised, 0, sizeof raised);
            if (!sigsetjmp(back, 1))
                go(&state, table[each][0]);
            state.general[4] = 0;
            state.flags &= 0x8d5;
            if (raised.signal == SIGFPE && ~state.mxcsr & 0xc00)
                state.mxcsr &= ~0x20; /* whether an overflow or underflow that is raised is exact */
            if (raised.signal == SIGSEGV && is_vcvtps2ph((void *)raised.pc))
                state.mxcsr &= ~0x3f; /* processors differ in whether it sets them all the same */
            value = hash(AREA, PAGES * PAGE, hash(&state, sizeof state, 14695981039346656037ul));
            printf("%lu %d signal %d %d at %lx +%ld: %lx\n", each, round, raised.signal,
                   raised.code, raised.address, raised.signal ? (long)(raised.pc - table[each][0]) : 0,
                   value);
            if (count > 1 && (u64)atol(words[1]) == each)
                show(each, round);
        }
    return 0;
}
