/* Abuses signal delivery and return from handlers. */
#include "hostile.h"
#include "frame.h"

static volatile u32 count;
static u8 stack[65536] __attribute__((aligned(4096)));
static s64 bad_pc;

static void fault(void)
{
    *(volatile u8 *)8 = 1;
}

static void again(void)
{
    count++;
}

static int loop(int argc, char **argv)
{
    (void)argc, (void)argv;
    on(SIGSEGV, (void *)again, 0);
    fault();
    return 0;
}

static void deeper(void)
{
    count++;
    fault();
}

static int nested(int argc, char **argv)
{
    (void)argc, (void)argv;
    on(SIGSEGV, (void *)deeper, SA_NODEFER);
    fault();
    return 0;
}

static int twice(int argc, char **argv)
{
    (void)argc, (void)argv;
    on(SIGSEGV, (void *)deeper, 0);
    fault();
    return 0;
}

static void give(s64 number)
{
    SYS(__NR_kill, SYS(__NR_getpid), number);
}

/* A handler that is nowhere. */
static int nowhere(int argc, char **argv)
{
    (void)argc;
    on(SIGUSR1, (void *)number(argv[0]), 0);
    if (argc > 1)
        on(SIGSEGV, (void *)number(argv[0]), 0);
    give(SIGUSR1);
    return 0;
}

static int blocked(int argc, char **argv)
{
    (void)argc, (void)argv;
    u64 all = -1ul;
    on(SIGSEGV, (void *)again, 0);
    SYS(__NR_rt_sigprocmask, 0, &all, NULL, 8);
    fault();
    return 0;
}

static int ignored(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct action action = {(void *)1, 0, NULL, 0};
    SYS(__NR_rt_sigaction, SIGSEGV, &action, NULL, 8);
    fault();
    return 0;
}

struct altstack {
    void *sp;
    s32 flags;
    u64 size;
};

static int alternate(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct altstack bad = {(void *)0x10000, 0, 65536}, small = {stack, 0, 100}, flags = {stack, 0x55, 65536}, old;
    show("unmapped", SYS(__NR_sigaltstack, &bad, NULL));
    show("small", SYS(__NR_sigaltstack, &small, NULL));
    show("flags", SYS(__NR_sigaltstack, &flags, NULL));
    show("pointer", SYS(__NR_sigaltstack, 8, NULL));
    show("old", SYS(__NR_sigaltstack, NULL, &old));
    show("kept", old.sp == bad.sp);
    flush();
    on(SIGUSR1, (void *)again, SA_ONSTACK);
    give(SIGUSR1);
    return 0;
}

static struct altstack none = {NULL, 2, 0}, some = {stack, 0, sizeof stack};

static void try_change(void)
{
    show("on it", SYS(__NR_sigaltstack, &none, NULL));
}

static int change(int argc, char **argv)
{
    (void)argc, (void)argv;
    SYS(__NR_sigaltstack, &some, NULL);
    on(SIGUSR1, (void *)try_change, SA_ONSTACK);
    give(SIGUSR1);
    show("off it", SYS(__NR_sigaltstack, &none, NULL));
    return 0;
}

#if defined __x86_64__
#define RETURN_AT(sp) __asm__ volatile("mov %0,%%rsp\nmov $15,%%eax\nsyscall\nhlt" ::"r"(sp) : "memory")
#define SET_SP(value) __asm__ volatile("mov %0,%%rsp\nmovb $1,8\nhlt" ::"r"(value) : "memory")
#elif defined __riscv
#define RETURN_AT(sp) __asm__ volatile("mv sp,%0\nli a7,139\necall\nebreak" ::"r"(sp) : "memory", "a7")
#define SET_SP(value) __asm__ volatile("mv sp,%0\nli t0,8\nsb t0,0(t0)\nebreak" ::"r"(value) : "memory", "t0")
#else
#define RETURN_AT(sp) __asm__ volatile("mov sp,%0\nmov x8,#139\nsvc #0\nbrk #7" ::"r"(sp) : "memory", "x8")
#define SET_SP(value) __asm__ volatile("mov sp,%0\nmov x9,#8\nstrb w9,[x9]\nbrk #7" ::"r"(value) : "memory", "x9")
#endif

/* rt_sigreturn where no frame is: zeros, ones, noise, or nothing at all. */
static int garbage(int argc, char **argv)
{
    s64 kind = number(argv[0]);
    u32 seed = argc > 1 ? (u32)number(argv[1]) : 1;
    for (u32 i = 0; i < sizeof stack; i++) {
        seed = seed * 1103515245 + 12345;
        stack[i] = kind == 0 ? 0 : kind == 1 ? 0xff : (u8)(seed >> 16);
    }
    if (kind < 3)
        RETURN_AT(stack + 16);
    RETURN_AT(kind == 3 ? 0x10 : kind == 4 ? -4096l : 0x7fff00000000 + kind);
    return 0;
}

static int badsp(int argc, char **argv)
{
    (void)argc;
    on(SIGSEGV, (void *)again, 0);
    SET_SP(number(argv[0]));
    return 0;
}

static void spoil(int signal, void *info, void *context)
{
    (void)signal, (void)info;
    PC(context) = (u64)bad_pc;
}

/* A handler that makes the frame return to somewhere bad. */
static int badpc(int argc, char **argv)
{
    (void)argc;
    bad_pc = number(argv[0]);
    on(SIGUSR1, (void *)spoil, 0);
    give(SIGUSR1);
    return 0;
}

static u64 damage_seed;
static void damage(int signal, void *info, void *context)
{
    (void)signal, (void)info;
    for (u32 i = 0; i < 8; i++) {
        damage_seed = damage_seed * 6364136223846793005ul + 1442695040888963407ul;
        u32 word = (u32)(damage_seed >> 33) % 60;
        ((u64 *)context)[word] = damage_seed * 0x9E3779B97F4A7C15ul;
    }
}

static int damaged(int argc, char **argv)
{
    (void)argc;
    damage_seed = (u64)number(argv[0]);
    on(SIGUSR1, (void *)damage, 0);
    give(SIGUSR1);
    return 0;
}

static int queue(int argc, char **argv)
{
    (void)argc, (void)argv;
    u64 all = -1ul;
    s32 info[32] = {40, 0, -1};
    s64 result = 0, sent = 0;
    SYS(__NR_rt_sigprocmask, 0, &all, NULL, 8);
    for (; sent < 100000; sent++)
        if ((result = SYS(__NR_rt_sigqueueinfo, SYS(__NR_getpid), 40, info)) < 0)
            break;
    show("queued", sent);
    show("queue", result);
    return 0;
}

static int limits(int argc, char **argv)
{
    (void)argc, (void)argv;
    show("catch SIGKILL", on(9, (void *)again, 0));
    show("catch SIGSTOP", on(19, (void *)again, 0));
    show("signal 0", on(0, (void *)again, 0));
    show("signal 65", on(65, (void *)again, 0));
    u64 all = -1ul;
    show("block all", SYS(__NR_rt_sigprocmask, 2, &all, NULL, 8));
    SYS(__NR_rt_sigprocmask, 0, NULL, &all, 8);
    print_hex(all);
    print("\n");
    flush();
    give(9);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"loop", loop},       {"nested", nested},       {"twice", twice},   {"nowhere", nowhere}, {"blocked", blocked},
        {"ignored", ignored}, {"alternate", alternate}, {"change", change}, {"garbage", garbage}, {"badsp", badsp},
        {"badpc", badpc},     {"damaged", damaged},     {"queue", queue},   {"limits", limits},
    };
    return CHOOSE(modes);
}
