// Classes, references, templates and lambdas for perf probe; see perf.json.
extern "C" int printf(const char *, ...);

namespace geo {
struct Base {
	virtual ~Base() {}
	int id = 1;
};
template <class T> struct Box : Base {
	T item;
	int count;
	void push(T value)
	{
		item = value;
		count++;
	}
	int grow(int by) const { return count + by; }
};
class Shape {
public:
	Shape(int w, int h) : w_(w), h_(h) {}
	int area(int scale) const;
	static int made;

private:
	int w_, h_;
};
int Shape::made = 4;
__attribute__((noinline)) int Shape::area(int scale) const
{
	int a = w_ * h_;
	made++;
	return a * scale;
}
__attribute__((noinline)) int add(const Shape &one, Shape two, const char *&name)
{
	return one.area(2) + two.area(3) + name[0];
}
}

__attribute__((noinline)) int sum(const int (&values)[3])
{
	int total = 0;
	for (int value : values)
		total += value;
	return total;
}

int main(int argc, char **)
{
	geo::Shape shape(argc, 3);
	geo::Box<long> box;
	box.push(argc);
	const char *name = "x";
	int values[3] = {1, 2, argc};
	auto twice = [&](int k) { return k + argc; };
	printf("%d %d %d\n", geo::add(shape, shape, name) + box.grow(2), sum(values), twice(3));
	return 0;
}
