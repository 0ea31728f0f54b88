/* A lost update: threads add to one counter, and between reading and writing it something is done. */
#include "threads.h"

enum { THREADS_MAX = 8, ROUNDS = 100 };

static struct thread threads[THREADS_MAX];
static volatile u32 counter;
static volatile u32 noise;

/* Work that takes a moment. */
PROBEABLE void think(u32 seed)
{
    for (u32 i = 0; i < seed % 4; i++)
        noise = noise * 31 + i;
}

/* The bug: another thread's update between the two is lost. */
PROBEABLE void add_one(u32 round)
{
    u32 value = counter;
    think(round);
    counter = value + 1;
}

PROBEABLE void worker(void *argument)
{
    (void)argument;
    for (u32 round = 0; round < ROUNDS; round++)
        add_one(round);
}

int main(int argc, char **argv)
{
    u32 count = argc > 1 ? (u32)(argv[1][0] - '0') : 2;
    if (count > THREADS_MAX)
        count = THREADS_MAX;
    for (u32 i = 0; i < count; i++)
        thread_start(&threads[i], worker, NULL);
    for (u32 i = 0; i < count; i++)
        thread_join(&threads[i]);
    print_u64(count);
    print(" threads counted ");
    print_u64(counter);
    print(" of ");
    print_u64(count * ROUNDS);
    print("\n");
    return counter != count * ROUNDS;
}
