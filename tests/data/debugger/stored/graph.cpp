#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <limits>
#include <list>
#include <memory>
#include <numeric>
#include <queue>
#include <stack>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace graph {

using Weight = double;
constexpr Weight infinite = std::numeric_limits<Weight>::infinity();

struct Edge {
    int to;
    Weight weight;
    std::string label;
};

template <typename Name>
class Graph {
public:
    int add(const Name &name)
    {
        auto found = numbers_.find(name);
        if (found != numbers_.end())
            return found->second;
        int number = static_cast<int>(names_.size());
        names_.push_back(name);
        edges_.emplace_back();
        numbers_.emplace(name, number);
        return number;
    }
    void join(const Name &from, const Name &to, Weight weight, std::string label = "")
    {
        int a = add(from), b = add(to);
        edges_[a].push_back({b, weight, std::move(label)});
        ++joins_;
    }
    const std::list<Edge> &from(int node) const { return edges_.at(node); }
    const Name &name(int node) const { return names_[node]; }
    std::size_t size() const { return names_.size(); }

private:
    std::vector<Name> names_;
    std::vector<std::list<Edge>> edges_;
    std::unordered_map<Name, int> numbers_;
    unsigned joins_ : 12 = 0;
    bool frozen_ : 1 = false;
};

class Search {
public:
    virtual ~Search() {}
    virtual std::vector<int> run(const Graph<std::string> &graph, int start) = 0;
    int steps() const { return steps_; }

protected:
    int steps_ = 0;
};

class Depth : public Search {
public:
    std::vector<int> run(const Graph<std::string> &graph, int start) override
    {
        std::vector<int> order;
        std::unordered_set<int> seen;
        std::stack<int> open;
        open.push(start);
        while (!open.empty()) {
            int node = open.top();
            open.pop();
            if (!seen.insert(node).second)
                continue;
            order.push_back(node);
            ++steps_;
            for (const Edge &edge : graph.from(node))
                open.push(edge.to);
        }
        return order;
    }
};

class Shortest : public Search {
public:
    std::vector<int> run(const Graph<std::string> &graph, int start) override
    {
        distance_.assign(graph.size(), infinite);
        using Item = std::pair<Weight, int>;
        std::priority_queue<Item, std::vector<Item>, std::greater<Item>> open;
        distance_[start] = 0;
        open.push({0, start});
        while (!open.empty()) {
            auto [far, node] = open.top();
            open.pop();
            if (far > distance_[node])
                continue;
            ++steps_;
            for (const Edge &edge : graph.from(node)) {
                Weight next = far + edge.weight;
                if (next < distance_[edge.to]) {
                    distance_[edge.to] = next;
                    open.push({next, edge.to});
                }
            }
        }
        std::vector<int> order(graph.size());
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [this](int a, int b) { return distance_[a] < distance_[b]; });
        return order;
    }
    Weight distance(int node) const
    {
        if (node < 0 || node >= static_cast<int>(distance_.size()))
            throw std::out_of_range("no such node");
        return distance_[node];
    }

private:
    std::vector<Weight> distance_;
};

static long checksum(const std::vector<int> &order)
{
    long sum = 0;
    int place = 1;
    for (int node : order)
        sum += node * place++;
    return sum;
}

} // namespace graph

static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main()
{
    graph::Graph<std::string> roads;
    roads.join("A", "B", 4, "north");
    roads.join("A", "C", 1);
    roads.join("C", "B", 2, "bridge");
    roads.join("B", "D", 5);
    roads.join("C", "D", 8);
    std::vector<std::unique_ptr<graph::Search>> searches;
    searches.push_back(std::make_unique<graph::Depth>());
    searches.push_back(std::make_unique<graph::Shortest>());
    std::array<long, 2> sums{};
    for (std::size_t i = 0; i < searches.size(); ++i) {
        std::vector<int> order = searches[i]->run(roads, 0);
        sums[i] = graph::checksum(order);
    }
    auto *shortest = static_cast<graph::Shortest *>(searches[1].get());
    double last = shortest->distance(3);
    std::string status;
    try {
        shortest->distance(7);
    } catch (const std::out_of_range &range) {
        status = range.what();
    }
    int value = fib(6);
    std::cout << sums[0] << ' ' << sums[1] << ' ' << last << ' ' << status << ' ' << value << std::endl;
    return sums[0] == sums[1];
}
