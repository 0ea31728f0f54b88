#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>
struct point { int x, y; };
struct order { std::string name; std::vector<int> items; int total; };
volatile int sink;
__attribute__((noinline)) void stop() { sink++; }
int main() {
  std::string empty, small = "abc", large(30, 'x'), odd("a\n\0b", 4);
  std::vector<int> none, three{1, 2, 3};
  three.reserve(4);
  std::vector<std::string> words{"one", "two"};
  std::vector<bool> bits{true, false, true};
  std::vector<point> points{{1, 2}, {3, 4}};
  std::vector<std::vector<int>> nested{{1}, {2, 3}};
  std::vector<int> long_one(300, 7);
  std::map<int, std::string> names{{2, "two"}, {1, "one"}, {3, "three"}};
  std::map<std::string, int> counts{{"b", 2}, {"a", 1}};
  std::map<int, int> no_map;
  std::set<int> set{3, 1, 2};
  std::multimap<int, int> multi{{1, 2}, {1, 3}};
  std::unordered_map<int, int> hashed{{5, 6}};
  std::unordered_set<std::string>* none_set = nullptr; (void)none_set;
  std::list<int> list{4, 5};
  std::list<int> no_list;
  std::deque<int> deque{7, 8, 9};
  std::unique_ptr<int> owner(new int(5)), nobody;
  std::shared_ptr<point> shared(new point{1, 2}), second = shared, gone;
  std::pair<int, std::string> pair{1, "p"};
  order o{"first", {1, 2}, 3};
  order *po = &o;
  stop();
  return (int)(small.size() + three.size() + names.size() + set.size() + po->total + *owner + shared->x
    + large.size() + words.size() + counts.size() + list.size() + hashed.size()+odd.size()+pair.first+bits.size()+points.size()+nested.size()+long_one.size()+multi.size()+deque.size()+no_list.size()+no_map.size()+none.size()+empty.size()+!nobody+!gone + second->y);
}
