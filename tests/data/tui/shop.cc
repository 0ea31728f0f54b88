// A sum that goes wrong: which call writes it?
#include <string>
#include <vector>

struct item {
    std::string name;
    int price;
};

struct shop {
    std::vector<item> items;
    int total = 0;
};

void add(shop &s, const std::string &name, int price)
{
    s.items.push_back({name, price});
    s.total += price;
}

void discount(shop &s, int percent)
{
    s.total -= s.total * percent; // of a hundred, it should be
}

int main()
{
    shop s;
    add(s, "bread", 3);
    add(s, "wine", 9);
    discount(s, 10);
    return s.total != 11;
}
