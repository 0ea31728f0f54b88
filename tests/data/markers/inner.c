/* Markers whose arguments lie within objects of the file, at symbols with distances. */
#include <stdio.h>

#include "markers.h"

struct box { int a; signed char b; long c; } box = {1, -2, 3000000000L};
int table[8] = {10, 20, 30, 40, 50, 60, 70, 80};
static struct box own = {4, -5, -6};
char *text = "inner";

int main(void)
{
    for (int i = 0; i < 2; i++) {
        MARKER("inner", "members", "0", "-4@%0 -1@%1 -8@%2", "nor"(box.a), "nor"(box.b), "nor"(box.c));
        MARKER("inner", "elements", "0", "-4@%0 -4@%1", "nor"(table[3]), "nor"(table[7]));
        MARKER("inner", "own", "0", "-1@%0 -8@%1", "m"(own.b), "m"(own.c));
        box.b--, table[7]++, own.c *= 7;
    }
    printf("%d %d %ld %s\n", box.b, table[7], own.c, text);
    return 0;
}
