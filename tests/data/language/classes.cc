#include <coroutine>
#include <cstdio>
#include <string>
#include <typeinfo>
#include <vector>
#include <memory>

namespace geo {
enum class Color { red, green = 5, blue };
enum Plain { one = 1, two };
struct Shape {
  int id = 1;
  static int count;
  static int total(int n) { return count + n; }
  static constexpr int limit = 9;
  Shape(int i) : id(i) { ++count; }
  virtual ~Shape() {}
  virtual int area() const { return 0; }
  virtual const char *name() const { return "shape"; }
  int scaled(int by, int plus = 3) const { return id * by + plus; }
  int hidden() { return id; }
  enum Kind { small, large } kind = large;
  typedef int Number;
};
int Shape::count = 0;
struct Colored { Color color = Color::blue; virtual Color tint() const { return color; } virtual ~Colored() {} };
struct Square : Shape, Colored {
  int side;
  Square(int s) : Shape(10), side(s) {}
  int area() const override { return side * side; }
  const char *name() const override { return "square"; }
  int self() const { return this->side + id; }
};
namespace inner { int depth = 3; int deeper(int n) { return n + depth; } }
inline namespace v1 { int versioned = 12; }
int free_function(int a) { return a + 1; }
}
namespace alias = geo::inner;
struct VBase { int v = 77; int in_base() { return v; } virtual ~VBase() {} };
struct VLeft : virtual VBase { int l = 1; };
struct VRight : virtual VBase { int r = 2; };
struct VBoth : VLeft, VRight { int b = 3; int sum() { return v + l + r + b; } };

struct Vec {
  double x, y;
  Vec operator+(const Vec &o) const { return {x + o.x, y + o.y}; }
  Vec operator-() const { return {-x, -y}; }
  Vec &operator+=(const Vec &o) { x += o.x; y += o.y; return *this; }
  double operator[](int i) const { return i ? y : x; }
  double operator()(double t) const { return x * t + y; }
  double operator*() const { return x * y; }
  bool operator==(const Vec &o) const { return x == o.x && y == o.y; }
  explicit operator bool() const { return x != 0; }
  bool operator!() const { return x == 0; }
};
Vec operator*(const Vec &v, double k) { return {v.x * k, v.y * k}; }
Vec operator*(double k, const Vec &v) { return {v.x * k, v.y * k}; }
bool operator<(const Vec &a, const Vec &b) { return a.x < b.x; }
struct Small { int a; int operator+(int n) const { return a + n; } Small &operator++() { ++a; return *this; } int operator++(int) { return a++; } };
struct Ptr { Vec *p; Vec *operator->() const { return p; } Vec &operator*() const { return *p; } };
struct Mixed { int i; double d; };
double take(Mixed m) { return m.i + m.d; }
Vec give(int n) { return {double(n), 1}; }
Mixed mixed(int n) { return {n, 0.5}; }
std::string greet(const std::string &who) { return "hello " + who; }
struct Big { long a[5]; };
Big big(int n) { return {{n, n + 1, 0, 0, 0}}; }
long take_big(Big b) { return b.a[0] + b.a[1]; }

int over(int) { return 1; }
int over(double) { return 2; }
int over(const char *) { return 3; }
int over(int, int) { return 4; }
int over(unsigned long) { return 5; }
int over(geo::Shape *) { return 6; }
int over(const geo::Shape &) { return 7; }
int over(char) { return 8; }
int over(float) { return 9; }

template <typename T> struct Box { T value; T get() const { return value; } template <class U> T plus(U u) const { return value + u; } static int made; };
template <typename T> int Box<T>::made = 4;
template <typename T, int N> struct Fixed { T data[N]; int size() const { return N; } T &operator[](int i) { return data[i]; } };
template <typename T> T largest(T a, T b) { return a < b ? b : a; }

struct Task {
  struct promise_type {
    int current = 0;
    Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int v) { current = v; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};
volatile int sink;
__attribute__((noinline)) void look() { sink = sink + 1; }
Task counter(int from, int to) {
  int local = 100;
  for (int i = from; i < to; ++i) { local += i; look(); co_yield i; }
}
struct Counter {
  int n = 5;
  static int shared_count;
  int add(int k) { int old = n; n += k; look(); return old; }
  int with_lambda(int k) { auto f = [this, k](int m) { look(); return n + k + m; }; return f(1); }
};
int Counter::shared_count = 8;
using namespace geo;
int global = 5;
union Either { int i; float f; };
namespace geo { inline namespace newest { struct Latest { int n = 8; }; } }
geo::Latest latest;
union re_syntax_options { int i; char c[3]; }; // the C library has a variable of this name
re_syntax_options option;

int main(int argc, char **argv) {
  Square sq(4); Shape *sp = &sq; Shape &sr = sq; Colored *cp = &sq; Shape plain(3);
  const Shape &csr = sq;
  Square *sqp = &sq;
  VBoth vb; VBase *vbp = &vb; VLeft *vlp = &vb;
  Vec a{1, 2}, b{3, 4}; Small sm{5}; Ptr ptr{&a};
  Mixed mx{2, 0.25};
  Color color = Color::green; Plain pl = two; Shape::Kind kind = Shape::small;
  Box<int> bi{7}; Box<double> bd{2.5}; Fixed<int, 3> fx{{1, 2, 3}}; Box<std::string> bs{"boxed"};
  int captured = 11; int by_ref = 22;
  auto lambda = [captured, &by_ref](int n) { return captured + by_ref + n; };
  auto generic = [](auto x) { return x + 1; };
  int Square::*pm = &Square::side; int (Square::*pmf)() const = &Square::self; int (Shape::*pmv)() const = &Shape::area;
  int (*fp)(int) = free_function;
  int &ref = captured; int &&rref = 5 + argc; int *const cptr = &captured;
  const char *text = "text"; Big bg{{1, 2, 3, 4, 5}};
  std::string str = "world"; std::vector<Shape *> shapes{&sq, &plain}; std::unique_ptr<Shape> us(new Square(6));
  std::shared_ptr<Shape> ss = std::make_shared<Square>(7);
  Either either{1};
  void *vp = &sq; long num = 9; char ch = 'c'; float fl = 1.5f; bool yes = true; unsigned char uc = 200; unsigned long ul = 3;
  Counter ctr;
  int arr2[2][3] = {{1, 2, 3}, {4, 5, 6}};
  sink = over(1) + over(2.0) + over("x") + over(1, 2) + over(3ul) + over(&plain) + over(plain) + over('c') + over(1.5f);
  sink = largest(1, 2) + (int)largest(1.5, 2.5) + bi.get() + (int)bd.get() + bi.plus(1) + fx.size() + fx[1] + lambda(1) + generic(2) + (int)generic(2.5);
  sink = sq.scaled(2) + sq.hidden() + Shape::total(1) + geo::inner::deeper(2) + vb.sum() + vb.in_base() + (a + b == b) + (int)(a * 2)[0] + (int)(2 * a)(1) + (a < b) + (int)*a + (sm + 1);
  sink = !a + (bool)a + (int)ptr->x + (int)take(mx) + (int)give(1).x + mixed(1).i + greet(str).size() + big(1).a[0] + take_big(bg) + (int)(-a).x + bs.get().size();
  ++sm; sm++; a += b;
  look();
  ctr.add(4); ctr.with_lambda(3);
  auto task = counter(1, 3); task.handle.resume(); task.handle.resume();
  look();
  return sp->area() + (sq.*pm) + (sq.*pmf)() + fp(1) + (int)cp->tint();
}
