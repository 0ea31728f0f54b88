#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct Account {
    int number;
    std::string owner;
    std::vector<int> amounts;
    short rate;
};

int fee(int amount) {
    return amount / 50 + 1;
}

int charge(Account &account, int amount) {
    int charged = fee(amount);
    account.amounts.push_back(amount - charged);
    return charged;
}

int main(int argc, char **) {
    int total = 0;
    Account ada{7, "Ada", {}, 12};
    for (int i = 1; i <= 40; i++)
        total += charge(ada, i * 10);
    std::map<std::string, int> known{{"Ada", ada.number}};
    if (argc > 1)
        return known.at("Bob");
    printf("%d for %d\n", total, ada.number);
    return 0;
}
