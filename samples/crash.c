/* A crash: a lookup that fails, a caller that does not check, SIGSEGV four calls deep. */
#include "rt.h"

struct entry {
    const char *key;
    s32 value;
    struct entry *next;
};

static struct entry third = {"gamma", 3, NULL};
static struct entry second = {"beta", 2, &third};
static struct entry first = {"alpha", 1, &second};

PROBEABLE int same_key(const char *left, const char *right)
{
    while (*left && *left == *right)
        left++, right++;
    return *left == *right;
}

PROBEABLE struct entry *find_entry(struct entry *list, const char *key)
{
    for (; list; list = list->next)
        if (same_key(list->key, key))
            return list;
    return NULL;
}

PROBEABLE s32 read_value(const struct entry *entry)
{
    return entry->value; /* the null dereference */
}

PROBEABLE s32 add_setting(s32 sum, const char *key)
{
    s32 value = read_value(find_entry(&first, key));
    print(key);
    print(" = ");
    print_s64(value);
    print("\n");
    return sum + value;
}

PROBEABLE s32 load_settings(const char *const *keys, u32 count)
{
    s32 sum = 0;
    for (u32 i = 0; i < count; i++)
        sum = add_setting(sum, keys[i]);
    return sum;
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"alpha", "gamma", "delta"};
    (void)argc, (void)argv;
    print("loading settings\n");
    s32 sum = load_settings(keys, 3);
    print("never printed: ");
    print_s64(sum);
    print("\n");
    return 0;
}
