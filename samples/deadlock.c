/* Two locks, taken in either order: transfers between two accounts, both ways. */
#include "threads.h"

enum { ROUNDS = 20 };

struct account {
    struct lock lock;
    s64 balance;
};

static struct account accounts[2] = {{{0}, 1000}, {{0}, 1000}};
static struct thread threads[2];

/* The bug: whoever pays locks its own account first, and then the other's. */
PROBEABLE void transfer(struct account *from, struct account *to, s64 amount)
{
    lock(&from->lock);
    lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    unlock(&to->lock);
    unlock(&from->lock);
}

PROBEABLE void spender(void *argument)
{
    u32 own = argument == &accounts[1];
    for (u32 round = 0; round < ROUNDS; round++)
        transfer(&accounts[own], &accounts[!own], own ? 7 : 5);
}

int main(int argc, char **argv)
{
    u32 count = argc > 1 && argv[1][0] == '1' ? 1 : 2;
    for (u32 i = 0; i < count; i++)
        thread_start(&threads[i], spender, &accounts[i]);
    for (u32 i = 0; i < count; i++)
        thread_join(&threads[i]);
    print("balances ");
    print_s64(accounts[0].balance);
    print(" and ");
    print_s64(accounts[1].balance);
    print("\n");
    return accounts[0].balance + accounts[1].balance != 2000;
}
