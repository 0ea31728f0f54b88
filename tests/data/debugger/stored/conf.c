#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum level { LOW, MIDDLE = 10, HIGH = 20 };

struct setting {
    char *name;
    union { int number; double real; char text[8]; } value;
    enum level level;
    bool changed;
    unsigned mode : 3, uses : 5;
    struct setting *next;
};

typedef struct {
    struct setting *head;
    int count;
    int (*accept)(const struct setting *);
} config_t;

static const char *input[] = {"port=8080", "ratio=2.5", "name=probe", "bad", "depth=4", NULL};
config_t config;
double history[4];
int errors;
short levels[2][4] = {{1, 2, 3, 4}, {-1, -2, -3, -4}};
unsigned long long big = 0xfedcba9876543210ull;

static int accept_all(const struct setting *setting)
{
    return setting->name[0] != 'x';
}

struct setting *parse(const char *line, enum level level)
{
    const char *equal = strchr(line, '=');
    if (!equal) {
        errors++;
        errno = EINVAL;
        return NULL;
    }
    struct setting *made = calloc(1, sizeof *made);
    size_t length = equal - line;
    made->name = malloc(length + 1);
    memcpy(made->name, line, length);
    made->name[length] = '\0';
    made->level = level;
    if (strchr(equal, '.'))
        made->value.real = atof(equal + 1);
    else if (equal[1] >= '0' && equal[1] <= '9')
        made->value.number = atoi(equal + 1);
    else
        strncpy(made->value.text, equal + 1, sizeof made->value.text - 1);
    made->mode = 5;
    return made;
}

static void add(config_t *to, struct setting *setting)
{
    if (!to->accept(setting))
        return;
    setting->next = to->head;
    to->head = setting;
    setting->uses = ++to->count;
    history[(to->count - 1) % 4] = to->count * 1.5;
}

int weigh(const struct setting *from, int depth)
{
    int here = depth * (int)strlen(from->name);
    if (!from->next)
        return here;
    return here + weigh(from->next, depth + 1);
}

static struct setting *lookup(const char *name)
{
    struct setting *found = config.head;
    while (strcmp(found->name, name) != 0)
        found = found->next;
    return found;
}

int main(int argc, char **argv)
{
    config.accept = accept_all;
    for (const char **line = input; *line; line++) {
        struct setting *made = parse(*line, line == input ? HIGH : LOW);
        if (made)
            add(&config, made);
    }
    int weight = weigh(config.head, 1);
    printf("%d settings, %d errors, weight %d\n", config.count, errors, weight);
    fflush(stdout);
    struct setting *missing = lookup(argc > 1 ? argv[1] : "colour");
    return missing->value.number;
}
