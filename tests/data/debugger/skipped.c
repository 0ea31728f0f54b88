static int inner(int x) { return x + 1; }
static int middle(int x)
{
    int y = inner(x);
    return y * 2;
}
int outer(int a, int b)
{
    return a + b;
}
int main(void)
{
    int t = 0;
    t += outer(middle(1), inner(2));
    t += middle(3);
    t += outer(inner(1), inner(2)); t++;
    return t - 30;
}
