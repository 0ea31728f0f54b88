/* What system calls and signals cost: syscalls WHAT COUNT. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long seen;

static void handler(int number)
{
    seen += number;
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    long count = argc > 2 ? atol(argv[2]) : 0;
    char bytes[64];
    if (!strcmp(what, "getpid")) {
        for (long n = 0; n < count; n++) syscall(SYS_getpid);
    } else if (!strcmp(what, "read")) {
        int fd = open("/dev/zero", O_RDONLY);
        for (long n = 0; n < count; n++) read(fd, bytes, sizeof bytes);
    } else if (!strcmp(what, "write")) {
        int fd = open("/dev/null", O_WRONLY);
        for (long n = 0; n < count; n++) write(fd, bytes, sizeof bytes);
    } else if (!strcmp(what, "output")) {
        memset(bytes, '.', sizeof bytes);
        for (long n = 0; n < count; n++) write(1, bytes, sizeof bytes);
    } else if (!strcmp(what, "brk")) {
        char *end = sbrk(0);
        for (long n = 0; n < count; n++) {
            brk(end + 16384 * (n % 2));
        }
    } else if (!strcmp(what, "mmap")) {
        for (long n = 0; n < count; n++) {
            char *memory = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            munmap(memory, 16384);
        }
    } else if (!strcmp(what, "touched")) {
        for (long n = 0; n < count; n++) {
            char *memory = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memory[0] = 1;
            munmap(memory, 16384);
        }
    } else if (!strcmp(what, "signal")) {
        signal(SIGUSR1, handler);
        int pid = getpid();
        for (long n = 0; n < count; n++) kill(pid, SIGUSR1);
        if (seen != count * SIGUSR1) return 1;
    } else {
        return 2;
    }
    return 0;
}
