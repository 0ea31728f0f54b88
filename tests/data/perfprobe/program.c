/* The program whose places perf probe was asked for; see perf.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum color { RED, GREEN = 5, BLUE };
union num { int i; double d; unsigned char bytes[8]; };
struct point { int x, y; };
struct flags { unsigned a : 3; int b : 5; unsigned long c : 40; };
struct node {
	struct node *next;
	const char *name;
	char label[16];
	int values[4];
	struct point at;
	struct point *points[2];
	union { int tag; float ratio; };
	struct flags flags;
	enum color color;
	union num num;
	long (*visit)(struct node *);
};
typedef struct node node_t;
int counter = 3;
static long hidden = 7;
struct point origin = { 1, 2 };
char title[32] = "title";

static inline int square(int v)
{
	int r = v * v;
	return r + counter;
}

__attribute__((noinline)) int area(struct point *p, enum color c, char *label)
{
	int width = p->x;
	int height = p->y;
	for (int i = 0; i < 2; i++) {
		int inner = square(width + i);
		height += inner;
	}
	counter++;
	hidden += height;
	if (label[0] == 'z')
		return -1;
	return width * height + c;
}

__attribute__((noinline)) long walk(node_t *n, unsigned char depth, short s, double weight)
{
	long total = 0;
	while (n) {
		total += n->values[depth & 3] + n->at.x * s;
		total += square(n->at.y) + (long)weight;
		n = n->next;
	}
	return total;
}

__attribute__((noinline)) struct point swap(struct point p)
{
	struct point r = { p.y, p.x };
	return r;
}

__attribute__((noinline)) unsigned long bits(struct flags *f, const int *const *pp, _Bool ok, long long big, unsigned seven, void *eight)
{
	return f->a + f->b + f->c + **pp + ok + big + seven + (eight != 0);
}

int main(int argc, char **argv)
{
	node_t n = { .name = "first", .label = "lab", .values = { 1, 2, 3, 4 }, .at = { 5, 6 } };
	struct point p = { argc, 3 };
	int *q = &counter;
	const int *r = q;
	printf("%d\n", area(&p, BLUE, title));
	printf("%ld\n", walk(&n, argc, 3, 2.5));
	p = swap(p);
	n.flags.a = 1; n.flags.b = -3; n.flags.c = 77;
	printf("%lu %d %d\n", bits(&n.flags, &r, 1, -1, 7, argv), square(p.x), p.y);
	return 0;
}
