#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace bank {

enum Currency { euro, crown = 3 };

struct Amount {
    long cents = 0;
    Currency currency = euro;
    Amount &operator+=(const Amount &other) { cents += other.cents; return *this; }
};

class Account {
public:
    Account(const std::string &owner, long cents) : owner_(owner), number_(++last_)
    {
        balance_.cents = cents;
    }
    virtual ~Account() {}
    virtual double rate() const = 0;
    void deposit(const Amount &amount) { balance_ += amount; moves_.push_back(amount.cents); }
    void withdraw(long cents)
    {
        if (cents > balance_.cents)
            throw std::runtime_error("not enough: " + owner_);
        balance_.cents -= cents;
        moves_.push_back(-cents);
    }
    const std::string &owner() const { return owner_; }
    long cents() const { return balance_.cents; }

protected:
    std::string owner_;
    int number_;
    Amount balance_;
    std::vector<long> moves_;

private:
    static int last_;
};
int Account::last_ = 100;

class Savings : public Account {
public:
    Savings(const std::string &owner, long cents, double rate) : Account(owner, cents), rate_(rate) {}
    double rate() const override { return rate_; }

private:
    double rate_;
};

class Current final : public Account {
public:
    using Account::Account;
    double rate() const override { return 0; }
};

template <class T, class Compare>
const T &pick(const std::vector<T> &from, Compare better)
{
    const T *best = &from[0];
    for (const T &one : from)
        if (better(one, *best))
            best = &one;
    return *best;
}

template <typename K, typename V>
class Index {
public:
    void put(const K &key, V value) { table_[key] = value; ++puts_; }
    V get(const K &key) const
    {
        auto found = table_.find(key);
        return found == table_.end() ? V{} : found->second;
    }

private:
    std::map<K, V> table_;
    int puts_ = 0;
};

void transfer(Account &from, Account &to, long cents)
{
    from.withdraw(cents);
    Amount amount;
    amount.cents = cents;
    to.deposit(amount);
}

}  // namespace bank

static bank::Index<std::string, bank::Account *> directory;
const char *const title = "ledger";

int main(int argc, char **argv)
{
    bank::Savings ada("Ada", 10000, 0.02);
    bank::Current bob("Bob", 500);
    directory.put("ada", &ada);
    directory.put("bob", &bob);
    bank::Account *who = directory.get("bob");
    bank::transfer(ada, bob, 2500);
    std::vector<int> scores{3, 9, 4};
    int highest = bank::pick(scores, [](int a, int b) { return a > b; });
    std::string line = std::string(title) + ":" + who->owner();
    int failures = 0;
    try {
        bank::transfer(bob, ada, 999999);
    } catch (const std::runtime_error &error) {
        failures++;
        std::cerr << error.what() << '\n';
    }
    std::cout << line << ' ' << ada.cents() << ' ' << highest << '\n';
    return failures + argc - 2;
}
