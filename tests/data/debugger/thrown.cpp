#include <cstdio>
#include <stdexcept>
void lift(int n)
{
    if (n > 1)
        throw std::runtime_error("too heavy");
}
int main()
{
    try {
        lift(1);
        lift(2);
    } catch (std::exception &error) {
        std::puts(error.what());
    }
    try {
        try {
            lift(3);
        } catch (...) {
            throw;
        }
    } catch (std::exception &error) {
        std::puts(error.what());
    }
    return 0;
}
