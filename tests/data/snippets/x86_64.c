// Carries out instructions on given states: argv[1] is a file of code, argv[2] one of states,
// which are written to standard output as they are afterwards. A piece of code begins at the
// address that its state names and ends in a jump through BACK.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define CODE 0x10000000
#define STATE 0x20000000
#define TAIL 0x20001fc0  // the last 64 bytes of data are here as well: nothing is mapped behind

struct state {
    uint64_t gpr[16];  // rax rcx rdx rbx rsp rbp rsi rdi r8..r15
    uint64_t flags, signal, start, why, address, trap, error;
    uint64_t pad[9];
    uint8_t data[256];
    uint8_t fx[512];
#ifdef __AVX__
    uint8_t high[16][16]; // upper halves of ymm0 to ymm15
    uint8_t more[256];
#endif
};
#ifdef __AVX__
_Static_assert(sizeof(struct state) == 1536, "half as much again");
#define EACH(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) \
    what(8) what(9) what(10) what(11) what(12) what(13) what(14) what(15)
#define LOAD(n) "vinsertf128 ymm" #n ", ymm" #n ", [0x20000400+16*" #n "], 1\n"
#define STORE(n) "vextractf128 [0x20000400+16*" #n "], ymm" #n ", 1\n"
#define LOADS EACH(LOAD)
#define STORES EACH(STORE) "vzeroupper\n"
#else
_Static_assert(sizeof(struct state) == 1024, "a kilobyte each");
#define LOADS
#define STORES
#endif

void enter(void);
extern char back[];
__asm__(".intel_syntax noprefix\n"
        "enter:\n"
        "push rbx\n push rbp\n push r12\n push r13\n push r14\n push r15\n"
        "mov [0x20001000], rsp\n"
        "fxrstor64 [0x20000200]\n" LOADS
        "push qword ptr [0x20000080]\n popfq\n"
        "mov rax, [0x20000000]\n mov rcx, [0x20000008]\n mov rdx, [0x20000010]\n"
        "mov rbx, [0x20000018]\n mov rbp, [0x20000028]\n mov rsi, [0x20000030]\n"
        "mov rdi, [0x20000038]\n mov r8, [0x20000040]\n mov r9, [0x20000048]\n"
        "mov r10, [0x20000050]\n mov r11, [0x20000058]\n mov r12, [0x20000060]\n"
        "mov r13, [0x20000068]\n mov r14, [0x20000070]\n mov r15, [0x20000078]\n"
        "mov rsp, [0x20000020]\n"
        "jmp qword ptr [0x20000090]\n"
        "back:\n"
        "mov [0x20000020], rsp\n"
        "mov [0x20000000], rax\n mov [0x20000008], rcx\n mov [0x20000010], rdx\n"
        "mov [0x20000018], rbx\n mov [0x20000028], rbp\n mov [0x20000030], rsi\n"
        "mov [0x20000038], rdi\n mov [0x20000040], r8\n mov [0x20000048], r9\n"
        "mov [0x20000050], r10\n mov [0x20000058], r11\n mov [0x20000060], r12\n"
        "mov [0x20000068], r13\n mov [0x20000070], r14\n mov [0x20000078], r15\n"
        "mov rsp, [0x20001000]\n"
        "pushfq\n pop qword ptr [0x20000080]\n"
        "fxsave64 [0x20000200]\n" STORES
        "fninit\n ldmxcsr [0x20001010]\n cld\n"
        "pop r15\n pop r14\n pop r13\n pop r12\n pop rbp\n pop rbx\n ret\n"
        ".att_syntax\n");

static sigjmp_buf out;
static struct state *const state = (struct state *)STATE;

static void caught(int number, siginfo_t *info, void *context) {
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
    ucontext_t *uc = context;
    for (int i = 0; i < 16; i++)
        state->gpr[i] = uc->uc_mcontext.gregs[order[i]];
    state->flags = uc->uc_mcontext.gregs[REG_EFL];
    state->signal = number;
    state->start = uc->uc_mcontext.gregs[REG_RIP];
    state->why = info->si_code;
    state->address = (uintptr_t)info->si_addr;
    state->trap = uc->uc_mcontext.gregs[REG_TRAPNO];
    state->error = uc->uc_mcontext.gregs[REG_ERR];
    const uint8_t *fx = (const uint8_t *)uc->uc_mcontext.fpregs;
    memcpy(state->fx, fx, 512);
#ifdef __AVX__
    uint32_t magic, size;
    uint64_t features;
    memcpy(&magic, fx + 464, 4);
    memcpy(&size, fx + 468, 4);
    memcpy(&features, fx + 512, 8);
    if (magic == 0x46505853 && features & 4)
        memcpy(state->high, fx + 576, 256);
    else
        memset(state->high, 0, 256);
#endif
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
    whole(argv[1], &code, (void *)CODE, PROT_READ | PROT_EXEC);
    struct state *states = whole(argv[2], &size, 0, PROT_READ | PROT_WRITE);
    mmap((void *)STATE, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
         -1, 0);
    *(void **)(STATE + 0x1008) = back;
    *(uint32_t *)(STATE + 0x1010) = 0x1f80;
    sigaltstack(&alternative, 0);
    for (int number = 1; number < 32; number++)
        sigaction(number, &action, 0);
    for (size_t at = 0; at + sizeof *state <= size; at += sizeof *state) {
        memcpy(state, states + at / sizeof *state, sizeof *state);
        memcpy((void *)TAIL, state->data + 192, 64);
        if (!sigsetjmp(out, 0))
            enter();
        if (memcmp((void *)TAIL, states[at / sizeof *state].data + 192, 64))
            memcpy(state->data + 192, (void *)TAIL, 64);
        memcpy(states + at / sizeof *state, state, sizeof *state);
    }
    __asm__ volatile("fninit");
    for (size_t at = 0; at < size;)
        at += write(1, (char *)states + at, size - at);
    return 0;
}
