#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace shop {

enum class Kind { fruit, tool = 5, toy };

class Item {
public:
    Item(std::string name, double price, Kind kind = Kind::fruit)
        : name_(std::move(name)), price_(price), kind_(kind) { ++made; }
    virtual ~Item() { --made; }
    virtual double price() const { return price_; }
    virtual const char *label() const { return "item"; }
    const std::string &name() const { return name_; }
    Kind kind() const { return kind_; }
    static int made;

protected:
    std::string name_;
    double price_;
    Kind kind_;
};
int Item::made = 0;

class Discounted : public Item {
public:
    Discounted(std::string name, double price, int percent)
        : Item(std::move(name), price, Kind::tool), percent_(percent) {}
    double price() const override { return price_ * (100 - percent_) / 100; }
    const char *label() const override { return "discounted"; }

private:
    int percent_;
};

template <typename T>
struct Pair {
    T first;
    T second;
    T sum() const { return first + second; }
};

template <typename T>
T largest(const std::vector<T> &values)
{
    T best = values.front();
    for (const T &value : values)
        if (best < value)
            best = value;
    return best;
}

struct Money {
    long cents;
    Money operator+(const Money &other) const { return {cents + other.cents}; }
    bool operator==(const Money &other) const { return cents == other.cents; }
};

class Cart {
public:
    void add(std::shared_ptr<Item> item, int count)
    {
        items_.push_back(item);
        counts_[item->name()] += count;
    }
    double total() const
    {
        double sum = 0;
        for (const auto &item : items_)
            sum += item->price() * counts_.at(item->name());
        return sum;
    }
    void check(int limit)
    {
        if (static_cast<int>(items_.size()) > limit)
            throw std::length_error("cart is full");
    }
    std::vector<std::shared_ptr<Item>> items_;
    std::map<std::string, int> counts_;
};

int area(int side) { return side * side; }
int area(int width, int height) { return width * height; }
double area(double radius) { return 3.0 * radius * radius; }

}  // namespace shop

using shop::Cart;
static shop::Pair<int> sizes{3, 4};
shop::Money wallet{1250};

int main()
{
    Cart cart;
    cart.add(std::make_shared<shop::Item>("apple", 0.5), 4);
    cart.add(std::make_shared<shop::Discounted>("hammer", 20.0, 25), 1);
    std::vector<int> numbers{4, 8, 15, 16, 23, 42};
    std::string greeting = "welcome";
    const std::string &alias = greeting;
    shop::Item *first = cart.items_[1].get();
    int best = shop::largest(numbers);
    double total = cart.total();
    auto twice = [&best](int by) { return best * by; };
    int more = twice(2) + sizes.sum() + shop::area(3) + shop::area(2, 5);
    shop::Money paid = wallet + shop::Money{50};
    std::cout << greeting << ' ' << total << ' ' << more << ' ' << paid.cents << alias.size() << '\n';
    try {
        cart.check(1);
    } catch (const std::exception &error) {
        std::cout << "error: " << error.what() << '\n';
    }
    return shop::area(1.0) > 2 ? first->label()[0] == 'd' : 0;
}
