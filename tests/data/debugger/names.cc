#include <cstdio>
#include <string>
#include <vector>
enum Level { LOW, MIDDLE = 3, HIGH };
namespace park {
enum class Kind { Lion, Seal = 4 };
struct Named { int tag; union { int wide; short narrow; }; };
struct Point { double x, y; };
template <typename T> struct Box {
    T left, right;
    T sum() const { return left + right; }
    template <typename U> U as() const { return static_cast<U>(left); }
};
class List : public Named {
  public:
    explicit List(int count) : next(nullptr), places{} { tag = count; made++; }
    ~List() { next = nullptr; }
    List &operator+=(int more) { tag += more; return *this; }
    bool operator<(const List &other) const { return tag < other.tag; }
    bool operator<=(const List &other) const { return tag <= other.tag; }
    int operator()(int by) const { return tag * by; }
    int operator[](int at) const { return tag + at; }
    List *operator->() { return this; }
    explicit operator bool() const { return tag > 0; }
    void *operator new(size_t size) { return ::operator new(size); }
    void operator delete(void *at) { ::operator delete(at); }
    int push(int value) { held.push_back(value); return tag; }
    int push(double value) { held.push_back((int)value); return tag; }
    static int made;
    struct Inner { int depth; int dig(int by) { return depth + by; } };
    List *next;
    std::vector<int> held;
    Point places[3];
    Inner inner{2};
};
int List::made = 1;
template <typename K, typename V> struct Pair { K key; V value; V get() { return value; } };
template <int N> int times(int by) { return N * by; }
template <typename T> T biggest(T a, T b) { return a > b ? a : b; }
inline namespace v2 { int fresh(int n) { return n + 2; } }
int visitors = 7;
}
namespace { int hidden_count = 2; int hidden_step(int n) { return n + hidden_count; } }
std::string operator*(const std::string &text, int n) { std::string all; while (n-- > 0) all += text; return all; }
static int counted, countless = 1;
using Cage = park::Box<int>;
typedef unsigned long cage_number;
int work(park::List &list, int depth)
{
    static int times_called;
    auto twice = [&](int by) { return by * 2 + depth; };
    times_called++;
    list += twice(depth);
    return list(2) + counted;
}
int main(int argc, char **argv)
{
    park::List list(argc), other(2);
    park::List *where = &list;
    park::List *made = new park::List(5);
    Cage box{1, 2};
    park::Box<park::Box<double>> deep{};
    park::Pair<std::string, std::vector<int>> pair{"one", {1, 2}};
    Level level = HIGH;
    park::Kind kind = park::Kind::Seal;
    cage_number number = 9;
    int grid[2][3] = {{1, 2, 3}, {4, 5, 6}};
    list.next = &other;
    int got = work(*where, 3) + box.sum() + (int)box.as<long>() + park::times<4>(2);
    got += pair.get().size() + (list < other) + (list <= other) + list[1] + list->push(2);
    got += list.push(2.5) + park::biggest(1, 2) + (int)park::biggest<double>(2, 1);
    got += park::fresh(1) + hidden_step(2) + list.inner.dig(1) + (list ? 1 : 0);
    std::string text = pair.key * 2;
    std::printf("%d %d %d %d %lu %zu %g\n", got, grid[1][2], level, (int)kind, number, text.size(), deep.left.left);
    delete made;
    return got + countless == 0;
}
