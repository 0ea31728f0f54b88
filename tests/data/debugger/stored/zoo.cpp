#include <array>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zoo {
namespace detail {
int visits = 3;
inline int bump(int by = 1) { return visits += by; }
}

struct Place {
    int x = 0;
    int y = 0;
    Place operator-(const Place &other) const { return {x - other.x, y - other.y}; }
    bool operator<(const Place &other) const { return x < other.x; }
};

class Animal {
public:
    explicit Animal(std::string name, int legs = 4) : name_(std::move(name)), legs_(legs) {}
    virtual ~Animal() = default;
    virtual std::string sound() const = 0;
    int legs() const { return legs_; }
    const std::string &name() const { return name_; }
    Animal &move(Place to) { place_ = to; return *this; }
    static constexpr int limit = 10;

protected:
    std::string name_;
    int legs_;
    Place place_;
};

class Swimmer {
public:
    virtual ~Swimmer() = default;
    virtual int depth() const { return depth_; }
    int depth_ = 5;
};

class Dog : public Animal {
public:
    using Animal::Animal;
    std::string sound() const override { return "woof"; }
};

class Duck : public Animal, public Swimmer {
public:
    explicit Duck(std::string name) : Animal(std::move(name), 2) {}
    std::string sound() const override { return "quack"; }
    int depth() const override { return depth_ * 2; }
};

template <typename T, int N>
class Ring {
public:
    void push(const T &value) { values_[next_++ % N] = value; }
    T &operator[](int index) { return values_[index]; }
    int size() const { return next_ < N ? next_ : N; }

private:
    T values_[N] = {};
    int next_ = 0;
};

template <typename F>
int apply(F function, int value)
{
    return function(value);
}

int count(const std::vector<std::unique_ptr<Animal>> &animals)
{
    int legs = 0;
    for (auto &animal : animals)
        legs += animal->legs();
    return legs;
}

class Error {
public:
    explicit Error(int code) : code(code) {}
    int code;
};

void fail(int code)
{
    if (code > 2)
        throw Error(code);
}
}  // namespace zoo

union Bits {
    float real;
    unsigned whole;
};

int main()
{
    std::vector<std::unique_ptr<zoo::Animal>> animals;
    animals.push_back(std::make_unique<zoo::Dog>("Rex"));
    animals.push_back(std::make_unique<zoo::Duck>("Don"));
    animals[0]->move({3, 4});
    zoo::Duck *duck = static_cast<zoo::Duck *>(animals[1].get());
    zoo::Swimmer *swimmer = duck;
    zoo::Ring<int, 4> ring;
    for (int i = 0; i < 6; i++)
        ring.push(i * 11);
    std::set<std::string> names{"b", "a", "c"};
    std::unordered_map<int, const char *> codes{{7, "seven"}};
    std::list<int> chain{1, 2, 3};
    std::deque<short> line{4, 5};
    std::optional<int> maybe = 9, never;
    std::tuple<int, char, double> triple{1, 'q', 2.5};
    std::pair<std::string, int> pair{"key", 12};
    std::array<int, 3> fixed{{7, 8, 9}};
    zoo::Place here{5, 6}, there{2, 2};
    zoo::Place gap = here - there;
    Bits bits{1.0f};
    int legs = zoo::count(animals);
    int factor = 3;
    auto scale = [factor](int value) { return value * factor; };
    std::function<int(int)> wrapped = scale;
    int scaled = zoo::apply(scale, legs) + wrapped(2) + zoo::detail::bump();
    int zoo::Place::*member = &zoo::Place::y;
    try {
        zoo::fail(gap.*member);
    } catch (const zoo::Error &error) {
        scaled += error.code;
    }
    std::cout << swimmer->depth() << ' ' << scaled << ' ' << ring.size() << std::endl;
    return bits.whole == 0;
}
