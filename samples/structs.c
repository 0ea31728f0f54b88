/* Structs: pointers to nested structs, bit fields and unions, for arguments such as +8(+0($arg1)):u32. */
#include "rt.h"

struct address {
    char street[16];
    u16 number;
    u32 postcode;
};

struct person {
    const char *name;
    u8 age;
    u32 is_member : 1;
    u32 level : 5;
    s32 balance;
    struct address home;
    struct person *manager;
};

struct payment {
    u64 id;
    struct person *from;
    struct person *to;
    s32 amount;
    enum { CASH, CARD, TRANSFER } kind;
    union {
        u32 till;
        u64 card;
        char reference[8];
    } detail;
};

static struct person grace = {"Grace", 61, 1, 9, 5000, {"Harbour Road", 1, 10115}, NULL};
static struct person alan = {"Alan", 41, 1, 4, 120, {"Mill Lane", 23, 20095}, &grace};
static struct person ada = {"Ada", 36, 0, 2, -35, {"Station Street", 7, 50667}, &alan};

PROBEABLE u32 chain_length(const struct person *person)
{
    u32 length = 0;
    for (; person->manager; person = person->manager)
        length++;
    return length;
}

PROBEABLE s32 deposit(struct person *person, s32 amount)
{
    person->balance += amount;
    return person->balance;
}

/* 0, or a negative error number as kernel functions return it. */
PROBEABLE int transfer(struct payment *payment)
{
    if (payment->amount <= 0)
        return -22; /* EINVAL */
    if (payment->from->balance < payment->amount && !payment->from->is_member)
        return -1; /* EPERM */
    deposit(payment->from, -payment->amount);
    deposit(payment->to, payment->amount);
    return 0;
}

PROBEABLE struct address move_house(struct address from, u16 number)
{
    from.number = number;
    from.postcode++;
    return from;
}

PROBEABLE void print_person(const struct person *person)
{
    print(person->name);
    print(", ");
    print(person->home.street);
    print(" ");
    print_u64(person->home.number);
    print(", ");
    print_u64(person->home.postcode);
    print(": ");
    print_s64(person->balance);
    print(", level ");
    print_u64(person->level);
    print(", ");
    print_u64(chain_length(person));
    print(" above\n");
}

int main(int argc, char **argv)
{
    static struct payment payments[] = {
        {1001, &grace, &ada, 300, TRANSFER, {.reference = "rent 05"}},
        {1002, &alan, &grace, 200, CARD, {.card = 4929000011112222}},
        {1003, &ada, &alan, 0, CASH, {.till = 3}},
        {1004, &ada, &alan, 1000, CASH, {.till = 4}},
    };
    int refused = 0;
    (void)argc, (void)argv;
    for (u32 i = 0; i < sizeof payments / sizeof *payments; i++) {
        int result = transfer(&payments[i]);
        refused += result < 0;
        print("payment ");
        print_u64(payments[i].id);
        print(" -> ");
        print_s64(result);
        print("\n");
    }
    ada.home = move_house(ada.home, 12);
    print_person(&ada);
    print_person(&alan);
    print_person(&grace);
    return refused;
}
