/* Callbacks: one quicksort, three comparators through a function pointer. */
#include "rt.h"

struct item {
    u32 id;
    s16 weight;
    char label[10];
};

typedef int (*comparator)(const struct item *left, const struct item *right);

static struct item items[24];
static u32 comparisons;

PROBEABLE int by_id(const struct item *left, const struct item *right)
{
    comparisons++;
    return (left->id > right->id) - (left->id < right->id);
}

PROBEABLE int by_weight(const struct item *left, const struct item *right)
{
    comparisons++;
    if (left->weight != right->weight)
        return left->weight - right->weight;
    return (left->id > right->id) - (left->id < right->id);
}

PROBEABLE int by_label(const struct item *left, const struct item *right)
{
    comparisons++;
    const char *a = left->label, *b = right->label;
    while (*a && *a == *b)
        a++, b++;
    return *a - *b;
}

PROBEABLE void swap(struct item *left, struct item *right)
{
    struct item kept = *left;
    *left = *right;
    *right = kept;
}

PROBEABLE u32 partition(struct item *list, u32 count, comparator compare)
{
    u32 store = 0;
    swap(&list[count / 2], &list[count - 1]);
    for (u32 i = 0; i + 1 < count; i++)
        if (compare(&list[i], &list[count - 1]) < 0)
            swap(&list[i], &list[store++]);
    swap(&list[store], &list[count - 1]);
    return store;
}

PROBEABLE void quicksort(struct item *list, u32 count, comparator compare)
{
    if (count < 2)
        return;
    u32 pivot = partition(list, count, compare);
    quicksort(list, pivot, compare);
    quicksort(list + pivot + 1, count - pivot - 1, compare);
}

PROBEABLE void fill(struct item *list, u32 count)
{
    u32 seed = 12345;
    for (u32 i = 0; i < count; i++) {
        seed = seed * 1103515245u + 12345u;
        list[i].id = i;
        list[i].weight = (s16)((seed >> 16) % 200 - 100);
        for (u32 k = 0; k < 4; k++)
            list[i].label[k] = (char)('a' + (seed >> (8 + 5 * k)) % 26);
        list[i].label[4] = 0;
    }
}

static void sort_and_show(const char *title, comparator compare)
{
    u32 count = sizeof items / sizeof *items;
    comparisons = 0;
    quicksort(items, count, compare);
    print(title);
    for (u32 i = 0; i < 6; i++) {
        print(" ");
        print(items[i].label);
        print(":");
        print_s64(items[i].weight);
    }
    print(" ... ");
    print_u64(comparisons);
    print(" comparisons\n");
}

int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    fill(items, sizeof items / sizeof *items);
    sort_and_show("by weight:", by_weight);
    sort_and_show("by label: ", by_label);
    sort_and_show("by id:    ", by_id);
    return 0;
}
