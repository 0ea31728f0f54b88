#include <array>
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stack>
#include <queue>
#include <forward_list>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>
struct Shape { std::string name; int sides; int twice() const { return sides * 2; } int plus(int n) { return sides + n; } };
struct Store {
    std::vector<Shape> shapes{{"box", 4}, {"tri", 3}};
    std::map<std::string, std::vector<int>> m{{"one", {1}}, {"two", {1, 2}}};
    std::unique_ptr<Shape> ptr = std::make_unique<Shape>(Shape{"owned", 5});
    std::shared_ptr<Shape> shared = std::make_shared<Shape>(Shape{"shared", 6});
    std::shared_ptr<int> none;
    std::deque<int> d{7, 8, 9};
    std::list<std::string> l{"a", "b"};
    std::set<int> set{3, 1, 2};
    std::unordered_map<int, std::string> um{{5, "five"}};
    std::unordered_set<std::string> us{"only"};
    std::optional<int> some = 11;
    std::optional<std::string> text = "opt";
    std::optional<int> nothing;
    std::string_view view = "a view";
    std::tuple<int, std::string, double> tup{1, "t", 2.5};
    std::array<int, 3> arr{4, 5, 6};
    std::vector<bool> bits{true, false, true};
    std::map<int, int> numbers{{1, 10}, {2, 20}};
    std::vector<std::vector<int>> deep{{1}, {2, 3}};
    std::vector<int> empty;
    std::stack<int> stack{{1, 2}};
    std::queue<int> queue{{3}};
    std::forward_list<int> fl{1, 2};
    std::pair<int, std::string> pr{1, "p"};
    std::vector<std::unique_ptr<Shape>> owners;
    const char *raw = "raw";
};
int look(const std::string &key, Store &s, std::vector<int> v, std::string by) { return (int)key.size() + (int)s.shapes.size() + (int)v.size() + (int)by.size(); }
int main()
{
    Store s;
    s.owners.push_back(std::make_unique<Shape>(Shape{"first", 1}));
    std::vector<int>::iterator it = s.empty.begin();
    int n = look("key0", s, {1, 2}, "by value") + s.shapes[0].twice() + s.shapes[0].plus(1);
    std::printf("%d %zu\n", n, s.m.size() + (it == s.empty.end()));
    return 0;
}
