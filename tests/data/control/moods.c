/* A guest for every mood that a debugger has to cope with; its first argument says which. */
#include "rt.h"

#if defined __x86_64__
enum { NR_MMAP = 9, NR_MUNMAP = 11, NR_SIGACTION = 13, NR_NANOSLEEP = 35, NR_PPOLL = 271, NR_KILL = 62 };
__asm__(".pushsection .text\nnop\n.globl restore\n.type restore,@function\nrestore:\n"
        "mov $15,%rax\nsyscall\n.size restore,.-restore\n.popsection\n");
#else
enum { NR_MMAP = 222, NR_MUNMAP = 215, NR_SIGACTION = 134, NR_NANOSLEEP = 101, NR_PPOLL = 73, NR_KILL = 129 };
#if defined __aarch64__
#define RT_SIGRETURN "mov x8,#139\nsvc #0\n"
#else
#define RT_SIGRETURN "li a7,139\necall\n"
#define OTHERS_ARE_ZERO /* fd and offset, which rt_syscall leaves alone */ \
    __asm__ volatile("li a4,-1\nli a5,0" ::: "a4", "a5")
#endif
__asm__(".pushsection .text\nnop\n.globl restore\n.type restore,%function\nrestore:\n"
        RT_SIGRETURN ".size restore,.-restore\n.popsection\n");
#endif
extern void restore(void);
#ifndef OTHERS_ARE_ZERO
#define OTHERS_ARE_ZERO
#endif

static volatile u64 ticks, handled;
static char line[64];

PROBEABLE u64 tick(u64 n)
{
    return n * 3 + 1;
}

PROBEABLE void on_signal(int number)
{
    handled += (u64)number;
}

PROBEABLE s64 raise_usr1(void)
{
    return rt_syscall(NR_KILL, rt_syscall(NR_GETPID, 0, 0, 0, 0), 10, 0, 0);
}

PROBEABLE s64 wait_read(void)
{
    return rt_syscall(NR_READ, 0, (s64)line, sizeof line, 0);
}

PROBEABLE s64 wait_poll(void)
{
    struct { int fd; s16 events, revents; } item = {0, 1, 0};
    return rt_syscall(NR_PPOLL, (s64)&item, 1, 0, 0);
}

PROBEABLE s64 wait_sleep(void)
{
    s64 time[2] = {1000, 0};
    return rt_syscall(NR_NANOSLEEP, (s64)time, 0, 0, 0);
}

PROBEABLE u64 after_wait(s64 result)
{
    return (u64)result + ticks;
}

static void install(void)
{
    struct { void (*handler)(int); u64 flags; void (*restorer)(void); u64 mask; } action = {
        on_signal, 0x04000000, restore, 0};
    rt_syscall(NR_SIGACTION, 10, (s64)&action, 0, 8);
}

int main(int argc, char **argv)
{
    char mood = argc > 1 ? argv[1][0] : 0;
    s64 result = 0;
    switch (mood) {
    case 's': /* spins */
        for (;;)
            ticks++;
    case 'f': /* floods */
        for (u64 n = 0; argc > 2 ? n < 40000 : 1; n++)
            print("all work and no play makes a dull guest\n");
        break;
    case 't': /* ticks for ever */
        for (;;)
            ticks = tick(ticks);
    case 'r':
        result = wait_read();
        break;
    case 'p':
        result = wait_poll();
        break;
    case 'n':
        result = wait_sleep();
        break;
    case 'k': /* a signal with a handler */
        install();
        raise_usr1();
        result = (s64)handled;
        break;
    case 'u': { /* memory that goes away */
        OTHERS_ARE_ZERO;
        s64 at = rt_syscall(NR_MMAP, 0x10000000, 4096, 3, 0x32);
        ticks = tick((u64)at);
        rt_syscall(NR_MUNMAP, at, 4096, 0, 0);
        ticks = tick(1);
        break;
    }
    }
    after_wait(result);
    print("result ");
    print_s64(result);
    print("\n");
    return 0;
}
