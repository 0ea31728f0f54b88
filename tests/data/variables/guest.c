/* Variables of many types and places; what it computes does not matter, what a debugger shows does. */
#include <stdio.h>

struct inner { short a; unsigned char b; };
struct node {
  int id;
  unsigned flags : 3, mode : 5;
  signed sx : 6;
  char name[12];
  struct inner in;
  struct node *next;
  double weight;
  enum { RED, GREEN = 5 } color;
  int arr[4];
  const char *label;
  unsigned long long big : 40;
  union { int u_i; float u_f; };
};
typedef struct node node_t;

int counter = 7;
static long hidden = -3;

static inline __attribute__((always_inline)) int twice(int v) {
  int w = v * 2;
  counter += w;
  return w;
}

__attribute__((noinline)) int work(node_t *n, int k, const char *msg, unsigned char c, double d, long z) {
  int local = n->id + k;
  local += twice(k) + c + (int)d;
  {
    int local = twice(n->id);
    counter += local;
    printf("%s %d\n", msg, local);
  }
  return local + (int)z;
}

__attribute__((noinline)) int byval(struct inner i, struct node m, int q) { return i.a + m.id + q; }

__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, short g, char *h) {
  return a + b + c + d + e + f + g + h[0];
}

int main(int argc, char **argv) {
  node_t m = {2, 1, 2, -3, "second", {9, 8}, 0, 2.5, GREEN, {4, 3, 2, 1}, "lbl2", 77};
  node_t n = {.id = 1, .flags = 5, .mode = 17, .sx = -7, .name = "first", .in = {-2, 200}, .next = &m,
              .weight = 1.5, .color = GREEN, .arr = {10, -20, 30, 40}, .label = "label1",
              .big = 0x123456789aULL, .u_i = 42};
  int r = 0;
  for (int i = 0; i < 3; i++) {
    n.id += i;
    r += work(&n, i * 3 + argc, argv[0] ? "hello" : "x", 250 + i, 3.75, -5L * i);
  }
  r += byval(n.in, n, 5);
  r += many(1, 2, 3, 4, 5, 6, -7, "zed");
  hidden += r;
  printf("%d %ld\n", r, hidden);
  return 0;
}
