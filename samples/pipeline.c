/* A pipeline of processes: numbers, their squares, those that end in 1, and their sum. */
#include "threads.h"

typedef void (*stage)(s32 in, s32 out);

enum { LAST = 40 };

PROBEABLE s32 read_number(s32 in, u32 *number)
{
    u8 *to = (u8 *)number;
    u32 have = 0;
    while (have < sizeof *number) {
        s64 count = sys_read(in, to + have, sizeof *number - have);
        if (count <= 0)
            return 0;
        have += (u32)count;
    }
    return 1;
}

PROBEABLE void write_number(s32 out, u32 number)
{
    sys_write(out, &number, sizeof number);
}

PROBEABLE void numbers(s32 in, s32 out)
{
    (void)in;
    for (u32 number = 1; number <= LAST; number++)
        write_number(out, number);
}

PROBEABLE void squares(s32 in, s32 out)
{
    u32 number;
    while (read_number(in, &number))
        write_number(out, number * number);
}

PROBEABLE void ending_in_one(s32 in, s32 out)
{
    u32 number;
    while (read_number(in, &number))
        if (number % 10 == 1)
            write_number(out, number);
}

PROBEABLE void sum(s32 in, s32 out)
{
    u32 number, count = 0, total = 0;
    (void)out;
    while (read_number(in, &number)) {
        print_u64(number);
        print(" ");
        total += number;
        count++;
    }
    print("\n");
    print_u64(count);
    print(" squares, sum ");
    print_u64(total);
    print("\n");
    exit((s32)count);
}

int main(int argc, char **argv)
{
    static const stage stages[] = {numbers, squares, ending_in_one, sum};
    s64 pids[4];
    s32 in = -1, status = 0;
    (void)argc, (void)argv;
    for (u32 i = 0; i < 4; i++) {
        s32 ends[2] = {-1, -1};
        if (i < 3)
            open_pipe(ends);
        pids[i] = fork();
        if (!pids[i]) {
            if (i < 3)
                close(ends[0]);
            stages[i](in, ends[1]);
            exit(0);
        }
        if (in >= 0)
            close(in);
        if (i < 3)
            close(ends[1]);
        in = ends[0];
    }
    for (u32 i = 0; i < 4; i++)
        status = wait_for(pids[i]);
    print("the last one ended with ");
    print_u64((u64)(status >> 8 & 255));
    print("\n");
    return 0;
}
