#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum color { RED, GREEN = 5, BLUE };
enum flags { F_A = 1, F_B = 2, F_C = 4 };
typedef struct node { int id; struct node *next; char name[16]; double weight; unsigned bits : 3; int neg : 4; enum color color; } node_t;
union both { int i; float f; unsigned char raw[4]; };
struct outer { node_t inner; struct { int x, y; }; union both u; int (*fn)(int); const char *text; int grid[2][3]; };
int global = 42; static long table[20]; const char *words[] = {"alpha", "beta", 0}; double pi = 3.14159265358979; float half = 0.5f; unsigned char byte = 200; _Bool yes = 1; enum flags fl = F_A | F_C;
int twice(int n)
{
    int result = n * 2;
    return result;
}
node_t *build(int count)
{
    node_t *head = 0;
    for (int i = 0; i < count; i++) {
        node_t *one = calloc(1, sizeof *one);
        one->id = i;
        one->next = head;
        one->weight = i * 1.5;
        one->bits = i;
        one->neg = -i;
        one->color = i == 1 ? GREEN : RED;
        snprintf(one->name, sizeof one->name, "node-%d", i);
        head = one;
    }
    return head;
}
int sum(const node_t *list, int depth)
{
    int total = 0;
    while (list) {
        total += twice(list->id);
        list = list->next;
    }
    return total + depth;
}
int main(int argc, char **argv)
{
    struct outer o;
    memset(&o, 0, sizeof o);
    node_t *list = build(4);
    o.inner = *list;
    o.x = 3;
    o.u.f = 1.5f;
    o.fn = twice;
    o.text = words[1];
    o.grid[1][2] = 7;
    char buffer[32] = "hello\tworld";
    table[3] = -9;
    int answer = sum(list, 1);
    printf("%d %s %d\n", answer, buffer, argc);
    global = answer;
    return answer == 13 ? 3 : 0;
}
