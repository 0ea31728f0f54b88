/* Instructions a program may not execute, places it may not jump to, code that changes itself. */
#include "hostile.h"
#include "frame.h"

enum { PAGE = 4096 };

struct insn {
    const char *name;
    void (*run)(void);
};

#if defined __x86_64__
#define INSNS \
    I(hlt, "hlt") I(cli, "cli") I(sti, "sti") I(mov_from_cr0, "mov %cr0,%rax") I(mov_to_cr3, "mov %rax,%cr3") \
    I(mov_to_cr4, "mov %rax,%cr4") I(mov_from_dr7, "mov %db7,%rax") I(mov_to_dr0, "mov %rax,%db0") \
    I(wrmsr, "wrmsr") I(rdmsr, "rdmsr") I(in, "in %dx,%al") I(out, "out %al,%dx") I(in_imm, "in $0x60,%eax") \
    I(insb, "lea buffer(%rip),%rdi\ninsb") I(outsb, "lea buffer(%rip),%rsi\noutsb") \
    I(lgdt, "lgdt buffer(%rip)") I(lidt, "lidt buffer(%rip)") I(lldt, "xor %eax,%eax\nlldt %ax") \
    I(ltr, "mov $0x28,%eax\nltr %ax") I(invd, "invd") I(wbinvd, "wbinvd") I(invlpg, "invlpg buffer(%rip)") \
    I(clts, "clts") I(lmsw, "lmsw %ax") I(swapgs, "swapgs") I(sysret, "sysretq") I(sysexit, "sysexitl") \
    I(iretq, "push $0\npush $0\niretq") \
    I(rdpmc, "rdpmc") I(int_20, "int $0x20") I(ud2, "ud2") I(int3, "int3") I(divide, "xor %ecx,%ecx\ndiv %ecx") \
    I(rsm, "rsm") I(vmcall, "vmcall") I(vmlaunch, "vmlaunch") I(monitor, "monitor") I(mwait, "mwait") \
    I(bad_segment, "mov $0x1003,%eax\nmov %ax,%ds") I(null_stack, "xor %eax,%eax\nmov %ax,%ss") \
    I(far_jump, "ljmp *buffer+64(%rip)") I(xgetbv, "xor %ecx,%ecx\nxgetbv") I(xsetbv, "xor %ecx,%ecx\nxsetbv") \
    I(vaddps, "vaddps %ymm0,%ymm1,%ymm2") I(vpxor, "vpxor %xmm0,%xmm1,%xmm2") I(vzeroupper, "vzeroupper") \
    I(vmovdqu, "vmovdqu buffer(%rip),%ymm3") I(vfmadd, "vfmadd213pd %ymm0,%ymm1,%ymm2") \
    I(vpgatherdd, "vpgatherdd %xmm1,(%rax,%xmm2),%xmm3") I(kmovq, "kmovq %rax,%k1") \
    I(evex, "vaddpd %zmm0,%zmm1,%zmm2") I(evex_mask, "vpaddd %zmm0,%zmm1,%zmm2{%k1}") \
    I(lock_bts, ".byte 0xf0,0x0f,0xab,0xc8") I(lock_btr, "mov %eax,buffer(%rip)\n.byte 0xf0,0x48,0x0f,0xb3,0xc8") \
    I(lock_btc_imm, ".byte 0x66,0xf0,0x0f,0xba,0xfa,3") \
    I(noncanonical, "mov $0x8000000000000000,%rax\nmov (%rax),%rax") \
    I(kernel_read, "mov $0xffffffff80000000,%rax\nmov (%rax),%rax") \
    I(alignment, "lea buffer+1(%rip),%rax\nmovaps (%rax),%xmm0")
#elif defined __riscv
#define INSNS \
    I(csrr_mstatus, "csrr a0,mstatus") I(csrr_sstatus, "csrr a0,sstatus") I(csrr_mhartid, "csrr a0,mhartid") \
    I(csrw_satp, "csrw satp,zero") I(csrw_mtvec, "csrw mtvec,a0") I(csrw_cycle, "csrw cycle,zero") \
    I(csrr_event, "csrr a0,hpmcounter3") I(csrr_unknown, "csrr a0,0x123") \
    I(mret, "mret") I(sret, "sret") I(wfi, "wfi") I(sfence, "sfence.vma") \
    I(ebreak, ".option push\n.option norvc\nebreak\n.option pop") I(c_ebreak, "c.ebreak") \
    I(zeros, ".2byte 0") I(ones, ".4byte 0xffffffff") I(long_one, ".2byte 0x1f,0,0") \
    I(vector, ".4byte 0x0d007057") I(hypervisor, ".4byte 0x6c0044f3") I(bit_count, ".4byte 0x60251513") \
    I(later_load, ".2byte 0x8148") I(later_product, ".2byte 0x9d4d") \
    I(alignment, "la a0,buffer+2\namoadd.d a1,a1,(a0)") I(reserved, "la a0,buffer+1\nlr.w a1,(a0)") \
    I(kernel_read, "li a0,-4096\nld a0,0(a0)") I(kernel_jump, "li a0,-4096\njr a0")
#else
#define INSNS \
    I(msr_ttbr0, "msr ttbr0_el1,x0") I(msr_vbar, "msr vbar_el1,x0") I(msr_sctlr, "msr sctlr_el1,x0") \
    I(mrs_sctlr, "mrs x0,sctlr_el1") I(mrs_currentel, "mrs x0,currentel") I(mrs_pmccntr, "mrs x0,pmccntr_el0") \
    I(mrs_cntp, "mrs x0,cntpct_el0") I(mrs_hcr, "mrs x0,hcr_el2") I(msr_daifset, "msr daifset,#2") \
    I(msr_spsel, "msr spsel,#1") I(msr_elr, "msr elr_el1,x30") \
    I(tlbi, "tlbi vmalle1") I(dc_ivac, "dc ivac,x0") I(dc_isw, "dc isw,x0") I(ic_iallu, "ic iallu") I(at_s1e1r, "at s1e1r,x0") \
    I(eret, "eret") I(hvc, "hvc #0") I(smc, "smc #0") I(drps, "drps") I(dcps1, "dcps1 #1") \
    I(wfi, "wfi") I(wfe, "sevl\nwfe") I(hlt, "hlt #1") I(udf, ".word 0") I(brk, "brk #1") \
    I(half_three_same, ".word 0x6ed90cd3") I(half_three_same_high, ".word 0x0ec01c41") \
    I(half_two_reg, ".word 0x0e780841") I(half_scalar, "mov x2,#1\nstr x2,[sp,#-16]!\nldr x2,[sp],#16\n.word 0x7e796841") \
    I(sve, ".word 0x2518e3e0") I(sme, ".word 0xd503477f") \
    I(kernel_read, "mov x0,#0xffff000000000000\nldr x0,[x0]") \
    I(kernel_jump, "mov x9,x30\nmov x0,#0xffff000000000000\nbr x0")
#endif

#define I(name, text) \
    void insn_##name(void); \
    __asm__(".pushsection .text.insn,\"ax\"\n.globl insn_" #name "\n.type insn_" #name ",%function\n" \
            "insn_" #name ":\n" text "\nret\n.size insn_" #name ",.-insn_" #name "\n.popsection\n");
INSNS
#undef I
__attribute__((used)) u8 buffer[PAGE];

#define I(name, text) {#name, insn_##name},
static const struct insn insns[] = {INSNS};
#undef I

static int caught, code;
#if defined __x86_64__
u64 return_stack;
void (*volatile target)(void);
__attribute__((naked, noinline)) static void call_target(void)
{
    __asm__("push %rbx\npush %rbp\nmov %rsp,return_stack(%rip)\ncall *target(%rip)\n"
            "mov return_stack(%rip),%rsp\npop %rbp\npop %rbx\nret");
}
static void back(int signal, int *info, void *context)
{
    caught = signal, code = info[2];
    SP(context) = return_stack - 8; /* whatever the instruction has pushed */
    LEAVE(context);
}
static void attempt(void (*run)(void))
{
    target = run;
    call_target();
}
#else
static void back(int signal, int *info, void *context)
{
    caught = signal, code = info[2];
    LEAVE(context);
}
static void attempt(void (*run)(void))
{
#if defined __riscv
    __asm__ volatile("jalr %0" ::"r"(run)
                     : "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "ra",
                       "memory");
#else
    __asm__ volatile("blr %0" ::"r"(run)
                     : "x0", "x1", "x2", "x9", "x16", "x17", "x30", "memory", "cc");
#endif
}
#endif

static void catch_all(void)
{
    for (int signal = 4; signal <= 11; signal++)
        if (signal != 6 && signal != 9 && signal != 10)
            on(signal, (void *)back, 0);
}

static int each(int argc, char **argv)
{
    (void)argc, (void)argv;
    catch_all();
    for (u32 i = 0; i < sizeof insns / sizeof *insns; i++) {
        print(insns[i].name);
        print(":");
        for (int time = 0; time < 2; time++) {
            caught = code = 0;
            attempt(insns[i].run);
            print(" ");
            print_s64(caught);
            print("/");
            print_s64(code);
        }
        print("\n");
    }
    return 0;
}

static int one(int argc, char **argv)
{
    (void)argc;
    for (u32 i = 0; i < sizeof insns / sizeof *insns; i++)
        if (same(insns[i].name, argv[0])) {
            flush();
            insns[i].run();
            return 0;
        }
    return 98;
}

static int jump(int argc, char **argv)
{
    (void)argc;
    ((void (*)(void))number(argv[0]))();
    return 0;
}

/* Everything one can do to memory that is not one's own; nothing may have an effect. */
static int window(int argc, char **argv)
{
    (void)argc;
    s64 at = number(argv[0]), size = number(argv[1]);
    catch_all();
    show("mprotect", SYS(__NR_mprotect, at, PAGE, 7));
    show("mprotect all", SYS(__NR_mprotect, at, size, 7));
    show("munmap", SYS(__NR_munmap, at, PAGE));
    show("munmap around", SYS(__NR_munmap, at - PAGE, size + 2 * PAGE));
    show("mmap over", (s64)map(at, PAGE, 7, MAP_PRIVATE | MAP_ANON | MAP_FIXED));
    show("mmap across", (s64)map(at - PAGE, 2 * PAGE, 7, MAP_PRIVATE | MAP_ANON | MAP_FIXED));
    u8 *own = map(0, PAGE, 3, MAP_PRIVATE | MAP_ANON);
    show("mremap onto", SYS(__NR_mremap, own, PAGE, PAGE, 3, at));
    show("mremap away", SYS(__NR_mremap, at, PAGE, PAGE, 3, own));
    show("mremap grow", SYS(__NR_mremap, at, PAGE, 1ul << 30, 1));
    show("madvise", SYS(__NR_madvise, at, PAGE, 4));
    s64 fd = SYS(__NR_openat, AT_FDCWD, "/dev/zero", O_RDONLY);
    show("read into", SYS(__NR_read, fd, at, PAGE));
    show("mapped at hint", (s64)map(at, PAGE, 1, MAP_PRIVATE | MAP_ANON) == at);
    caught = 0;
#if defined __x86_64__
    __asm__ volatile(".pushsection .text.w,\"ax\"\nput: mov %al,(%rdx)\nret\n.popsection");
    target = (void (*)(void))at;
    __asm__ volatile("push %%rbx\npush %%rbp\nsub $128,%%rsp\nmov %%rsp,return_stack(%%rip)\ncall put\n"
                     "mov return_stack(%%rip),%%rsp\nadd $128,%%rsp\npop %%rbp\npop %%rbx"
                     ::"d"(at + 64) : "rax", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
#elif defined __riscv
    __asm__ volatile(".pushsection .text.w,\"ax\"\nput: sb a0,0(a1)\nret\n.popsection");
    register s64 a1 __asm__("a1") = at + 64;
    __asm__ volatile("call put" ::"r"(a1) : "a0", "ra", "memory");
#else
    __asm__ volatile(".pushsection .text.w,\"ax\"\nput: strb w0,[x1]\nret\n.popsection");
    register s64 x1 __asm__("x1") = at + 64;
    __asm__ volatile("bl put" ::"r"(x1) : "x0", "x30", "memory");
#endif
    show("store", caught);
    caught = 0;
    attempt((void (*)(void))(at + size - PAGE));
    show("execute at the end", caught);
    return 0;
}

/* A constant returned by code that is written at run time. */
static u32 emit(volatile u8 *at, u32 value)
{
#if defined __x86_64__
    at[0] = 0xb8, at[1] = (u8)value, at[2] = (u8)(value >> 8), at[3] = 0, at[4] = 0, at[5] = 0xc3;
    return 6;
#elif defined __riscv
    u32 high = (value + 0x800) >> 12, add = value << 20 | 0x0005051b; /* c.lui or c.li; addiw; c.jr ra */
    volatile u16 *halves = (volatile u16 *)at;
    halves[0] = (u16)(high ? 0x6501 | high << 2 : 0x4501);
    halves[1] = (u16)add, halves[2] = (u16)(add >> 16), halves[3] = 0x8082;
    return 8;
#else
    ((volatile u32 *)at)[0] = 0x52800000 | (value & 0xffff) << 5;
    ((volatile u32 *)at)[1] = 0xd65f03c0;
    return 8;
#endif
}

static void sync(u8 *at)
{
#if defined __aarch64__
    __asm__ volatile("dc cvau,%0\ndsb ish\nic ivau,%0\ndsb ish\nisb" ::"r"(at) : "memory");
#elif defined __riscv
    (void)at;
    __asm__ volatile("fence.i" ::: "memory");
#else
    (void)at;
#endif
}

static u32 call(u8 *at)
{
    sync(at);
    return ((u32 (*)(void))at)();
}

static int modify(int argc, char **argv)
{
    (void)argc, (void)argv;
    u8 *at = map(0, PAGE, 7, MAP_PRIVATE | MAP_ANON);
    u32 wrong = 0;
    for (u32 i = 0; i < 300; i++) {
        emit(at, i);
        wrong += call(at) != i;
    }
    show("in place", wrong);
    for (u32 i = wrong = 0; i < 100; i++) {
        SYS(__NR_mprotect, at, PAGE, PROT_R | PROT_W);
        emit(at, i + 1000);
        SYS(__NR_mprotect, at, PAGE, PROT_R | PROT_X);
        wrong += call(at) != i + 1000;
    }
    show("by mprotect", wrong);
    SYS(__NR_mprotect, at, PAGE, 7);
    s64 fd[2] = {0};
    SYS(__NR_pipe2, fd, 0);
    for (u32 i = wrong = 0; i < 50; i++) {
        u8 bytes[8];
        u32 size = emit(bytes, i + 2000);
        SYS(__NR_write, fd[0] >> 32, bytes, size);
        SYS(__NR_read, fd[0] & 0xffff, at, size);
        wrong += call(at) != i + 2000;
    }
    show("by read", wrong);
    for (u32 i = wrong = 0; i < 50; i++) {
        map((s64)at, PAGE, 7, MAP_PRIVATE | MAP_ANON | MAP_FIXED);
        emit(at, i + 3000);
        wrong += call(at) != i + 3000;
    }
    show("by remapping", wrong);
    s64 file = SYS(__NR_openat, AT_FDCWD, "/tmp/code", O_RDWR | O_CREAT, 0700);
    for (u32 i = wrong = 0; i < 50; i++) {
        u8 bytes[8];
        u32 size = emit(bytes, i + 4000);
        SYS(__NR_pwrite64, file, bytes, size, 0);
        u8 *code = (u8 *)SYS(__NR_mmap, at, PAGE, PROT_R | PROT_X, MAP_PRIVATE | MAP_FIXED, file, 0);
        wrong += call(code) != i + 4000;
    }
    show("by file", wrong);
    u8 *pages = map(0, 2 * PAGE, 7, MAP_PRIVATE | MAP_ANON), *across = pages + PAGE - 4;
    for (u32 i = wrong = 0; i < 100; i++) {
        emit(across, i + 5000);
#if defined __aarch64__
        sync(across + 4);
#endif
        wrong += call(across) != i + 5000;
    }
    show("across pages", wrong);
    u8 *moved = map(0, PAGE, 7, MAP_PRIVATE | MAP_ANON);
    for (u32 i = wrong = 0; i < 20; i++) {
        emit(moved, i + 6000);
        wrong += call(moved) != i + 6000;
        u8 *to = map(0, PAGE, 0, MAP_PRIVATE | MAP_ANON);
        moved = (u8 *)SYS(__NR_mremap, moved, PAGE, PAGE, 3, to);
        wrong += call(moved) != i + 6000;
    }
    show("by moving", wrong);
    return 0;
}

/* The same pages mapped twice: written here, executed there. */
static int alias(int argc, char **argv)
{
    (void)argc, (void)argv;
    s64 file = show("memfd", SYS(__NR_memfd_create, "code", 0)), wrong = 0;
    SYS(__NR_ftruncate, file, PAGE);
    u8 *data = (u8 *)SYS(__NR_mmap, 0, PAGE, PROT_R | PROT_W, MAP_SHARED, file, 0);
    u8 *code = (u8 *)SYS(__NR_mmap, 0, PAGE, PROT_R | PROT_X, MAP_SHARED, file, 0);
    for (u32 i = 0; i < 50; i++) {
        emit(data, i);
        sync(data);
        wrong += call(code) != i;
    }
    show("by alias", wrong);
    return 0;
}

/* Three no-operations, given bytes, and a return. */
static void emit_bytes(volatile u8 *at, const char *hex)
{
#if defined __x86_64__
    for (u32 i = 0; i < 3; i++)
        *at++ = 0x90;
#elif defined __riscv
    for (u32 i = 0; i < 3; i++, at += 4)
        *(volatile u32 *)at = 0x00000013;
#else
    for (u32 i = 0; i < 3; i++, at += 4)
        *(volatile u32 *)at = 0xd503201f;
#endif
    for (; *hex; hex += 2) {
        char pair[] = {'0', 'x', hex[0], hex[1], 0};
        *at++ = (u8)number(pair);
    }
#if defined __x86_64__
    *at = 0xc3;
#elif defined __riscv
    *(volatile u16 *)at = 0x8082;
#else
    *(volatile u32 *)at = 0xd65f03c0;
#endif
}

/* Bytes that become code in one way or another; what to call. */
static u8 *plant(const char *way, const char *hex)
{
    if (same(way, "mprotect")) {
        u8 *at = map(0, PAGE, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON);
        emit_bytes(at, hex);
        SYS(__NR_mprotect, at, PAGE, PROT_R | PROT_X);
        sync(at);
        return at;
    }
    if (same(way, "alias")) {
        s64 file = SYS(__NR_memfd_create, "code", 0);
        SYS(__NR_ftruncate, file, PAGE);
        u8 *data = (u8 *)SYS(__NR_mmap, 0, PAGE, PROT_R | PROT_W, MAP_SHARED, file, 0);
        u8 *code = (u8 *)SYS(__NR_mmap, 0, PAGE, PROT_R | PROT_X, MAP_SHARED, file, 0);
        emit(data, 1);
        call(code);
        emit_bytes(data, hex);
        sync(data);
        return code;
    }
    u8 *at = map(0, 2 * PAGE, 7, MAP_PRIVATE | MAP_ANON);
    at += same(way, "across") ? PAGE - 4 : 64;
    emit(at, 1);
    call(at);
    emit_bytes(at, hex);
    sync(at);
    sync(at + 8);
    return at;
}

static int planted(int argc, char **argv)
{
    if (argc == 2) {
        ((void (*)(void))plant(argv[0], argv[1]))();
        return 0;
    }
    catch_all();
    for (int i = 1; i < argc; i++) {
        u8 *at = plant(argv[0], argv[i]);
        for (int time = 0; time < 2; time++) {
            caught = code = 0;
            attempt((void (*)(void))at);
            print(argv[i]);
            print(time ? " again: " : ": ");
            print_s64(caught);
            print("\n");
        }
    }
    return 0;
}

static u8 constant[16] = {0xc3, 0xc3, 0xc3, 0xc3};

static int data(int argc, char **argv)
{
    u8 local[64];
    emit(local, 1), emit(constant, 1);
    u8 *heap = map(0, PAGE, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON);
    emit(heap, 1);
    u8 *at = argc && same(argv[0], "stack") ? local : argc && same(argv[0], "map") ? heap : constant;
    return (int)call(at);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"each", each},     {"one", one},     {"jump", jump}, {"window", window},
        {"modify", modify}, {"alias", alias}, {"data", data},
        {"planted", planted},
    };
    return CHOOSE(modes);
}
