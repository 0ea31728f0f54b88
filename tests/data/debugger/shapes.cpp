#include <cstdio>
#include <string>
#include <vector>
namespace geo {
enum class Kind { Circle, Square = 4 };
struct Point { double x, y; Point(double a, double b) : x(a), y(b) {} double norm() const { return x * x + y * y; } };
class Shape {
  public:
    explicit Shape(int id) : id_(id) {}
    virtual ~Shape() {}
    virtual double area() const = 0;
    int id() const { return id_; }
    static int count;
  protected:
    int id_;
};
int Shape::count = 3;
class Circle : public Shape {
  public:
    Circle(int id, Point c, double r) : Shape(id), center(c), radius(r), kind(Kind::Circle) {}
    double area() const override { double result = 3.0 * radius * radius; return result; }
    Point center;
    double radius;
    Kind kind;
};
template <typename T> T biggest(T a, T b) { T r = a > b ? a : b; return r; }
int total = 7;
}
static int apply(const geo::Shape &shape, int &out)
{
    out = shape.id() + (int)shape.area();
    return out;
}
int main(int argc, char **argv)
{
    geo::Circle circle(9, geo::Point(1, 2), 2.0);
    geo::Shape *shape = &circle;
    const char &letter = argv[0][0];
    int out = 0;
    int got = apply(circle, out);
    int big = geo::biggest(3, got) + geo::biggest<long>(2, 1);
    bool ok = big > 3;
    geo::total += big;
    printf("%d %d %f\n", got, big, shape->area());
    return ok && letter ? 0 : 1;
}
