#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum kind { DEPOSIT, WITHDRAW, TRANSFER };

struct date { unsigned day : 5, month : 4, year : 12; };

struct entry {
    enum kind kind;
    struct date when;
    long amount;
    char note[16];
    struct entry *next;
};

struct account {
    char owner[20];
    long balance;
    struct entry *first;
    int entries;
    double rate;
};

typedef int (*compare_t)(const void *, const void *);

static struct account accounts[3] = {
    {"alice", 100, NULL, 0, 0.01},
    {"bob", 50, NULL, 0, 0.02},
    {"carol", 0, NULL, 0, 0.5},
};
int errors;
static int history[8];
static unsigned char buffer[6] = {1, 2, 0xfe, 0xff, 'a', 0};
static const long long big = 0x123456789abcdefLL;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct entry *record(struct account *to, enum kind kind, long amount, const char *note)
{
    struct entry *made = malloc(sizeof *made);
    made->kind = kind;
    made->when.day = 7;
    made->when.month = 12;
    made->when.year = 2024;
    made->amount = amount;
    snprintf(made->note, sizeof made->note, "%s", note);
    made->next = to->first;
    to->first = made;
    to->entries++;
    return made;
}

int withdraw(struct account *from, long amount)
{
    if (from->balance < amount) {
        errors++;
        return -1;
    }
    from->balance -= amount;
    record(from, WITHDRAW, amount, "cash");
    return 0;
}

int transfer(struct account *from, struct account *to, long amount)
{
    int status = withdraw(from, amount);
    if (status == 0) {
        to->balance += amount;
        record(to, TRANSFER, amount, from->owner);
    }
    return status;
}

static int by_balance(const void *a, const void *b)
{
    const struct account *left = a, *right = b;
    return left->balance < right->balance ? 1 : left->balance > right->balance ? -1 : 0;
}

static long gcd(long a, long b)
{
    if (b == 0)
        return a;
    return gcd(b, a % b);
}

static double interest(const struct account *all, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++) {
        double part = all[i].balance * all[i].rate;
        sum += part;
    }
    return sum;
}

static void *audit(void *arg)
{
    long *total = arg;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 3; i++)
        *total += accounts[i].balance;
    pthread_mutex_unlock(&mutex);
    return total;
}

int main(void)
{
    long total = 0;
    for (int i = 0; i < 8; i++)
        history[i] = i * i;
    transfer(&accounts[0], &accounts[1], 30);
    transfer(&accounts[1], &accounts[2], 500);
    withdraw(&accounts[0], 10);
    compare_t how = by_balance;
    qsort(accounts, 3, sizeof accounts[0], how);
    long common = gcd(84, 36);
    double gained = interest(accounts, 3);
    pthread_t auditor;
    pthread_create(&auditor, NULL, audit, &total);
    pthread_join(auditor, NULL);
    printf("%ld %ld %.2f %d\n", total, common, gained, errors);
    return errors;
}
