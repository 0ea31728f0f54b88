/* A handler gives MXCSR bits that there are not: the way back from it is a fault. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static sigjmp_buf back;

static void spoil(int signal, siginfo_t *info, void *frame)
{
    ucontext_t *context = frame;
    unsigned value = 0xffff1f80;

    memcpy((char *)context->uc_mcontext.fpregs + 24, &value, sizeof value);
}

static void faulted(int signal, siginfo_t *info, void *frame)
{
    printf("signal %d code %d address %p\n", signal, info->si_code, info->si_addr);
    siglongjmp(back, 1);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = spoil, .sa_flags = SA_SIGINFO};
    struct sigaction fault = {.sa_sigaction = faulted, .sa_flags = SA_SIGINFO};

    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGSEGV, &fault, 0);
    if (!sigsetjmp(back, 1)) {
        raise(SIGUSR1);
        puts("no fault");
    }
    __asm__ volatile("addps %%xmm0, %%xmm0" : : : "xmm0");
    puts("end");
    return 0;
}
