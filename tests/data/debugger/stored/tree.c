#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int key; char name[16]; struct node *left, *right; };
enum color { RED, GREEN = 5, BLUE };
union u { int i; float f; };
static struct node *root; int total; enum color c = GREEN; union u un = { .f = 1.5f };
double avg(const int *a, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i]; return s / n; }
static struct node *insert(struct node *t, int key) {
    if (!t) { t = calloc(1, sizeof *t); t->key = key; snprintf(t->name, 16, "node%d", key); return t; }
    if (key < t->key) t->left = insert(t->left, key); else t->right = insert(t->right, key);
    return t;
}
int depth(struct node *t) { if (!t) return 0; int l = depth(t->left), r = depth(t->right); return 1 + (l > r ? l : r); }
int main(int argc, char **argv) {
    int keys[] = {50, 30, 70, 20, 40, 60, 80};
    for (int i = 0; i < 7; i++) { root = insert(root, keys[i]); total += keys[i]; }
    printf("depth %d avg %.2f\n", depth(root), avg(keys, 7));
    char *p = argc > 1 ? argv[1] : NULL;
    if (p && !strcmp(p, "crash")) *(volatile int *)0 = 1;
    return 0;
}
