#include <stdio.h>
struct s { int v; struct s *next; } a = {1, 0}, b = {2, &a};
static int calls;
int leaf(int n) { calls++; return n + 1; }
int down(int n) { if (n == 0) return leaf(0); int r = down(n - 1); return r + leaf(n); }
int sumup(int n) { int t = 0; for (int i = 0; i < n; i++) t += leaf(i); return t; }
int main(void)
{
    struct s *p = &b;
    int x = sumup(5);
    int y = down(4);
    a.v = 50;
    p = p->next;
    x += leaf(100);
    for (int i = 0; i < 400; i++) x += leaf(i);
    printf("%d %d %d\n", x, y, p->v);
    return 0;
}
