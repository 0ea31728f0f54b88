#include <atomic>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace relay {

enum class Leg { Start, Middle = 5, Last };

struct Baton {
    int number;
    std::string colour;
    std::atomic<int> touched{0};
};

class Runner {
public:
    Runner(int id, std::string name) : id_(id), name_(std::move(name)) {}
    virtual ~Runner() = default;
    virtual int pace(Leg leg) const { return 10 + static_cast<int>(leg); }
    int id() const { return id_; }
    const std::string &name() const { return name_; }
    static int count;

protected:
    int id_;
    std::string name_;
};

int Runner::count = 0;

class Sprinter : public Runner {
public:
    using Runner::Runner;
    int pace(Leg leg) const override { return Runner::pace(leg) / 2; }
    double boost = 1.25;
};

template <typename T>
class Track {
public:
    explicit Track(int lanes) : lanes_(lanes) {}
    void note(const std::string &who, T value)
    {
        std::lock_guard<std::mutex> guard(lock_);
        results_[who].push_back(value);
        ++notes_;
    }
    int notes() const { return notes_; }
    T sum(const std::string &who) const
    {
        T all{};
        for (const T &one : results_.at(who))
            all += one;
        return all;
    }

private:
    mutable std::mutex lock_;
    std::map<std::string, std::vector<T>> results_;
    int lanes_;
    int notes_ = 0;
};

std::atomic<long> distance{0};
std::atomic<bool> finished{false};
thread_local int laps = 0;

}  // namespace relay

using relay::Leg;

static std::mutex turn_lock;
static std::condition_variable turn_changed;
static int turn = 0;

static void hand_over(const relay::Runner &runner, relay::Baton &baton, relay::Track<int> &track,
                      Leg leg)
{
    int time = runner.pace(leg);
    baton.touched.fetch_add(1);
    relay::distance += 100;
    relay::laps++;
    track.note(runner.name(), time);
}

static void run_leg(const relay::Runner *runner, relay::Baton *baton, relay::Track<int> *track)
{
    for (Leg leg : {Leg::Start, Leg::Middle}) {
        std::unique_lock<std::mutex> lock(turn_lock);
        turn_changed.wait(lock, [&] { return turn % 2 == runner->id(); });
        hand_over(*runner, *baton, *track, leg);
        turn++;
        turn_changed.notify_all();
    }
}

int main()
{
    relay::Track<int> track(4);
    relay::Baton baton{7, "red"};
    std::vector<std::unique_ptr<relay::Runner>> runners;
    runners.push_back(std::make_unique<relay::Runner>(0, "olga"));
    runners.push_back(std::make_unique<relay::Sprinter>(1, "piet"));
    relay::Runner::count = static_cast<int>(runners.size());
    std::vector<std::thread> threads;
    for (const auto &runner : runners)
        threads.emplace_back(run_leg, runner.get(), &baton, &track);
    for (auto &thread : threads)
        thread.join();
    relay::finished = true;
    std::function<int(int)> twice = [&](int x) { return x * 2 + track.notes(); };
    std::cout << "distance " << relay::distance << ", " << twice(4) << "\n";
    return track.sum("olga") == 25 ? 0 : 1;
}
