/* Saves and restores the state of x87, SSE and AVX with xsave, xsaveopt and xrstor, and looks at
   that of a signal frame; tells what it finds. Nothing in it depends on what a processor has more.

   An area is told as a hash of each part: x87, MXCSR, vectors, the words of its header that are
   meant (of the first: three bits), upper halves. Areas begin full of a pattern. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

typedef uint64_t u64;

static unsigned char area[1024] __attribute__((aligned(64)));
static unsigned char vectors[16][32] __attribute__((aligned(32)));
static uint32_t control = 0x1f80;
static sigjmp_buf back;
static volatile int caught;

static u64 hash(const void *data, int size)
{
    u64 value = 14695981039346656037ul;

    for (const unsigned char *byte = data; size--; byte++)
        value = (value ^ *byte) * 1099511628211ul;
    return value;
}

static void show(const char *what)
{
    u64 *header = (u64 *)(area + 512);

    /* Instruction and operand of x87, which are not kept here, are left out. */
    printf("%s: x87 %lx %lx mxcsr %lx vectors %lx header %lx %lx %lx upper %lx end %lx\n", what,
           hash(area, 6), hash(area + 32, 128), hash(area + 24, 4), hash(area + 160, 256),
           header[0] & 7, header[1], header[2], hash(area + 576, 256), hash(area + 832, 192));
}

static void load(int full)
{
    static const double numbers[] = {1.5, -3.25};

    for (int at = 0; at < 16; at++)
        for (int byte = 0; byte < 32; byte++)
            vectors[at][byte] = full ? at * 37 + byte * 11 + 1 : 0;
    control = full ? 0x5fa0 : 0x1f80;
    __asm__ volatile("fninit; vldmxcsr %0" : : "m"(control));
    if (full)
        __asm__ volatile("fldl %0; fldl %1" : : "m"(numbers[0]), "m"(numbers[1]));
    __asm__ volatile(".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
                     " vmovdqa 32*\\r(%0), %%ymm\\r\n.endr" : : "r"(vectors) : "memory");
}

static void take(void)
{
    __asm__ volatile(".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
                     " vmovdqa %%ymm\\r, 32*\\r(%0)\n.endr\nvstmxcsr %1"
                     : : "r"(vectors), "m"(control) : "memory");
}

#define SAVE(insn, wanted) \
    __asm__ volatile(insn " (%0)" : : "r"(area), "a"(wanted), "d"(0) : "memory")

static void told(const char *what, int full, int wanted)
{
    char name[64];

    load(full);
    memset(area, 0x5a, sizeof area);
    memset(area + 512, 0, 64);
    load(full);
    SAVE("xsave64", wanted);
    snprintf(name, sizeof name, "%s xsave %d", what, wanted);
    show(name);
    memset(area + 512, 0, 64);
    area[512] = 7;
    load(full);
    SAVE("xsaveopt", wanted);
    snprintf(name, sizeof name, "%s xsaveopt %d", what, wanted);
    ((u64 *)(area + 512))[0] &= wanted | ~7ul;
    show(name);
}

static void restored(int held, int wanted)
{
    uint16_t x87[14];

    load(1);
    SAVE("xsave", 7);
    ((u64 *)(area + 512))[0] = held;
    for (int at = 0; at < 16; at++)
        area[160 + 16 * at] ^= 0xff, area[576 + 16 * at] ^= 0xff;
    *(uint32_t *)(area + 24) = 0x3f81;
    load(1);
    SAVE("xrstor", wanted);
    take();
    __asm__ volatile("fnstenv %0; fldenv %0" : "=m"(x87));
    printf("xrstor %d of %d: mxcsr %x vectors %lx x87 %x %x %x\n", wanted, held, control,
           hash(vectors, sizeof vectors), x87[0], x87[2] & 0x3800, x87[4]);
}

static void on_fault(int signal, siginfo_t *info, void *frame)
{
    caught = signal;
    siglongjmp(back, 1);
}

static void refused(const char *what, unsigned char *at, int stores)
{
    caught = 0;
    if (!sigsetjmp(back, 1)) {
        if (stores)
            __asm__ volatile("xsave (%0)" : : "r"(at), "a"(7), "d"(0) : "memory");
        else
            __asm__ volatile("xrstor (%0)" : : "r"(at), "a"(7), "d"(0) : "memory");
    }
    printf("%s: signal %d\n", what, caught);
}

static void on_user(int signal, siginfo_t *info, void *frame)
{
    ucontext_t *context = frame;
    unsigned char *image = (void *)context->uc_mcontext.fpregs;
    uint32_t size = *(uint32_t *)(image + 480), whole = *(uint32_t *)(image + 468);

    printf("frame: flags %lx magic %x %x features %lx sizes %d %d aligned %d upper %lx\n",
           (unsigned long)context->uc_flags, *(uint32_t *)(image + 464), *(uint32_t *)(image + size),
           *(u64 *)(image + 472) & 7, size >= 832, whole == size + 4, (int)((u64)image & 63),
           hash(image + 576, 256));
    for (int byte = 0; byte < 16; byte++) {
        image[160 + byte] = byte;
        image[576 + byte] = 0x80 + byte;
    }
    *(u64 *)(image + 512) |= 6;
    memset(vectors, 0, sizeof vectors);
    __asm__ volatile(".irp r,0,1,2,3\n vmovdqa (%0), %%ymm\\r\n.endr" : : "r"(vectors));
}

int main(void)
{
    unsigned low, high, a, b, c, d;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    unsigned char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    __cpuid_count(0xd, 2, a, b, c, d);
    printf("xgetbv %x %x; avx %x %x\n", low & 7, high, a, b);
    for (int wanted = 0; wanted < 8; wanted++)
        told("full", 1, wanted);
    for (int held = 0; held < 8; held++)
        for (int wanted = 0; wanted < 8; wanted++)
            restored(held, wanted);
    for (int signal = SIGILL; signal <= SIGSEGV; signal++)
        if (signal != SIGABRT)
            sigaction(signal, &action, 0);
    load(0);
    memset(area, 0, sizeof area);
    refused("misaligned", area + 8, 1);
    refused("misaligned", area + 8, 0);
    refused("well", area, 0);
    area[512] = 7;
    *(uint32_t *)(area + 24) = 0x10000;
    refused("mxcsr", area, 0);
    memset(area, 0, sizeof area);
    area[512 + 16] = 1;
    refused("reserved", area, 0);
    memset(area, 0, sizeof area);
    area[519] = 0x40;
    refused("component", area, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    refused("page end", page + 4096 - 768, 1);
    refused("page end", page + 4096 - 768, 0);
    action.sa_sigaction = on_user;
    sigaction(SIGUSR1, &action, 0);
    load(1);
    kill(getpid(), SIGUSR1);
    take();
    printf("behind: %lx mxcsr %x\n", hash(vectors, sizeof vectors), control);
    return 0;
}
