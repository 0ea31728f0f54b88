#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <stack>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

struct Point { int x, y; };
struct Order { std::string name; std::vector<int> items; int total; };
volatile int sink;
__attribute__((noinline)) void look() { sink = sink + 1; }
static int twice(int n) { return 2 * n; }
static void listed(std::initializer_list<int> il, std::span<int> sp, std::span<int, 3> fixed) { look(); sink = il.size() + sp.size() + fixed[0]; }

int main() {
  std::string empty, small = "abc", large(40, 'x'), odd("a\n\0b", 4);
  std::string_view view = "a view", no_view;
  std::vector<int> none, three{1, 2, 3};
  three.reserve(4);
  std::vector<std::string> words{"one", "a long string that is on the heap for sure"};
  std::vector<bool> bits{true, false, true};
  std::vector<Point> points{{1, 2}, {3, 4}};
  std::vector<std::vector<int>> nested{{1}, {2, 3}};
  std::map<int, std::string> names{{2, "two"}, {1, "one"}, {3, "three"}};
  std::map<std::string, int> counts{{"b", 2}, {"a", 1}};
  std::map<int, int> no_map;
  std::set<int> set{3, 1, 2};
  std::multimap<int, int> multi{{1, 2}, {1, 3}};
  std::multiset<int> mset{4, 4, 5};
  std::unordered_map<int, int> hashed{{5, 6}};
  std::unordered_map<std::string, Point> hpoints{{"p", {1, 2}}};
  std::unordered_set<int> hset{9};
  std::unordered_multimap<int, int> hmulti{{1, 2}};
  std::list<int> list{4, 5}, no_list;
  std::forward_list<int> fl{6, 7}, no_fl;
  std::deque<int> deque{7, 8, 9}, no_deque;
  std::deque<Point> dpoints{{1, 2}};
  std::unique_ptr<int> owner(new int(5)), nobody;
  std::unique_ptr<Point> powner(new Point{8, 9});
  std::unique_ptr<int[]> many(new int[3]{1, 2, 3});
  std::shared_ptr<Point> shared(new Point{1, 2}), second = shared, gone;
  std::shared_ptr<int> made = std::make_shared<int>(17);
  std::weak_ptr<Point> weak = shared, dead;
  { auto temporary = std::make_shared<Point>(); dead = temporary; }
  std::pair<int, std::string> pair{1, "p"};
  std::tuple<int, double, std::string> tup{1, 2.5, "t"};
  std::tuple<> no_tup;
  std::array<int, 3> arr{1, 2, 3};
  std::optional<int> some = 11, nothing;
  std::optional<std::string> text = "opt";
  std::variant<int, std::string, Point> var = std::string("in variant"), var0 = 3;
  std::any any = 42, no_any, any_s = std::string("any text"), any_p = Point{5, 6};
  std::bitset<10> bs(0x155);
  std::bitset<70> wide(3);
  std::function<int(int)> fn = twice, lam = [&](int n) { return n + three[0]; }, no_fn;
  std::filesystem::path path = "/usr/lib/x.so", rel = "name", no_path;
  std::chrono::seconds sec(5);
  std::chrono::milliseconds ms(1500);
  std::chrono::hours hours(2);
  std::chrono::duration<double> dsec(0.5);
  std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds> tp(std::chrono::seconds(1000));
  std::chrono::system_clock::time_point now{};
  std::chrono::steady_clock::time_point steady{};
  std::complex<double> z(1, -2);
  std::atomic<int> atom(7);
  std::atomic<bool> flag(true);
  std::stack<int> stack; stack.push(1); stack.push(2);
  std::queue<int> queue; queue.push(3);
  std::priority_queue<int> pq; pq.push(4); pq.push(9);
  std::reference_wrapper<int> ref(three[1]);
  auto vi = three.begin(); auto vci = three.cbegin(); ++vci;
  auto mi = names.find(2);
  auto si = set.begin();
  auto li = list.begin();
  auto fi = fl.begin();
  auto di = deque.begin(); ++di;
  auto hi = hashed.begin();
  auto si2 = small.begin();
  auto ve = three.end();
  auto ri = three.rbegin();
  Order o{"first", {1, 2}, 3}; Order *po = &o;
  Order &ro = o;
  std::string *ps = &small; std::vector<int> *pv = &three;
  std::wstring wide_s = L"wide";
  std::u16string u16 = u"six";
  std::u32string u32 = U"thirty";
  int plain[3] = {4, 5, 6};
  std::error_code ec;
  listed({1, 2, 3}, three, std::span<int, 3>(plain));
  look();
  sink = small.size() + large.size() + view.size() + words.size() + names.size() + set.size() + po->total + *owner + *many.get();
  sink = three.at(1) + three.front() + three.back() + words[0].length() + fn(2) + lam(1);
  return ve == vi || mi->first == 0 || *si == *li || fi == fl.end() || *di == hi->second || ri == three.rend() || si2 == small.end() ? 0 : 1;
}
