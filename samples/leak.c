/* An allocator with one block that is never freed: pair entry and return probes to find it. */
#include "rt.h"

struct block {
    size_t size;
    struct block *next;
};

static u64 arena[512];
static size_t arena_used;
static struct block *free_list;
static u32 live_blocks;

PROBEABLE void *allocate(size_t size)
{
    struct block *block, **link;
    size = (size + 7) & ~7ul;
    for (link = &free_list; (block = *link); link = &block->next)
        if (block->size >= size) {
            *link = block->next;
            live_blocks++;
            return block + 1;
        }
    if (arena_used + sizeof *block + size > sizeof arena)
        return NULL;
    block = (struct block *)((u8 *)arena + arena_used);
    arena_used += sizeof *block + size;
    block->size = size;
    live_blocks++;
    return block + 1;
}

PROBEABLE void release(void *memory)
{
    if (!memory)
        return;
    struct block *block = (struct block *)memory - 1;
    block->next = free_list;
    free_list = block;
    live_blocks--;
}

PROBEABLE char *make_label(const char *prefix, u32 number)
{
    char *label = allocate(16), *end = label;
    while (*prefix)
        *end++ = *prefix++;
    *end++ = (char)('0' + number / 10 % 10);
    *end++ = (char)('0' + number % 10);
    *end = 0;
    return label;
}

PROBEABLE u32 handle_request(u32 number)
{
    char *label = make_label("request-", number);
    u32 *numbers = allocate(number % 5 * 8 + 8);
    u32 sum = 0;
    for (u32 i = 0; i < number % 5 + 1; i++)
        sum += numbers[i] = number * i;
    print(label);
    print(" -> ");
    print_u64(sum);
    print("\n");
    if (number == 7) /* the bug: an early way out that forgets the label */
        label = NULL;
    release(numbers);
    release(label);
    return sum;
}

int main(int argc, char **argv)
{
    u32 total = 0;
    (void)argc, (void)argv;
    for (u32 number = 1; number <= 12; number++)
        total += handle_request(number);
    print("total ");
    print_u64(total);
    print(", blocks still allocated: ");
    print_u64(live_blocks);
    print("\n");
    return (int)live_blocks;
}
