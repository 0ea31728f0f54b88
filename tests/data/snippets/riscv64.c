// Carries out instructions on given states: argv[1] is a file of code, argv[2] one of states,
// which are written to standard output as they are afterwards. A piece of code begins at the
// address that its state names and ends in a jump to x30.
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
    uint64_t x[32]; // those of x1, x2 and x5 to x29 are loaded
    uint64_t start, signal, fcsr, why, address;
    uint64_t pad[27];
    uint64_t f[32];
    uint8_t data[256];
};
_Static_assert(sizeof(struct state) == 1024, "a kilobyte each");

#define MOVE(insn, n) insn " x" #n ", 8*" #n "(x31)\n"
#define EACH(insn) MOVE(insn, 1) MOVE(insn, 2) MOVE(insn, 5) MOVE(insn, 6) MOVE(insn, 7) MOVE(insn, 8) MOVE(insn, 9) \
    MOVE(insn, 10) MOVE(insn, 11) MOVE(insn, 12) MOVE(insn, 13) MOVE(insn, 14) MOVE(insn, 15) \
    MOVE(insn, 16) MOVE(insn, 17) MOVE(insn, 18) MOVE(insn, 19) MOVE(insn, 20) MOVE(insn, 21) \
    MOVE(insn, 22) MOVE(insn, 23) MOVE(insn, 24) MOVE(insn, 25) MOVE(insn, 26) MOVE(insn, 27) \
    MOVE(insn, 28) MOVE(insn, 29)
#define FLOAT(insn, n) insn " f" #n ", 512+8*" #n "(x31)\n"
#define FLOATS(insn) FLOAT(insn, 0) FLOAT(insn, 1) FLOAT(insn, 2) FLOAT(insn, 3) FLOAT(insn, 4) \
    FLOAT(insn, 5) FLOAT(insn, 6) FLOAT(insn, 7) FLOAT(insn, 8) FLOAT(insn, 9) FLOAT(insn, 10) \
    FLOAT(insn, 11) FLOAT(insn, 12) FLOAT(insn, 13) FLOAT(insn, 14) FLOAT(insn, 15) \
    FLOAT(insn, 16) FLOAT(insn, 17) FLOAT(insn, 18) FLOAT(insn, 19) FLOAT(insn, 20) \
    FLOAT(insn, 21) FLOAT(insn, 22) FLOAT(insn, 23) FLOAT(insn, 24) FLOAT(insn, 25) \
    FLOAT(insn, 26) FLOAT(insn, 27) FLOAT(insn, 28) FLOAT(insn, 29) FLOAT(insn, 30) FLOAT(insn, 31)
#define KEEP(insn) insn " ra, 0(sp)\n" insn " s0, 8(sp)\n" insn " s1, 16(sp)\n" \
    insn " s2, 24(sp)\n" insn " s3, 32(sp)\n" insn " s4, 40(sp)\n" insn " s5, 48(sp)\n" \
    insn " s6, 56(sp)\n" insn " s7, 64(sp)\n" insn " s8, 72(sp)\n" insn " s9, 80(sp)\n" \
    insn " s10, 88(sp)\n" insn " s11, 96(sp)\n"

void enter(void);
__asm__("enter:\n addi sp, sp, -112\n" KEEP("sd")
        "li x31, 0x20000000\n sd sp, 2040(x31)\n" FLOATS("fld")
        "ld x30, 272(x31)\n fscsr x30\n ld x30, 256(x31)\n" EACH("ld")
        "jalr x30, 0(x30)\n"
        "li x31, 0x20000000\n" EACH("sd") FLOATS("fsd")
        "frcsr x30\n sd x30, 272(x31)\n fscsr x0\n"
        "ld sp, 2040(x31)\n" KEEP("ld") "addi sp, sp, 112\n ret\n");

static sigjmp_buf out;
static struct state *const state = (struct state *)STATE;

static void caught(int number, siginfo_t *info, void *context) {
    ucontext_t *uc = context;
    const struct __riscv_mc_d_ext_state *floats = &uc->uc_mcontext.__fpregs.__d;
    for (int i = 0; i < 32; i++) {
        if (i < 3 || (i > 4 && i < 30))
            state->x[i] = i ? uc->uc_mcontext.__gregs[i] : 0;
        state->f[i] = floats->__f[i];
    }
    state->fcsr = floats->__fcsr;
    state->start = uc->uc_mcontext.__gregs[0];
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
    static char stack[65536];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = caught,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaltstack(&alternative, 0);
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
