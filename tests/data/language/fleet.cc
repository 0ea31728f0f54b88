#include <any>
#include <array>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace fleet {
enum class Fuel : std::uint8_t { none, diesel = 3, electric = 7 };
enum Flags { clean = 0, dirty = 1, broken = 2, late = 4 };
enum Signed : signed char { minus = -1, zero, plus };
using Id = unsigned short;
typedef int Row[4];
struct Engine {
  Fuel fuel = Fuel::diesel;
  unsigned cylinders : 4 = 6;
  signed tilt : 3 = -2;
  bool turbo : 1 = true;
  Flags flags = Flags(dirty | late);
  union { int torque = 300; float ratio; };
  struct { short a = 1, b = 2; } gears;
  Engine() = default;
  explicit Engine(unsigned n) : cylinders(n) {}
  unsigned size() const { return cylinders; }
  static Engine *last;
  static const int limit = 12;
  static inline double scale = 2.5;
  class Part { public: int number = 41; struct Bolt { char kind = 'm'; int width = 8; } bolt; };
  Part part;
};
Engine *Engine::last = nullptr;
class Vehicle {
public:
  Vehicle(const char *name, Id id) : name_(name), id_(id) {}
  virtual ~Vehicle() = default;
  virtual int wheels() const = 0;
  virtual const Vehicle &self() const { return *this; }
  const char *name() const { return name_; }
  Id id() const { return id_; }
  int cost(int km) const { return km * wheels(); }
  int cost(double km, int extra = 1) const { return int(km) * wheels() + extra; }
  int cost(const char *text) const { return text[0]; }
  int cost(const Vehicle &other) const { return other.id_ + id_; }
  Vehicle *next = nullptr;
protected:
  const char *name_;
private:
  Id id_;
  friend struct Inspector;
};
struct Loaded { int load = 5; int weight() const { return load * 10; } virtual ~Loaded() = default; };
struct Truck : public Vehicle, private Loaded {
  Truck(Id id, int axles) : Vehicle("truck", id), axles(axles) {}
  int wheels() const override { return axles * 2; }
  const Truck &self() const override { return *this; }
  int axles;
  Engine engine{8};
  using Loaded::load;
};
struct Bike final : Vehicle { Bike() : Vehicle("bike", 2) {} int wheels() const override { return 2; } };
struct Base { int common = 1; int same = 10; static int shared; };
int Base::shared = 77;
struct Left : virtual Base { int left = 2; int same = 20; };
struct Right : virtual Base { int right = 3; };
struct Joined : Left, Right { int own = 4; virtual int total() { return common + left + right + own; } };
struct One { int n = 1; int only1 = 5; }; struct Two { int n = 2; int only2 = 6; };
struct Ambiguous : One, Two { int mine = 3; };
namespace {
int secret = 99;
struct Hidden { int h = 7; int get() const { return h; } };
int hide(int n) { return n + secret; }
}
inline namespace v2 { struct Versioned { int version = 2; }; int release = 22; }
namespace deep::deeper { int level = 3; struct Node { Node *next; int value; }; template <class T> T twice(T t) { return t + t; } }
}

template <typename T, int N = 3> struct Grid {
  T cells[N][N]{};
  static constexpr int side = N;
  T &operator()(int r, int c) { return cells[r][c]; }
  T sum() const { T all{}; for (auto &row : cells) for (auto c : row) all += c; return all; }
  template <typename U> struct Rebound { U u; };
  Rebound<char> rebound{'r'};
};
template <> struct Grid<bool, 1> { bool only = true; };
template <fleet::Fuel F> struct Tank { int litres = 40; static const fleet::Fuel fuel = F; };
template <char C, bool B, long L> struct Tagged { int t = C + B + L; };
template <typename... Ts> struct Pack { std::tuple<Ts...> all; static constexpr int count = sizeof...(Ts); };
template <template <class, class...> class C, class T> struct Holds { C<T> held; };
template <class D> struct Crtp { int plain = 3; int call() { return static_cast<D *>(this)->impl(); } };
struct Derived : Crtp<Derived> { int k = 9; int impl() { return k + plain; } };
template <int *P> struct Pointed { int value() { return *P; } int x = 1; };
template <class T> T maximum(T a, T b) { return a < b ? b : a; }
template <class T> int kind_of(T) { return sizeof(T); }

struct Money {
  long cents;
  Money(long c = 0) : cents(c) {}
  Money operator+(const Money &o) const { return Money(cents + o.cents); }
  Money operator-(const Money &o) const { return Money(cents - o.cents); }
  friend Money operator*(const Money &m, int n) { return Money(m.cents * n); }
  friend bool operator<(const Money &a, const Money &b) { return a.cents < b.cents; }
  bool operator==(const Money &o) const { return cents == o.cents; }
  bool operator>=(const Money &o) const { return cents >= o.cents; }
  Money &operator<<(int n) { cents += n; return *this; }
  long operator[](const char *unit) const { return unit[0] == 'c' ? cents : cents / 100; }
  long operator[](int at) const { return cents + at; }
  operator double() const { return cents / 100.0; }
  Money operator~() const { return Money(-cents); }
  long operator%(int n) const { return cents % n; }
  Money operator,(int n) const { return Money(n); }
};
Money operator""_eur(unsigned long long n) { return Money(n * 100); }
struct Pt { int x, y; auto operator<=>(const Pt &) const = default; };
union Word { unsigned u; float f; unsigned char b[4]; struct { short lo, hi; } half; };
struct Empty {};
struct Packed { char c; [[no_unique_address]] Empty e; int i; } __attribute__((packed));
struct Flex { int n; char tail[4]; };
struct Recursive { Recursive *self; int depth; Recursive &ref; };

struct Gen {
  struct promise_type {
    int value = 0;
    Gen get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int v) { value = v; return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> h;
};
Gen upto(int limit, std::string label) { for (int at = 1; at <= limit; ++at) co_yield at * 10; }

thread_local int per_thread = 31;
int counter = 4;
static double rates[3] = {0.5, 1.25, -3};
const char *const words[] = {"alpha", "be\"ta", nullptr};
constexpr int answer = 42;
int apply(int (*f)(int), int n) { return f(n); }
int increment(int n) { return n + 1; }
void nothing() {}
char shift(char c) { return c + 1; }
float halve(float f) { return f / 2; }
bool negate(bool b) { return !b; }
const char *label(int n) { return n ? "yes" : "no"; }
Pt mirror(Pt p) { return {p.y, p.x}; }
fleet::Fuel refuel(fleet::Fuel f) { return f == fleet::Fuel::none ? fleet::Fuel::electric : fleet::Fuel::none; }
int sum_all(int n, ...) { return n; }
int &refer() { return counter; }
volatile int sink;
using namespace std::literals;
using fleet::Truck;
namespace fd = fleet::deep::deeper;
__attribute__((noinline)) void look() { sink = sink + 1; }

namespace fleet {
struct Inspector {
  int seen = 0;
  std::vector<int> log;
  static int made;
  int inspect(const Vehicle &v, int depth) {
    struct Local { int a; double b; } local{depth, 0.5};
    auto inner = [this, &v, local](int more) { auto nested = [&] { look(); return seen + local.a + more; }; return nested() + v.id_; };
    static int times = 6;
    ++times;
    {
      int depth = 100;
      seen += depth;
      look();
    }
    return inner(3);
  }
};
int Inspector::made = 15;
}

int main(int argc, char **argv) {
  using namespace fleet;
  Truck truck(17, 3); Bike bike; Vehicle *vehicle = &truck, *other = &bike; Vehicle &vref = bike; const Vehicle *cv = &truck;
  Loaded *loaded = (Loaded *)&truck; truck.next = &bike; Engine::last = &truck.engine;
  Joined joined; Left *left = &joined; Base *vbase = &joined; Right &right = joined; Ambiguous amb;
  Hidden hidden; Versioned versioned; fd::Node n2{nullptr, 2}, n1{&n2, 1};
  Engine engine; Engine::Part::Bolt bolt; Fuel fuel = Fuel::electric; Flags flags = Flags(dirty | late), odd = Flags(16), none = clean; Signed sg = minus;
  Fuel wild = Fuel(9);
  Grid<int> grid; grid(1, 2) = 5; grid(0, 0) = -1; Grid<double, 2> dgrid; Grid<bool, 1> bgrid; Grid<int>::Rebound<float> reb{1.5f};
  Tank<Fuel::diesel> tank; Tagged<'x', true, -5> tagged; Pack<int, char, std::string> pack{{1, 'c', "three"}}; Pack<> nopack;
  Holds<std::vector, int> holds{{1, 2, 3}}; Derived derived; Pointed<&counter> pointed;
  Money price(1250), tax = 95_eur; Pt p{3, -4}, q{3, 5}; Word word; word.u = 0x3fc00000; Empty empty; Packed packed{'z', {}, 8}; Flex flex{3, "abc"};
  Recursive rec{&rec, 1, rec};
  int arr[5] = {1, 2, 3, 4, 5}; int m[2][3] = {{1, 2, 3}, {4, 5, 6}}; int (&aref)[5] = arr; int (*parr)[5] = &arr; int *ip = arr + 1; int **ipp = &ip;
  char buf[16] = "hello\tw\x01"; const char *cs = "caf\xc3\xa9"; const wchar_t *ws = L"wide"; const char16_t *us = u"u16"; char32_t c32 = U'\u2603'; char8_t c8 = u8'a'; wchar_t wc = L'w';
  unsigned char bytes[4] = {0, 127, 128, 255}; signed char sc = -5; char nul = 0; char ctl = '\n'; char hi = '\xff';
  short sh = -300; unsigned short us16 = 65535; long lg = -1; unsigned long ul = 1ul << 63; long long ll = 1ll << 40; __int128 big = (__int128)1 << 100;
  float fl = 0.1f; double dbl = 1e100, nan = __builtin_nan(""), inf = -__builtin_inf(), tiny = 5e-324, whole = 100; long double ld = 1.25L;
  bool yes = true, no = false; void *vp = &arr; const void *cvp = cs; const int ci = 7; volatile int vi = 8; int *const cip = &arr[2]; const int *pci = &ci; int &iref = arr[3]; int &&rref = argc + 8;
  std::nullptr_t np = nullptr; int *nullp = nullptr;
  int (*fp)(int) = increment; int (&fref)(int) = increment; void (*fn0)() = nothing; int (*table[2])(int) = {increment, nullptr};
  int Truck::*pm = &Truck::axles; int Pt::*py = &Pt::y; int (Vehicle::*pmf)() const = &Vehicle::wheels; int (Inspector::*pmi)(const Vehicle &, int) = &Inspector::inspect; int Pt::*npm = nullptr;
  auto add = [](int a, int b) { return a + b; }; int cap = 5; auto adder = [cap, &p](int n) mutable { return n + cap++ + p.x; }; auto generic = [](auto a, auto b) { return a + b; };
  auto [bx, by] = p; auto &[rx, ry] = q;
  std::string s = "text", sempty, slong(50, 'y'); std::string_view sv = s; std::vector<int> v{5, 6, 7}; std::vector<Pt> pts{{1, 2}, {3, 4}}; std::vector<std::string> vs{"a", "bb"}; std::vector<bool> vb{true, false};
  std::map<std::string, std::vector<int>> mp{{"one", {1}}, {"two", {2, 2}}}; std::set<int> st{2, 1}; std::unordered_map<std::string, int> um{{"k", 1}}; std::unordered_set<int> us_{8}; std::list<int> li{1, 2}; std::deque<int> dq{3, 4}; std::forward_list<int> fwd{9};
  std::pair<int, Pt> pr{1, {2, 3}}; std::tuple<int, std::string> tp{1, "t"}; std::array<Pt, 2> ar{{{1, 2}, {3, 4}}}; std::optional<Pt> op = Pt{7, 8}, nop; std::variant<int, std::string> var = "v"s; std::any any = 5; std::unique_ptr<Truck> ut = std::make_unique<Truck>(3, 4); std::shared_ptr<Vehicle> sp = std::make_shared<Bike>(); std::weak_ptr<Vehicle> wp = sp;
  std::function<int(int)> fun = increment; std::function<int(int, int)> funl = add; std::filesystem::path path = "/tmp/a.txt"; std::chrono::milliseconds ms = 1500ms; std::chrono::minutes mins = 3min;
  auto vit = v.begin() + 1; auto mit = mp.begin(); auto uit = um.begin(); auto sit = st.begin(); auto lit = li.begin(); auto dit = dq.begin(); auto rit = v.rbegin();
  std::span<int> span(v);
#ifndef _LIBCPP_VERSION
  auto view = v | std::views::drop(1); auto filtered = v | std::views::filter([](int n) { return n > 5; }); auto iota = std::views::iota(1, 4);
#endif
  std::vector<std::unique_ptr<Vehicle>> owned; owned.push_back(std::make_unique<Truck>(5, 6)); owned.emplace_back(std::make_unique<Bike>()); std::vector<Vehicle *> ptrs{&truck, &bike};
  std::map<int, std::map<int, Pt>> mm{{1, {{2, {3, 4}}}}}; std::vector<std::vector<int>> vv{{1}, {2, 3}}; std::reference_wrapper<int> rw(arr[1]); std::vector<Money> wallet{100, 250};
  Gen gen = upto(3, "lbl"); gen.h.resume(); gen.h.resume();
  Inspector inspector;
  sink = maximum(1, 2) + (int)maximum(1.5, 2.5) + kind_of('c') + kind_of(1.0) + kind_of(p) + fd::twice(2) + apply(increment, 1) + truck.cost(1) + truck.cost(1.5) + truck.cost("x") + truck.cost(bike) + bike.id() + hidden.get() + hide(1);
  sink = (price + tax - price * 2).cents + (price < tax) + (price == tax) + (price >= tax) + (price << 5).cents + price["c"] + price[1] + (int)(double)price + (~price).cents + price % 7 + (price, 3).cents + (p < q) + (p == q) + derived.call() + pointed.value() + joined.total() + grid.sum() + (int)dgrid.sum() + truck.load + engine.size() + add(1, 2) + adder(3) + generic(1, 2) + (int)generic(1.5, 2.0);
  sink = shift('a') + (int)halve(3) + negate(true) + *label(1) + mirror(p).x + (int)refuel(fuel) + sum_all(2, 1) + refer() + truck.self().axles + (vehicle->*pmf)() + truck.*pm + per_thread + s.size() + v.size() + fun(2) + funl(1, 2) + bx + ry;
  nothing();
  look();
  sink = inspector.inspect(truck, 2);
  return truck.wheels() + *vehicle->name();
}
