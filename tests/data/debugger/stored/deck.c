#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define LIMIT 8
typedef struct cell { double value; unsigned tag : 3, used : 1; const char *label; struct cell *next; } cell_t;
typedef int (*operation)(int, int);
static cell_t *top; static unsigned depth_now; static int errors;
enum mode { IDLE, BUSY = 4, DONE } mode = IDLE;
union word { unsigned u; float f; unsigned char b[4]; } word = { 0x40490fdb };
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static operation table[] = { add, sub, NULL };
static int matrix[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
cell_t *enter(double value, const char *label) {
    cell_t *fresh = malloc(sizeof *fresh);
    if (!fresh) { errors++; return NULL; }
    *fresh = (cell_t){ .value = value, .tag = depth_now & 7, .used = 1, .label = label, .next = top };
    top = fresh;
    depth_now++;
    return fresh;
}
int leave(double *out) {
    cell_t *old = top;
    if (!old) { errno = ENOENT; return -1; }
    *out = old->value; top = old->next; free(old); depth_now--;
    return 0;
}
double sum(const cell_t *at) { return at ? at->value + sum(at->next) : 0; }
static void apply(int a, int b) {
    for (operation *op = table; *op; op++) {
        int result = (*op)(a, b);
        printf("%d\n", result);
    }
}
static void on_alarm(int number) { mode = DONE; errors += number; }
int main(int argc, char *argv[]) {
    static const char *names[] = { "one", "two", "three", "four" };
    double got = 0; long long big = 1LL << 40; char text[32] = "buffer";
    signal(SIGUSR1, on_alarm);
    for (int i = 0; i < 4; i++) enter(i * 1.5, names[i]);
    mode = BUSY;
    printf("sum %g\n", sum(top));
    apply(7, 3);
    raise(SIGUSR1);
    while (leave(&got) == 0) snprintf(text, sizeof text, "got %.1f", got);
    printf("%s %lld %d\n", text, big, errors);
    return argc > 5 ? LIMIT : 3;
}
