/* Floating point: arguments and results in vector registers, doubles and floats, mixed with integers. */
#include "rt.h"

struct point {
    double x, y;
};

PROBEABLE double square_root(double value)
{
    double guess = value > 1 ? value : 1;
    for (int i = 0; i < 40; i++)
        guess = 0.5 * (guess + value / guess);
    return guess;
}

PROBEABLE double distance(struct point from, struct point to)
{
    double dx = to.x - from.x, dy = to.y - from.y;
    return square_root(dx * dx + dy * dy);
}

PROBEABLE float celsius(float fahrenheit)
{
    return (fahrenheit - 32.0f) * 5.0f / 9.0f;
}

PROBEABLE double integrate(double (*function)(double), double from, double to, int steps)
{
    double width = (to - from) / steps, sum = 0;
    for (int i = 0; i < steps; i++)
        sum += function(from + (i + 0.5) * width);
    return sum * width;
}

PROBEABLE double quarter_circle(double x)
{
    return 4.0 / (1.0 + x * x);
}

PROBEABLE double weighted_mean(const double *values, const float *weights, u32 count)
{
    double sum = 0, total = 0;
    for (u32 i = 0; i < count; i++) {
        sum += values[i] * weights[i];
        total += weights[i];
    }
    return sum / total;
}

int main(int argc, char **argv)
{
    static const double values[] = {1.5, 2.25, -4.0, 10.0};
    static const float weights[] = {1.0f, 2.0f, 0.5f, 0.25f};
    (void)argc, (void)argv;
    print("sqrt(2) = ");
    print_double(square_root(2.0), 6);
    print("\ndistance = ");
    print_double(distance((struct point){1, 2}, (struct point){4, 6}), 3);
    print("\n98.6 F = ");
    print_double(celsius(98.6f), 2);
    print(" C\n-40 F = ");
    print_double(celsius(-40.0f), 2);
    print(" C\npi = ");
    print_double(integrate(quarter_circle, 0, 1, 200), 4);
    print("\nweighted mean = ");
    print_double(weighted_mean(values, weights, 4), 4);
    print("\n");
    return 0;
}
