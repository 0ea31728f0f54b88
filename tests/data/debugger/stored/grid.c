#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define ROWS 3
#define COLS 4

struct point { short x, y; };
typedef struct point point_t;

enum color { RED = 1, GREEN = 2, BLUE = 4, ALL = 7 };

struct shape {
    const char *label;
    enum color color;
    point_t corner[2];
    union {
        struct { int radius; } circle;
        struct { int w, h; } box;
        double any;
    } u;
    int (*area)(const struct shape *);
};

typedef struct node {
    struct node *left, *right;
    int key;
    char word[8];
} node;

static int grid[ROWS][COLS];
static node *root;
static unsigned long long steps;
static volatile sig_atomic_t signals;
float ratio = 0.75f;
const char banner[] = "grid demo";
char *words[] = {"pear", "apple", "fig", "plum", NULL};
pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int shared;

static int box_area(const struct shape *s) { return s->u.box.w * s->u.box.h; }
static int circle_area(const struct shape *s) { return 3 * s->u.circle.radius * s->u.circle.radius; }

static void on_signal(int number) { signals += number; }

node *insert(node *at, const char *word)
{
    if (!at) {
        node *made = malloc(sizeof(node));
        memset(made, 0, sizeof *made);
        made->key = (int)strlen(word);
        strncpy(made->word, word, sizeof made->word - 1);
        return made;
    }
    steps++;
    if (strcmp(word, at->word) < 0)
        at->left = insert(at->left, word);
    else
        at->right = insert(at->right, word);
    return at;
}

int depth(const node *at)
{
    if (!at)
        return 0;
    int left = depth(at->left);
    int right = depth(at->right);
    return 1 + (left > right ? left : right);
}

void fill(int seed)
{
    for (int row = 0; row < ROWS; row++) {
        for (int col = 0; col < COLS; col++) {
            int value = seed * (row + 1) + col;
            grid[row][col] = value;
        }
    }
}

long trace(int from[ROWS][COLS])
{
    long total = 0;
    for (int i = 0; i < ROWS; i++)
        total += from[i][i];
    return total;
}

static void *add(void *arg)
{
    int by = *(int *)arg;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&guard);
        shared += by;
        pthread_mutex_unlock(&guard);
    }
    return NULL;
}

static double mean(const struct shape *all, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        int area = all[i].area(&all[i]);
        sum += area;
    }
    return sum / count;
}

static int parse(const char *text, int *out)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*end || errno)
        return -1;
    *out = (int)value;
    return 0;
}

int main(int argc, char *argv[])
{
    struct shape shapes[2] = {
        {"box", RED | BLUE, {{0, 0}, {4, 5}}, {.box = {4, 5}}, box_area},
        {"disc", GREEN, {{1, 1}, {2, 2}}, {.circle = {2}}, circle_area},
    };
    int numbers[5] = {5, 4, 3, 2, 1}, got = -1;
    fill(10);
    for (char **word = words; *word; word++)
        root = insert(root, *word);
    int deep = depth(root);
    double average = mean(shapes, 2);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    int bad = parse("12x", &got);
    bad += parse("34", &got);
    printf("%s %d %.1f %ld %d %d %d\n", banner, deep, average, trace(grid), shared, got, bad);
    int *none = argc > 5 ? numbers : NULL;
    return *none;
}
