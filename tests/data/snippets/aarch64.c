// Carries out instructions on given states: argv[1] is a file of code, argv[2] one of states,
// which are written to standard output as they are afterwards. A piece of code begins at the
// address that its state names and ends in a return.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define CODE 0x10000000
#define STATE 0x20000000

struct state {
    uint64_t x[16];
    uint64_t nzcv, fpcr, fpsr, signal, start, why, address;
    uint64_t pad[41];
    uint8_t v[32][16];
};
_Static_assert(sizeof(struct state) == 1024, "a kilobyte each");

#define PAIRS(insn, at) \
    insn " q0, q1, [" at "]\n" insn " q2, q3, [" at ", #32]\n" insn " q4, q5, [" at ", #64]\n" \
    insn " q6, q7, [" at ", #96]\n" insn " q8, q9, [" at ", #128]\n" \
    insn " q10, q11, [" at ", #160]\n" insn " q12, q13, [" at ", #192]\n" \
    insn " q14, q15, [" at ", #224]\n" insn " q16, q17, [" at ", #256]\n" \
    insn " q18, q19, [" at ", #288]\n" insn " q20, q21, [" at ", #320]\n" \
    insn " q22, q23, [" at ", #352]\n" insn " q24, q25, [" at ", #384]\n" \
    insn " q26, q27, [" at ", #416]\n" insn " q28, q29, [" at ", #448]\n" \
    insn " q30, q31, [" at ", #480]\n"
#define GENERAL(insn) \
    insn " x0, x1, [x17]\n" insn " x2, x3, [x17, #16]\n" insn " x4, x5, [x17, #32]\n" \
    insn " x6, x7, [x17, #48]\n" insn " x8, x9, [x17, #64]\n" insn " x10, x11, [x17, #80]\n" \
    insn " x12, x13, [x17, #96]\n" insn " x14, x15, [x17, #112]\n"

void enter(void);
__asm__("enter:\n"
        "stp x29, x30, [sp, #-96]!\n stp x19, x20, [sp, #16]\n stp x21, x22, [sp, #32]\n"
        "stp x23, x24, [sp, #48]\n stp x25, x26, [sp, #64]\n stp x27, x28, [sp, #80]\n"
        "movz x17, #0x2000, lsl #16\n add x18, x17, #512\n"
        PAIRS("ldp", "x18")
        "ldr x16, [x17, #128]\n msr nzcv, x16\n ldr x16, [x17, #136]\n msr fpcr, x16\n"
        "ldr x16, [x17, #144]\n msr fpsr, x16\n"
        GENERAL("ldp")
        "ldr x16, [x17, #160]\n blr x16\n"
        "movz x17, #0x2000, lsl #16\n"
        GENERAL("stp")
        "mrs x16, nzcv\n str x16, [x17, #128]\n mrs x16, fpcr\n str x16, [x17, #136]\n"
        "mrs x16, fpsr\n str x16, [x17, #144]\n add x18, x17, #512\n"
        PAIRS("stp", "x18")
        "msr fpcr, xzr\n"
        "ldp x19, x20, [sp, #16]\n ldp x21, x22, [sp, #32]\n ldp x23, x24, [sp, #48]\n"
        "ldp x25, x26, [sp, #64]\n ldp x27, x28, [sp, #80]\n ldp x29, x30, [sp], #96\n"
        "ret\n");

static sigjmp_buf out;
static struct state *const state = (struct state *)STATE;

static void caught(int number, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    const struct fpsimd_context *floats = (void *)uc->uc_mcontext.__reserved;
    for (int i = 0; i < 16; i++)
        state->x[i] = uc->uc_mcontext.regs[i];
    memcpy(state->v, floats->vregs, sizeof state->v);
    state->nzcv = uc->uc_mcontext.pstate & 0xf0000000;
    state->fpcr = floats->fpcr;
    state->fpsr = floats->fpsr;
    state->start = uc->uc_mcontext.pc;
    state->signal = number;
    state->why = info->si_code;
    state->address = (uintptr_t)info->si_addr;
    siglongjmp(out, 1);
}

static void *whole(const char *name, size_t *size, void *at, int rights) {
    int fd = open(name, O_RDONLY);
    struct stat st;
    fstat(fd, &st);
    *size = st.st_size;
    return mmap(at, st.st_size, rights, MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);
}

int main(int argc, char **argv) {
    size_t code, size;
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_NODEFER};
    whole(argv[1], &code, (void *)CODE, PROT_READ | PROT_EXEC);
    struct state *states = whole(argv[2], &size, 0, PROT_READ | PROT_WRITE);
    mmap((void *)STATE, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
         -1, 0);
    for (int number = 1; number < 32; number++)
        sigaction(number, &action, 0);
    for (size_t at = 0; at + sizeof *state <= size; at += sizeof *state) {
        memcpy(state, states + at / sizeof *state, sizeof *state);
        if (!sigsetjmp(out, 0))
            enter();
        memcpy(states + at / sizeof *state, state, sizeof *state);
    }
    for (size_t at = 0; at < size;)
        at += write(1, (char *)states + at, size - at);
    return 0;
}
