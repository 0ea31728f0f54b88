#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 8

typedef struct entry {
    struct entry *next;
    char word[12];
    unsigned count;
} entry_t;

typedef struct {
    entry_t *buckets[BUCKETS];
    size_t used;
    double load;
} words_t;

typedef int (*order_t)(const void *, const void *);

static const char text[] = "the cat and the dog and the bird and a cat";
static words_t words;
int matrix[3][3] = {{2, 0, 1}, {1, 3, 2}, {0, 1, 1}};
static long searches;

static unsigned hash(const char *word)
{
    unsigned value = 5381;
    while (*word)
        value = value * 33 + (unsigned char)*word++;
    return value % BUCKETS;
}

static entry_t *find(words_t *in, const char *word, int create)
{
    unsigned slot = hash(word);
    searches++;
    for (entry_t *entry = in->buckets[slot]; entry; entry = entry->next)
        if (strcmp(entry->word, word) == 0)
            return entry;
    if (!create)
        return NULL;
    entry_t *made = calloc(1, sizeof *made);
    strncpy(made->word, word, sizeof made->word - 1);
    made->next = in->buckets[slot];
    in->buckets[slot] = made;
    in->used++;
    in->load = (double)in->used / BUCKETS;
    return made;
}

void count_words(words_t *in, const char *from)
{
    char word[12];
    int length = 0;
    for (;; from++) {
        if (isalpha((unsigned char)*from)) {
            if (length < 11)
                word[length++] = *from;
            continue;
        }
        if (length) {
            word[length] = 0;
            find(in, word, 1)->count++;
            length = 0;
        }
        if (!*from)
            break;
    }
}

static int by_count(const void *left, const void *right)
{
    const entry_t *a = *(entry_t *const *)left, *b = *(entry_t *const *)right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return strcmp(a->word, b->word);
}

static int report(words_t *from, order_t order)
{
    entry_t *all[16];
    int found = 0;
    for (int slot = 0; slot < BUCKETS; slot++)
        for (entry_t *entry = from->buckets[slot]; entry; entry = entry->next)
            all[found++] = entry;
    qsort(all, found, sizeof all[0], order);
    for (int i = 0; i < found; i++)
        printf("%2u %s\n", all[i]->count, all[i]->word);
    return found;
}

int determinant(int rows[3][3])
{
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        int plus = rows[0][i] * rows[1][(i + 1) % 3] * rows[2][(i + 2) % 3];
        int minus = rows[0][(i + 2) % 3] * rows[1][(i + 1) % 3] * rows[2][i];
        sum += plus - minus;
    }
    return sum;
}

int main(int argc, char *argv[])
{
    count_words(&words, argc > 1 ? argv[1] : text);
    int found = report(&words, by_count);
    int value = determinant(matrix);
    if (find(&words, "fish", 0))
        abort();
    printf("%d words, determinant %d, %ld searches\n", found, value, searches);
    return value == 7 ? 0 : 3;
}
