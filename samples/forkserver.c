/* A fork server: each request is served by a process of its own, and one of them dies of it. */
#include "threads.h"

enum { REQUESTS = 8 };

struct reply {
    u32 number;
    u32 steps;
};

/* Steps of the Collatz sequence down to 1. */
PROBEABLE u32 collatz(u64 value)
{
    u32 steps = 0;
    for (; value != 1; steps++)
        value = value & 1 ? 3 * value + 1 : value / 2;
    return steps;
}

/* In the child. The bug: request 5 writes through a null pointer. */
PROBEABLE void serve(u32 number, s32 out)
{
    struct reply reply = {number, collatz(number * 27)};
    struct reply *to = number == 5 ? NULL : &reply;
    *(volatile u32 *)&to->number = number;
    sys_write(out, &reply, sizeof reply);
}

PROBEABLE s32 handle(u32 number)
{
    struct reply reply;
    s32 ends[2];
    open_pipe(ends);
    s64 pid = fork();
    if (!pid) {
        close(ends[0]);
        serve(number, ends[1]);
        exit(0);
    }
    close(ends[1]);
    s64 got = sys_read(ends[0], &reply, sizeof reply);
    close(ends[0]);
    s32 status = wait_for(pid);
    print("request ");
    print_u64(number);
    if (got == sizeof reply) {
        print(": ");
        print_u64(reply.steps);
        print(" steps\n");
    } else {
        print(": killed by signal ");
        print_u64((u64)(status & 127));
        print("\n");
    }
    return status == 0;
}

int main(int argc, char **argv)
{
    u32 served = 0;
    (void)argc, (void)argv;
    for (u32 number = 1; number <= REQUESTS; number++)
        served += (u32)handle(number);
    print_u64(served);
    print(" of ");
    print_u64(REQUESTS);
    print(" served\n");
    return (int)(REQUESTS - served);
}
