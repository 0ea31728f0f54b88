/* openat2: where a path may lead (RESOLVE flags), and what of a struct open_how is refused. */
#include "guest.h"
#include <linux/openat2.h>
#define BAD ((void *)8)

static int count;
static void try(int dirfd, const char *from, const char *path, long flags, long mode, long resolve) {
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    struct stat st;
    errno = 0;
    long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
    printf("%d %s %s mode %#lo resolve %#lx: ", count++, from, path, mode, resolve); /* flags are the architecture's */
    if (fd < 0) { printf("%s\n", strerrorname_np(errno)); return; }
    fstat(fd, &st);
    printf("%s of %ld\n", S_ISDIR(st.st_mode) ? "directory" : S_ISLNK(st.st_mode) ? "symlink" : "file",
           S_ISREG(st.st_mode) && st.st_size < 9 ? (long)st.st_size : 0);
    close(fd);
}
static void make(const char *path, int size) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(fd, size);
    close(fd);
}
int main(void) {
    mkdir("o2", 0700); mkdir("o2/sub", 0700); mkdir("o2/sub/deep", 0700);
    make("o2/f", 1); make("o2/sub/g", 2); make("outer", 3);
    symlink("f", "o2/link"); symlink("sub", "o2/tosub"); symlink("..", "o2/up"); symlink("../outer", "o2/out");
    symlink("/f", "o2/absf"); symlink("/", "o2/absroot"); symlink("/sub/../f", "o2/absdots"); symlink("nowhere", "o2/dangle"); symlink("loop", "o2/loop");
    symlink("../f", "o2/sub/back"); symlink("../../outer", "o2/sub/far"); symlink("/proc/self/cwd", "o2/proc");
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    int dir = open("o2", O_PATH | O_DIRECTORY), file = open("o2/f", O_RDWR), pipes[2];
    pipe(pipes);
    static const char *const paths[] = {
        "", ".", "..", "f", "f/", "./f", "sub", "sub/g", "sub/../f", "../o2/f", "../outer", "sub/../../outer", "link", "link/", "tosub", "tosub/g", "tosub/../f",
        "up", "up/outer", "out", "absf", "absroot", "absroot/f", "absdots", "dangle", "loop", "sub/back", "sub/far", "missing", "missing/x", "f/x", "/", "/..", "/f", "/sub/g", "/proc",
        "/proc/self", "/proc/self/exe", "/proc/self/cwd", "/proc/self/root", "/proc/self/root/proc", "/proc/self/../..", "/proc/..", "proc", "proc/outer", "/dev/null", "/sub/../../f", "sub/deep/../../../o2/f"};
    for (unsigned at = 0; at < sizeof paths / sizeof *paths; at++)
        for (long resolve = 0; resolve < 32; resolve++)
            for (int how = 0; how < 2 && !(resolve % 8 == resolve && resolve & 1 && !strncmp(paths[at], "abs", 3)); how++) /* the root may be another device */
                try(dir, "o2", paths[at], how ? O_PATH | O_NOFOLLOW : O_RDONLY, 0, resolve);
    static const long many[] = {0, O_WRONLY, O_CREAT, O_CREAT | O_EXCL, O_TRUNC | O_WRONLY, O_DIRECTORY, O_DIRECTORY | O_CREAT, O_TMPFILE, O_TMPFILE | O_RDWR, O_PATH,
                                O_PATH | O_RDWR, O_PATH | O_CREAT, O_NOFOLLOW, 4, 1L << 32, 1L << 23, O_CLOEXEC | O_NONBLOCK};
    static const long modes[] = {0, 0600, 07777, 010000, -1};
    static const long resolves[] = {0, 8, 16, 24, 0x20, 0x40, 1L << 32};
    static const char *const few[] = {"f", "sub", "new", "link", "/f", "missing/x"};
    for (unsigned p = 0; p < 6; p++)
        for (unsigned f = 0; f < sizeof many / sizeof *many; f++)
            for (unsigned m = 0; m < 5; m++)
                for (unsigned r = *few[p] == '/'; r < (*few[p] == '/' ? 4 : 7); r++) { /* nothing may be made in the root */
                    try(dir, "o2", few[p], many[f], modes[m], resolves[r]);
                    unlinkat(dir, "new", 0);
                    make("o2/f", 1);
                }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    for (long resolve = 0; resolve < 32; resolve++) {
        struct open_how how = {.flags = O_RDONLY, .resolve = resolve};
        long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
        printf("fd of a file, resolve %ld: %s\n", resolve, fd < 0 ? strerrorname_np(errno) : "opened");
        char other[64];
        snprintf(other, sizeof other, "/proc/self/fd/%d", pipes[0]);
        how.flags |= O_NONBLOCK;
        fd = syscall(SYS_openat2, dir, other, &how, sizeof how);
        printf("fd of a pipe, resolve %ld: %s\n", resolve, fd < 0 ? strerrorname_np(errno) : "opened");
    }
    try(99, "nothing", "f", 0, 0, 0); try(file, "a file", "x", 0, 0, 0); try(file, "a file", "/", 0, 0, 0); try(file, "a file", "/", 0, 0, 16); try(99, "nothing", "/", 0, 0, 16); try(99, "nothing", "/", 0, 0, 8);
    static char more[8192];
    for (unsigned size = 0; size <= 8192; size += size < 48 ? 8 : size < 4096 ? 1012 : 4096) {
        memset(more, 0, sizeof more);
        SHOW(syscall(SYS_openat2, dir, "missing", more, (long)size));
        more[size ? size - 1 : 0] = 1;
        SHOW(syscall(SYS_openat2, dir, "missing", more, (long)size));
        SHOW(syscall(SYS_openat2, dir, BAD, more, (long)size));
        SHOW(syscall(SYS_openat2, 99, "missing", BAD, (long)size));
    }
    SHOW(syscall(SYS_openat2, dir, "missing", more, 4096L)); SHOW(syscall(SYS_openat2, dir, "missing", more, 4097L)); SHOW(syscall(SYS_openat2, dir, "missing", more, -1L));
    struct open_how plain = {0};
    SHOW(syscall(SYS_openat2, dir, BAD, &plain, sizeof plain)); plain.resolve = 64; SHOW(syscall(SYS_openat2, dir, BAD, &plain, sizeof plain));
    static const char *const gone[] = {"f", "link", "tosub", "up", "out", "absf", "absroot", "absdots", "dangle", "loop", "sub/back", "sub/far", "sub/g", "proc"};
    for (unsigned at = 0; at < sizeof gone / sizeof *gone; at++) unlinkat(dir, gone[at], 0);
    unlinkat(dir, "sub/deep", AT_REMOVEDIR); unlinkat(dir, "sub", AT_REMOVEDIR); unlink("outer");
    SHOW(rmdir("o2"));
    return 0;
}
