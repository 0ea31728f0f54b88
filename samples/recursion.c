/* Recursion: a deep chain (factorial) and a bushy tree (fibonacci), for return probes and backtraces. */
#include "rt.h"

PROBEABLE u64 factorial(u32 n)
{
    if (n <= 1)
        return 1;
    return n * factorial(n - 1);
}

PROBEABLE u32 fibonacci(u32 n)
{
    if (n < 2)
        return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

PROBEABLE int ackermann(int m, int n)
{
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    int inner = ackermann(m, n - 1);
    return ackermann(m - 1, inner);
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    print("factorial(20) = ");
    print_u64(factorial(20));
    print("\nfibonacci(15) = ");
    print_u64(fibonacci(15));
    print("\nackermann(2, 3) = ");
    print_s64(ackermann(2, 3));
    print("\n");
    return 0;
}
