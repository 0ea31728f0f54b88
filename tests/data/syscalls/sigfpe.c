// Floating-point exceptions that are not masked, of SSE and of x87, and what handlers find.
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf out;
static volatile int code;
static volatile unsigned mxcsr, control;

static void caught(int number, siginfo_t *info, void *context) {
    unsigned m;
    unsigned short w;
    __asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(m), "=m"(w));
    mxcsr = m;
    control = w;
    code = info->si_code;
    siglongjmp(out, 1);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
    volatile double zero, one = 1, huge;
    volatile long double long_zero, long_one = 1;
    sigaction(SIGFPE, &action, 0);
    for (int number = 0; number < 7; number++) {
        zero = long_zero = 0;
        huge = 1e308;
        code = -1;
        feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
        if (!sigsetjmp(out, 1))
            switch (number) {
            case 0: one = 1 / zero; break;
            case 1: zero = zero / zero; break;
            case 2: huge *= 10; break;
            case 3: long_one = 1 / long_zero; long_one += 1; break;
            case 4: long_zero = long_zero / long_zero; long_zero += 1; break;
            case 5: one = sqrt(zero - 2); break;
            case 6: one = 1 / 3.0 + zero; break;
            }
        feclearexcept(FE_ALL_EXCEPT);
        fedisableexcept(FE_ALL_EXCEPT);
        printf("%d: code %d, mxcsr %x, control %x\n", number, code, mxcsr, control);
    }
    return 0;
}
