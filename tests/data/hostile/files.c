/* Reaches for files and networks of the host, and floods what the guest may write. */
#include "hostile.h"

enum { CHUNK = 1 << 16 };
static char buffer[CHUNK];

static void cat(const char *path)
{
    s64 fd = SYS(__NR_openat, AT_FDCWD, path, O_RDONLY);
    show(path, fd);
    if (fd < 0)
        return;
    s64 got = SYS(__NR_read, fd, buffer, 64);
    if (got > 0) {
        buffer[got] = 0;
        say(buffer);
    } else
        show("read", got);
    SYS(__NR_close, fd);
}

static int overwrite(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        s64 fd = show(argv[i], SYS(__NR_openat, AT_FDCWD, argv[i], O_WRONLY | O_CREAT | O_TRUNC, 0644));
        if (fd < 0)
            continue;
        show("write", SYS(__NR_write, fd, "overwritten", 11));
        SYS(__NR_close, fd);
        cat(argv[i]);
    }
    return 0;
}

static int link(int argc, char **argv)
{
    (void)argc;
    show("symlink", SYS(__NR_symlinkat, argv[0], AT_FDCWD, "made-link"));
    show("hard link", SYS(__NR_linkat, AT_FDCWD, argv[0], AT_FDCWD, "made-hard", 0));
    char *names[] = {"made-link", "made-hard"};
    return overwrite(2, names);
}

static int read(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        cat(argv[i]);
    return 0;
}

static int destroy(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        show("chmod", SYS(__NR_fchmodat, AT_FDCWD, argv[i], 0777));
        show("truncate", SYS(__NR_truncate, argv[i], 0));
        show("utimens", SYS(__NR_utimensat, AT_FDCWD, argv[i], NULL, 0));
        show("rename", SYS(__NR_renameat2, AT_FDCWD, argv[i], AT_FDCWD, "made-name", 0));
        show("unlink", SYS(__NR_unlinkat, AT_FDCWD, argv[i], 0));
        show("unlink", SYS(__NR_unlinkat, AT_FDCWD, "made-name", 0));
    }
    show("mkdir", SYS(__NR_mkdirat, AT_FDCWD, "made-dir", 0755));
    show("mknod", SYS(__NR_mknodat, AT_FDCWD, "made-device", 060644, 0x800));
    show("mount", SYS(__NR_mount, "/dev/sda", "/", "ext4", 0, NULL));
    show("chroot", SYS(__NR_chroot, "/"));
    return 0;
}

static int connect(int argc, char **argv)
{
    (void)argc;
    u16 port = (u16)number(argv[0]);
    u8 address[16] = {2, 0, (u8)(port >> 8), (u8)port, 127, 0, 0, 1};
    s64 fd = show("inet socket", SYS(__NR_socket, 2, 1, 0));
    if (fd >= 0)
        show("connect", SYS(__NR_connect, fd, address, 16));
    fd = show("udp socket", SYS(__NR_socket, 2, 2, 0));
    if (fd >= 0)
        show("sendto", SYS(__NR_sendto, fd, "x", 1, 0, address, 16));
    show("inet6 socket", SYS(__NR_socket, 10, 1, 0));
    show("packet socket", SYS(__NR_socket, 17, 3, 0));
    show("netlink socket", SYS(__NR_socket, 16, 3, 0));
    show("vsock socket", SYS(__NR_socket, 40, 1, 0));
    u8 name[110] = {1, 0};
    u32 length = 2;
    for (char *c = argv[1]; *c; c++)
        name[length++] = (u8)*c;
    fd = show("unix socket", SYS(__NR_socket, 1, 1, 0));
    if (fd >= 0)
        show("unix connect", SYS(__NR_connect, fd, name, length + 1));
    return 0;
}

static int descriptors(int argc, char **argv)
{
    (void)argc, (void)argv;
    s64 fd, count = 0;
    while ((fd = SYS(__NR_openat, AT_FDCWD, "/dev/null", O_RDONLY)) >= 0)
        count++;
    show("opened", count);
    show("open", fd);
    show("pipe", SYS(__NR_pipe2, buffer, 0));
    show("dup", SYS(__NR_dup, 0));
    show("dup3", SYS(__NR_dup3, 0, 1 << 30, 0));
    return 0;
}

static int bytes(int argc, char **argv)
{
    (void)argc;
    s64 fd = show("open", SYS(__NR_openat, AT_FDCWD, argv[0], O_WRONLY | O_CREAT, 0644));
    s64 got, total = 0;
    for (u32 i = 0; i < CHUNK; i++)
        buffer[i] = (char)(i | 1);
    while ((got = SYS(__NR_write, fd, buffer, CHUNK)) > 0)
        total += got;
    show("mebibytes", total >> 20);
    show("write", got);
    return 0;
}

/* A huge sparse file costs nothing; a huge hole that is then filled does. */
static int sparse(int argc, char **argv)
{
    (void)argc, (void)argv;
    s64 fd = show("open", SYS(__NR_openat, AT_FDCWD, "/tmp/sparse", O_RDWR | O_CREAT, 0644));
    show("ftruncate", SYS(__NR_ftruncate, fd, 1ul << 43));
    show("pwrite", SYS(__NR_pwrite64, fd, "x", 1, (1ul << 43) - 1));
    show("ftruncate huge", SYS(__NR_ftruncate, fd, 1ul << 62));
    show("ftruncate negative", SYS(__NR_ftruncate, fd, -1));
    show("fallocate", SYS(__NR_fallocate, fd, 0, 0, 1ul << 43));
    show("lseek", SYS(__NR_lseek, fd, 1ul << 43, 0) == 1l << 43);
    show("read", SYS(__NR_read, fd, buffer, CHUNK));
    show("mmap", failed((void *)SYS(__NR_mmap, 0, 1ul << 40, PROT_R | PROT_W, MAP_SHARED, fd, 0)));
    return 0;
}

static int inodes(int argc, char **argv)
{
    (void)argc, (void)argv;
    char name[] = "/tmp/00000000";
    s64 fd, count = 0;
    for (;;) {
        u64 rest = (u64)count;
        for (int i = 12; i > 4; i--, rest /= 10)
            name[i] = (char)('0' + rest % 10);
        fd = SYS(__NR_openat, AT_FDCWD, name, O_WRONLY | O_CREAT, 0644);
        if (fd < 0)
            break;
        SYS(__NR_close, fd);
        count++;
    }
    show("created", count);
    show("create", fd);
    return 0;
}

static int full(int argc, char **argv)
{
    (void)argc, (void)argv;
    s64 fd = show("open", SYS(__NR_openat, AT_FDCWD, "/dev/full", O_WRONLY));
    show("write", SYS(__NR_write, fd, "x", 1));
    return 0;
}

static int flood(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (u32 i = 0; i < CHUNK; i++)
        buffer[i] = i % 64 == 63 ? '\n' : 'f';
    for (;;)
        if (SYS(__NR_write, 1, buffer, CHUNK) < 0)
            return 3;
}

/* Two mebibytes with a checkable pattern, in odd pieces. */
static int pattern(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (u32 i = 0; i < CHUNK; i++)
        buffer[i] = (char)('a' + i % 26);
    u32 done = 0;
    while (done < 1 << 21) {
        u32 at = done % 26, size = CHUNK - 26 - 7;
        if (size > (1 << 21) - done)
            size = (1 << 21) - done;
        s64 got = SYS(__NR_write, 1, buffer + at, size);
        if (got <= 0)
            return 3;
        done += (u32)got;
    }
    return 0;
}

static int own(int argc, char **argv)
{
    (void)argc, (void)argv;
    static volatile u64 secret = 1;
    s64 fd = show("/proc/self/mem", SYS(__NR_openat, AT_FDCWD, "/proc/self/mem", O_RDWR));
    u64 value = 2;
    if (fd >= 0)
        show("pwrite", SYS(__NR_pwrite64, fd, &value, 8, (s64)&secret));
    show("secret", (s64)secret);
    cat("/proc/1/cmdline");
    cat("/proc/1/environ");
    cat("/proc/2/status");
    cat("/proc/self/root/etc/shadow");
    cat("/proc/self/cwd/../../../../../../etc/shadow");
    cat("/proc/kcore");
    cat("/proc/kallsyms");
    cat("/sys/kernel/vmcoreinfo");
    cat("/dev/mem");
    cat("/dev/sda");
    cat("/dev/kmsg");
    return 0;
}

/* A directory as the system call gives it: inode, position, name. */
static int list(int argc, char **argv)
{
    (void)argc;
    s64 fd = show("open", SYS(__NR_openat, AT_FDCWD, argv[0], O_RDONLY)), got;
    while ((got = SYS(__NR_getdents64, fd, buffer, CHUNK)) > 0)
        for (char *at = buffer; at < buffer + got; at += *(u16 *)(at + 16)) {
            print_u64(*(u64 *)at);
            print(" ");
            print_u64(*(u64 *)(at + 8));
            print(" ");
            say(at + 19);
        }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"write", overwrite}, {"link", link},       {"read", read},       {"destroy", destroy}, {"connect", connect},
        {"fds", descriptors}, {"bytes", bytes},     {"inodes", inodes},   {"full", full},       {"flood", flood},
        {"proc", own},        {"sparse", sparse},   {"pattern", pattern},   {"list", list},
    };
    return CHOOSE(modes);
}
