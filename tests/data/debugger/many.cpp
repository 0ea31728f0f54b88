#include "many.h"

namespace geo {
class Shape {
public:
    Shape();
    Shape(int width, int height);
    int area() const;
    int grow(int by);
    int grow(double by);

private:
    int width_, height_;
};

Shape::Shape() : width_(1), height_(1)
{
}

Shape::Shape(int width, int height) : width_(width), height_(height)
{
}

int Shape::area() const
{
    return width_ * height_;
}

int Shape::grow(int by)
{
    width_ += by;
    return width_;
}

int Shape::grow(double by)
{
    height_ = (int)(height_ * by);
    return height_;
}

int twice(int n)
{
    return n * 2;
}

long twice(long n)
{
    return n * 2;
}
} // namespace geo

static int hidden(int n)
{
    int next = n + 1;
    return next;
}

int main()
{
    geo::Shape unit;
    geo::Shape box(3, 4);
    int sum = box.grow(2);
    sum += box.grow(1.5);
    sum += unit.area() + box.area();
    for (int i = 0; i < 4; i++)
        sum += hidden(i);
    sum += second(sum);
    Stack<int> numbers = {1};
    Stack<char> letters = {'a'};
    sum += numbers.push(sum);
    sum += letters.push('b');
    sum += largest(sum, 7);
    sum += (int)largest(2.5, 1.5);
    sum += geo::twice(sum);
    sum += (int)geo::twice(3L);
    return sum == 0;
}
