#include <stdio.h>
struct in { int a, b; };
union un { int i; float f; };
struct st { char name[8]; struct in in[2]; union un u; int n[12]; const char *t; struct { int z; }; int (*fn)(int); int *pi; };
int twice(int x) { return 2*x; }
int glob = 4;
int main(void) {
  struct st s = { "abc", {{1,2},{3,4}}, {5}, {0}, "hello world", {7}, twice, &glob };
  int zero[20] = {0}; int m[2][3] = {{1,2,3},{4,5,6}}; char exact[5] = "label"; char *five = "label"; char nul[10] = "ab\0cd";
  return s.n[0] + zero[0] + m[0][0] + exact[0] + five[0] + nul[0] + glob;
}
