/* What a handler is told about a fault, and what it can change. */
#include "guest.h"

#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
static volatile int seen;
static void *expected;

#if defined(__x86_64__)
#define PC(u) ((u)->uc_mcontext.gregs[REG_RIP])
#define RESULT(u) ((u)->uc_mcontext.gregs[REG_RAX])
#define LOAD_SIZE 3
#elif defined(__riscv)
#define PC(u) ((u)->uc_mcontext.__gregs[REG_PC])
#define RESULT(u) ((u)->uc_mcontext.__gregs[REG_A0])
#define LOAD_SIZE 4
#else
#define PC(u) ((u)->uc_mcontext.pc)
#define RESULT(u) ((u)->uc_mcontext.regs[0])
#define LOAD_SIZE 4
#endif

static void tell(int number, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    seen++;
    printf("signal %d code %d errno %d addr %s", number, info->si_code, info->si_errno,
           info->si_addr == expected ? "as expected" : info->si_addr == (void *)PC(u) ? "pc" : info->si_addr ? "other" : "0");
#if defined(__x86_64__)
    printf(" trapno %ld err %ld cr2 %s", (long)u->uc_mcontext.gregs[REG_TRAPNO], (long)u->uc_mcontext.gregs[REG_ERR],
           (void *)u->uc_mcontext.gregs[REG_CR2] == expected ? "as expected" : "old");
#elif defined(__aarch64__)
    printf(" fault %s", (void *)u->uc_mcontext.fault_address == expected ? "as expected" : "other");
#endif
    printf("\n");
    siglongjmp(guard_at, 1);
}
#define TELL(what, e) do { printf("%s: ", what); seen = 0; if (!sigsetjmp(guard_at, 1)) { e; } if (!seen) printf("fine\n"); } while (0)

/* A load that the handler answers: it skips the instruction and sets the result. */
long load(void *p);
#if defined(__x86_64__)
asm(".globl load\nload: mov (%rdi), %rax\nret");
#elif defined(__riscv)
asm(".option push\n.option norvc\n.globl load\nload: ld a0, 0(a0)\nret\n.option pop");
#else
asm(".globl load\nload: ldr x0, [x0]\nret");
#endif
static void answer(int number, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    seen++;
    TRUE((char *)PC(u) == (char *)load);
    PC(u) += LOAD_SIZE;
    RESULT(u) = 4711;
}
static void map_it(int number, siginfo_t *info, void *context) {
    seen++;
    char *page = (char *)((unsigned long)info->si_addr & -PAGE);
    mmap(page, PAGE, PROT_READ | PROT_WRITE, ANON | MAP_FIXED, -1, 0);
    *(long *)page = seen;
}
static void protect_it(int number, siginfo_t *info, void *context) {
    seen++;
    mprotect((void *)((unsigned long)info->si_addr & -PAGE), PAGE, PROT_READ | PROT_WRITE);
}

static long aligned[2];
static void on(int number, void (*f)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = f, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, 0);
}

int main(void) {
    int all[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int i = 0; i < 5; i++) on(all[i], tell);
    char *p = mmap(0, 4 * PAGE, PROT_READ, ANON, -1, 0);
    PEEK(p), munmap(p + PAGE, PAGE);
    mprotect(p + 2 * PAGE, PAGE, PROT_NONE);
    expected = p + 3;
    TELL("write to read-only", POKE(expected, 1));
    expected = p + PAGE + 5;
    TELL("read unmapped", PEEK(expected));
    TELL("write unmapped", POKE(expected, 1));
    expected = p + 2 * PAGE + 7;
    TELL("read PROT_NONE", PEEK(expected));
    TELL("write PROT_NONE", POKE(expected, 1));
    expected = (void *)16;
    TELL("null page", PEEK(expected));
    expected = p;
    TELL("execute without permission", ((void (*)(void))p)());
    expected = p + PAGE;
    TELL("execute unmapped", ((void (*)(void))(p + PAGE))());
    expected = p + PAGE;
    TELL("across into a hole", (void)*(volatile long *)(p + PAGE - 3));
    int fd = memfd_create("x", 0);
    char *f = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    expected = f + 9;
    TELL("behind the file", PEEK(expected));
    TELL("write behind the file", POKE(expected, 1));
    expected = 0;
#if defined(__x86_64__)
    expected = (void *)0x8000000000000000;
    TELL("non-canonical", PEEK(0x8000000000000000));
    expected = (void *)-4096;
    TELL("kernel address", PEEK(-4096));
    expected = 0;
    TELL("int3", asm volatile("int3"));
    TELL("ud2", asm volatile("ud2"));
    TELL("hlt", asm volatile("hlt"));
    TELL("cli", asm volatile("cli"));
    TELL("divide", asm volatile("xor %%edx, %%edx; xor %%ecx, %%ecx; mov $1, %%eax; div %%ecx" ::: "eax", "ecx", "edx"));
    TELL("overflow", asm volatile("mov $0x80000000, %%eax; cdq; mov $-1, %%ecx; idiv %%ecx" ::: "eax", "ecx", "edx"));
    TELL("in", asm volatile("in $0x80, %%al" ::: "eax"));
    TELL("int 0x80 gate missing", asm volatile("int $0x81"));
    TELL("mov to cr3", asm volatile("mov %%rax, %%cr3" ::: "rax"));
    TELL("single step", asm volatile("pushf; orq $0x100, (%%rsp); popf; nop; nop" ::: "memory"));
#elif defined(__riscv)
    expected = (void *)-4096;
    TELL("kernel address", PEEK(-4096));
    expected = 0;
    TELL("ebreak", asm volatile(".option push\n.option norvc\nebreak\n.option pop"));
    TELL("c.ebreak", asm volatile("c.ebreak"));
    TELL("zeros", asm volatile(".2byte 0"));
    TELL("privileged register", asm volatile("csrr a0, sstatus" ::: "a0"));
    TELL("privileged", asm volatile("mret"));
    TELL("unaligned load", PEEK((char *)&aligned + 1));
    TELL("unaligned atomic", asm volatile("amoadd.w a0, a0, (%0)" ::"r"((char *)&aligned + 1) : "a0"));
#else
    TELL("brk", asm volatile("brk #0"));
    TELL("brk 1000", asm volatile("brk #1000"));
    TELL("udf", asm volatile(".inst 0"));
    TELL("hlt", asm volatile("hlt #0"));
    TELL("privileged", asm volatile("msr daifset, #2"));
    TELL("privileged register", asm volatile("msr sctlr_el1, x0"));
    static long room[4];
    expected = (char *)room + 3;
    TELL("unaligned load", asm volatile("ldaxr x0, [%0]" ::"r"(expected) : "x0", "memory"));
    TELL("unaligned pair", asm volatile("ldxp x0, x1, [%0]" ::"r"(expected) : "x0", "x1", "memory"));
    TELL("unaligned atomic", asm volatile(".arch_extension lse\nldadd x1, x0, [%0]" ::"r"(expected) : "x0", "memory"));
    expected = 0;
    TELL("unaligned pc", ((void (*)(void))((char *)main + 2))());
#endif
    TELL("raise", raise(SIGSEGV));
    on(SIGSEGV, answer);
    seen = 0;
    printf("answered %ld, %d\n", load((void *)8), seen);
    on(SIGSEGV, map_it);
    seen = 0;
    char *area = mmap(0, 64 * PAGE, PROT_NONE, ANON, -1, 0);
    munmap(area, 64 * PAGE);
    long sum = 0;
    for (int i = 0; i < 64; i++) sum += *(volatile long *)(area + i * PAGE);
    printf("mapped on demand %ld, %d\n", sum, seen);
    on(SIGSEGV, protect_it);
    seen = 0;
    mprotect(area, 64 * PAGE, PROT_READ);
    for (int i = 0; i < 64; i++) *(volatile long *)(area + i * PAGE) += 1;
    for (int i = 0; i < 64; i++) *(volatile long *)(area + i * PAGE) += 1;
    printf("write barrier %d\n", seen);
    /* a fault that is blocked kills */
    signal(SIGSEGV, SIG_IGN);
    fflush(stdout);
    PEEK(8);
    return 0;
}
