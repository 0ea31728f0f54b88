#ifndef MANY_H
#define MANY_H
template <typename T> struct Stack {
    T top;
    T push(T value);
};
template <typename T> T Stack<T>::push(T value)
{
    T before = top;
    top = value;
    return before;
}
template <typename T> T largest(T a, T b)
{
    T found = a;
    if (b > a)
        found = b;
    return found;
}
int second(int n);
#endif
