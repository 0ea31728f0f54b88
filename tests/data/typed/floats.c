#include <stdio.h>

struct pair { float x, y; };
struct mixed { double d; int i; };
enum color { RED, GREEN = 5, BLUE };
double global = 2.25;
float row[3] = { 0.1f, 1.5f, -3e20f };

__attribute__((noinline)) double many(double a, float b, int i, struct pair p, struct mixed m,
                                      double c, double d, double e, double g, double h, double k) {
  return a + b + i + p.x + p.y + m.d + m.i + c + d + e + g + h + k;
}
__attribute__((noinline)) float half(float x) { return x / 2; }
__attribute__((noinline)) int area(enum color c, const char *label, double scale) {
  return (int)(scale * 20) + label[0] % 2 + c;
}
__attribute__((noinline)) void nothing(_Bool on, char letter, long count) {
  __asm__ volatile("" ::"r"((long)on + letter + count));
}

int main(void) {
  double sum = 0;
  for (int i = 0; i < 3; i++) {
    sum += many(i + 0.1, 2.5f, i, (struct pair){1.25f, -7.5f}, (struct mixed){-0.0, 4}, 1e300,
                1e-320, __builtin_inf(), __builtin_nan(""), 5, 1 / 3.0);
    sum += half(i * 0.3f);
  }
  nothing(1, 'q', -3);
  return area(BLUE, "label", 1.5) + (sum == 0);
}
