#include "many.h"

static int hidden(int n)
{
    int before = n - 1;
    return before;
}

int second(int n)
{
    Stack<int> own = {n};
    int sum = hidden(n);
    for (int i = 0; i < 3; i++)
        sum += hidden(i);
    return own.push(3) + largest(sum, 2);
}
