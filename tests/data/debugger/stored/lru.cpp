#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace store {

enum Level { Cold = 1, Warm = 2, Hot = 4 };

struct Stats {
    std::uint32_t hits = 0;
    std::uint32_t misses = 0;
    double ratio() const { return hits + misses ? double(hits) / (hits + misses) : 0.0; }
};

struct Blob {
    std::string name;
    std::vector<unsigned char> bytes;
    Level level = Cold;
    static int alive;
    explicit Blob(std::string n, std::size_t size) : name(std::move(n)), bytes(size, 0xab) { ++alive; }
    ~Blob() { --alive; }
};
int Blob::alive = 0;

template <typename Key, typename Held, std::size_t Room = 3>
class Lru {
public:
    using Pair = std::pair<Key, Held>;
    using Where = typename std::list<Pair>::iterator;

    void put(const Key &key, Held held)
    {
        auto found = index_.find(key);
        if (found != index_.end()) {
            found->second->second = std::move(held);
            order_.splice(order_.begin(), order_, found->second);
            return;
        }
        if (order_.size() == Room)
            evict();
        order_.emplace_front(key, std::move(held));
        index_[key] = order_.begin();
    }

    std::optional<Held> get(const Key &key)
    {
        auto found = index_.find(key);
        if (found == index_.end()) {
            ++stats_.misses;
            return std::nullopt;
        }
        ++stats_.hits;
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
    }

    const Stats &stats() const { return stats_; }
    std::size_t size() const { return order_.size(); }

private:
    void evict()
    {
        Key victim = order_.back().first;
        index_.erase(victim);
        order_.pop_back();
        if (gone_)
            gone_(victim);
    }
    std::list<Pair> order_;
    std::unordered_map<Key, Where> index_;
    Stats stats_;

public:
    std::function<void(const Key &)> gone_;
};

template <typename T>
T clamp(T value, T low, T high)
{
    if (value < low)
        return low;
    if (high < value)
        return high;
    return value;
}

} // namespace store

using Shared = std::shared_ptr<store::Blob>;
using Cache = store::Lru<std::string, Shared>;

static std::vector<std::string> evicted;

static Shared make(const std::string &name, std::size_t size)
{
    Shared blob = std::make_shared<store::Blob>(name, size);
    blob->level = size > 4 ? store::Hot : store::Warm;
    return blob;
}

static int touch(Cache &cache, const char *key)
{
    std::optional<Shared> held = cache.get(key);
    if (!held)
        return -1;
    const Shared &blob = *held;
    return static_cast<int>(blob->bytes.size());
}

int main()
{
    Cache cache;
    store::Lru<int, long, 2> small;
    std::weak_ptr<store::Blob> watcher;
    std::unique_ptr<store::Blob> own = std::make_unique<store::Blob>("own", 2);
    cache.gone_ = [](const std::string &key) { evicted.push_back(key); };
    const char *keys[] = {"alpha", "beta", "gamma", "delta"};
    for (std::size_t i = 0; i < 4; ++i) {
        Shared blob = make(keys[i], i + 2);
        if (i == 0)
            watcher = blob;
        cache.put(keys[i], blob);
        small.put(int(i), long(i) * 10);
    }
    int got = touch(cache, "delta");
    int missed = touch(cache, "alpha");
    int again = touch(cache, "beta");
    int limited = store::clamp(got, 0, 3);
    double fraction = store::clamp(cache.stats().ratio(), 0.25, 0.5);
    bool expired = watcher.expired();
    std::cout << got << ' ' << missed << ' ' << again << ' ' << limited << ' ' << fraction << ' '
              << expired << ' ' << evicted.size() << ' ' << own->name << '\n';
    own.reset();
    return store::Blob::alive;
}
