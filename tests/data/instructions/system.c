// Instructions that look at tables of the system, go to other segments or raise exceptions; each
// line of the output tells what one has done.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf out;
static volatile struct { long number, code, address, trap, error, at; } got;

static void caught(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    got.number = number, got.code = info->si_code, got.address = (long)info->si_addr;
    got.trap = registers[REG_TRAPNO], got.error = registers[REG_ERR], got.at = registers[REG_RIP];
    siglongjmp(out, 1);
}

static uint64_t r[4];
static uint8_t m[256] __attribute__((aligned(64)));
static char *data(void) { return (char *)m; }

#define TRY(name, ...)                                                                          \
    do {                                                                                        \
        for (int i = 0; i < 4; i++) r[i] = ~0UL;                                                \
        for (int i = 0; i < 256; i++) m[i] = 37 * i + 11;                                       \
        if (!sigsetjmp(out, 1)) {                                                               \
            __VA_ARGS__;                                                                        \
            unsigned sum = 0;                                                                   \
            for (int i = 0; i < 256; i++) sum = 31 * sum + m[i];                                \
            printf("%s: %lx %lx %lx %lx, memory %08x\n", name, r[0], r[1], r[2], r[3], sum);    \
        } else                                                                                  \
            printf("%s: signal %ld, code %ld, trap %ld, error %lx, address %s\n", name,         \
                   got.number, got.code, got.trap, got.error,                                   \
                   !got.address ? "none" : got.address == got.at ? "pc" : "another");           \
    } while (0)
#define ASM __asm__ volatile

static void selectors(void) {
    for (int selector = 0; selector < 0x10000; selector++) {
        uint64_t lar = ~0UL, lsl = ~0UL, short_lar = ~0UL, wide = ~0UL;
        uint8_t ok[4];
        ASM("lar %w4, %k0; setz %1; lsl %w4, %k2; setz %3"
            : "+r"(lar), "=m"(ok[0]), "+r"(lsl), "=m"(ok[1]) : "r"(selector) : "cc");
        ASM("verr %w2; setz %0; verw %w2; setz %1" : "=m"(ok[2]), "=m"(ok[3]) : "r"(selector) : "cc");
        ASM("lar %w2, %w0; lslq %w2, %q1" : "+r"(short_lar), "+r"(wide) : "r"(selector) : "cc");
        if (ok[0] || ok[1] || ok[2] || ok[3] || ~lar || ~lsl || ~short_lar || ~wide)
            printf("selector %x: %d%d%d%d %lx %lx %lx %lx\n", selector, ok[0], ok[1], ok[2], ok[3], lar,
                   lsl, short_lar, wide);
    }
    *(uint16_t *)m = 0x33;
    uint64_t from = 0;
    ASM("lsl %1, %k0" : "+r"(from) : "m"(*(uint16_t *)m) : "cc");
    printf("lsl of memory: %lx\n", from);
}

static void stores(void) {
    TRY("sgdt", ASM("sgdt %0" : "=m"(*m)));
    TRY("sidt", ASM("sidt %0" : "=m"(m[3])));
    TRY("smsw", ASM("smsww %w0" : "+r"(r[0])); ASM("smswl %k0" : "+r"(r[1]));
        ASM("smswq %q0" : "+r"(r[2])); ASM("smsw %0" : "=m"(m[5])));
    TRY("sldt", ASM("sldtw %w0" : "+r"(r[0])); ASM("sldtl %k0" : "+r"(r[1]));
        ASM("sldtq %q0" : "+r"(r[2])); ASM("sldt %0" : "=m"(m[5])));
    TRY("str", ASM("strw %w0" : "+r"(r[0])); ASM("strl %k0" : "+r"(r[1]));
        ASM("strq %q0" : "+r"(r[2])); ASM("str %0" : "=m"(m[5])));
    TRY("smsw r12", ASM("mov $-1, %%r12; smsw %%r12; mov %%r12, %0" : "=m"(r[0]) : : "r12"));
    TRY("sgdt nowhere", ASM("sgdt (%0)" : : "r"(0x1000L)));
    TRY("smsw fs", ASM("lea 16(%1), %%rax; smsw -16(%%rax)" : "=m"(*m) : "r"(data()) : "rax"));
    TRY("lldt", ASM("lldt %w0" : : "r"(0)));
    TRY("ltr", ASM("ltr %w0" : : "r"(0x40)));
    TRY("lgdt", ASM("lgdt %0" : : "m"(*m)));
    TRY("lidt", ASM("lidt %0" : : "m"(*m)));
    TRY("lmsw", ASM("lmsw %w0" : : "r"(1)));
    TRY("invlpg", ASM("invlpg %0" : : "m"(*m)));
}

#define CODE "mov %%cs, %%eax; "
#define HERE "lea 1f(%%rip), %%rcx; "
static void far(void) {
    long zero = 0;
    TRY("lretq", ASM(CODE HERE "push %%rax; push %%rcx; lretq; ud2; 1: movq $1, %0" : "=m"(r[0]) : : "rax", "rcx"));
    TRY("lretq 16", ASM("mov %%rsp, %%rdx; push $5; push $6; " CODE HERE
        "push %%rax; push %%rcx; lretq $16; ud2; 1: sub %%rsp, %%rdx; mov %%rdx, %0" : "=m"(r[0]) : : "rax", "rcx", "rdx"));
    TRY("lret to data", ASM(HERE "push $0x2b; push %%rcx; lretq; 1:" : : : "rcx"));
    TRY("lret to nothing", ASM(HERE "push $0; push %%rcx; lretq; 1:" : : : "rcx"));
    TRY("lret to rpl 0", ASM(HERE "push $0x30; push %%rcx; lretq; 1:" : : : "rcx"));
    TRY("lret to the kernel", ASM(HERE "push $0x10; push %%rcx; lretq; 1:" : : : "rcx"));
    TRY("lret to a table", ASM(HERE "push $0x1237; push %%rcx; lretq; 1:" : : : "rcx"));
    TRY("lret to high", ASM("push $0x33; mov $0x8000000000000000, %%rcx; push %%rcx; lretq; 1:" : : : "rcx"));
    TRY("lret nowhere", ASM("mov %%rsp, %%rbx; mov $4096, %%esp; lretq; mov %%rbx, %%rsp" : : : "rbx"));
    TRY("iretq", ASM("mov %%rsp, %%rdx; mov %%ss, %%eax; push %%rax; push %%rdx; push $0xed7; " CODE HERE
        "push %%rax; push %%rcx; iretq; ud2; 1: sub %%rsp, %%rdx; pushf; pop %0; cld; mov %%rdx, %1" : "=m"(r[0]), "=m"(r[1]) : : "rax", "rcx", "rdx", "cc"));
    TRY("iretq system flags", ASM("mov %%rsp, %%rdx; mov %%ss, %%eax; push %%rax; push %%rdx; pushq $0x3a7202; " CODE HERE
        "push %%rax; push %%rcx; iretq; ud2; 1: pushf; pop %0; pushq $0x202; popf" : "=m"(r[0]) : : "rax", "rcx", "rdx", "cc"));
    TRY("iretq moves the stack", ASM("mov %%rsp, %%rdx; mov %%ss, %%eax; push %%rax; lea -512(%%rdx), %%r8; push %%r8; push $0x202; " CODE HERE
        "push %%rax; push %%rcx; iretq; ud2; 1: mov %%rsp, %0; mov %%rdx, %%rsp; sub %%rdx, %0" : "=r"(r[0]) : : "rax", "rcx", "rdx", "r8", "cc"));
    TRY("iretq to data", ASM("mov %%rsp, %%rdx; push $0x2b; push %%rdx; push $0x202; push $0x2b; " HERE "push %%rcx; iretq; 1:" : : : "rcx", "rdx"));
    TRY("iretq without a stack", ASM("mov %%rsp, %%rdx; push $0; push %%rdx; push $0x202; push $0x33; " HERE "push %%rcx; iretq; 1:" : : : "rcx", "rdx"));
    TRY("iretq with code as stack", ASM("mov %%rsp, %%rdx; push $0x33; push %%rdx; push $0x202; push $0x33; " HERE "push %%rcx; iretq; 1:" : : : "rcx", "rdx"));
    (void)zero;
    struct { uint32_t to; uint16_t selector; } __attribute__((packed)) place = {0, 0x33};
    TRY("ljmp", ASM(HERE "mov %%ecx, %0; ljmp *%0; ud2; 1: movq $1, %1" : "+m"(place), "=m"(r[0]) : : "rcx"));
    TRY("lcall", ASM("mov %%rsp, %%rdx; " HERE
        "mov %%ecx, %0; lcall *%0; 2: ud2; 1: pop %%rax; sub %%rsp, %%rdx; lea 2b(%%rip), %%rcx; sub %%rcx, %%rax; mov %%rax, %1; mov %%rdx, %2"
        : "+m"(place), "=m"(r[0]), "=m"(r[1]) : : "rcx", "rax", "rdx"));
    place.selector = 0x2b;
    TRY("ljmp to data", ASM("ljmp *%0" : : "m"(place)));
    TRY("ljmp register", ASM(".byte 0xff, 0xe8"));
    TRY("lcall register", ASM(".byte 0xff, 0xd8"));
}

extern uint8_t interrupts[];
__asm__("interrupts:\n.set n, 0\n.rept 256\n.byte 0xcd, n, 0xc3, 0xcc\n.set n, n + 1\n.endr\n");

static void exceptions(void) {
    char name[32];
    for (int number = 0; number < 256; number++) {
        if (number == 0x80)
            continue;
        snprintf(name, sizeof name, "int %02x", number);
        TRY(name, ((void (*)(void))(interrupts + 4 * number))());
    }
    TRY("int3", ASM("int3"));
    TRY("int1", ASM(".byte 0xf1"));
    TRY("ud0", ASM(".byte 0x0f, 0xff, 0xc0"));
    TRY("ud1", ASM(".byte 0x0f, 0xb9, 0xc0"));
    TRY("ud2", ASM("ud2"));
    TRY("hlt", ASM("hlt"));
    TRY("cli", ASM("cli"));
    TRY("sti", ASM("sti"));
    TRY("in", ASM("in $0x80, %%al" : : : "rax"));
    TRY("out", ASM("outb %%al, %%dx" : : "a"(0), "d"(0x80)));
    TRY("rdmsr", ASM("rdmsr" : : "c"(0) : "rax", "rdx"));
    TRY("wrmsr", ASM("wrmsr" : : "c"(0), "a"(0), "d"(0)));
    TRY("rdpmc", ASM("rdpmc" : : "c"(0) : "rax", "rdx"));
    TRY("cr0", ASM("mov %%cr0, %%rax" : : : "rax"));
    TRY("dr0", ASM("mov %%dr0, %%rax" : : : "rax"));
    TRY("clts", ASM("clts"));
    TRY("invd", ASM("invd"));
    TRY("wbinvd", ASM("wbinvd"));
    TRY("swapgs", ASM("swapgs"));
    TRY("sysret", ASM("sysretq"));
    TRY("xsetbv", ASM("xsetbv" : : "c"(0), "a"(7), "d"(0)));
    TRY("monitor", ASM("monitor" : : "a"(m), "c"(0), "d"(0)));
    TRY("mov to cs", ASM(".byte 0x8e, 0xc8"));
    TRY("mov to ds of the kernel", ASM("mov %0, %%ds" : : "r"(0x18)));
    TRY("mov to es of a table", ASM("mov %0, %%es" : : "r"(0x1237)));
    TRY("read not canonical", ASM("mov (%0), %%rax" : : "r"(1UL << 63) : "rax"));
    TRY("write not canonical", ASM("mov %%rax, (%0)" : : "r"(1UL << 63)));
    TRY("jump not canonical", ASM("jmp *%0" : : "r"(1UL << 63)));
    TRY("stack not canonical", ASM("mov %%rsp, %%rbx; mov %0, %%rsp; pop %%rax; mov %%rbx, %%rsp" : : "r"(1UL << 63) : "rax", "rbx"));
    TRY("read of the kernel", ASM("mov (%0), %%rax" : : "r"(0xffffffff81000000) : "rax"));
    TRY("write of the kernel", ASM("mov %%rax, (%0)" : : "r"(0xffff888000000000)));
    TRY("read of nothing", ASM("mov (%0), %%rax" : : "r"(4096L) : "rax"));
    TRY("add to nothing", ASM("add %%rax, (%0)" : : "r"(4096L)));
    TRY("inc of nothing", ASM("lock incl (%0)" : : "r"(4096L)));
    TRY("xchg with nothing", ASM("xchg %%rax, (%0)" : : "r"(4096L)));
    TRY("bts of nothing", ASM("bts %%rcx, (%0)" : : "r"(4096L), "c"(1)));
    TRY("bt of nothing", ASM("bt %%rcx, (%0)" : : "r"(4096L), "c"(1)));
    TRY("cmp of nothing", ASM("cmp %%rax, (%0)" : : "r"(4096L)));
    TRY("push of nothing", ASM("pushq (%0)" : : "r"(4096L)));
    TRY("movs from nothing", ASM("movsb" : : "S"(4096L), "D"(m) : "memory"));
    TRY("code is not written", ASM("addl $1, (%0)" : : "r"(interrupts)));
    TRY("movaps", ASM("movaps 4(%0), %%xmm0" : : "r"(data()) : "xmm0"));
    TRY("movaps of nothing", ASM("movaps 4100, %%xmm0" : : : "xmm0"));
    TRY("movaps of nothing, aligned", ASM("movaps 4112, %%xmm0" : : : "xmm0"));
    TRY("cmpxchg16b", ASM("cmpxchg16b 8(%0)" : : "r"(data()) : "rax", "rbx", "rcx", "rdx"));
    TRY("fxsave", ASM("fxsave 8(%0)" : : "r"(data())));
    TRY("divide", ASM("div %%ecx" : : "c"(0), "d"(0) : "rax"));
    TRY("divide overflow", ASM("idiv %%ecx" : : "a"(0x80000000), "d"(-1), "c"(-1)));
}

static void locks(void) {
    TRY("lock nop", ASM(".byte 0xf0, 0x90"));
    TRY("lock add", ASM(".byte 0xf0, 0x01, 0xc0"));
    TRY("lock mov", ASM(".byte 0xf0, 0x89, 0x00" : : "a"(m)));
    TRY("lock mov load", ASM(".byte 0xf0, 0x8b, 0x08" : : "a"(m) : "rcx"));
    TRY("lock cmp", ASM(".byte 0xf0, 0x39, 0x08" : : "a"(m)));
    TRY("lock cmp 83", ASM(".byte 0xf0, 0x83, 0x38, 0x01" : : "a"(m)));
    TRY("lock test", ASM(".byte 0xf0, 0x85, 0x08" : : "a"(m)));
    TRY("lock add load", ASM(".byte 0xf0, 0x03, 0x08" : : "a"(m) : "rcx"));
    TRY("lock shl", ASM(".byte 0xf0, 0xd1, 0x20" : : "a"(m)));
    TRY("lock bt", ASM(".byte 0xf0, 0x0f, 0xa3, 0x08" : : "a"(m), "c"(1)));
    TRY("lock neg", ASM(".byte 0xf0, 0xf6, 0x18" : : "a"(m)));
    TRY("lock not", ASM(".byte 0xf0, 0xf6, 0x10" : : "a"(m)));
    TRY("lock movs", ASM(".byte 0xf0, 0xa4" : : "S"(m), "D"(m + 8) : "memory"));
    TRY("lock push", ASM(".byte 0xf0, 0x50" : : ));
    TRY("lock movups", ASM(".byte 0xf0, 0x0f, 0x10, 0x00" : : "a"(m) : "xmm0"));
    TRY("lock xchg register", ASM(".byte 0xf0, 0x87, 0xc8" : : : "rax", "rcx"));
    TRY("lock imul", ASM(".byte 0xf0, 0x0f, 0xaf, 0x08" : : "a"(m) : "rcx"));
}

#define CALL(address) ASM("mov %2, %%rax; call *%%rax; mov %%rax, %0" : "=m"(r[0]) : "D"(0), "i"(address) : "rax", "rsi", "rcx", "r11", "rdx", "memory")
static void calls(void) {
    TRY("vsyscall time", CALL(0xffffffffff600400); r[0] = r[0] > 1000000000);
    TRY("vsyscall gettimeofday", ASM("mov %1, %%rax; call *%%rax; mov %%rax, %0" : "=m"(r[0]) : "i"(0xffffffffff600000), "D"(m), "S"(0L) : "rax", "rcx", "r11", "memory");
        r[1] = *(uint64_t *)m > 1000000000; r[2] = ((uint64_t *)m)[1] < 1000000; memset(m, 0, 16));
    TRY("vsyscall getcpu", ASM("mov %1, %%rax; call *%%rax; mov %%rax, %0" : "=m"(r[0]) : "i"(0xffffffffff600800), "D"(m), "S"(m + 8), "d"(0L) : "rax", "rcx", "r11", "memory");
        r[1] = *(uint32_t *)m < 4096; memset(m, 0, 16));
    TRY("vsyscall time stored", ASM("mov %1, %%rax; call *%%rax; sub (%2), %%rax; mov %%rax, %0" : "=m"(r[0]) : "i"(0xffffffffff600400), "D"(m) : "rax", "rcx", "r11", "memory"); memset(m, 0, 8));
    TRY("vsyscall faults", ASM("mov %0, %%rax; call *%%rax" : : "i"(0xffffffffff600400), "D"(4096L) : "rax", "rcx", "r11", "memory"));
    TRY("vsyscall between", ASM("mov %0, %%rax; call *%%rax" : : "i"(0xffffffffff600408) : "rax", "rcx", "r11"));
    TRY("vsyscall behind", ASM("mov %0, %%rax; call *%%rax" : : "i"(0xffffffffff600c00) : "rax", "rcx", "r11"));
    TRY("vsyscall read", ASM("mov (%0), %%rax" : : "r"(0xffffffffff600000) : "rax"));
    TRY("vsyscall write", ASM("mov %%rax, (%0)" : : "r"(0xffffffffff600000)));
}

int main(int argc, char **argv) {
    static char stack[65536];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    sigaltstack(&alternative, 0);
    for (int number = 1; number < 32; number++)
        sigaction(number, &action, 0);
    void (*parts[])(void) = {selectors, stores, far, exceptions, calls, locks};
    for (int i = 0; i < 6; i++)
        if (argc < 2 || strchr(argv[1], '0' + i))
            parts[i]();
    return 0;
}
