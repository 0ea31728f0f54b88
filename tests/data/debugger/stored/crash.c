#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 4
typedef struct option option_t;
struct option {
    const char *key;
    union { long number; const char *text; double real; } as;
    enum { NUMBER, TEXT, REAL } kind : 4;
    unsigned hidden : 1;
    struct option *parent;
};

static option_t table[] = {
    {"depth", {.number = DEPTH}, NUMBER, 0, NULL},
    {"name", {.text = "probe"}, TEXT, 0, &table[0]},
    {"ratio", {.real = 0.75}, REAL, 1, &table[1]},
    {NULL, {.number = 0}, NUMBER, 0, NULL},
};
volatile sig_atomic_t alarms;
unsigned char raw[8] = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4};
float weights[2][3] = {{1, 2, 3}, {0.5, 0.25, 0.125}};
const char *const empty = "";

static void on_signal(int number)
{
    alarms += number;
}

__attribute__((noinline)) long lookup(const char *key, int depth)
{
    for (option_t *option = table; option->key; option++)
        if (!strcmp(option->key, key))
            return option->as.number + depth;
    return -1;
}

__attribute__((noinline)) int descend(option_t *option, int depth)
{
    char note[16];
    snprintf(note, sizeof note, "level %d", depth);
    if (depth == 0)
        return option->parent->parent->kind + note[0];
    return descend(option, depth - 1) + 1;
}

static inline int squared(int value)
{
    int result = value * value;
    return result;
}

int main(int argc, char **argv)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    printf("depth %ld\n", lookup("depth", 1));
    printf("none %ld\n", lookup("none", argc));
    printf("squared %d\n", squared(argc + 6));
    fflush(stdout);
    return descend(&table[0], (int)lookup("depth", 0) - 2);
}
