/* Variables that change in many ways. */
#include <string.h>
#include <unistd.h>

struct node { int id; struct node *next; };
volatile int total;
int limit = 3;
double ratio;
struct node a = {1, 0}, b = {2, 0};
struct node *p = &a;
char text[8] = "abc";
char input[8];

static int add(int n)
{
	int sum = 0;
	for (int i = 1; i <= n; i++)
		sum += i;
	if (n > 2)
		sum += add(n - 1);
	return sum;
}

static void bump(struct node *q)
{
	q->id += 10;
}

int main(void)
{
	int local = limit;
	total = 1;
	total = 1;
	total += 2;
	bump(p);
	p = &b;
	bump(p);
	bump(&a);
	total = add(limit);
	local += a.id + b.id;
	ratio = local / 2.0;
	text[1] = 'z';
	local--;
	for (int i = 0; i < 6; i++)
		total += i;
	int ends[2];
	pipe(ends);
	write(ends[1], "hello", 6);
	read(ends[0], input, 6);
	return local + total;
}
