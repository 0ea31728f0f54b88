#include <stdio.h>
#include "macros.h"
#define VALUE 1
#define EMPTY
#define SELF (SELF + 1)
#define PAIR(a,b) {a, b}
#define F() 42
#define NEG -1
struct item { int CONCAT(fie, ld); };
int xy = 9;
static int early(void)
{
    return VALUE;
}
#undef VALUE
#define VALUE (2 + HEADER_ONE)
#define i_count item.field
int main(void)
{
    struct item item = {5};
    int r = early() + VALUE;
    r += in_header(r);
#define LATE 77
    printf("%d %d\n", r, LATE);
    return item.field;
}
