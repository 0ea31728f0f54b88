// Exceptions through functions that count their own returns.
#include <cstdio>
#define N __attribute__((noinline, noclone, used))

static struct { const char *name; long returns, sum; } rows[8];

static long count(int row, const char *name, long value)
{
    rows[row].name = name;
    rows[row].returns++;
    rows[row].sum += value;
    return value;
}

extern "C" {
N long cleaned(long i) { return count(0, "cleaned", i); }
}

struct Guard {
    long i;
    ~Guard() { cleaned(i); }
};

extern "C" {
N long maybe(long i)
{
    if (i % 3 == 0)
        throw i;
    return count(1, "maybe", i * 7);
}

N long guarded(long i)
{
    Guard guard{i};
    long value = maybe(i) + maybe(i + 1);
    return count(2, "guarded", value);
}

N long rethrown(long i)
{
    try {
        return count(3, "rethrown", guarded(i));
    } catch (long value) {
        if (value % 2)
            throw;
        return count(3, "rethrown", -value);
    }
}

N long caught(long i)
{
    long value = 0;
    try {
        value = rethrown(i);
    } catch (long thrown) {
        value = thrown * 1000;
    }
    return count(4, "caught", value);
}
}

static long (*const table[])(long) = {maybe, guarded, rethrown, caught};

int main()
{
    volatile long failures = 0;
    for (long i = 0; i < 60; i++) {
        try {
            maybe(i);
        } catch (long) {
            failures = failures + 1;
        }
        caught(i);
        try {
            table[i % 4](i / 4);
        } catch (long) {
            failures = failures + 1;
        }
    }
    for (auto &row : rows)
        if (row.name)
            std::printf("%s %ld %ld\n", row.name, row.returns, row.sum);
    return 0;
}
