#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace hotel {

enum class Bed { Single, Double, King };
enum Flags : unsigned { None = 0, Smoking = 1, Pets = 2, View = 4 };

struct Date {
    unsigned short year;
    unsigned char month, day;
    bool operator<(const Date &other) const
    {
        return year != other.year ? year < other.year
                                  : month != other.month ? month < other.month : day < other.day;
    }
};

class Guest {
public:
    Guest(std::string name, int age) : name_(std::move(name)), age_(age) { ++count; }
    Guest(const Guest &other) : name_(other.name_), age_(other.age_) { ++count; }
    virtual ~Guest() { --count; }
    virtual double discount() const { return 0; }
    const std::string &name() const { return name_; }
    int age() const { return age_; }
    static int count;

protected:
    std::string name_;
    int age_;
};
int Guest::count = 0;

class Member : public Guest {
public:
    Member(std::string name, int age, int points) : Guest(std::move(name), age), points_(points) {}
    double discount() const override { return points_ > 100 ? 0.2 : 0.1; }

private:
    int points_;
};

class Full : public std::runtime_error {
public:
    explicit Full(int room) : std::runtime_error("room is taken"), room_(room) {}
    int room() const noexcept { return room_; }

private:
    int room_;
};

struct Room {
    int number;
    Bed bed;
    unsigned flags;
    double price;
    union {
        long code;
        unsigned char bytes[8];
    } key;
};

template <typename T, int N>
class History {
public:
    void add(const T &value)
    {
        items_[next_ % N] = value;
        ++next_;
    }
    T last(int back = 0) const { return items_[(next_ - 1 - back) % N]; }
    int size() const { return next_ < N ? next_ : N; }

private:
    T items_[N] = {};
    int next_ = 0;
};

class Desk {
public:
    explicit Desk(std::vector<Room> rooms) : rooms_(std::move(rooms)) {}
    double book(int number, std::shared_ptr<Guest> guest, Date from, int nights);
    const Room *find(int number) const
    {
        auto at = std::find_if(rooms_.begin(), rooms_.end(),
                               [number](const Room &room) { return room.number == number; });
        return at == rooms_.end() ? nullptr : &*at;
    }
    using Stay = std::pair<Date, int>;
    std::size_t taken() const { return stays_.size(); }

private:
    std::vector<Room> rooms_;
    std::map<int, std::pair<std::shared_ptr<Guest>, Stay>> stays_;
    std::set<std::string> names_;
    History<double, 4> totals_;
    std::deque<int> order_;
};

double Desk::book(int number, std::shared_ptr<Guest> guest, Date from, int nights)
{
    const Room *room = find(number);
    if (!room)
        throw std::invalid_argument("no room " + std::to_string(number));
    if (stays_.count(number))
        throw Full(number);
    double total = room->price * nights * (1 - guest->discount());
    stays_[number] = {guest, {from, nights}};
    names_.insert(guest->name());
    totals_.add(total);
    order_.push_front(number);
    return total;
}

static std::string label(const Guest &guest)
{
    std::ostringstream out;
    out << guest.name() << '/' << guest.age();
    return out.str();
}

} // namespace hotel

static int sum(int first, int last)
{
    int total = 0;
    for (int i = first; i <= last; ++i) {
        total += i;
    }
    return total;
}

int main(int argc, char **argv)
{
    using namespace hotel;
    std::vector<Room> rooms = {
        {101, Bed::Single, Smoking, 49.5, {1}},
        {102, Bed::Double, Pets | View, 80, {0x1122334455667788}},
        {201, Bed::King, None, 120.25, {-1}},
    };
    Desk desk(rooms);
    auto ann = std::make_shared<Guest>("Ann", 31);
    std::shared_ptr<Guest> bob = std::make_shared<Member>("Bob", 44, 150);
    Guest *raw = bob.get();
    double paid = 0;
    int trouble = 0;
    struct {
        int number;
        int nights;
    } wanted[] = {{101, 2}, {102, 3}, {101, 1}, {999, 1}};
    for (auto &each : wanted) {
        try {
            paid += desk.book(each.number, each.nights > 2 ? bob : ann, {2024, 5, 17}, each.nights);
        } catch (const Full &full) {
            trouble += full.room();
        } catch (const std::exception &other) {
            std::printf("%s\n", other.what());
            --trouble;
        }
    }
    std::string text = label(*raw);
    int numbers = sum(1, 5);
    std::printf("%s %.2f %d %d %zu %d\n", text.c_str(), paid, trouble, numbers, desk.taken(), Guest::count);
    return 0;
}
