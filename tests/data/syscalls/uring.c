/* io_uring: operations, chains, timeouts, cancelling, what is registered, and other threads. */
#include "guest.h"
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

static struct io_uring_params params;
static int ring;
static char *rings;
static struct io_uring_sqe *table;

#define FIELD(side, name) ((unsigned *)(rings + params.side##_off.name))

static int setup(unsigned entries, unsigned flags, unsigned completions) {
    memset(&params, 0, sizeof params);
    params.flags = flags;
    params.cq_entries = completions;
    return syscall(SYS_io_uring_setup, entries, &params);
}
static int enter(unsigned submit, unsigned least, unsigned flags) {
    return syscall(SYS_io_uring_enter, ring, submit, least, flags, 0, 0);
}
static int registers(unsigned what, void *argument, unsigned count) {
    return syscall(SYS_io_uring_register, ring, what, argument, count);
}
static void make(unsigned entries, unsigned flags, unsigned completions) {
    ring = setup(entries, flags, completions);
    size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    size_t other = params.sq_off.array + params.sq_entries * 4;
    rings = mmap(0, size > other ? size : other, 3, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    table = mmap(0, params.sq_entries * 64, 3, MAP_SHARED, ring, IORING_OFF_SQES);
}
static void unmake(void) {
    close(ring);
    munmap(rings, params.sq_off.array + params.sq_entries * 4);
    munmap(table, params.sq_entries * 64);
}
static struct io_uring_sqe *put(int op, int fd, const void *address, unsigned size, long offset,
                                long data) {
    unsigned tail = *FIELD(sq, tail), index = tail & *FIELD(sq, ring_mask);
    struct io_uring_sqe *e = table + index;
    memset(e, 0, sizeof *e);
    e->opcode = op, e->fd = fd, e->addr = (long)address, e->len = size, e->off = offset;
    e->user_data = data;
    FIELD(sq, array)[index] = index;
    __atomic_store_n(FIELD(sq, tail), tail + 1, __ATOMIC_RELEASE);
    return e;
}
static int order(const void *a, const void *b) {
    const struct io_uring_cqe *x = a, *y = b;
    return x->user_data < y->user_data ? -1 : x->user_data > y->user_data;
}
/* All completions that are there, in the order of their names: that of completion may differ. */
static void told(const char *what) {
    struct io_uring_cqe found[64];
    int count = 0;
    unsigned head = *FIELD(cq, head);
    while (head != __atomic_load_n(FIELD(cq, tail), __ATOMIC_ACQUIRE) && count < 64)
        found[count++] = ((struct io_uring_cqe *)(rings + params.cq_off.cqes))[
            head++ & *FIELD(cq, ring_mask)];
    __atomic_store_n(FIELD(cq, head), head, __ATOMIC_RELEASE);
    qsort(found, count, sizeof *found, order);
    printf("%s:", what);
    for (int n = 0; n < count; n++)
        printf(" %d=%d%s", (int)found[n].user_data, found[n].res,
               found[n].flags & IORING_CQE_F_MORE ? "+" : "");
    printf("\n");
    fflush(stdout);
}
static void done(const char *what, unsigned submit, unsigned least) {
    errno = 0;
    show(what, enter(submit, least, IORING_ENTER_GETEVENTS));
    told(what);
}

static void made_wrongly(void) {
    SHOW(setup(0, 0, 0));
    SHOW(setup(1 << 16, 0, 0));
    SHOW(setup(4, 1u << 31, 0));
    SHOW(setup(4, IORING_SETUP_CQSIZE, 2));
    SHOW(setup(4, IORING_SETUP_CQSIZE, 0));
    SHOW(setup(4, IORING_SETUP_TASKRUN_FLAG, 0));
    SHOW(syscall(SYS_io_uring_setup, 4, 0));
    ring = setup(5, 0, 0);
    printf("entries %d %d\n", params.sq_entries, params.cq_entries);
    SHOW(fcntl(ring, F_GETFD));
    SHOW(enter(0, 0, 1 << 20));
    SHOW(registers(999, 0, 0));
    SHOW(read(ring, &params, 8));
    close(ring);
    ring = setup(3, IORING_SETUP_CQSIZE, 9);
    printf("entries %d %d\n", params.sq_entries, params.cq_entries);
    close(ring);
    ring = 0;
    SHOW(enter(0, 0, 0));
    ring = -1;
    SHOW(enter(0, 0, 0));
}

static void files(void) {
    char in[64] = "", name[] = "ring-file";
    struct iovec pieces[2] = {{"vec", 3}, {"tored", 5}}, back[2] = {{in, 4}, {in + 8, 40}};
    struct statx st;
    put(IORING_OP_OPENAT, AT_FDCWD, name, 0600, 0, 1)->open_flags = O_RDWR | O_CREAT | O_TRUNC;
    done("open", 1, 1);
    int fd = open(name, O_RDWR);
    TRUE(fd > 0);
    put(IORING_OP_WRITE, fd, "hello, ring", 11, 0, 2)->flags = IOSQE_IO_LINK;
    put(IORING_OP_WRITEV, fd, pieces, 2, 11, 3)->flags = IOSQE_IO_LINK;
    put(IORING_OP_FSYNC, fd, 0, 0, 0, 4)->flags = IOSQE_IO_LINK;
    put(IORING_OP_READ, fd, in, 5, 7, 5);
    done("write and read", 4, 4);
    printf("%.5s\n", in);
    put(IORING_OP_READV, fd, back, 2, 0, 6);
    done("read pieces", 1, 1);
    printf("%.4s|%.15s\n", in, in + 8);
    put(IORING_OP_READ, fd, in, 4, -1, 7);
    done("read at the position", 1, 1);
    SHOW(lseek(fd, 0, SEEK_CUR));
    put(IORING_OP_STATX, AT_FDCWD, name, STATX_SIZE, (long)&st, 8);
    done("statx", 1, 1);
    printf("size %d\n", (int)st.stx_size);
    put(IORING_OP_FALLOCATE, fd, (void *)100, 0, 0, 9);
    put(IORING_OP_FADVISE, fd, 0, 10, 0, 10);
    put(IORING_OP_CLOSE, fd, 0, 0, 0, 11)->flags = IOSQE_IO_DRAIN;
    done("and others", 3, 3);
    SHOW(close(fd));
    put(IORING_OP_MKDIRAT, AT_FDCWD, "ring-folder", 0700, 0, 12)->flags = IOSQE_IO_LINK;
    put(IORING_OP_RENAMEAT, AT_FDCWD, name, AT_FDCWD, (long)"ring-folder/x", 13)->flags =
        IOSQE_IO_LINK;
    put(IORING_OP_SYMLINKAT, AT_FDCWD, "x", 0, (long)"ring-folder/s", 14)->flags = IOSQE_IO_LINK;
    put(IORING_OP_LINKAT, AT_FDCWD, "ring-folder/x", AT_FDCWD, (long)"ring-folder/y", 15)->flags =
        IOSQE_IO_LINK;
    put(IORING_OP_UNLINKAT, AT_FDCWD, "ring-folder/none", 0, 0, 16)->flags = IOSQE_IO_LINK;
    put(IORING_OP_UNLINKAT, AT_FDCWD, "ring-folder/x", 0, 0, 17);
    done("names", 6, 6);
    TRUE(access("ring-folder/x", F_OK) == 0);
    for (char **n = (char *[]){"ring-folder/x", "ring-folder/y", "ring-folder/s", 0}; *n; n++)
        SHOW(unlink(*n));
    put(IORING_OP_UNLINKAT, AT_FDCWD, "ring-folder", 0, 0, 18)->unlink_flags = AT_REMOVEDIR;
    done("rmdir", 1, 1);
}

static void failing(void) {
    char in[8];
    put(IORING_OP_NOP, 0, 0, 0, 0, 1);
    put(IORING_OP_READ, 99, in, 4, 0, 2);
    put(IORING_OP_READ, 0, (void *)16, 4, 0, 3)->fd = open("/dev/zero", O_RDONLY);
    done("errors", 3, 3);
    put(250, 0, 0, 0, 0, 4);
    put(IORING_OP_NOP, 0, 0, 0, 0, 5);
    done("an unknown operation", 2, 0);
    done("and what follows", 1, 1);
    put(IORING_OP_READ, 99, in, 4, 0, 6)->flags = IOSQE_IO_LINK;
    put(IORING_OP_NOP, 0, 0, 0, 0, 7)->flags = IOSQE_IO_LINK;
    put(IORING_OP_NOP, 0, 0, 0, 0, 8);
    put(IORING_OP_NOP, 0, 0, 0, 0, 9);
    done("a chain that breaks", 4, 4);
    put(IORING_OP_READ, 99, in, 4, 0, 10)->flags = IOSQE_IO_HARDLINK;
    put(IORING_OP_NOP, 0, 0, 0, 0, 11);
    done("one that does not", 2, 2);
    put(IORING_OP_NOP, 0, 0, 0, 0, 12)->flags = IOSQE_CQE_SKIP_SUCCESS;
    put(IORING_OP_READ, 99, in, 4, 0, 13)->flags = IOSQE_CQE_SKIP_SUCCESS;
    done("skipped where it is fine", 2, 1);
    put(IORING_OP_CLOSE, ring, 0, 0, 0, 15);
    put(IORING_OP_CLOSE, 0, 0, 0, 0, 16)->flags = IOSQE_FIXED_FILE;
    put(IORING_OP_CLOSE, 99, 0, 0, 0, 17);
    done("what cannot be closed", 3, 3);
    put(IORING_OP_NOP, 0, 0, 0, 0, 14)->personality = 7;
    done("another personality", 1, 1);
    FIELD(sq, array)[*FIELD(sq, tail) & *FIELD(sq, ring_mask)] = 77;
    __atomic_fetch_add(FIELD(sq, tail), 1, __ATOMIC_RELEASE);
    done("a number beyond the table", 1, 0);
    printf("dropped %d\n", *FIELD(sq, dropped));
    done("more than there are", 5, 1);
}

static void waiting(void) {
    int ends[2], pair[2];
    char in[16] = "";
    pipe(ends);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    put(IORING_OP_READ, ends[0], in, 8, 0, 1);
    done("nothing to read", 1, 0);
    SHOW(write(ends[1], "abc", 3));
    done("something", 0, 1);
    put(IORING_OP_READ, ends[0], in, 8, 0, 2);
    put(IORING_OP_WRITE, ends[1], "xyzw", 4, 0, 3);
    done("both ends", 2, 2);
    put(IORING_OP_RECV, pair[0], in, 8, 0, 4);
    put(IORING_OP_SEND, pair[1], "sent", 4, 0, 5);
    done("sockets", 2, 2);
    put(IORING_OP_POLL_ADD, ends[0], 0, 0, 0, 7)->poll32_events = POLLIN;
    put(IORING_OP_POLL_ADD, ends[1], 0, 0, 0, 8)->poll32_events = POLLOUT;
    done("poll", 2, 1);
    write(ends[1], "p", 1);
    done("poll that waited", 0, 1);
    put(IORING_OP_POLL_ADD, pair[0], 0, 0, 0, 9)->poll32_events = POLLIN;
    done("another", 1, 0);
    put(IORING_OP_POLL_REMOVE, -1, (void *)9, 0, 0, 10);
    put(IORING_OP_POLL_REMOVE, -1, (void *)99, 0, 0, 11);
    done("removed", 2, 3);
    put(IORING_OP_RECV, pair[0], in, 8, 0, 12);
    put(IORING_OP_RECV, pair[1], in, 8, 0, 12);
    done("two to be cancelled", 2, 0);
    put(IORING_OP_ASYNC_CANCEL, -1, (void *)12, 0, 0, 13)->cancel_flags = IORING_ASYNC_CANCEL_ALL;
    done("cancelled", 1, 3);
    put(IORING_OP_ASYNC_CANCEL, -1, (void *)12, 0, 0, 14);
    done("none is left", 1, 1);
    put(IORING_OP_SHUTDOWN, pair[0], 0, SHUT_WR, 0, 15)->flags = IOSQE_IO_LINK;
    put(IORING_OP_RECV, pair[1], in, 8, 0, 16);
    done("shut down", 2, 2);
    close(ends[0]), close(ends[1]), close(pair[0]), close(pair[1]);
}

static void timing(void) {
    struct __kernel_timespec brief = {0, 2000000}, late = {100, 0}, bad = {0, -1};
    int ends[2];
    char in[8];
    pipe(ends);
    put(IORING_OP_TIMEOUT, -1, &brief, 1, 0, 1);
    done("a timeout", 1, 1);
    put(IORING_OP_TIMEOUT, -1, &late, 1, 2, 2);
    put(IORING_OP_NOP, 0, 0, 0, 0, 3);
    put(IORING_OP_NOP, 0, 0, 0, 0, 4);
    done("completions first", 3, 3);
    put(IORING_OP_TIMEOUT, -1, &late, 1, 0, 5);
    put(IORING_OP_TIMEOUT_REMOVE, -1, (void *)5, 0, 0, 6);
    put(IORING_OP_TIMEOUT_REMOVE, -1, (void *)5, 0, 0, 7);
    done("removed", 3, 3);
    put(IORING_OP_TIMEOUT, -1, &late, 1, 0, 8);
    put(IORING_OP_TIMEOUT_REMOVE, -1, (void *)8, 0, (long)&brief, 9)->timeout_flags =
        IORING_TIMEOUT_UPDATE;
    done("updated", 2, 2);
    put(IORING_OP_TIMEOUT, -1, &bad, 1, 0, 10);
    done("no time", 1, 1);
    put(IORING_OP_READ, ends[0], in, 8, 0, 11)->flags = IOSQE_IO_LINK;
    put(IORING_OP_LINK_TIMEOUT, -1, &brief, 1, 0, 12)->flags = 0;
    done("a read that is late", 2, 2);
    write(ends[1], "abc", 3);
    put(IORING_OP_READ, ends[0], in, 3, 0, 13)->flags = IOSQE_IO_LINK;
    put(IORING_OP_LINK_TIMEOUT, -1, &late, 1, 0, 14);
    done("one in time", 2, 2);
    put(IORING_OP_TIMEOUT, -1, &brief, 1, 0, 15)->flags = IOSQE_IO_HARDLINK;
    put(IORING_OP_NOP, 0, 0, 0, 0, 16);
    done("afterwards", 2, 2);
    put(IORING_OP_LINK_TIMEOUT, -1, &brief, 1, 0, 17);
    done("linked to nothing", 1, 1);
    struct io_uring_getevents_arg patience = {0, 8, 0, (long)&brief};
    SHOW(syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                 &patience, sizeof patience));
    SHOW(syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                 &patience, 8));
    close(ends[0]), close(ends[1]);
}

static void registered(void) {
    static char area[64];
    struct iovec buffers[1] = {{area, sizeof area}};
    int ends[2], event = eventfd(0, 0);
    pipe(ends);
    SHOW(registers(IORING_UNREGISTER_FILES, 0, 0));
    int numbers[3] = {ends[0], -1, ends[1]}, wrong[1] = {99};
    SHOW(registers(IORING_REGISTER_FILES, wrong, 1));
    SHOW(registers(IORING_REGISTER_FILES, numbers, 3));
    SHOW(registers(IORING_REGISTER_FILES, numbers, 3));
    SHOW(registers(IORING_REGISTER_BUFFERS, buffers, 1));
    SHOW(registers(IORING_REGISTER_EVENTFD, &event, 1));
    SHOW(registers(IORING_REGISTER_EVENTFD, &event, 1));
    memcpy(area, "fixed", 5);
    put(IORING_OP_WRITE_FIXED, 2, area, 5, 0, 1)->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
    put(IORING_OP_READ_FIXED, 0, area + 32, 5, 0, 2)->flags = IOSQE_FIXED_FILE;
    done("fixed", 2, 2);
    printf("%.5s\n", area + 32);
    put(IORING_OP_READ_FIXED, 0, area + 60, 5, 0, 3)->flags = IOSQE_FIXED_FILE;
    put(IORING_OP_READ_FIXED, 0, area, 5, 0, 4)->flags = IOSQE_FIXED_FILE;
    table[(*FIELD(sq, tail) - 1) & *FIELD(sq, ring_mask)].buf_index = 1;
    put(IORING_OP_READ, 1, area, 5, 0, 5)->flags = IOSQE_FIXED_FILE;
    done("wrongly", 3, 3);
    struct io_uring_files_update update = {1, 0, (long)numbers};
    SHOW(registers(IORING_REGISTER_FILES_UPDATE, &update, 1));
    close(ends[0]), close(ends[1]);
    put(IORING_OP_WRITE, 2, "kept", 4, 0, 6)->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
    put(IORING_OP_READ, 1, area, 4, 0, 7)->flags = IOSQE_FIXED_FILE;
    done("without descriptors", 2, 2);
    uint64_t count = 0;
    SHOW(read(event, &count, 8));
    TRUE(count > 0);
    SHOW(registers(IORING_UNREGISTER_EVENTFD, 0, 0));
    SHOW(registers(IORING_UNREGISTER_BUFFERS, 0, 0));
    SHOW(registers(IORING_UNREGISTER_FILES, 0, 0));
    char room[16 + 8 * 256];
    memset(room, 0, sizeof room);
    struct io_uring_probe *probe = (void *)room;
    SHOW(registers(IORING_REGISTER_PROBE, probe, 256));
    for (int n = 0; n <= IORING_OP_TEE; n++)
        if (n != IORING_OP_SPLICE && n != IORING_OP_PROVIDE_BUFFERS &&
            n != IORING_OP_REMOVE_BUFFERS && !(probe->ops[n].flags & IO_URING_OP_SUPPORTED))
            printf("no operation %d\n", n);
}

static void crowded(void) {
    make(2, 0, 0);
    for (int n = 0; n < 6; n++) {
        put(IORING_OP_NOP, 0, 0, 0, 0, n);
        enter(1, 0, 0);
    }
    printf("flags %d\n", *FIELD(sq, flags) & IORING_SQ_CQ_OVERFLOW);
    told("as many as there is room for");
    done("the others", 0, 2);
    printf("flags %d\n", *FIELD(sq, flags) & IORING_SQ_CQ_OVERFLOW);
    unmake();
    make(2, IORING_SETUP_R_DISABLED, 0);
    SHOW(enter(0, 0, 0));
    SHOW(registers(IORING_REGISTER_ENABLE_RINGS, 0, 0));
    put(IORING_OP_NOP, 0, 0, 0, 0, 1);
    done("enabled", 1, 1);
    SHOW(registers(IORING_REGISTER_ENABLE_RINGS, 0, 0));
    unmake();
    make(4, IORING_SETUP_SUBMIT_ALL, 0);
    put(250, 0, 0, 0, 0, 1);
    put(IORING_OP_NOP, 0, 0, 0, 0, 2);
    done("all of them", 2, 2);
    unmake();
}

static void by_thread(void) {
    char in[8] = "";
    int ends[2];
    pipe(ends);
    SHOW(setup(4, IORING_SETUP_SQPOLL | IORING_SETUP_COOP_TASKRUN, 0));
    SHOW(setup(4, IORING_SETUP_SQ_AFF, 0));
    make(4, IORING_SETUP_SQPOLL, 0);
    for (int n = 0; n < 3; n++) {
        put(IORING_OP_WRITE, ends[1], "abc", 3, 0, 1)->flags = IOSQE_IO_LINK;
        put(IORING_OP_READ, ends[0], in, 3, 0, 2);
        __sync_synchronize();
        if (*(volatile unsigned *)FIELD(sq, flags) & IORING_SQ_NEED_WAKEUP)
            enter(2, 0, IORING_ENTER_SQ_WAKEUP);
        enter(0, 2, IORING_ENTER_GETEVENTS);
        told("by the kernel's thread");
    }
    unmake();
    close(ends[0]), close(ends[1]);
}

static void of_itself(void) {
    make(64, 0, 0);
    int watch = epoll_create1(0);
    struct epoll_event one = {EPOLLIN};
    epoll_ctl(watch, EPOLL_CTL_ADD, ring, &one);
    put(IORING_OP_POLL_ADD, ring, 0, IORING_POLL_ADD_MULTI, 0, 1)->poll32_events = POLLIN;
    put(IORING_OP_POLL_ADD, watch, 0, 0, 0, 2)->poll32_events = POLLIN;
    done("polls of itself", 2, 0);
    put(IORING_OP_NOP, 0, 0, 0, 0, 3);
    enter(1, 0, 0);
    enter(0, 3, IORING_ENTER_GETEVENTS);
    told("its own completion");
    for (int n = 0; n < 63; n++) put(IORING_OP_NOP, 0, 0, 0, 0, n)->flags = IOSQE_IO_LINK;
    SHOW(enter(63, 63, IORING_ENTER_GETEVENTS));
    unmake();
    close(watch);
}

static int ends_of_thread[2];
static void *writes_later(void *unused) {
    usleep(2000);
    write(ends_of_thread[1], "late", 4);
    return 0;
}
static void together(void) {
    pthread_t thread;
    char in[8] = "";
    int watch = epoll_create1(0), event = eventfd(0, 0);
    struct epoll_event one = {EPOLLIN, {.u32 = 5}};
    uint64_t count = 0;
    pipe(ends_of_thread);
    epoll_ctl(watch, EPOLL_CTL_ADD, ring, &one);
    put(IORING_OP_READ, ends_of_thread[0], in, 8, 0, 1);
    done("begun", 1, 0);
    SHOW(epoll_wait(watch, &one, 1, 0));
    pthread_create(&thread, 0, writes_later, 0);
    while (epoll_wait(watch, &one, 1, -1) < 0); /* Linux interrupts it for work of the ring's */
    pthread_join(thread, 0);
    told("by another thread");
    registers(IORING_REGISTER_EVENTFD, &event, 1);
    put(IORING_OP_READ, ends_of_thread[0], in, 8, 0, 2);
    done("begun", 1, 0);
    pthread_create(&thread, 0, writes_later, 0);
    SHOW(read(event, &count, 8));
    pthread_join(thread, 0);
    told("by its eventfd");
    registers(IORING_UNREGISTER_EVENTFD, 0, 0);
    put(IORING_OP_READ, ends_of_thread[0], in, 8, 0, 3);
    done("begun", 1, 0);
    pthread_create(&thread, 0, writes_later, 0);
    while (*(volatile unsigned *)FIELD(cq, head) == *(volatile unsigned *)FIELD(cq, tail));
    pthread_join(thread, 0);
    told("by looking at memory");
    struct __kernel_timespec brief = {0, 2000000};
    put(IORING_OP_TIMEOUT, -1, &brief, 1, 0, 4);
    enter(1, 0, 0);
    while (*(volatile unsigned *)FIELD(cq, head) == *(volatile unsigned *)FIELD(cq, tail));
    told("a timeout likewise");
}

static void served(void) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    char in[16] = "";
    bind(listener, (void *)&name, size), listen(listener, 8);
    getsockname(listener, (void *)&name, &size);
    put(IORING_OP_CONNECT, client, &name, 0, size, 1);
    done("connected", 1, 1);
    int accepted = accept(listener, 0, 0);
    put(IORING_OP_SEND, client, "to server", 9, 0, 2)->flags = IOSQE_IO_LINK;
    put(IORING_OP_RECV, accepted, in, 16, 0, 3);
    done("sent", 2, 2);
    printf("%.9s\n", in);
    put(IORING_OP_ACCEPT, listener, 0, 0, 0, 4)->ioprio = IORING_ACCEPT_MULTISHOT;
    enter(1, 0, 0);
    for (int n = 0; n < 2; n++) connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&name, size);
    enter(0, 2, IORING_ENTER_GETEVENTS);
    TRUE(*FIELD(cq, tail) - *FIELD(cq, head) == 2);
    *FIELD(cq, head) = *FIELD(cq, tail);
    put(IORING_OP_ASYNC_CANCEL, -1, (void *)4, 0, 0, 5);
    done("no more of them", 1, 2);
}

int main(void) {
    int first = setup(1, 0, 0);
    if (first < 0) {
        printf("no io_uring here: %s\n", strerrorname_np(errno));
        return 0;
    }
    close(first);
    made_wrongly();
    make(8, 0, 0);
    files();
    failing();
    waiting();
    timing();
    registered();
    together();
    served();
    unmake();
    crowded();
    of_itself();
    by_thread();
    return 0;
}
