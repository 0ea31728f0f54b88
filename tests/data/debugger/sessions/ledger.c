/* A ledger of accounts: structures of every shape, for words that look at them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { CASH, BANK = 5, CREDIT };
enum mark { SEEN = 1, PAID = 2, LATE = 4 };

struct flags {
    unsigned open : 1;
    unsigned level : 3;
    int sign : 4;
    unsigned long wide : 40;
    unsigned char last;
};

union amount {
    int whole;
    float part;
    unsigned char bytes[8];
};

struct entry {
    char name[12];
    enum kind kind;
    double value;
    struct flags flags;
    union amount amount;
    struct {
        short low;
        char high;
    } range;
    struct entry *next;
};

typedef int (*compare_fn)(const void *, const void *);
typedef struct entry entry_t;

static int total_calls;
int table[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
const char *words[] = {"one", "two", "three", NULL};
float ratios[5] = {0.5f, 1.25f, -3.0f, 0.1f, 1e10f};
entry_t *first;
unsigned char raw[16] = {0xde, 0xad, 0xbe, 0xef, 0, 1, 2, 3, 'a', 'b', 'c', 0, 0xff, 0x80, 0x7f, 1};
enum mark marks = SEEN | LATE;
long double wide_real = 2.5L;
_Bool ready;
volatile int limit = 3;

int compare_int(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static compare_fn chosen = compare_int;

static int square(int n)
{
    static int uses;
    uses++;
    return n * n;
}

int sum_to(int n)
{
    int part;
    if (n <= 0)
        return 0;
    part = sum_to(n - 1);
    return part + n;
}

entry_t *add(const char *name, enum kind kind, double value)
{
    entry_t *made = calloc(1, sizeof *made);
    strncpy(made->name, name, sizeof made->name - 1);
    made->kind = kind;
    made->value = value;
    made->flags.open = 1;
    made->flags.level = 5;
    made->flags.sign = -3;
    made->flags.wide = 0x1234567890UL;
    made->amount.whole = 0x40490fdb;
    made->range.low = -7;
    made->range.high = 'h';
    made->next = first;
    first = made;
    total_calls++;
    return made;
}

double average(const entry_t *from)
{
    double all = 0;
    int count = 0;
    for (const entry_t *at = from; at; at = at->next) {
        all += at->value;
        count++;
    }
    return count ? all / count : 0;
}

int fill(int *numbers, int count)
{
    int i, sum = 0;
    for (i = 0; i < count; i++) {
        numbers[i] = square(i) - 4;
        sum += numbers[i];
    }
    return sum;
}

int main(int argc, char **argv)
{
    int numbers[8];
    char text[32] = "ledger";
    int sum, i;
    double mean;

    add("cash", CASH, 12.5);
    add("bank", BANK, 100);
    add("card", CREDIT, -20.25);
    sum = fill(numbers, 8);
    mean = average(first);
    qsort(numbers, 8, sizeof numbers[0], chosen);
    for (i = 0; i < limit; i++)
        total_calls += sum_to(i);
    snprintf(text, sizeof text, "%d %.2f", sum, mean);
    puts(text);
    ready = 1;
    if (argc > 1) {
        int *nowhere = (int *)16;
        *nowhere = 1;
    }
    return sum & 3;
}
