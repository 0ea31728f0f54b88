/* What every hostile guest needs: raw system calls with six arguments, results in plain text, modes by name. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "../../../samples/rt.h"
#include <asm/unistd.h>

enum { AT_FDCWD = -100, O_RDONLY = 0, O_WRONLY = 1, O_RDWR = 2, O_CREAT = 0100, O_TRUNC = 01000 };
enum { PROT_R = 1, PROT_W = 2, PROT_X = 4, MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 16, MAP_ANON = 32 };
enum { SIGILL = 4, SIGTRAP = 5, SIGBUS = 7, SIGUSR1 = 10, SIGSEGV = 11, SIGPIPE = 13, SIGTERM = 15, SIGINT = 2 };
enum { SA_SIGINFO = 4, SA_RESTORER = 0x04000000, SA_ONSTACK = 0x08000000, SA_NODEFER = 0x40000000 };

__attribute__((noinline)) static s64 sys(s64 number, s64 a, s64 b, s64 c, s64 d, s64 e, s64 f)
{
#if defined __x86_64__
    s64 result;
    register s64 r10 __asm__("r10") = d;
    register s64 r8 __asm__("r8") = e;
    register s64 r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined __riscv
    register s64 a7 __asm__("a7") = number;
    register s64 a0 __asm__("a0") = a;
    register s64 a1 __asm__("a1") = b;
    register s64 a2 __asm__("a2") = c;
    register s64 a3 __asm__("a3") = d;
    register s64 a4 __asm__("a4") = e;
    register s64 a5 __asm__("a5") = f;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
    return a0;
#else
    register s64 x8 __asm__("x8") = number;
    register s64 x0 __asm__("x0") = a;
    register s64 x1 __asm__("x1") = b;
    register s64 x2 __asm__("x2") = c;
    register s64 x3 __asm__("x3") = d;
    register s64 x4 __asm__("x4") = e;
    register s64 x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

#define SYS_(n, a, b, c, d, e, f, ...) sys(n, (s64)(a), (s64)(b), (s64)(c), (s64)(d), (s64)(e), (s64)(f))
#define SYS(...) SYS_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

static s64 show(const char *what, s64 result)
{
    print(what);
    print(": ");
    print_s64(result);
    print("\n");
    return result;
}

static int fail(const char *what, s64 result, int code)
{
    show(what, result);
    return code;
}

static void say(const char *text)
{
    print(text);
    print("\n");
}

static int same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static s64 number(const char *text)
{
    s64 value = 0;
    int negative = *text == '-';
    u32 base = 10;
    text += negative;
    if (text[0] == '0' && text[1] == 'x')
        base = 16, text += 2;
    for (; *text; text++)
        value = value * base + (*text >= 'a' ? *text - 'a' + 10 : *text - '0');
    return negative ? -value : value;
}

static u8 *map(s64 at, u64 size, int prot, int flags)
{
    return (u8 *)SYS(__NR_mmap, at, size, prot, flags, -1, 0);
}

static int failed(void *address)
{
    return (u64)address > -4096ul;
}

struct action {
    void *handler;
    u64 flags;
    void *restorer;
    u64 mask;
};

#if defined __x86_64__
__asm__(".pushsection .text\nrestorer: mov $15,%eax\nsyscall\n.popsection\n");
extern void restorer(void);
#define RESTORER ((void *)restorer)
#define RESTORER_FLAG SA_RESTORER
#else
#define RESTORER NULL
#define RESTORER_FLAG 0
#endif

static s64 on(int signal, void *handler, u64 flags)
{
    struct action action = {handler, flags | SA_SIGINFO | RESTORER_FLAG, RESTORER, 0};
    return SYS(__NR_rt_sigaction, signal, &action, NULL, 8);
}

struct mode {
    const char *name;
    int (*run)(int argc, char **argv);
};

static int choose(const struct mode *modes, u32 count, int argc, char **argv)
{
    for (u32 i = 0; argc > 1 && i < count; i++)
        if (same(modes[i].name, argv[1]))
            return modes[i].run(argc - 2, argv + 2);
    say("no such mode");
    return 99;
}
#define CHOOSE(modes) choose(modes, sizeof modes / sizeof *modes, argc, argv)

#endif
