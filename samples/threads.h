/* Threads and processes for samples: each a call of the kernel's clone, on a stack of ours. */
#ifndef THREADS_H
#define THREADS_H
#include "rt.h"

#if defined __x86_64__
enum {
    NR_CLOSE = 3, NR_SCHED_YIELD = 24, NR_CLONE = 56, NR_EXIT = 60, NR_WAIT4 = 61, NR_FUTEX = 202,
    NR_PIPE2 = 293,
};
/* The thread that returns from the call may be the new one, on whose stack nobody has called. */
__asm__(".pushsection .text\n"
        ".globl rt_clone\n.type rt_clone,@function\nrt_clone:\n"
        ".cfi_startproc\n"
        "mov $56,%eax\nxor %edx,%edx\nxor %r10d,%r10d\nxor %r8d,%r8d\nsyscall\n"
        ".cfi_remember_state\n.cfi_undefined rip\n"
        "test %rax,%rax\njnz 1f\ntest %rsi,%rsi\njnz 2f\n"
        "1:\n.cfi_restore_state\n.cfi_remember_state\nret\n"
        "2:\n.cfi_restore_state\n.cfi_undefined rip\nxor %ebp,%ebp\npop %rax\npop %rdi\ncall *%rax\nhlt\n"
        ".cfi_endproc\n.size rt_clone,.-rt_clone\n.popsection\n");
#else
enum {
    NR_CLOSE = 57, NR_PIPE2 = 59, NR_EXIT = 93, NR_FUTEX = 98, NR_SCHED_YIELD = 124, NR_CLONE = 220,
    NR_WAIT4 = 260,
};
#if defined __aarch64__
#pragma GCC target("no-outline-atomics") /* those are functions of libgcc */
__asm__(".pushsection .text\n"
        ".globl rt_clone\n.type rt_clone,%function\nrt_clone:\n"
        ".cfi_startproc\n"
        "mov x8,#220\nmov x2,#0\nmov x3,#0\nmov x4,#0\nsvc #0\n"
        ".cfi_remember_state\n.cfi_undefined x30\n"
        "cbnz x0,1f\ncbnz x1,2f\n"
        "1:\n.cfi_restore_state\n.cfi_remember_state\nret\n"
        "2:\n.cfi_restore_state\n.cfi_undefined x30\nmov x29,#0\nldp x1,x0,[sp],#16\nblr x1\nbrk #1\n"
        ".cfi_endproc\n.size rt_clone,.-rt_clone\n.popsection\n");
#else
__asm__(".pushsection .text\n"
        ".globl rt_clone\n.type rt_clone,@function\nrt_clone:\n"
        ".cfi_startproc\n"
        "li a7,220\nli a2,0\nli a3,0\nli a4,0\necall\n"
        ".cfi_remember_state\n.cfi_undefined ra\n"
        "bnez a0,1f\nbnez a1,2f\n"
        "1:\n.cfi_restore_state\n.cfi_remember_state\nret\n"
        "2:\n.cfi_restore_state\n.cfi_undefined ra\nli s0,0\nld t1,0(sp)\nld a0,8(sp)\naddi sp,sp,16\njalr t1\nebreak\n"
        ".cfi_endproc\n.size rt_clone,.-rt_clone\n.popsection\n");
#endif
#endif

/* clone(flags, stack): where the stack is 0, a new process returns 0; on a stack a new thread calls
 * the function that is on top of it with the argument behind it. */
s64 rt_clone(u64 flags, void *stack);

static void clone_failed(void)
{
    print("clone failed\n");
    exit(99);
}

/* -- threads -------------------------------------------------------------------------------- */

struct thread {
    volatile s32 running;
    void (*work)(void *);
    void *argument;
    u64 stack[1024] __attribute__((aligned(16)));
};

static inline void futex_wait(volatile s32 *word, s32 value)
{
    rt_syscall(NR_FUTEX, (s64)word, 128 /* FUTEX_WAIT_PRIVATE */, value, 0);
}

static inline void futex_wake(volatile s32 *word)
{
    rt_syscall(NR_FUTEX, (s64)word, 129 /* FUTEX_WAKE_PRIVATE */, 1, 0);
}

/* The first function of every thread. */
__attribute__((noreturn)) PROBEABLE void thread_main(struct thread *thread)
{
    thread->work(thread->argument);
    __atomic_store_n(&thread->running, 0, __ATOMIC_RELEASE);
    futex_wake(&thread->running);
    for (;;)
        rt_syscall(NR_EXIT, 0, 0, 0, 0);
}

PROBEABLE void thread_start(struct thread *thread, void (*work)(void *), void *argument)
{
    u64 *top = thread->stack + sizeof thread->stack / sizeof *thread->stack - 2;
    thread->work = work;
    thread->argument = argument;
    thread->running = 1;
    top[0] = (u64)thread_main;
    top[1] = (u64)thread;
    /* CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM */
    if (rt_clone(0x50f00, top) < 0)
        clone_failed();
}

PROBEABLE void thread_join(struct thread *thread)
{
    while (__atomic_load_n(&thread->running, __ATOMIC_ACQUIRE))
        futex_wait(&thread->running, 1);
}

/* A lock: 0 free, 1 taken, 2 taken and somebody waits (Drepper, Futexes Are Tricky). */
struct lock {
    volatile s32 state;
};

PROBEABLE void lock(struct lock *lock)
{
    s32 seen = 0;
    if (__atomic_compare_exchange_n(&lock->state, &seen, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE))
        futex_wait(&lock->state, 2);
}

PROBEABLE void unlock(struct lock *lock)
{
    if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
        futex_wake(&lock->state);
}

/* -- processes ------------------------------------------------------------------------------ */

PROBEABLE s64 fork(void)
{
    flush(); /* or both would print what waits */
    s64 pid = rt_clone(17 /* SIGCHLD */, NULL);
    if (pid < 0)
        clone_failed();
    return pid;
}

/* The exit status of a child, as wait4 tells it. */
PROBEABLE s32 wait_for(s64 pid)
{
    s32 status = 0;
    return rt_syscall(NR_WAIT4, pid, (s64)&status, 0, 0) < 0 ? -1 : status;
}

PROBEABLE void open_pipe(s32 ends[2])
{
    if (rt_syscall(NR_PIPE2, (s64)ends, 0, 0, 0) < 0)
        exit(98);
}

PROBEABLE void close(s32 fd)
{
    rt_syscall(NR_CLOSE, fd, 0, 0, 0);
}

#endif
