>>> p empty
""
>>> p small
"abc"
>>> p large
'x' <repeats 40 times>
>>> p odd
"a\n\000b"
>>> p view
"a view"
>>> p no_view
""
>>> p none
std::vector of length 0, capacity 0
>>> p three
std::vector of length 3, capacity 4 = {1, 2, 3}
>>> p words
std::vector of length 2, capacity 2 = {"one", "a long string that is on the heap for sure"}
>>> p bits
std::vector<bool> of length 3, capacity 64 = {true, false, true}
>>> p points
std::vector of length 2, capacity 2 = {{x = 1, y = 2}, {x = 3, y = 4}}
>>> p nested
std::vector of length 2, capacity 2 = {std::vector of length 1, capacity 1 = {1}, std::vector of length 2, capacity 2 = {2, 3}}
>>> p names
std::map with 3 elements = {[1] = "one", [2] = "two", [3] = "three"}
>>> p counts
std::map with 2 elements = {["a"] = 1, ["b"] = 2}
>>> p no_map
std::map with 0 elements
>>> p set
std::set with 3 elements = {[0] = 1, [1] = 2, [2] = 3}
>>> p multi
std::multimap with 2 elements = {[1] = 2, [1] = 3}
>>> p mset
std::multiset with 3 elements = {[0] = 4, [1] = 4, [2] = 5}
>>> p hashed
std::unordered_map with 1 element = {[5] = 6}
>>> p hpoints
std::unordered_map with 1 element = {["p"] = {x = 1, y = 2}}
>>> p hset
std::unordered_set with 1 element = {[0] = 9}
>>> p hmulti
std::unordered_multimap with 1 element = {[1] = 2}
>>> p list
std::list = {[0] = 4, [1] = 5}
>>> p no_list
empty std::list
>>> p fl
std::forward_list = {[0] = 6, [1] = 7}
>>> p no_fl
empty std::forward_list
>>> p deque
std::deque with 3 elements = {7, 8, 9}
>>> p no_deque
std::deque with 0 elements
>>> p dpoints
std::deque with 1 element = {{x = 1, y = 2}}
>>> p owner
std::unique_ptr<int> = {get() = ADDRESS}
>>> p nobody
std::unique_ptr<int> = {get() = ADDRESS}
>>> p powner
std::unique_ptr<Point> = {get() = ADDRESS}
>>> p many
std::unique_ptr<int []> = {get() = ADDRESS}
>>> p gone
std::shared_ptr<Point> (empty) = {get() = ADDRESS}
>>> p pair
{first = 1, second = "p"}
>>> p tup
std::tuple containing = {[1] = 1, [2] = 2.5, [3] = "t"}
>>> p no_tup
empty std::tuple
>>> p some
std::optional<int> = {[contained value] = 11}
>>> p nothing
std::optional<int> [no contained value]
>>> p text
std::optional<std::string> = {[contained value] = "opt"}
>>> p any
std::any containing int = {[contained value] = 42}
>>> p no_any
std::any [no contained value]
>>> p any_s
std::any containing std::string = {[contained value] = "any text"}
>>> p any_p
std::any containing Point = {[contained value] = {x = 5, y = 6}}
>>> p bs
std::bitset = {[0] = 1, [2] = 1, [4] = 1, [6] = 1, [8] = 1}
>>> p wide
std::bitset = {[0] = 1, [1] = 1}
>>> p path
filesystem::path "/usr/lib/x.so" = {[root-directory] = "/", [1] = "usr", [2] = "lib", [3] = "x.so"}
>>> p rel
filesystem::path "name"
>>> p no_path
filesystem::path ""
>>> p atom
std::atomic<int> = { 7 }
>>> p flag
std::atomic<bool> = { true }
>>> p stack
std::stack wrapping: std::deque with 2 elements = {1, 2}
>>> p queue
std::queue wrapping: std::deque with 1 element = {3}
>>> p pq
std::priority_queue wrapping: std::vector of length 2, capacity 2 = {9, 4}
>>> p vi
1
>>> p vci
2
>>> p mi
{first = 2, second = "two"}
>>> p si
1
>>> p fi
6
>>> p di
8
>>> p si2
97 'a'
>>> p ve
0
>>> p o
{name = "first", items = std::vector of length 2, capacity 2 = {1, 2}, total = 3}
>>> p po
(Order *) ADDRESS
>>> p ro
(Order &) @ADDRESS: {name = "first", items = std::vector of length 2, capacity 2 = {1, 2}, total = 3}
>>> p wide_s
L"wide"
>>> p u16
u"six"
>>> p u32
U"thirty"
>>> p plain
{4, 5, 6}
>>> p *po
{name = "first", items = std::vector of length 2, capacity 2 = {1, 2}, total = 3}
>>> p *ps
"abc"
>>> p *pv
std::vector of length 3, capacity 4 = {1, 2, 3}
>>> p three[1]
2
>>> p three.size()
3
>>> p three.at(2)
3
>>> p three.front()
1
>>> p three.back()
3
>>> p three.empty()
false
>>> p words[1]
"a long string that is on the heap for sure"
>>> p words[0].size()
3
>>> p words.back()
"a long string that is on the heap for sure"
>>> p bits[1]
false
>>> p bits.size()
3
>>> p points[1].y
4
>>> p points.front()
{x = 1, y = 2}
>>> p nested[1][0]
2
>>> p nested[1]
std::vector of length 2, capacity 2 = {2, 3}
>>> p names.size()
3
>>> p counts.size()
2
>>> p no_map.empty()
true
>>> p set.size()
3
>>> p hashed.size()
1
>>> p hset.size()
1
>>> p list.size()
2
>>> p list.front()
4
>>> p list.back()
5
>>> p deque[1]
8
>>> p deque.size()
3
>>> p deque.back()
9
>>> p dpoints[0].x
1
>>> p *owner
5
>>> p owner.get()
(int *) ADDRESS
>>> p *powner
{x = 8, y = 9}
>>> p powner->y
9
>>> p many[1]
2
>>> p many.get()
(int *) ADDRESS
>>> p pair.first
1
>>> p pair.second
"p"
>>> p arr[2]
3
>>> p arr.size()
3
>>> p small.size()
3
>>> p small.c_str()
ADDRESS "abc"
>>> p view.size()
6
>>> p *vi
(int &) @ADDRESS: 1
>>> p *vci
(const int &) @ADDRESS: 2
>>> p mi->first
2
>>> p mi->second
"two"
>>> p mi->second.size()
3
>>> p *di
(int &) @ADDRESS: 8
>>> p hi->second
6
>>> p o.name
"first"
>>> p o.items
std::vector of length 2, capacity 2 = {1, 2}
>>> p o.items[1]
2
>>> p po->name
"first"
>>> p po->items.size()
2
>>> p ro.total
3
>>> p ro.items.size()
2
>>> p sizeof(three[0])
4
>>> p &three[1]
(int *) ADDRESS
>>> p three[0]+three[2]
4
>>> p any.has_value()
true
>>> p &*vi
(int *) ADDRESS
>>> whatis three
type = std::vector<int>
>>> whatis names
type = std::map<int, std::string>
>>> whatis fn
type = std::function<int(int)>
>>> whatis ms
type = std::chrono::milliseconds
>>> whatis three[0]
type = int
>>> whatis *po
type = Order
>>> whatis var
type = std::variant<int, std::string, Point>
>>> whatis tup
type = std::tuple<int, double, std::string>
>>> whatis any
type = std::any
>>> whatis sec
type = std::chrono::seconds
>>> whatis text
type = std::optional<std::string>
>>> ptype Point
type = struct Point {
    int x;
    int y;
}
>>> ptype Order
type = struct Order {
    std::string name;
    std::vector<int> items;
    int total;
}
>>> p /x three
std::vector of length 3, capacity 4 = {ADDRESS, ADDRESS, ADDRESS}
>>> p/x points
std::vector of length 2, capacity 2 = {{x = ADDRESS, y = ADDRESS}, {x = ADDRESS, y = ADDRESS}}
>>> p -pretty -- o
{
  name = "first",
  items = std::vector of length 2, capacity 2 = {1, 2},
  total = 3
}
>>> p -pretty -- hpoints
std::unordered_map with 1 element = {
  ["p"] = {
    x = 1,
    y = 2
  }
}
>>> p -pretty -- tup
std::tuple containing = {
  [1] = 1,
  [2] = 2.5,
  [3] = "t"
}
>>> p -elements 1 -- three
std::vector of length 3, capacity 4 = {1...}
>>> p shared
std::shared_ptr<Point> (use count 2, weak count 1) = {get() = ADDRESS}
>>> p second
std::shared_ptr<Point> (use count 2, weak count 1) = {get() = ADDRESS}
>>> p made
std::shared_ptr<int> (use count 1, weak count 0) = {get() = ADDRESS}
>>> p weak
std::weak_ptr<Point> (use count 2, weak count 1) = {get() = ADDRESS}
>>> p dead
std::weak_ptr<Point> (expired, weak count 1) = {get() = ADDRESS}
>>> p var
std::variant<int, std::string, Point> [index 1] = {"in variant"}
>>> p var0
std::variant<int, std::string, Point> [index 0] = {3}
>>> p li
4
