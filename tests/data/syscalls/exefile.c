/* What /proc says of a program whose file has no name, or another one: /proc/self/exe, comm, maps. */
#include "guest.h"
#include <sys/auxv.h>
#include <sys/wait.h>
#include <sys/prctl.h>
extern char **environ;
static void text(const char *what, const char *path, int link) {
    char data[300] = "";
    int fd = link ? -1 : open(path, O_RDONLY);
    int n = link ? readlink(path, data, 299) : read(fd, data, 299);
    if (n < 0) { show(what, -1); return; }
    data[n] = 0;
    if (fd >= 0) close(fd);
    char *from = strstr(data, "/ktui-"); /* the directory differs */
    printf("%s: %s%s", what, from ? from + 12 : data, link ? "\n" : "");
}
static void told(char **words) {
    char head[5] = "";
    text("exe", "/proc/self/exe", 1);
    /* A descriptor's comm is another one before Linux 6.14. */
    if (strcmp(words[2], "memory")) text("comm", "/proc/self/comm", 0);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    works("open", fd);
    pread(fd, head, 4, 0);
    printf("ELF: %s\n", memcmp(head, "\177ELF", 4) ? "no" : "yes");
    struct stat one, other;
    TRUE(!stat("/proc/self/exe", &one) && !fstat(fd, &other) && one.st_ino == other.st_ino);
    close(fd);
    const char *name = (char *)getauxval(AT_EXECFN);
    printf("AT_EXECFN: %s\n", strncmp(name, "/dev/fd/", 8) ? strrchr(name, '/') : "of a descriptor");
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600] = "", *at = 0;
    while (!at && fgets(line, 600, maps)) at = strchr(line, '/');
    if (at) at = strstr(at, "/ktui-") ? strstr(at, "/ktui-") + 12 : at;
    printf("first mapping: %s", at ? at : "?\n");
    fclose(maps);
    fflush(stdout);
}
static void copy(int to) {
    char data[65536];
    int from = open("/proc/self/exe", O_RDONLY), n;
    while ((n = read(from, data, sizeof data)) > 0) write(to, data, n);
    close(from);
}
int main(int count, char **words) {
    if (count > 2 && !strcmp(words[1], "inner")) {
        printf("-- %s\n", words[2]);
        if (!strcmp(words[2], "unlinked")) SHOW(unlink(words[3]));
        if (!strcmp(words[2], "replaced")) {
            SHOW(unlink(words[3]));
            close(open(words[3], O_CREAT | O_WRONLY, 0600));
        }
        told(words);
        if (!strcmp(words[2], "again")) return 0;
        if (!fork()) { /* a program of no name can begin itself once more */
            char *more[] = {"again", "inner", "again", 0};
            execv("/proc/self/exe", more);
            show("again", -1);
            _exit(1);
        }
        int status;
        wait(&status);
        SHOW(status);
        return 0;
    }
    char path[64] = "/tmp/ktui-XXXXXX";
    mkdtemp(path);
    strcat(path, "/program");
    static const char *cases[] = {"named", "unlinked", "replaced", "memory", "memory"};
    for (int i = 0; i < 5; i++) {
        int memory = i > 2 ? i - 2 : 0, fd = memory ? memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                                         : open(path, O_CREAT | O_RDWR | O_TRUNC, 0700);
        copy(fd);
        if (!memory) { close(fd); fd = open(path, O_RDONLY | O_CLOEXEC); }
        else SHOW(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
        fflush(stdout);
        if (!fork()) {
            char *more[] = {"other", "inner", (char *)cases[i], path, 0};
            char own[40];
            sprintf(own, "/proc/self/fd/%d", fd);
            if (memory == 2) execv(own, more);
            if (memory) fexecve(fd, more, environ); else execv(path, more);
            show("exec", -1);
            _exit(1);
        }
        int status;
        wait(&status);
        SHOW(status);
        close(fd);
        unlink(path);
    }
    *strrchr(path, '/') = 0;
    rmdir(path);
    return 0;
}
