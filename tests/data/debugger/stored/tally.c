#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mark {
    int id;
    double weight;
};

struct sheet {
    struct mark marks[8];
    int used;
    char title[16];
};

static struct sheet sheet = {.title = "spring"};
static int asked;
static int failures;

int add_mark(struct sheet *s, int id, double weight)
{
    if (s->used == 8)
        return -1;
    struct mark *m = &s->marks[s->used];
    m->id = id;
    m->weight = weight;
    s->used++;
    return s->used;
}

double weigh(const struct sheet *s, int from)
{
    if (from >= s->used)
        return 0;
    double rest = weigh(s, from + 1);
    return s->marks[from].weight + rest;
}

int square(int n)
{
    int r = n * n;
    asked++;
    return r;
}

int squares(int upto)
{
    int total = 0;
    for (int i = 1; i <= upto; i++)
        total += square(i);
    return total;
}

int fib(int n)
{
    if (n < 2)
        return n;
    int left = fib(n - 1);
    int right = fib(n - 2);
    return left + right;
}

struct mark heaviest(const struct sheet *s)
{
    struct mark best = {0, 0};
    for (int i = 0; i < s->used; i++)
        if (s->marks[i].weight > best.weight)
            best = s->marks[i];
    return best;
}

int name_length(const char *name)
{
    int n = (int)strlen(name);
    return n;
}

int peek(const int *p)
{
    int v = *p;
    return v + 1;
}

void complain(int code)
{
    failures += code;
    raise(SIGUSR1);
    failures++;
}

void on_usr1(int number)
{
    failures += 100;
}

void report(const char *what)
{
    printf("%s: %d marks, %.1f\n", what, sheet.used, weigh(&sheet, 0));
    fflush(stdout);
}

void leave(int code)
{
    printf("leaving\n");
    exit(code);
}

int main(int argc, char **argv)
{
    signal(SIGUSR1, on_usr1);
    for (int i = 1; i <= 3; i++)
        add_mark(&sheet, i, i * 1.5);
    report("start");
    int s = squares(3);
    int f = fib(5);
    struct mark best = heaviest(&sheet);
    report("end");
    printf("%d %d %d %.1f\n", s, f, best.id, best.weight);
    return peek(&s) == s + 1 ? 0 : 9;
}
