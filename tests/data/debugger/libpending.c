static int add_water(int n)
{
    return n + 1;
}

int fill_pot(int n)
{
    int first = add_water(n);
    return first * 3;
}
