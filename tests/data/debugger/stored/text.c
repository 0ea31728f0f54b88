#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 16
#define MIN(a, b) ((a) < (b) ? (a) : (b))

enum color { RED, GREEN = 4, BLUE };
enum mode { READ = 1, WRITE = 2, EXEC = 4 };

typedef struct point {
    double x, y;
} point;

typedef struct node {
    char *word;
    unsigned count;
    enum color color;
    struct node *left, *right;
} node;

typedef struct shape {
    const char *name;
    union {
        struct {
            point center;
            float radius;
        } circle;
        point corners[2];
    };
    unsigned kind : 2;
    unsigned filled : 1;
    signed int depth : 5;
} shape;

typedef double (*area_fn)(const shape *);

static node *root;
static size_t total_words;
static const char *const names[] = {"circle", "box"};
static int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
static char buffer[64];
volatile int interrupts;
uint64_t big = 0xdeadbeefcafebabe;
int8_t small = -5;
char letter = 'x';
float ratio = 0.1f;

static double circle_area(const shape *s)
{
    return 3 * s->circle.radius * s->circle.radius;
}

static double box_area(const shape *s)
{
    double width = s->corners[1].x - s->corners[0].x;
    double height = s->corners[1].y - s->corners[0].y;
    return width * height;
}

static const area_fn areas[2] = {circle_area, box_area};

static node *insert(node *at, const char *word)
{
    if (!at) {
        at = calloc(1, sizeof *at);
        at->word = strdup(word);
        at->color = total_words % 2 ? GREEN : RED;
        at->count = 1;
        total_words++;
        return at;
    }
    int order = strcmp(word, at->word);
    if (order == 0)
        at->count++;
    else if (order < 0)
        at->left = insert(at->left, word);
    else
        at->right = insert(at->right, word);
    return at;
}

static int depth(const node *at)
{
    if (!at)
        return 0;
    int left = depth(at->left), right = depth(at->right);
    return 1 + (left > right ? left : right);
}

static int joined(char *out, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int count = vsnprintf(out, size, format, list);
    va_end(list);
    return count;
}

static void handler(int number)
{
    interrupts += number;
}

static int fail(const int *where)
{
    return *where;
}

int main(int argc, char *argv[])
{
    char line[] = "the quick fox and the lazy dog and the end";
    int counts[5] = {0};
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        root = insert(root, word);
        counts[MIN(strlen(word), 4)]++;
    }
    int deep = depth(root);
    shape shapes[2] = {{.name = names[0], .circle = {{1, 2}, 1.5f}, .kind = 1, .depth = -3},
                       {.name = names[1], .corners = {{0, 0}, {2, 3}}, .filled = 1}};
    double sum = 0;
    for (int i = 0; i < 2; i++)
        sum += areas[i](&shapes[i]);
    int length = joined(buffer, sizeof buffer, "%zu words, %d deep, %.2f", total_words, deep, sum);
    signal(SIGALRM, handler);
    raise(SIGALRM);
    puts(buffer);
    int *nowhere = argc > 9 ? (int *)argv[0] : NULL;
    if (length > 5)
        return fail(nowhere);
    return 0;
}
