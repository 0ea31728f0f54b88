/* UNIX sockets: pairs, names in the file system and outside, what is sent along. */
#include "sockets.h"

static int control_shown = 1;

static struct sockaddr_un path(const char *name) {
    struct sockaddr_un a = {AF_UNIX};
    strcpy(a.sun_path, name);
    return a;
}
/* An abstract name of this process's own. */
static struct sockaddr_un hidden(const char *name, socklen_t *size) {
    struct sockaddr_un a = {AF_UNIX};
    int n = sprintf(a.sun_path + 1, "%s-%d-%ld", name, getpid(), (long)time(0));
    *size = 3 + n;
    return a;
}
static void name_of(const char *what, int fd, int (*get)(int, struct sockaddr *, socklen_t *)) {
    struct sockaddr_un a;
    socklen_t size = sizeof a;
    memset(&a, 0, sizeof a);
    if (get(fd, (struct sockaddr *)&a, &size)) show(what, -1);
    else printf("%s: family %d size %s \"%s\"\n", what, a.sun_family,
                size > 2 && !a.sun_path[0] ? "abstract" : size > 2 ? "path" : "none", a.sun_path);
}
#undef NAME
#undef PEER
#define NAME(fd) name_of("getsockname " #fd, fd, getsockname)
#define PEER(fd) name_of("getpeername " #fd, fd, getpeername)
static void who(const char *what, int fd) {
    struct ucred c = {1, 2, 3};
    socklen_t size = sizeof c;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size)) show(what, -1);
    else printf("%s: pid %s uid %s gid %s\n", what, c.pid == getpid() ? "own" : c.pid ? "other" : "none",
                c.uid == getuid() ? "own" : c.uid == -1 ? "-1" : "other",
                c.gid == getgid() ? "own" : c.gid == -1 ? "-1" : "other");
    gid_t own[64], groups[64];
    int count = getgroups(64, own);
    size = sizeof groups;
    if (getsockopt(fd, SOL_SOCKET, 59 /* SO_PEERGROUPS */, groups, &size)) show("groups", -1);
    else printf("groups: %s\n", size == count * sizeof *own && !memcmp(own, groups, size) ? "own" : "other");
}
#define WHO(fd) who("peer of " #fd, fd)

static int pair[2];
static int make_pair(int kind) { return socketpair(AF_UNIX, kind, 0, pair); }
static void done(void) {
    close(pair[0]);
    close(pair[1]);
}

static void pairs(int kind) {
    printf("kind %d\n", kind);
    SHOW(make_pair(kind));
    WHO(pair[0]);
    NAME(pair[0]);
    PEER(pair[0]);
    POLL(pair[0]);
    SEND(pair[0], "ping", 0);
    SEND(pair[0], "pong", 0);
    SHOW(available(pair[1]));
    GOT(pair[1], 2, MSG_PEEK);
    GOT(pair[1], 2, MSG_TRUNC);
    GOT(pair[1], 99, 0);
    GOT(pair[1], 99, MSG_DONTWAIT);
    SHOW(send(pair[0], "", 0, 0));
    GOT(pair[1], 99, MSG_DONTWAIT);
    struct sockaddr_un nobody = path("nobody");
    SHOW(sendto(pair[0], "x", 1, 0, ADDR(nobody)));
    SHOW(connect(pair[0], ADDR(nobody)));
    SHOW(listen(pair[0], 1));
    SHOW(accept(pair[0], 0, 0));
    SHOW(recv(pair[0], text, 1, MSG_OOB | MSG_DONTWAIT));
    SHOW(shutdown(pair[0], SHUT_WR));
    POLL(pair[0]);
    POLL(pair[1]);
    GOT(pair[1], 9, MSG_DONTWAIT);
    SEND(pair[0], "x", 0);
    SHOW(write(pair[0], "x", 1));
    broken();
    SEND(pair[1], "back", 0);
    GOT(pair[0], 9, MSG_DONTWAIT);
    SHOW(shutdown(pair[0], SHUT_RD));
    POLL(pair[0]);
    POLL(pair[1]);
    GOT(pair[0], 9, MSG_DONTWAIT);
    SEND(pair[1], "late", 0);
    done();
    make_pair(kind);
    SEND(pair[0], "left", 0);
    close(pair[0]);
    POLL(pair[1]);
    GOT(pair[1], 9, MSG_DONTWAIT);
    GOT(pair[1], 9, MSG_DONTWAIT);
    SEND(pair[1], "x", 0);
    SEND(pair[1], "x", 0);
    PEER(pair[1]);
    close(pair[1]);
    make_pair(kind);
    SEND(pair[1], "unread", 0);
    close(pair[0]);
    POLL(pair[1]);
    GOT(pair[1], 9, MSG_DONTWAIT);
    ERROR(pair[1]);
    GOT(pair[1], 9, MSG_DONTWAIT);
    close(pair[1]);
    make_pair(kind);
    set(pair[0], SOL_SOCKET, SO_SNDBUF, 20000);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    SHOW(send(pair[0], text, 50000, 0) > 0);
    long n, all = 0;
    while ((n = send(pair[0], text, 1000, 0)) > 0) all++;
    show("full", n);
    TRUE(all < 64);
    POLL(pair[0]);
    while (recv(pair[1], text, sizeof text, MSG_DONTWAIT) > 0) {}
    POLL(pair[0]);
    done();
    int fd = socket(AF_UNIX, kind, 0);
    POLL(fd);
    WHO(fd);
    NAME(fd);
    PEER(fd);
    SHOW(recv(fd, text, 1, MSG_DONTWAIT));
    SEND(fd, "x", 0);
    SHOW(shutdown(fd, SHUT_WR));
    SEND(fd, "x", 0);
    POLL(fd);
    close(fd);
}

static void names(void) {
    struct sockaddr_un a = path("sock"), b;
    int l = socket(AF_UNIX, SOCK_STREAM, 0), fd, s;
    SHOW(bind(l, (void *)&a, 111));
    SHOW(bind(l, (void *)&a, 1));
    SHOW(listen(l, 1));
    struct sockaddr_un wrong = {AF_INET};
    SHOW(bind(l, ADDR(wrong)));
    SHOW(connect(l, ADDR(wrong)));
    wrong = path("none/sock");
    SHOW(bind(l, ADDR(wrong)));
    umask(027);
    SHOW(bind(l, ADDR(a)));
    NAME(l);
    SHOW(bind(l, ADDR(a)));
    wrong = path("sock2");
    SHOW(bind(l, ADDR(wrong)));
    struct stat st;
    SHOW(stat("sock", &st));
    printf("mode %o own %d size %ld\n", st.st_mode, st.st_uid == getuid(), (long)st.st_size);
    SHOW(open("sock", O_RDWR));
    SHOW(truncate("sock", 0));
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    SHOW(connect(fd, ADDR(a)));
    SHOW(listen(l, 0));
    OPT(l, SOL_SOCKET, SO_ACCEPTCONN);
    POLL(l);
    WHO(l);
    SHOW(bind(fd, ADDR(a)));
    SHOW(connect(fd, ADDR(a)));
    SHOW(listen(l, 1));
    SHOW(connect(fd, ADDR(a)));
    SHOW(listen(l, 0));
    WHO(fd);
    PEER(fd);
    POLL(l);
    int more = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    SHOW(connect(more, ADDR(a)));
    SEND(fd, "early", 0);
    socklen_t size = sizeof b;
    s = accept(l, (void *)&b, &size);
    WORKS(s);
    printf("from %d %d\n", size, b.sun_family);
    NAME(s);
    PEER(s);
    WHO(s);
    GOT(s, 9, 0);
    SHOW(connect(more, ADDR(a)));
    SHOW(sendto(s, "x", 1, 0, ADDR(a)));
    int d = socket(AF_UNIX, SOCK_DGRAM, 0), q = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    SHOW(connect(d, ADDR(a)));
    SHOW(connect(q, ADDR(a)));
    close(more);
    more = accept(l, 0, 0);
    GOT(more, 9, 0);
    close(more);
    SHOW(chmod("sock", 0400));
    more = socket(AF_UNIX, SOCK_STREAM, 0);
    SHOW(connect(more, ADDR(a)));
    chmod("sock", 0600);
    SHOW(rename("sock", "other"));
    SHOW(connect(more, ADDR(a)));
    b = path("other");
    SHOW(connect(more, ADDR(b)));
    close(l);
    POLL(more);
    GOT(more, 9, 0);
    GOT(more, 9, 0);
    POLL(fd);
    SEND(fd, "still", 0);
    GOT(s, 9, 0);
    close(more);
    more = socket(AF_UNIX, SOCK_STREAM, 0);
    SHOW(connect(more, ADDR(b)));
    SHOW(bind(more, ADDR(b)));
    SHOW(unlink("other"));
    SHOW(connect(more, ADDR(b)));
    close(creat("plain", 0600));
    wrong = path("plain");
    SHOW(connect(more, ADDR(wrong)));
    unlink("plain");
    SHOW(mknod("plain", S_IFSOCK | 0666, 0));
    SHOW(connect(more, ADDR(wrong)));
    unlink("plain");
    close(fd);
    close(s);
    /* names that are in no directory */
    l = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    a = hidden("x", &size);
    SHOW(bind(l, (void *)&a, size));
    NAME(l);
    SHOW(listen(l, 5));
    SHOW(connect(q, (void *)&a, size - 1));
    SHOW(connect(q, (void *)&a, size));
    s = accept(l, 0, 0);
    SHOW(send(q, "packet", 6, 0));
    SHOW(send(q, "two", 3, 0));
    GOT(s, 3, 0);
    GOT(s, 9, 0);
    fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    SHOW(bind(fd, (void *)&a, size));
    close(l);
    SHOW(bind(fd, (void *)&a, size));
    close(fd);
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct sockaddr empty = {AF_UNIX};
    SHOW(bind(fd, &empty, 2));
    SHOW(bind(fd, &empty, 2));
    size = sizeof b;
    memset(&b, 0, sizeof b);
    getsockname(fd, (void *)&b, &size);
    printf("size %d %d\n", size, b.sun_path[0]);
    close(fd);
    close(q);
    close(s);
    close(d);
}

static void datagrams(void) {
    struct sockaddr_un a = path("a"), b = path("b"), from;
    int one = socket(AF_UNIX, SOCK_DGRAM, 0), two = socket(AF_UNIX, SOCK_DGRAM, 0), three = socket(AF_UNIX, SOCK_DGRAM, 0);
    SHOW(bind(one, ADDR(a)));
    SHOW(sendto(two, "anonymous", 9, 0, ADDR(a)));
    SHOW(bind(two, ADDR(b)));
    SHOW(sendto(two, "named", 5, 0, ADDR(a)));
    socklen_t size = sizeof from;
    SHOW(recvfrom(one, text, 99, 0, (void *)&from, &size));
    printf("from %d\n", size);
    size = sizeof from;
    SHOW(recvfrom(one, text, 2, MSG_TRUNC, (void *)&from, &size));
    printf("from %d %s\n", size, from.sun_path);
    SHOW(connect(two, ADDR(a)));
    PEER(two);
    WHO(two);
    SEND(two, "connected", 0);
    SHOW(connect(one, ADDR(b)));
    SHOW(sendto(three, "x", 1, 0, ADDR(a)));
    SHOW(connect(three, ADDR(a)));
    GOT(one, 99, 0);
    fcntl(three, F_SETFL, O_NONBLOCK);
    struct sockaddr none = {AF_UNSPEC};
    SHOW(connect(one, &none, 2));
    int n = 0;
    while (sendto(three, "many", 4, 0, ADDR(a)) == 4) n++;
    TRUE(n > 0 && n < 600);
    show("full", -1);
    connect(three, ADDR(a));
    POLL(three);
    recv(one, text, 9, 0);
    POLL(three);
    close(one);
    POLL(three);
    SEND(three, "x", 0);
    SEND(three, "x", 0);
    SHOW(sendto(three, "x", 1, 0, ADDR(a)));
    unlink("a");
    unlink("b");
    SHOW(sendto(three, "x", 1, 0, ADDR(a)));
    close(two);
    close(three);
}

/* Control messages. */
static long send_with(int fd, const char *data, int type, const void *payload, int size, int length) {
    char control[2048];
    memset(control, 0, sizeof control);
    struct iovec part = {(void *)data, strlen(data)};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                       .msg_controllen = CMSG_SPACE(size)};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = type;
    h->cmsg_len = length ? length : CMSG_LEN(size);
    memcpy(CMSG_DATA(h), payload, size);
    return sendmsg(fd, &m, 0);
}
static int last_fds[300], fds_count;
static void receive(const char *what, int fd, int size, int room, int flags) {
    static char control[4096];
    struct iovec part = {text, size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room ? control : 0, .msg_controllen = room};
    memset(text, 0, 64);
    fds_count = 0;
    errno = 0;
    long n = recvmsg(fd, &m, flags);
    if (n < 0) {
        show(what, n);
        return;
    }
    printf("%s: %ld \"%.30s\" flags %x control %ld\n", what, n, text, m.msg_flags, (long)m.msg_controllen);
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_type == SCM_RIGHTS) {
            int count = (h->cmsg_len - CMSG_LEN(0)) / 4;
            memcpy(last_fds, CMSG_DATA(h), 4 * count);
            fds_count = count;
            printf("  rights: %d, cloexec %d\n", count, fcntl(last_fds[0], F_GETFD));
        } else if (h->cmsg_type == SCM_CREDENTIALS) {
            struct ucred *c = (void *)CMSG_DATA(h);
            printf("  credentials: pid %s uid %s\n", c->pid == getpid() ? "own" : c->pid ? "other" : "none",
                   !c->pid ? c->uid == 65534 ? "nobody" : "?" : c->uid == getuid() ? "own" : "other");
        } else printf("  level %d type %d\n", h->cmsg_level, h->cmsg_type);
    }
    fflush(stdout);
}
#define RECEIVE(fd, size, room, flags) receive("recvmsg " #fd " " #size " " #room " " #flags, fd, size, room, flags)
static void close_got(void) {
    for (int n = 0; n < fds_count; n++) close(last_fds[n]);
}

static void along(int kind) {
    printf("along kind %d\n", kind);
    make_pair(kind);
    int p[2], fds[4] = {0, 0, 0, 99};
    pipe(p);
    fds[0] = p[0];
    fds[1] = p[1];
    SHOW(send_with(pair[0], "x", SCM_RIGHTS, fds, 8, 0));
    RECEIVE(pair[1], 9, 64, 0);
    SHOW(write(last_fds[1], "through", 7));
    memset(text, 0, 9);
    SHOW(read(p[0], text, 9));
    puts(text);
    close_got();
    SHOW(send_with(pair[0], "x", SCM_RIGHTS, fds, 16, 0));
    SHOW(send_with(pair[0], "x", SCM_RIGHTS, fds, 4, 15));
    SHOW(send_with(pair[0], "x", SCM_RIGHTS, fds, 4, 1000));
    SHOW(send_with(pair[0], "x", 99, fds, 4, 0));
    SHOW(send_with(pair[0], "cloexec", SCM_RIGHTS, fds, 8, 0));
    RECEIVE(pair[1], 2, 64, MSG_PEEK);
    close_got();
    RECEIVE(pair[1], 9, 64, MSG_CMSG_CLOEXEC);
    close_got();
    SHOW(send_with(pair[0], "no room", SCM_RIGHTS, fds, 8, 0));
    RECEIVE(pair[1], 9, 0, 0);
    SHOW(send_with(pair[0], "one", SCM_RIGHTS, fds, 8, 0));
    RECEIVE(pair[1], 9, CMSG_LEN(4), 0);
    close_got();
    SHOW(send_with(pair[0], "one", SCM_RIGHTS, fds, 8, 0));
    RECEIVE(pair[1], 9, 8, 0);
    SHOW(send_with(pair[0], "read", SCM_RIGHTS, fds, 8, 0));
    SHOW(read(pair[1], text, 9));
    int many[254];
    for (int n = 0; n < 254; n++) many[n] = p[0];
    SHOW(send_with(pair[0], "254", SCM_RIGHTS, many, sizeof many, 0));
    SHOW(send_with(pair[0], "253", SCM_RIGHTS, many, 253 * 4, 0));
    RECEIVE(pair[1], 9, 2048, 0);
    close_got();
    /* parts of a stream keep to what came with them */
    SEND(pair[0], "plain", 0);
    SHOW(send_with(pair[0], "with", SCM_RIGHTS, fds, 4, 0));
    SEND(pair[0], "after", 0);
    SHOW(send_with(pair[0], "again", SCM_RIGHTS, fds, 4, 0));
    RECEIVE(pair[1], 7, 64, 0);
    close_got();
    RECEIVE(pair[1], 99, 64, 0);
    close_got();
    RECEIVE(pair[1], 99, 64, MSG_DONTWAIT);
    close_got();
    RECEIVE(pair[1], 99, 64, MSG_DONTWAIT);
    close_got();
    /* credentials */
    struct ucred c = {getpid(), getuid(), getgid()}, other = {1, getuid(), getgid()};
    SEND(pair[0], "before", 0);
    SHOW(set(pair[1], SOL_SOCKET, SO_PASSCRED, 1));
    OPT(pair[1], SOL_SOCKET, SO_PASSCRED);
    SEND(pair[0], "asked", 0);
    SHOW(send_with(pair[0], "given", SCM_CREDENTIALS, &c, sizeof c, 0));
    SHOW(send_with(pair[0], "lied", SCM_CREDENTIALS, &other, sizeof other, 0));
    SHOW(send_with(pair[0], "short", SCM_CREDENTIALS, &c, 8, 0));
    SHOW(send_with(pair[0], "both", SCM_RIGHTS, fds, 4, 0));
    for (int n = 0; n < 5; n++) {
        RECEIVE(pair[1], 99, 128, MSG_DONTWAIT);
        close_got();
    }
    fflush(stdout);
    if (!fork()) {
        SEND(pair[0], "child", 0);
        _exit(0);
    }
    wait(0);
    RECEIVE(pair[1], 99, 128, 0);
    WHO(pair[1]);
    /* what is sent stays open; a socket may be sent through itself */
    fds[0] = p[1];
    send_with(pair[0], "x", SCM_RIGHTS, fds, 4, 0);
    close(p[1]);
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    SHOW(read(p[0], text, 1));
    close(pair[1]);
    SHOW(read(p[0], text, 1));
    close(pair[0]);
    close(p[0]);
    pipe(p);
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    make_pair(kind);
    fds[0] = pair[0];
    fds[1] = pair[1];
    fds[2] = p[1];
    SHOW(send_with(pair[0], "x", SCM_RIGHTS, fds, 12, 0));
    SHOW(send_with(pair[1], "x", SCM_RIGHTS, fds, 8, 0));
    done();
    close(p[1]);
    make_pair(kind);
    done(); /* now somebody looks */
    for (int n = 0; n < 1000 && read(p[0], text, 1) < 0; n++) usleep(1000);
    SHOW(read(p[0], text, 1));
    close(p[0]);
}

static void processes(void) {
    struct sockaddr_un a = path("server");
    int l = socket(AF_UNIX, SOCK_STREAM, 0), status;
    bind(l, ADDR(a));
    listen(l, 1);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        int c = socket(AF_UNIX, SOCK_STREAM, 0), fds[1];
        SHOW(connect(c, ADDR(a)));
        WHO(c);
        receive("in the child", c, 9, 64, 0);
        dprintf(last_fds[0], "from the child\n");
        _exit(4);
    }
    int s = accept(l, 0, 0), out = dup(1);
    send_with(s, "fd", SCM_RIGHTS, &out, 4, 0);
    waitpid(pid, &status, 0);
    WHO(s);
    printf("status %x\n", status);
    GOT(s, 9, 0);
    close(s);
    close(l);
    unlink("server");
    /* a full backlog is waited for */
    l = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(l, ADDR(a));
    listen(l, 0);
    s = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(s, ADDR(a));
    fflush(stdout);
    pid = fork();
    if (!pid) {
        int c = socket(AF_UNIX, SOCK_STREAM, 0);
        int bad = connect(c, ADDR(a));
        write(c, "in", 2);
        _exit(bad ? 1 : 5);
    }
    usleep(1000);
    int x = accept(l, 0, 0);
    int y = accept(l, 0, 0);
    GOT(y, 9, 0);
    waitpid(pid, &status, 0);
    printf("status %x\n", status);
    unlink("server");
}

int main(void) {
    signal(SIGPIPE, on_pipe);
    pairs(SOCK_STREAM);
    pairs(SOCK_SEQPACKET);
    pairs(SOCK_DGRAM);
    names();
    datagrams();
    along(SOCK_STREAM);
    along(SOCK_SEQPACKET);
    along(SOCK_DGRAM);
    processes();
    return 0;
}
