#ifndef MAC_H
#define MAC_H
#define HEADER_ONE 11
#define CONCAT(a, b) a##b
#define TEXT(x) #x
#define XTEXT(x) TEXT(x)
#define LOG(fmt, ...) printf(fmt, __VA_ARGS__)
#define LOGN(args...) printf(args)
static inline int in_header(int v)
{
    return v + HEADER_ONE;
}
#define AFTER_HEADER 3
#endif
