struct Empty {};
struct Made { Made() {} };
struct Used { };
struct OnlyStatic { static int x; };
int OnlyStatic::x = 3;
struct Func { int operator()(int a) const { return a; } };
struct Derived : Empty {};
struct Typed { typedef int num; };
int main() { Empty e; Made m; Used u1; Used u2(u1); Func f; Derived d; Typed t; OnlyStatic o; auto l = [](int x) { return x; }; auto l2 = [&e](int x) { return x; };
  return f(1) + l(2) + l2(3) + sizeof(e) + sizeof(m) + sizeof(u2) + sizeof d + sizeof t + sizeof o; }
