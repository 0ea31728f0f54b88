#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace sim {

using Time = unsigned long;

enum Level { Low, Mid = 5, High };

class Event {
public:
    Event(Time at, std::string name) : at_(at), name_(std::move(name)) {}
    virtual ~Event() = default;
    virtual int run(int load) { return load + 1; }
    Time at() const { return at_; }
    const std::string &name() const { return name_; }

protected:
    Time at_;
    std::string name_;
};

class Burst : public Event {
public:
    Burst(Time at, int size) : Event(at, "burst"), size_(size) {}
    int run(int load) override
    {
        int after = load;
        for (int i = 0; i < size_; ++i)
            after += i;
        return after;
    }

private:
    int size_;
};

struct Later {
    bool operator()(const std::shared_ptr<Event> &a, const std::shared_ptr<Event> &b) const { return a->at() > b->at(); }
};

struct Stats {
    int runs = 0;
    double mean = 0.0;
    std::vector<int> loads;
    void add(int load)
    {
        ++runs;
        loads.push_back(load);
        mean += (load - mean) / runs;
    }
};

class Simulator {
public:
    void schedule(std::shared_ptr<Event> event)
    {
        known_.insert(event->name());
        queue_.push(std::move(event));
    }

    int run()
    {
        int load = 0;
        while (!queue_.empty()) {
            auto event = queue_.top();
            queue_.pop();
            now_ = event->at();
            load = event->run(load);
            stats_.add(load);
            if (load > limit)
                throw std::runtime_error("overload at " + std::to_string(now_));
        }
        return load;
    }

    const Stats &stats() const { return stats_; }
    static int limit;

private:
    std::priority_queue<std::shared_ptr<Event>, std::vector<std::shared_ptr<Event>>, Later> queue_;
    std::set<std::string> known_;
    Time now_ = 0;
    Stats stats_;
};

int Simulator::limit = 40;

template <class T, int N> struct Ring {
    T data[N];
    int used = 0;
    void push(T value) { data[used++ % N] = value; }
    T sum() const
    {
        T total{};
        for (const T &one : data)
            total += one;
        return total;
    }
};

int classify(Level level)
{
    switch (level) {
    case Low:
        return 0;
    case Mid:
        return 1;
    default:
        return 2;
    }
}

}  // namespace sim

static std::string join(const std::vector<std::string> &words, char by)
{
    std::string all;
    for (const auto &word : words) {
        if (!all.empty())
            all += by;
        all += word;
    }
    return all;
}

int main()
{
    sim::Simulator simulator;
    simulator.schedule(std::make_shared<sim::Event>(5, "tick"));
    simulator.schedule(std::make_shared<sim::Burst>(2, 4));
    simulator.schedule(std::make_shared<sim::Burst>(9, 9));
    std::string failure;
    try {
        simulator.run();
    } catch (const std::exception &error) {
        failure = error.what();
    }
    sim::Ring<int, 4> ring{};
    for (int i = 1; i <= 5; ++i)
        ring.push(i * 10);
    int ringed = ring.sum();
    std::vector<std::string> words{"alpha", "beta", "gamma"};
    std::string joined = join(words, '-');
    std::map<std::string, int> ages{{"ada", 36}, {"bob", 40}};
    std::vector<std::vector<int>> table{{1, 2}, {3}};
    std::unordered_set<int> unique{42};
    auto add = [ringed](int x) { return x + ringed; };
    std::vector<double> empty;
    int level = sim::classify(sim::Mid);
    long done = 0;
    std::thread worker([&done] { done = 7; });
    worker.join();
    const char *text = joined.c_str();
    std::printf("%s %d %s %d %d %ld %d\n", failure.c_str(), ringed, text, level, add(1), done,
                simulator.stats().runs);
    return 0;
}
