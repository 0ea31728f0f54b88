#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

namespace mill {

enum Grain { WHEAT = 1, RYE, OATS };

struct Sack {
    int serial;
    Grain grain;
    std::optional<double> weight;
    std::array<short, 3> marks;
};

class Hopper {
public:
    explicit Hopper(std::string name) : name_(std::move(name)) {}
    void fill(Sack sack)
    {
        std::lock_guard<std::mutex> guard(lock_);
        sacks_.push_back(sack);
        total_ += sack.weight.value_or(1.0);
    }
    std::optional<Sack> draw()
    {
        std::lock_guard<std::mutex> guard(lock_);
        if (sacks_.empty())
            return std::nullopt;
        Sack first = sacks_.front();
        sacks_.pop_front();
        return first;
    }
    double total() const { return total_; }
    size_t waiting() const { return sacks_.size(); }

private:
    std::mutex lock_;
    std::string name_;
    std::deque<Sack> sacks_;
    double total_ = 0;
};

struct Stone {
    virtual ~Stone() = default;
    virtual double grind(const Sack &sack) = 0;
    unsigned turns = 0;
};

struct Coarse : Stone {
    double grind(const Sack &sack) override
    {
        turns += 2;
        return sack.weight.value_or(1.0) * 0.9;
    }
};

struct Fine : Stone {
    double loss = 0.25;
    double grind(const Sack &sack) override
    {
        turns += 5;
        return sack.weight.value_or(1.0) * (1 - loss);
    }
};

std::atomic<int> ground{0};
std::atomic<bool> open_{true};
thread_local double mine = 0;

}  // namespace mill

static mill::Hopper hopper("north");
static pthread_barrier_t bell;
static double flour[3];

static double grind_one(mill::Stone *stone, const mill::Sack &sack, int worker)
{
    double got = stone->grind(sack);
    mill::mine += got;
    flour[worker] += got;
    mill::ground++;
    return got;
}

static void worker(int number, std::unique_ptr<mill::Stone> stone)
{
    pthread_setname_np(pthread_self(), number ? "fine" : "coarse");
    for (int shift = 0; shift < 2; shift++) {
        for (int turn = 0; turn < 2; turn++) {
            pthread_barrier_wait(&bell);
            if (turn == number) {
                auto sack = hopper.draw();
                if (sack)
                    grind_one(stone.get(), *sack, number);
            }
        }
    }
    pthread_barrier_wait(&bell);
}

int main()
{
    pthread_barrier_init(&bell, nullptr, 3);
    for (int i = 0; i < 5; i++)
        hopper.fill({i, static_cast<mill::Grain>(i % 3 + 1), i ? std::optional<double>(i * 2.5) : std::nullopt, {1, 2, 3}});
    std::thread first(worker, 0, std::make_unique<mill::Coarse>());
    std::thread second(worker, 1, std::make_unique<mill::Fine>());
    for (int i = 0; i < 5; i++)
        pthread_barrier_wait(&bell);
    first.join();
    second.join();
    mill::open_ = false;
    std::vector<double> all(flour, flour + 3);
    return all[0] + all[1] > 5 ? 0 : 1;
}
