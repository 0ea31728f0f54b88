/* Takes memory without end, and plays tricks with mappings. */
#include "hostile.h"

enum { MIB = 1 << 20, PAGE = 4096 };

static int touch(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (;;) {
        u8 *at = map(0, 16 * MIB, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON);
        if (failed(at))
            return fail("mmap", (s64)at, 3);
        for (u32 i = 0; i < 16 * MIB; i += PAGE)
            at[i] = 1;
    }
}

static int heap(int argc, char **argv)
{
    (void)argc, (void)argv;
    u64 end = (u64)SYS(__NR_brk, 0);
    for (;;) {
        u64 next = (u64)SYS(__NR_brk, end + 16 * MIB);
        if (next != end + 16 * MIB)
            return fail("brk", -1, 3);
        for (; end < next; end += PAGE)
            *(u8 *)end = 1;
    }
}

/* The engine itself writes: reads from a file into fresh pages. */
static int by_read(int argc, char **argv)
{
    (void)argc, (void)argv;
    s64 fd = SYS(__NR_openat, AT_FDCWD, "/dev/zero", O_RDONLY), got;
    for (;;) {
        u8 *at = map(0, 16 * MIB, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON);
        if (failed(at))
            return fail("mmap", (s64)at, 3);
        for (u32 done = 0; done < 16 * MIB; done += (u32)got)
            if ((got = SYS(__NR_read, fd, at + done, 16 * MIB - done)) <= 0)
                return fail("read", got, 4);
    }
}

static int reserve(int argc, char **argv)
{
    (void)argc, (void)argv;
    u8 *none = map(0, 1ul << 44, 0, MAP_PRIVATE | MAP_ANON | 0x4000);
    show("16 TiB without access", failed(none));
    show("1 GiB of it", SYS(__NR_mprotect, none, 1ul << 30, PROT_R | PROT_W));
    none[5] = 7;
    show("value", none[5]);
    u8 *lazy = map(0, 1ul << 40, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON | 0x4000);
    show("1 TiB with access", failed(lazy));
    if (!failed(lazy)) {
        lazy[(1ul << 40) - 1] = 9;
        show("value", lazy[(1ul << 40) - 1]);
    }
    u8 *some = map(0, 1ul << 35, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON);
    show("32 GiB with access", failed(some));
    show("too much", failed(map(0, 1ul << 50, 0, MAP_PRIVATE | MAP_ANON)));
    show("wraps", failed(map(0, -4096ul, PROT_R, MAP_PRIVATE | MAP_ANON)));
    return 0;
}

/* Maps, touches, unmaps far more than the limit in sum: all must come back. */
static int recycle(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (u32 round = 0; round < 64; round++) {
        u8 *at = map(0, 16 * MIB, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON);
        for (u32 i = 0; i < 16 * MIB; i += PAGE) {
            if (at[i])
                return 3;
            at[i] = 1;
        }
        if (round & 1)
            SYS(__NR_munmap, at, 16 * MIB);
        else if (round & 2) {
            SYS(__NR_madvise, at, 16 * MIB, 4);
            if (at[0])
                return 4;
            SYS(__NR_munmap, at, 16 * MIB);
        } else {
            map((s64)at, 16 * MIB, 0, MAP_PRIVATE | MAP_ANON | MAP_FIXED);
            SYS(__NR_munmap, at, 16 * MIB);
        }
    }
    say("recycled");
    return 0;
}

/* Each second page protected otherwise, so that nothing merges. */
static int many(int argc, char **argv)
{
    s64 wanted = argc ? number(argv[0]) : 70000, made = 0;
    u8 *at = map(0, (u64)wanted * PAGE, PROT_R, MAP_PRIVATE | MAP_ANON);
    s64 result = 0;
    for (s64 i = 0; i < wanted; i += 2, made++)
        if ((result = SYS(__NR_mprotect, at + i * PAGE, PAGE, PROT_R | PROT_W)) < 0)
            break;
    show("changed", made);
    show("mprotect", result);
    at[0] = 5;
    show("value", at[0]);
    show("munmap", SYS(__NR_munmap, at, (u64)wanted * PAGE));
    show("mmap", failed(map(0, PAGE, PROT_R, MAP_PRIVATE | MAP_ANON)));
    return 0;
}

/* Holes in one big mapping by munmap. */
static int holes(int argc, char **argv)
{
    s64 wanted = argc ? number(argv[0]) : 70000, made = 0, result = 0;
    u8 *at = map(0, (u64)wanted * 2 * PAGE, PROT_R, MAP_PRIVATE | MAP_ANON);
    for (s64 i = 0; i < wanted; i++, made++)
        if ((result = SYS(__NR_munmap, at + i * 2 * PAGE, PAGE)) < 0)
            break;
    show("holes", made);
    show("munmap", result);
    return 0;
}

static int remap(int argc, char **argv)
{
    (void)argc, (void)argv;
    u8 *at = map(0, PAGE, PROT_R | PROT_W, MAP_PRIVATE | MAP_ANON);
    u64 size = PAGE;
    u32 seed = 1;
    *(u64 *)at = 0x1234;
    for (u32 round = 0; round < 3000; round++) {
        seed = seed * 1103515245 + 12345;
        u64 next = PAGE * (1 + (seed >> 16) % 64);
        u8 *moved = (u8 *)SYS(__NR_mremap, at, size, next, 1);
        if (failed(moved))
            return fail("mremap", (s64)moved, 3);
        if (*(u64 *)moved != 0x1234 + round)
            return fail("lost", round, 4);
        if (next > size)
            for (u64 i = size; i < next; i += PAGE) {
                if (moved[i])
                    return fail("not zero", (s64)i, 5);
                moved[i] = 1;
            }
        *(u64 *)moved += 1;
        at = moved, size = next;
        if (round % 7 == 0)
            map(0, PAGE, PROT_R, MAP_PRIVATE | MAP_ANON);
    }
    show("to nothing", SYS(__NR_mremap, at, size, 0, 1));
    show("overlap", SYS(__NR_mremap, at, PAGE, PAGE, 3, at));
    show("unaligned", SYS(__NR_mremap, at + 1, PAGE, PAGE, 1));
    show("huge", SYS(__NR_mremap, at, size, 1ul << 46, 1) == -12);
    show("wrap", SYS(__NR_mremap, at, size, -PAGE, 1) < 0);
    show("not mapped", SYS(__NR_mremap, 0x10000, PAGE, 2 * PAGE, 1));
    return 0;
}

static int shared(int argc, char **argv)
{
    (void)argc;
    s64 fd = show("open", SYS(__NR_openat, AT_FDCWD, argv[0], O_RDWR | O_CREAT, 0644));
    show("ftruncate", SYS(__NR_ftruncate, fd, 3 * PAGE));
    u8 *at = (u8 *)SYS(__NR_mmap, 0, 3 * PAGE, PROT_R | PROT_W, MAP_SHARED, fd, 0);
    show("mmap", failed(at));
    at[0] = 'm', at[2 * PAGE] = 'n';
    show("msync", SYS(__NR_msync, at, 3 * PAGE, 4));
    u8 byte = 0;
    SYS(__NR_pread64, fd, &byte, 1, 0);
    show("file has", byte);
    SYS(__NR_pwrite64, fd, "w", 1, 1);
    show("mapping has", at[1]);
    u8 *second = (u8 *)SYS(__NR_mmap, 0, PAGE, PROT_R | PROT_W, MAP_SHARED, fd, 0);
    at[2] = 's';
    show("second mapping has", second[2]);
    s64 only = SYS(__NR_openat, AT_FDCWD, argv[0], O_RDONLY);
    show("shared writable of a read-only file", SYS(__NR_mmap, 0, PAGE, PROT_R | PROT_W, MAP_SHARED, only, 0));
    show("upgrade", SYS(__NR_mprotect, SYS(__NR_mmap, 0, PAGE, PROT_R, MAP_SHARED, only, 0), PAGE, PROT_R | PROT_W));
    show("mmap of a directory",
         SYS(__NR_mmap, 0, PAGE, PROT_R, MAP_PRIVATE, SYS(__NR_openat, AT_FDCWD, "/", O_RDONLY), 0));
    show("behind the end", failed((void *)SYS(__NR_mmap, 0, PAGE, PROT_R, MAP_PRIVATE, fd, 1l << 40)));
    show("offset wraps", failed((void *)SYS(__NR_mmap, 0, PAGE, PROT_R, MAP_PRIVATE, fd, -PAGE)));
    return 0;
}

/* The file shrinks under a mapping: the lost pages must raise SIGBUS, never kill the engine. */
static int shrink(int argc, char **argv)
{
    (void)argc;
    s64 fd = show("open", SYS(__NR_openat, AT_FDCWD, argv[0], O_RDWR | O_CREAT, 0644));
    SYS(__NR_ftruncate, fd, 4 * MIB);
    u8 *at = (u8 *)SYS(__NR_mmap, 0, 4 * MIB, PROT_R | PROT_W, MAP_SHARED, fd, 0);
    at[3 * MIB] = 1;
    show("ftruncate", SYS(__NR_ftruncate, fd, PAGE));
    show("first", at[0]);
    flush();
    show("last", at[3 * MIB]);
    return 0;
}

static int stack(int argc, char **argv);
int (*volatile again)(int, char **) = stack;

static int stack(int argc, char **argv)
{
    volatile u8 room[1000];
    room[0] = (u8)argc;
    return again(argc + 1, argv) + room[0];
}

static int badcalls(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const s64 odd[] = {0, 1, -1, 4095, 4096, 1l << 47, -(1l << 47), 1l << 62, (1ul << 63), 0xdeadbeef, -4096};
    enum { COUNT = sizeof odd / sizeof *odd };
    u64 seed = 42, calls = 0;
    for (u32 round = 0; round < 6000; round++) {
        s64 words[7];
        for (u32 i = 0; i < 7; i++) {
            seed = seed * 6364136223846793005ul + 1442695040888963407ul;
            words[i] = odd[(seed >> 33) % COUNT];
        }
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        s64 which = (s64)((seed >> 33) % 462);
        if (which == __NR_exit || which == __NR_exit_group || which == __NR_rt_sigreturn || which == __NR_munmap ||
            which == __NR_mprotect || which == __NR_mmap || which == __NR_mremap || which == __NR_close ||
            which == __NR_close_range || which == __NR_rt_sigsuspend || which == __NR_ppoll || which == __NR_pselect6 ||
            which == __NR_rt_sigaction || which == __NR_rt_sigprocmask || which == __NR_madvise || which == __NR_read ||
            which == __NR_readv || which == __NR_dup3 || which == __NR_kill || which == __NR_tgkill || which == __NR_tkill ||
            which == __NR_rt_sigqueueinfo || which == __NR_rt_tgsigqueueinfo || which == __NR_prctl ||
            which == __NR_nanosleep || which == __NR_clock_nanosleep || which == __NR_execve || which == __NR_execveat ||
            which == __NR_remap_file_pages || which == __NR_setitimer || which == __NR_futex || which == __NR_prlimit64 ||
            which == __NR_rt_sigtimedwait || which == __NR_brk || which == __NR_write || which == __NR_writev ||
            which == __NR_pwrite64 || which == __NR_sigaltstack || which == __NR_preadv2 || which == __NR_pwritev2 ||
            which == __NR_seccomp || which == __NR_clone || which == __NR_clone3 || which == __NR_wait4 || which == __NR_waitid
#ifdef __x86_64__
            || which == __NR_fork || which == __NR_vfork
            || which == __NR_pause || which == __NR_poll || which == __NR_select || which == __NR_alarm ||
            which == __NR_dup2 || which == __NR_arch_prctl || which == __NR_setrlimit
#endif
        )
            continue;
        sys(which, words[0], words[1], words[2], words[3], words[4], words[5]);
        calls++;
    }
    say("survived");
    return calls ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"touch", touch}, {"heap", heap},   {"read", by_read},    {"reserve", reserve}, {"recycle", recycle},
        {"many", many},   {"holes", holes}, {"remap", remap},     {"shared", shared},   {"shrink", shrink},
        {"stack", stack}, {"calls", badcalls},
    };
    return CHOOSE(modes);
}
