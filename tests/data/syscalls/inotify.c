/* Changes of files and directories, as inotify tells them. */
#include "guest.h"
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

static int in, cookies[50], known;

static int cookie(unsigned value) {
    if (!value) return 0;
    for (int n = 0; n < known; n++)
        if (cookies[n] == value) return n + 1;
    cookies[known++ % 50] = value;
    return known;
}
static void events(const char *what) {
    char data[1 << 16];
    int size = -1, done = 0;
    ioctl(in, FIONREAD, &size);
    long got = read(in, data, sizeof data);
    printf("-- %s: %s\n", what, got == size || (got < 0 && !size) ? "all" : "NOT ALL");
    while (done < got) {
        static const char *names[] = {
            "ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN", "MOVED_FROM", "MOVED_TO", "CREATE",
            "DELETE", "DELETE_SELF", "MOVE_SELF", "1000", "UNMOUNT", "Q_OVERFLOW", "IGNORED",
        };
        struct inotify_event *event = (void *)(data + done);
        printf("  %d", event->wd);
        for (int bit = 0; bit < 16; bit++)
            if (event->mask & 1 << bit) printf(" %s", names[bit]);
        if (event->mask & IN_ISDIR) printf(" DIR");
        if (event->mask & ~0x4000ffff) printf(" %x", event->mask & ~0x4000ffff);
        printf(" cookie %d len %d %s\n", cookie(event->cookie), event->len, event->len ? event->name : "");
        done += sizeof *event + event->len;
    }
    fflush(stdout);
}
static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    write(fd, text, strlen(text));
    close(fd);
}

static void calls(void) {
    SHOW(inotify_init1(1));
    WORKS(in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    SHOW(fcntl(in, F_GETFD));
    SHOW(fcntl(in, F_GETFL) & ~0100000);
    SHOW(inotify_add_watch(in, ".", 0));
    SHOW(inotify_add_watch(in, ".", 0x00100000));
    SHOW(inotify_add_watch(99, ".", IN_OPEN));
    SHOW(inotify_add_watch(1, ".", IN_OPEN));
    SHOW(inotify_add_watch(in, "none", IN_OPEN));
    SHOW(inotify_add_watch(in, (void *)8, IN_OPEN));
    SHOW(inotify_add_watch(in, "", IN_OPEN));
    SHOW(inotify_add_watch(in, "f", IN_OPEN | IN_ONLYDIR));
    SHOW(inotify_add_watch(in, "unreadable", IN_OPEN));
    SHOW(inotify_rm_watch(in, 1));
    SHOW(inotify_rm_watch(99, 1));
    SHOW(inotify_rm_watch(1, 1));
    SHOW(inotify_add_watch(in, "f", IN_MODIFY));
    SHOW(inotify_add_watch(in, "d", IN_MODIFY));
    SHOW(inotify_add_watch(in, "f", IN_OPEN));
    SHOW(inotify_add_watch(in, "f", IN_OPEN | IN_MASK_CREATE));
    SHOW(inotify_add_watch(in, "f", IN_OPEN | IN_MASK_CREATE | IN_MASK_ADD));
    SHOW(inotify_add_watch(in, "f", IN_CLOSE | IN_MASK_ADD));
    SHOW(inotify_add_watch(in, "l", IN_OPEN));
    SHOW(inotify_add_watch(in, "l", IN_OPEN | IN_DONT_FOLLOW));
    SHOW(inotify_rm_watch(in, 2));
    events("removed");
    put("f", "text");
    events("only opened");
    char byte;
    SHOW(read(in, &byte, 1));
    SHOW(write(in, &byte, 1));
    SHOW(lseek(in, 0, SEEK_SET));
    struct pollfd entry = {in, POLLIN | POLLOUT};
    SHOW(poll(&entry, 1, 0));
    close(open("f", O_RDONLY));
    SHOW(poll(&entry, 1, 0));
    printf("%x\n", entry.revents);
    SHOW(read(in, &byte, 1));
    char one[16];
    SHOW(read(in, one, 16));
    struct stat status;
    fstat(in, &status);
    printf("size %ld\n", (long)status.st_size);
    close(in);
}

static void contents(int all) {
    char data[100];
    in = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(in, "d", IN_ALL_EVENTS);
    if (all) inotify_add_watch(in, "d/f", IN_ALL_EVENTS);
    int fd = open("d/f", O_RDWR);
    events("open");
    write(fd, "hello", 5);
    write(fd, "hello", 5);
    events("twice written");
    write(fd, "", 0);
    pread(fd, data, 5, 0);
    read(fd, data, 5);
    lseek(fd, 0, SEEK_SET);
    read(fd, data, 5);
    pwrite(fd, "x", 1, 0);
    events("read and written");
    ftruncate(fd, 3);
    events("ftruncate");
    fchmod(fd, 0600);
    events("fchmod");
    chmod("d/f", 0644);
    chown("d/f", getuid(), -1);
    chown("d/f", -1, -1);
    events("chmod, chown");
    utime("d/f", 0);
    struct timespec times[2] = {{1, 0}, {0, UTIME_OMIT}};
    utimensat(AT_FDCWD, "d/f", times, 0);
    times[1] = (struct timespec){2, 0};
    times[0].tv_nsec = UTIME_OMIT;
    utimensat(AT_FDCWD, "d/f", times, 0);
    times[1].tv_nsec = UTIME_OMIT;
    utimensat(AT_FDCWD, "d/f", times, 0);
    events("times");
    setxattr("d/f", "user.a", "x", 1, 0);
    events("setxattr");
    truncate("d/f", 2);
    fallocate(fd, 0, 0, 10);
    events("truncate, fallocate");
    close(fd);
    events("close");
    close(open("d/f", O_RDONLY));
    events("read only");
    close(open("d/f", O_WRONLY | O_TRUNC));
    events("O_TRUNC");
    close(open("d/f", O_PATH));
    events("O_PATH");
    close(open("d/new", O_WRONLY | O_CREAT | O_TRUNC, 0600));
    events("created");
    int from = open("d/f", O_RDWR), to = open("d/new", O_RDWR);
    write(from, "contents", 8);
    lseek(from, 0, SEEK_SET);
    events("opened");
    sendfile(to, from, 0, 8);
    events("sendfile");
    int twin = dup(from);
    close(from);
    events("one of two");
    close(twin);
    close(to);
    events("both");
    unlink("d/new");
    struct stat status;
    stat("d/f", &status);
    access("d/f", R_OK);
    events("unlinked");
    pid_t pid = fork();
    if (!pid) {
        put("d/f", "of a child");
        _exit(0);
    }
    waitpid(pid, 0, 0);
    events("child");
    close(in);
}

static void names(void) {
    in = inotify_init1(IN_NONBLOCK);
    inotify_add_watch(in, "d", IN_ALL_EVENTS);
    inotify_add_watch(in, "e", IN_ALL_EVENTS);
    mkdir("d/sub", 0755);
    symlink("x", "d/link");
    mkfifo("d/fifo", 0644);
    events("made");
    link("d/f", "d/hard");
    events("link");
    rename("d/hard", "d/other");
    events("rename");
    rename("d/other", "e/other");
    events("rename to another");
    rename("e/other", "outside");
    events("rename to the outside");
    rename("outside", "e/back");
    events("rename from the outside");
    rename("d/f", "e/back"); /* two names of one file */
    events("nothing");
    inotify_add_watch(in, "d/sub", IN_ALL_EVENTS);
    rename("d/sub", "e/sub");
    events("directory");
    close(open("e/sub/in", O_CREAT | O_WRONLY, 0600));
    events("in it");
    unlink("e/sub/in");
    rmdir("e/sub");
    events("rmdir");
    mkdir("e/sub", 0755);
    mkdir("e/twin", 0755);
    inotify_add_watch(in, "e/sub", IN_ALL_EVENTS);
    inotify_add_watch(in, "e/twin", IN_ALL_EVENTS);
    events("made");
    rename("e/twin", "e/sub");
    events("directory over directory");
    put("e/one", "1");
    put("e/two", "2");
    inotify_add_watch(in, "e/one", IN_ALL_EVENTS);
    inotify_add_watch(in, "e/two", IN_ALL_EVENTS);
    events("made");
    syscall(SYS_renameat2, AT_FDCWD, "e/one", AT_FDCWD, "e/two", 2);
    events("exchange");
    rename("e/one", "e/two");
    events("over");
    int fd = open("e/two", O_RDWR);
    unlink("e/two");
    events("unlinked while open");
    write(fd, "x", 1);
    fchmod(fd, 0600);
    events("written");
    close(fd);
    events("closed");
    unlink("d/link");
    unlink("d/fifo");
    rmdir("e/sub");
    unlink("e/back");
    events("the rest");
    {
        int dir = open("d", O_RDONLY | O_DIRECTORY);
        char data[2000];
        syscall(SYS_getdents64, dir, data, sizeof data);
        events("listed");
        close(dir);
        events("directory closed");
    }
    chmod("d", 0700);
    events("chmod of the directory");
    rename("d", "dd");
    events("the directory itself");
    put("dd/f", "moved");
    events("in the moved one");
    rename("dd", "d");
    unlink("d/f");
    rmdir("d");
    events("gone");
    mkdir("d", 0755);
    put("d/f", "again");
    events("not watched");
    close(in);
}

static void flags(void) {
    in = inotify_init1(IN_NONBLOCK);
    SHOW(inotify_add_watch(in, "d", IN_CREATE | IN_DELETE | IN_ONESHOT));
    put("d/a", "1");
    unlink("d/a");
    events("ONESHOT");
    SHOW(inotify_add_watch(in, "d", IN_OPEN));
    put("d/a", "1");
    put("d/b", "1");
    put("d/b", "1");
    put("d/a", "1");
    events("equal ones");
    SHOW(inotify_add_watch(in, "d", IN_DELETE | IN_MASK_ADD));
    put("d/a", "1");
    unlink("d/a");
    SHOW(inotify_add_watch(in, "d", IN_DELETE));
    unlink("d/b");
    put("d/a", "1");
    events("MASK_ADD");
    SHOW(inotify_add_watch(in, "d", IN_MODIFY | IN_CLOSE | IN_EXCL_UNLINK));
    int fd = open("d/a", O_RDWR);
    write(fd, "1", 1);
    unlink("d/a");
    write(fd, "1", 1);
    close(fd);
    events("EXCL_UNLINK");
    inotify_add_watch(in, "d", IN_OPEN | IN_CLOSE);
    char name[300] = "d/";
    memset(name + 2, 'n', 255);
    put(name, "");
    name[2 + 15] = 0;
    put(name, "");
    name[2 + 16] = 0;
    memset(name + 2, 'm', 16);
    put(name, "");
    events("long names");
    for (int n = 0; n < 17000; n++) close(open(n & 1 ? "d/f" : "d", O_RDONLY));
    int size = 0, total = 0;
    ioctl(in, FIONREAD, &size);
    char data[1 << 15];
    long got;
    struct inotify_event last = {0};
    while ((got = read(in, data, sizeof data)) > 0)
        for (long at = 0; at < got; at += sizeof last + last.len) {
            memcpy(&last, data + at, sizeof last);
            total++;
        }
    TRUE(total == 16385);
    printf("last %d %x %d\n", last.wd, last.mask, last.len);
    close(open("d/f", O_RDONLY));
    events("after the overflow");
    close(in);
    /* A reader that waits. */
    in = inotify_init();
    inotify_add_watch(in, "d", IN_CREATE);
    pid_t pid = fork();
    if (!pid) {
        usleep(10000);
        put("d/late", "1");
        _exit(0);
    }
    events("late");
    waitpid(pid, 0, 0);
    close(in);
}

int main(void) {
    mkdir("watched", 0755);
    chdir("watched");
    mkdir("d", 0755);
    mkdir("e", 0755);
    put("f", "a file");
    put("d/f", "another file");
    put("unreadable", "");
    chmod("unreadable", 0200);
    symlink("f", "l");
    calls();
    contents(0);
    contents(1);
    names();
    flags();
    chdir("..");
    system("rm -r watched");
    return 0;
}
