#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace num {

template <typename T, std::size_t Rows, std::size_t Cols = Rows>
struct Matrix {
    std::array<std::array<T, Cols>, Rows> cells{};
    T &operator()(std::size_t row, std::size_t col) { return cells[row][col]; }
    const T &operator()(std::size_t row, std::size_t col) const { return cells[row][col]; }
    template <std::size_t Other>
    Matrix<T, Rows, Other> operator*(const Matrix<T, Cols, Other> &right) const
    {
        Matrix<T, Rows, Other> result;
        for (std::size_t i = 0; i < Rows; ++i)
            for (std::size_t j = 0; j < Other; ++j)
                for (std::size_t k = 0; k < Cols; ++k)
                    result(i, j) += (*this)(i, k) * right(k, j);
        return result;
    }
    T trace() const
    {
        T total{};
        for (std::size_t i = 0; i < Rows && i < Cols; ++i)
            total += cells[i][i];
        return total;
    }
    static constexpr std::size_t rows = Rows;
};

struct Ratio {
    long top;
    long bottom;
    constexpr Ratio(long t = 0, long b = 1) : top(t), bottom(b) { reduce(); }
    constexpr void reduce()
    {
        long shared = std::gcd(top, bottom);
        if (shared > 1) {
            top /= shared;
            bottom /= shared;
        }
    }
    Ratio operator+(const Ratio &other) const
    {
        return {top * other.bottom + other.top * bottom, bottom * other.bottom};
    }
    Ratio operator*(const Ratio &other) const { return {top * other.top, bottom * other.bottom}; }
    Ratio &operator+=(const Ratio &other) { return *this = *this + other; }
    bool operator==(const Ratio &other) const { return top == other.top && bottom == other.bottom; }
    explicit operator double() const { return double(top) / double(bottom); }
};

using Number = std::variant<int, double, Ratio, std::complex<double>>;

template <class... Ts>
struct overloaded : Ts... {
    using Ts::operator()...;
};
template <class... Ts>
overloaded(Ts...) -> overloaded<Ts...>;

double size(const Number &number)
{
    return std::visit(overloaded{
                          [](int i) { return std::abs(double(i)); },
                          [](double d) { return std::fabs(d); },
                          [](const Ratio &r) { return std::fabs(double(r)); },
                          [](const std::complex<double> &c) { return std::abs(c); },
                      },
                      number);
}

template <typename T>
std::optional<T> root(T value)
{
    if (value < T{})
        return std::nullopt;
    return std::sqrt(value);
}

template <typename F, typename T>
T fold(const std::vector<T> &items, T start, F f)
{
    for (const T &item : items)
        start = f(start, item);
    return start;
}

template <typename T>
constexpr T cube = T(8);

} // namespace num

using num::Matrix;
using num::Ratio;

static long counter;
static const double weights[4] = {0.5, 0.25, 0.125, 1e-9};
static float floats[3] = {1.5f, -2.25f, 3e10f};
static __int128 big = ((__int128)1 << 100) + 7;

static long step(long by)
{
    counter += by;
    return counter;
}

int main()
{
    Matrix<int, 2, 3> a;
    Matrix<int, 3, 2> b;
    int fill = 0;
    for (std::size_t i = 0; i < 2; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            a(i, j) = ++fill;
            b(j, i) = fill * fill;
        }
    Matrix<int, 2> product = a * b;
    int trace = product.trace();
    Matrix<Ratio, 2> fractions;
    fractions(0, 0) = Ratio(2, 4);
    fractions(1, 1) = Ratio(3, 9);
    Ratio third = fractions(1, 1);
    Ratio total = fractions.trace();
    std::vector<num::Number> numbers = {3, -2.5, Ratio(6, 8), std::complex<double>(3, 4)};
    double length = 0;
    for (const num::Number &number : numbers)
        length += num::size(number);
    std::optional<double> good = num::root(6.25);
    std::optional<double> bad = num::root(-1.0);
    std::vector<long> values = {5, 3, 9, 1};
    long seen = 0;
    auto larger = [&seen](long x, long y) {
        ++seen;
        return x > y ? x : y;
    };
    long most = num::fold(values, 0L, larger);
    std::function<long(long)> stepper = step;
    long once = stepper(4);
    long twice = stepper(-1);
    std::tuple<int, std::string, double> row{1, "row", num::cube<double>};
    auto [first, name, last] = row;
    std::printf("%d %ld/%ld %.3f %ld %ld %s %g\n", trace, total.top, total.bottom, length, most, twice,
                name.c_str(), last);
    return good && !bad && once == 4 && third == Ratio(1, 3) && first == 1 && weights[0] > 0 && floats[0] > 0 && big > 0 ? 0 : 1;
}
