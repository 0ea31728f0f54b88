/* Pseudo-terminals: the two ends, the line discipline, the controlling terminal. */
#include "guest.h"
#include <poll.h>
#include <pty.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

static int m, s;

static void text(const char *what, const char *data, long size) {
    printf("%s ", what);
    if (size < 0) {
        printf("%s\n", strerrorname_np(errno));
        return;
    }
    printf("%ld \"", size);
    for (long n = 0; n < size && n < 300; n++) {
        unsigned char c = data[n];
        if (c < 32 || c > 126 || c == '"' || c == '\\') printf("\\%02x", c);
        else putchar(c);
    }
    printf("\"\n");
}
/* What was typed has passed the line discipline, and its echo has reached the master. */
static void settle(void) {
    struct pollfd both[2] = {{s, POLLIN}, {m, POLLIN}};
    poll(both, 2, 0);
    usleep(200);
    poll(both, 2, 0);
}
static void nonblock(int fd, int on) {
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}
static void take(const char *what, int fd, int size) {
    char data[8192];
    nonblock(fd, 1);
    errno = 0;
    long got = read(fd, data, size);
    text(what, data, got);
    nonblock(fd, 0);
}
/* All that the master can read. */
static void shown(void) {
    char data[8192];
    long size = 0, got;
    nonblock(m, 1);
    while (size < 8000 && (got = read(m, data + size, 8000 - size)) > 0) size += got;
    text("shown", data, size);
    nonblock(m, 0);
}
static void type(const char *keys, int size) {
    write(m, keys, size < 0 ? strlen(keys) : size);
    settle();
}
static void events(const char *what, int fd) {
    struct pollfd entry = {fd, POLLIN | POLLOUT | POLLPRI};
    poll(&entry, 1, 0);
    printf("%s events %x\n", what, entry.revents);
}
static void waiting(const char *what, int fd) {
    int count = -1;
    ioctl(fd, FIONREAD, &count);
    printf("%s FIONREAD %d\n", what, count);
}
static void pair(void) { openpty(&m, &s, 0, 0, 0); }
static void done(void) {
    close(m);
    close(s);
}

/* Exclusive use; root may open the slave all the same. */
static void exclusive(void) {
    int on = 7, peer;
    SHOW(ioctl(s, TIOCGEXCL, &on));
    SHOW(on);
    SHOW(ioctl(m, TIOCEXCL, 0));
    SHOW(ioctl(m, TIOCGEXCL, &on));
    SHOW(on);
    SHOW(ioctl(s, TIOCGEXCL, &on));
    SHOW(on);
    WORKS(peer = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    close(peer);
    SHOW(ioctl(s, TIOCEXCL, 0));
    SHOW(ioctl(s, TIOCGEXCL, &on));
    SHOW(on);
    uid_t user = geteuid();
    if (!user) seteuid(65534);
    SHOW(ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    if (!user) seteuid(0);
    SHOW(ioctl(s, TIOCNXCL, 0));
    WORKS(peer = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    close(peer);
    SHOW(ioctl(m, TIOCNXCL, 0));
}

static void opened(void) {
    int number = -1, lock = -1, packet = -1, other;
    m = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    SHOW(ioctl(m, TIOCGPTN, &number));
    TRUE(number >= 0);
    char name[64], got[64];
    sprintf(name, "/dev/pts/%d", number);
    TRUE(strcmp(ptsname(m), name) == 0);
    SHOW(access(name, F_OK));
    SHOW(ioctl(m, TIOCGPTLCK, &lock));
    printf("lock %d\n", lock);
    SHOW(open(name, O_RDWR | O_NOCTTY));
    SHOW(ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY));
    events("master alone", m);
    SHOW(grantpt(m));
    SHOW(unlockpt(m));
    SHOW(ioctl(m, TIOCGPTLCK, &lock));
    printf("lock %d\n", lock);
    WORKS(s = open(name, O_RDWR | O_NOCTTY));
    WORKS(other = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    SHOW(fcntl(other, F_GETFD));
    TRUE(strcmp(ttyname(other), name) == 0);
    close(other);
    TRUE(strcmp(ttyname(s), name) == 0);
    SHOW(isatty(m));
    SHOW(isatty(s));
    struct stat status, named;
    fstat(s, &status);
    stat(name, &named);
    TRUE(S_ISCHR(status.st_mode) && status.st_uid == getuid());
    TRUE(status.st_ino == named.st_ino && status.st_dev == named.st_dev && status.st_rdev == named.st_rdev);
    TRUE(status.st_rdev >> 8 == 136);
    unsigned device = 0;
    SHOW(ioctl(s, 0x80045432, &device));
    TRUE(device == status.st_rdev);
    SHOW(fchmod(s, 0600));
    fstat(s, &status);
    printf("mode %o\n", status.st_mode & 0777);
    fstat(m, &status);
    TRUE(status.st_rdev == (5 << 8 | 2));
    sprintf(got, "/proc/self/fd/%d", s);
    memset(name, 0, sizeof name);
    readlink(got, name, sizeof name - 1);
    TRUE(strcmp(name, ttyname(s)) == 0);
    SHOW(ioctl(s, TIOCGPTN, &number));
    SHOW(ioctl(s, TIOCSPTLCK, &number));
    SHOW(ioctl(s, TIOCPKT, &number));
    SHOW(ioctl(s, TIOCGPTPEER, O_RDWR));
    SHOW(ioctl(m, TIOCGPTN, 1));
    SHOW(ioctl(m, TIOCSPTLCK, 1));
    SHOW(ioctl(m, TCGETS, 1));
    SHOW(ioctl(s, TCSETS, 1));
    SHOW(ioctl(s, TIOCSBRK, 0));
    SHOW(ioctl(s, TIOCCBRK, 0));
    exclusive();
    SHOW(ioctl(s, 0x5499, 0));
    SHOW(ioctl(m, 0x5499, 0));
    SHOW(lseek(s, 0, SEEK_SET));
    SHOW(lseek(m, 0, SEEK_SET));
    SHOW(pread(s, name, 1, 0));
    SHOW(fsync(s));
    SHOW(ftruncate(s, 0));
    SHOW(ioctl(m, TIOCSIG, 5));
    SHOW(ioctl(m, TIOCSIG, SIGINT));
    int discipline = 7;
    SHOW(ioctl(s, TIOCGETD, &discipline));
    printf("discipline %d\n", discipline);
    discipline = 99;
    SHOW(ioctl(s, TIOCSETD, &discipline));
    SHOW(ioctl(s, TIOCOUTQ, &number));
    SHOW(tcsendbreak(s, 0));
    SHOW(tcdrain(s));
    SHOW(tcflow(s, 9));
    SHOW(tcflush(s, 9));
    int session = -1;
    SHOW(ioctl(s, TIOCGPGRP, &session));
    SHOW(ioctl(s, TIOCGSID, &session));
    SHOW(ioctl(s, TIOCNOTTY));
    SHOW(ioctl(m, TIOCGPGRP, &session));
    printf("group %d\n", session);
    SHOW(ioctl(m, TIOCGSID, &session));
    SHOW(ioctl(m, TIOCNOTTY));
    SHOW(tcsetpgrp(s, getpgrp()));
    struct winsize size = {1, 2, 3, 4};
    SHOW(ioctl(s, TIOCGWINSZ, &size));
    printf("%d %d %d %d\n", size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
    size = (struct winsize){24, 80, 5, 6};
    SHOW(ioctl(m, TIOCSWINSZ, &size));
    size = (struct winsize){0};
    SHOW(ioctl(s, TIOCGWINSZ, &size));
    printf("%d %d %d %d\n", size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
    done();
    SHOW(access(got, F_OK));
    TRUE(access("/dev/pts/ptmx", F_OK) == 0);
}

struct termios2 {
    unsigned iflag, oflag, cflag, lflag;
    unsigned char line, keys[19];
    unsigned ispeed, ospeed;
};
static void show_settings(int fd) {
    struct termios2 now;
    memset(&now, 0, sizeof now);
    SHOW(ioctl(fd, 0x802C542A, &now));
    printf("%o %o %o %o %d %u %u", now.iflag, now.oflag, now.cflag, now.lflag, now.line, now.ispeed, now.ospeed);
    for (int n = 0; n < 19; n++) printf(" %d", now.keys[n]);
    printf("\n");
}
static void settings(void) {
    pair();
    show_settings(s);
    show_settings(m);
    struct termios set;
    tcgetattr(s, &set);
    set.c_cflag &= ~CSIZE;
    set.c_cflag |= CS5 | PARENB | CSTOPB | HUPCL;
    cfsetspeed(&set, B115200);
    SHOW(tcsetattr(s, TCSANOW, &set));
    show_settings(s);
    struct termios2 now;
    ioctl(s, 0x802C542A, &now);
    now.cflag = (now.cflag & ~0x100F) | 0x1000;
    now.ispeed = now.ospeed = 12345;
    SHOW(ioctl(s, 0x402C542B, &now));
    show_settings(m);
    tcgetattr(m, &set);
    cfmakeraw(&set);
    SHOW(tcsetattr(m, TCSAFLUSH, &set));
    show_settings(s);
    done();
}

/* One line of keys under changed settings: what the reader gets and what is shown. */
static void keys(unsigned iflag, unsigned oflag, unsigned lflag, const char *data, int size) {
    struct termios set, before;
    tcgetattr(s, &before);
    set = before;
    set.c_iflag ^= iflag;
    set.c_oflag ^= oflag;
    set.c_lflag ^= lflag;
    set.c_cc[VEOL] = '|';
    set.c_cc[VEOL2] = '%';
    tcsetattr(s, TCSANOW, &set);
    printf("-- %o %o %o ", iflag, oflag, lflag);
    text("keys", data, size < 0 ? strlen(data) : size);
    type(data, size);
    waiting("slave", s);
    events("slave", s);
    for (int n = 0; n < 3; n++) take("read", s, 200);
    shown();
    tcflush(s, TCIOFLUSH);
    tcsetattr(s, TCSANOW, &before);
    tcflow(s, TCOON);
    type("\021", 1);
    tcflush(m, TCIOFLUSH);
    tcflush(s, TCIOFLUSH);
}
static void edited(void) {
    pair();
    static const char *lines[] = {
        "abc\n", "ab\177c\n", "\177\177a\n", "one two  \027x\n", "one,two\027\027y\n", "abc\025d\n",
        "a\tb\177\177\177\n", "\001\002\177z\n", "a\t\t\177\177\n", "ab\022c\n", "a\026\021b\026\177\n", "ab\004cd\004",
        "\004", "x\n\004y", "a|b%c\n", "p\rq\n", "\303\251\177e\n", "a\001\027b\025c\n", "\033[A\n", "tab\there\025\n",
        "a_b c1\027\n", "\026\nx\n", "q\0r\n", "\0\n", "\rx\n\n", "\023ab\021\n", "a\177\177b\n", "\377\376\n",
    };
    static const int sizes[] = {[22] = 4, [23] = 2};
    static const unsigned changes[] = {
        0, ECHO | ECHONL, ECHOKE, ECHOPRT, IEXTEN, ICANON,
    };
    for (int change = 0; change < 6; change++)
        for (int n = 0; n < 28; n++)
            keys(0, 0, changes[change], lines[n], n < 24 && sizes[n] ? sizes[n] : -1);
    static const unsigned inputs[] = {ICRNL, INLCR, IGNCR, ISTRIP, IUCLC, IXON, IXANY, IUTF8, PARMRK, INLCR | ICRNL, IXON | ICRNL};
    for (int n = 0; n < 11; n++) {
        keys(inputs[n], 0, 0, "Ab\rCd\303\251\377\177e\n", -1);
        keys(inputs[n], 0, 0, "x\303\251\027y\177\177\023z\n\021w\n", -1);
        keys(inputs[n], 0, ICANON, "Ab\rCd\303\251\377\n\001", -1);
    }
    static const unsigned outputs[] = {OPOST, OLCUC, ONLCR, OCRNL, ONOCR, ONLRET, XTABS, ONOCR | ONLCR, OCRNL | ONLRET, OLCUC | XTABS};
    for (int n = 0; n < 10; n++) {
        keys(0, outputs[n], 0, "Ab\tc\177\177\177d\026\re\n\tf\n", -1);
        keys(0, outputs[n], ECHOCTL, "a\tb\026\tc\025x\001\n", -1);
        struct termios set, before;
        tcgetattr(s, &before);
        set = before;
        set.c_oflag ^= outputs[n];
        tcsetattr(s, TCSANOW, &set);
        SHOW(write(s, "ab\tc\n\rde\rf\n\bg\b\b\thi\1\303\251\t.\n", 24));
        settle();
        shown();
        tcsetattr(s, TCSANOW, &before);
    }
    done();
}
/* The same for many settings and keys that nobody would think of. */
static uint32_t state = 12345;
static unsigned number(unsigned below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}
static void anything(void) {
    static const char often[] = "ab \t\n\r\177\025\027\004\026\022|%\303\251\021\377";
    pair();
    for (int n = 0; n < 150; n++) {
        static const unsigned in[] = {0, 0, ICRNL, INLCR, IGNCR, ISTRIP, IUCLC, IUTF8, IXANY, PARMRK};
        static const unsigned out[] = {0, 0, OPOST, ONLCR, OCRNL, ONOCR, ONLRET, XTABS, OLCUC};
        static const unsigned own[] = {0, 0, 0, ICANON, ECHO, ECHOE, ECHOK, ECHONL, ECHOCTL, ECHOPRT, ECHOKE, IEXTEN};
        unsigned iflag = in[number(10)] | in[number(10)], oflag = out[number(9)] | out[number(9)];
        unsigned lflag = own[number(12)] | own[number(12)] | ISIG;
        char data[40];
        int size = 1 + number(39);
        for (int at = 0; at < size; at++)
            data[at] = number(5) ? often[number(sizeof often - 1)] : number(256);
        for (int at = 0; at < size; at++)
            if (data[at] == 0x13) data[at] = 'k';
        keys(iflag, oflag, lflag, data, size);
    }
    done();
}

static void read_for(const char *what, int least, int tenths, int count) {
    struct termios set;
    char data[100];
    struct timespec from, to;
    tcgetattr(s, &set);
    set.c_lflag &= ~(ICANON | ECHO);
    set.c_cc[VMIN] = least;
    set.c_cc[VTIME] = tenths;
    tcsetattr(s, TCSANOW, &set);
    clock_gettime(CLOCK_MONOTONIC, &from);
    errno = 0;
    long got = read(s, data, count);
    text(what, data, got);
    clock_gettime(CLOCK_MONOTONIC, &to);
    long passed = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    printf("%s\n", passed < 60 ? "at once" : "later");
    nonblock(s, 1);
    events(what, s);
    errno = 0;
    got = read(s, data, count);
    text("nonblocking", data, got);
    nonblock(s, 0);
}
static void raw(void) {
    pair();
    read_for("nothing, 0 0", 0, 0, 10);
    read_for("nothing, 0 1", 0, 1, 10);
    type("abc", 3);
    read_for("abc, 0 1", 0, 1, 10);
    type("abc", 3);
    read_for("abc, 2 0, two", 2, 0, 2);
    type("abc", 3);
    read_for("abc, 10 0, two", 10, 0, 2);
    type("abc", 3);
    read_for("abc, 10 1", 10, 1, 10);
    type("abcd", 4);
    read_for("abcd, 3 1", 3, 1, 10);
    for (int after = 0; after < 2; after++) {
        fflush(stdout);
        pid_t pid = fork();
        if (!pid) {
            usleep(30000);
            write(m, "xy", 2);
            if (after) usleep(30000);
            if (after) write(m, "z", 1);
            _exit(0);
        }
        read_for(after ? "xyz later, 3 5" : "xy later, 3 1", 3, after ? 5 : 1, 10);
        waitpid(pid, 0, 0);
    }
    /* From and to lines. */
    struct termios set;
    tcgetattr(s, &set);
    type("no line yet", -1);
    set.c_lflag |= ICANON;
    tcsetattr(s, TCSANOW, &set);
    events("now lines", s);
    waiting("now lines", s);
    take("read", s, 5);
    take("read", s, 50);
    type("begun", -1);
    take("read", s, 50);
    set.c_lflag &= ~ICANON;
    set.c_cc[VMIN] = 1;
    tcsetattr(s, TCSANOW, &set);
    waiting("no lines", s);
    take("read", s, 50);
    set.c_lflag |= ICANON;
    tcsetattr(s, TCSANOW, &set);
    type("line\nmore\004rest\n", -1);
    take("four", s, 4);
    take("four", s, 4);
    take("four", s, 4);
    take("four", s, 4);
    take("four", s, 4);
    take("four", s, 4);
    type("drop\nme", -1);
    set.c_lflag |= ECHO;
    SHOW(tcsetattr(s, TCSAFLUSH, &set));
    take("read", s, 50);
    type("in\n", -1);
    SHOW(tcflush(s, TCIFLUSH));
    take("read", s, 50);
    shown();
    SHOW(tcflow(s, TCIOFF));
    settle();
    shown();
    SHOW(tcflow(s, TCION));
    settle();
    shown();
    done();
}

static void bounds(void) {
    static char many[100000], line[5000];
    pair();
    memset(line, 'x', 4500);
    struct termios set;
    tcgetattr(s, &set);
    set.c_lflag &= ~ECHO;
    tcsetattr(s, TCSANOW, &set);
    write(m, line, 4500);
    settle();
    write(m, "y\n", 2);
    settle();
    static char got[8192];
    long size = read(s, got, sizeof got);
    printf("long line %ld %c %c\n", size, got[size - 2], got[size - 1] == '\n' ? 'n' : '?');
    cfmakeraw(&set);
    tcsetattr(s, TCSANOW, &set);
    nonblock(m, 1);
    nonblock(s, 1);
    memset(many, 'm', sizeof many);
    long total = 0, count;
    for (int n = 0; n < 50; n++) {
        if ((count = write(m, many, sizeof many)) > 0) total += count;
        usleep(500);
    }
    TRUE(total > 4000 && total < 200000);
    SHOW(write(m, "a", 1));
    events("full master", m);
    long back = 0;
    while ((count = read(s, got, sizeof got)) > 0 || back < total) back += count > 0 ? count : 0;
    TRUE(back == total);
    total = back = 0;
    for (int n = 0; n < 50; n++) {
        if ((count = write(s, many, sizeof many)) > 0) total += count;
        usleep(500);
    }
    TRUE(total > 4000 && total < 200000);
    SHOW(write(s, "a", 1));
    events("full slave", s);
    while ((count = read(m, got, sizeof got)) > 0 || back < total) back += count > 0 ? count : 0;
    TRUE(back == total);
    events("master", m);
    events("slave", s);
    done();
}

static void ends(void) {
    pair();
    char *name = strdup(ttyname(s));
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLET, {.fd = m}}, found;
    epoll_ctl(epoll, EPOLL_CTL_ADD, m, &event);
    SHOW(epoll_wait(epoll, &found, 1, 0));
    printf("%x\n", found.events);
    SHOW(epoll_wait(epoll, &found, 1, 0));
    write(s, "hello\n", 6);
    SHOW(epoll_wait(epoll, &found, 1, 100));
    printf("%x\n", found.events);
    SHOW(epoll_wait(epoll, &found, 1, 0));
    take("master", m, 3);
    close(s);
    events("slave closed", m);
    SHOW(epoll_wait(epoll, &found, 1, 100));
    printf("%x\n", found.events);
    take("master", m, 50);
    take("master", m, 50);
    SHOW(write(m, "typed\n", 6));
    s = open(name, O_RDWR | O_NOCTTY);
    settle();
    events("slave open", m);
    take("slave", s, 50);
    take("master", m, 50);
    take("master", m, 50);
    write(m, "lost\n", 5);
    settle();
    close(m);
    char data[10];
    SHOW(read(s, data, 10));
    SHOW(write(s, "x", 1));
    events("master closed", s);
    int group = getpgrp();
    SHOW(ioctl(s, TIOCSPGRP, &group));
    SHOW(ioctl(s, TIOCGPGRP, &group));
    SHOW(ioctl(s, FIONREAD, &group));
    struct termios set;
    SHOW(tcgetattr(s, &set));
    SHOW(isatty(s));
    SHOW(access(name, F_OK));
    close(s);
    close(epoll);
}

static void packets(void) {
    int on = 1, off = 0, now = 9;
    pair();
    SHOW(ioctl(m, TIOCGPKT, &now));
    printf("%d\n", now);
    SHOW(ioctl(m, TIOCPKT, &on));
    SHOW(ioctl(m, TIOCGPKT, &now));
    printf("%d\n", now);
    write(s, "data", 4);
    settle();
    events("data", m);
    take("data", m, 50);
    tcflush(s, TCIFLUSH);
    events("flush", m);
    take("flush", m, 50);
    tcflush(s, TCIOFLUSH);
    take("flush both", m, 50);
    tcflush(s, TCOFLUSH);
    take("flush output", m, 50);
    tcflow(s, TCOOFF);
    take("stop", m, 50);
    tcflow(s, TCOON);
    take("start", m, 50);
    struct termios set;
    tcgetattr(s, &set);
    set.c_iflag &= ~IXON;
    tcsetattr(s, TCSANOW, &set);
    take("no stop", m, 50);
    set.c_iflag |= IXON;
    tcsetattr(s, TCSANOW, &set);
    take("do stop", m, 50);
    set.c_lflag |= EXTPROC;
    tcsetattr(s, TCSANOW, &set);
    take("extproc", m, 50);
    set.c_lflag &= ~EXTPROC;
    tcsetattr(s, TCSANOW, &set);
    take("extproc", m, 50);
    type("\023", 1);
    take("key", m, 50);
    type("\021", 1);
    take("key", m, 50);
    type("\003", 1);
    take("key", m, 50);
    take("key", m, 50);
    ioctl(m, TIOCPKT, &off);
    write(s, "plain", 5);
    settle();
    take("plain", m, 50);
    done();
}

/* -- the controlling terminal ---------------------------------------------------------- */

static volatile sig_atomic_t heard;
static void on_signal(int number) { heard |= 1 << number; }
static void handle(int number) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(number, &action, 0);
}
static void await(int number) {
    for (int n = 0; n < 2000 && !(heard & 1 << number); n++) usleep(1000);
    printf("%s %s\n", sigabbrev_np(number), heard & 1 << number ? "heard" : "NOT HEARD");
    heard &= ~(1 << number);
}
static void ended(const char *what, pid_t pid) {
    int status = 0;
    fflush(stdout);
    waitpid(pid, &status, WUNTRACED);
    if (WIFSTOPPED(status)) printf("%s stopped by %d\n", what, WSTOPSIG(status));
    else if (WIFSIGNALED(status)) printf("%s killed by %d\n", what, WTERMSIG(status));
    else printf("%s exited %d\n", what, WEXITSTATUS(status));
    fflush(stdout);
}
static pid_t begin(void) {
    fflush(stdout);
    return fork();
}
/* A member of a process group of its own, in the background. */
static pid_t background(int act, int ignores) {
    pid_t pid = begin();
    if (pid) {
        setpgid(pid, pid);
        return pid;
    }
    setpgid(0, 0);
    if (ignores == 1) signal(act == 0 ? SIGTTIN : SIGTTOU, SIG_IGN);
    struct termios set;
    char byte;
    long result = 0;
    errno = 0;
    if (act == 0) result = read(s, &byte, 1);
    else if (act == 1) result = write(s, "b", 1);
    else if (act == 2) result = tcgetattr(s, &set) || tcsetattr(s, TCSANOW, &set) ? -1 : 0;
    else if (act == 3) result = tcsetpgrp(s, getpgrp());
    else if (act == 4) result = tcflush(s, TCIFLUSH);
    else if (act == 5) result = tcgetpgrp(s) > 0 ? 0 : -1;
    _exit(result < 0 ? errno : 100 + result);
}
static void leader(void) {
    char name[100];
    strcpy(name, ttyname(s));
    SHOW(open("/dev/tty", O_RDWR));
    SHOW(tcgetpgrp(s));
    SHOW(ioctl(s, TIOCSCTTY, 0));
    SHOW(ioctl(s, TIOCSCTTY, 0));
    int own, session = 0;
    WORKS(own = open("/dev/tty", O_RDWR));
    SHOW(isatty(own));
    TRUE(tcgetpgrp(s) == getpid() && tcgetpgrp(own) == getpid() && tcgetpgrp(m) == getpid());
    TRUE(tcgetsid(s) == getpid());
    struct stat status;
    char line[300];
    int device, foreground, file = open("/proc/self/stat", O_RDONLY);
    line[read(file, line, sizeof line - 1)] = 0;
    close(file);
    sscanf(strrchr(line, ')'), ") %*c %*d %*d %*d %d %d", &device, &foreground);
    fstat(s, &status);
    TRUE(device == status.st_rdev && foreground == getpid());
    SHOW(ioctl(m, TIOCGSID, &session));
    TRUE(session == getpid());
    SHOW(write(own, "via tty\n", 8));
    settle();
    shown();
    close(own);
    handle(SIGINT);
    handle(SIGQUIT);
    handle(SIGTSTP);
    handle(SIGWINCH);
    type("gone", 4);
    type("\003", 1);
    await(SIGINT);
    shown();
    take("read", s, 50);
    type("\034", 1);
    await(SIGQUIT);
    type("\032", 1);
    await(SIGTSTP);
    shown();
    SHOW(ioctl(m, TIOCSIG, SIGINT));
    await(SIGINT);
    struct termios set;
    tcgetattr(s, &set);
    set.c_lflag |= NOFLSH;
    tcsetattr(s, TCSANOW, &set);
    type("kept\003\n", 6);
    await(SIGINT);
    take("read", s, 50);
    struct winsize size = {10, 20};
    SHOW(ioctl(m, TIOCSWINSZ, &size));
    await(SIGWINCH);
    SHOW(ioctl(s, TIOCSWINSZ, &size));
    printf("%d\n", heard);
    signal(SIGTSTP, SIG_DFL);

    static const char *acts[] = {"read", "write", "tcsetattr", "tcsetpgrp", "tcflush", "tcgetpgrp"};
    for (int act = 0; act < 6; act++)
        for (int ignores = 0; ignores < 2; ignores++) {
            pid_t pid = background(act, ignores);
            printf("%s ", ignores ? "ignored" : "default");
            ended(acts[act], pid);
            kill(pid, SIGKILL);
            waitpid(pid, 0, 0);
            if (tcgetpgrp(s) != getpid()) {
                signal(SIGTTOU, SIG_IGN);
                SHOW(tcsetpgrp(s, getpid()));
                signal(SIGTTOU, SIG_DFL);
            }
        }
    set.c_lflag |= TOSTOP;
    tcsetattr(s, TCSANOW, &set);
    pid_t pid = background(1, 0);
    ended("write with TOSTOP", pid);
    SHOW(tcsetpgrp(s, pid));
    kill(-pid, SIGCONT);
    ended("continued", pid);
    signal(SIGTTOU, SIG_IGN);
    SHOW(tcsetpgrp(s, getpid()));
    SHOW(tcsetpgrp(s, 999999));
    SHOW(tcsetpgrp(s, -1));
    SHOW(tcsetpgrp(s, getppid()));
    shown();
    /* Keys reach the foreground only. */
    pid = background(0, 2);
    ended("background", pid);
    SHOW(tcsetpgrp(s, pid));
    kill(-pid, SIGCONT);
    usleep(20000);
    heard = 0;
    type("\003", 1);
    ended("foreground", pid);
    printf("%d\n", heard);
    SHOW(tcsetpgrp(s, getpid()));
    /* Another session cannot take it, nor one that has one. */
    pid = begin();
    if (!pid) {
        SHOW(ioctl(s, TIOCSCTTY, 0));
        setsid();
        SHOW(ioctl(s, TIOCSCTTY, 0));
        SHOW(open("/dev/tty", O_RDWR));
        SHOW(tcgetpgrp(s));
        SHOW(write(s, "stranger\n", 9));
        int other = open(name, O_RDWR);
        SHOW(ioctl(other, TIOCNOTTY));
        _exit(0);
    }
    ended("other session", pid);
    settle();
    shown();
    /* It is given up: the foreground hears of it. */
    handle(SIGHUP);
    handle(SIGCONT);
    SHOW(ioctl(s, TIOCNOTTY));
    await(SIGHUP);
    await(SIGCONT);
    SHOW(open("/dev/tty", O_RDWR));
    SHOW(tcgetpgrp(s));
    /* To open it takes it, except with O_NOCTTY or for writing only. */
    close(open(name, O_RDWR | O_NOCTTY));
    SHOW(open("/dev/tty", O_RDWR));
    close(open(name, O_WRONLY));
    SHOW(open("/dev/tty", O_RDWR));
    close(open(name, O_RDWR));
    WORKS(own = open("/dev/tty", O_RDWR));
    close(own);
    _exit(7);
}
static void session(void) {
    pair();
    pid_t pid = begin();
    if (!pid) {
        setsid();
        leader();
    }
    ended("leader", pid);
    char data[10];
    events("after the leader", m);
    printf("-- hang-up\n");
    done();
    pair();
    int ready[2], told[2], after[2];
    pipe(ready);
    pipe(told);
    pipe(after);
    pid = begin();
    if (!pid) {
        setsid();
        ioctl(s, TIOCSCTTY, 0);
        pid_t child = fork();
        if (!child) { /* the foreground */
            setpgid(0, 0);
            signal(SIGTTOU, SIG_IGN);
            tcsetpgrp(s, getpid());
            close(m);
            handle(SIGHUP);
            handle(SIGCONT);
            write(ready[1], "r", 1);
            char byte;
            long got = read(s, &byte, 1);
            read(after[0], &byte, 1);
            TRUE(got <= 0);
            SHOW(open("/dev/tty", O_RDWR));
            SHOW(write(s, "x", 1));
            printf("before the leader's end %d\n", heard);
            fflush(stdout);
            write(told[1], "t", 1);
            await(SIGHUP);
            await(SIGCONT);
            fflush(stdout);
            write(ready[1], "r", 1);
            _exit(0);
        }
        close(m);
        handle(SIGHUP);
        handle(SIGCONT);
        write(ready[1], "r", 1);
        char byte;
        await(SIGHUP);
        await(SIGCONT);
        SHOW(open("/dev/tty", O_RDWR));
        fflush(stdout);
        write(after[1], "a", 1);
        read(told[0], &byte, 1);
        _exit(3);
    }
    read(ready[0], data, 1);
    read(ready[0], data, 1);
    close(s);
    close(m);
    read(ready[0], data, 1);
    ended("leader", pid);
    printf("-- the leader ends\n");
    pair();
    pid = begin();
    if (!pid) {
        setsid();
        ioctl(s, TIOCSCTTY, 0);
        pid_t child = fork();
        if (!child) {
            handle(SIGHUP);
            handle(SIGCONT);
            write(ready[1], "r", 1);
            await(SIGHUP);
            SHOW(open("/dev/tty", O_RDWR));
            SHOW(write(s, "still there\n", 12));
            fflush(stdout);
            write(told[1], "t", 1);
            _exit(0);
        }
        signal(SIGHUP, SIG_IGN);
        char byte;
        read(ready[0], &byte, 1);
        _exit(0);
    }
    read(told[0], data, 1);
    ended("leader", pid);
    settle();
    shown();
    done();
}

int main(int count, char **words) {
    opened();
    settings();
    edited();
    anything();
    raw();
    bounds();
    ends();
    packets();
    session();
    return 0;
}
