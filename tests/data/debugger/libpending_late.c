static int add_water(int n)
{
    return n - 1;
}

int heat_pot(int n)
{
    int hot = add_water(n);
    return hot * 2;
}
