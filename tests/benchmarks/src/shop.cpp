// A program of C++ as people debug them: containers, strings, streams.
#include <iostream>
#include <map>
#include <string>
#include <vector>

struct Item {
    std::string name;
    int count;
};

class Shop {
    std::map<std::string, int> stock;

  public:
    void put(const Item &item) { stock[item.name] += item.count; }
    int of(const std::string &name) const { return stock.at(name); }
};

int main()
{
    Shop shop;
    std::vector<Item> items{{"apple", 3}, {"pear", 4}};
    for (const Item &item : items)
        shop.put(item);
    std::cout << shop.of("pear") << std::endl;
}
