#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum kind { EMPTY, NUMBER, TEXT, FORMULA };

struct cell;
typedef long (*operation)(long, long);

struct formula {
    operation apply;
    struct cell *left, *right;
};

typedef struct cell {
    enum kind kind;
    bool dirty;
    union {
        long number;
        char *text;
        struct formula formula;
    } as;
    unsigned row : 10, column : 6;
} cell_t;

struct sheet {
    cell_t cells[4][3];
    struct {
        int reads;
        int writes;
    } stats;
    const char *title;
    struct sheet *parent;
};

static struct sheet book = {.title = "book"};
static int evaluations;
static const long primes[] = {2, 3, 5, 7, 11, 13};
wchar_t wide[] = L"wide";
unsigned char raw[] = {0, 1, 2, 0x7f, 0x80, 0xff};
double pi = 3.14159265358979;
static char *words[3] = {"zero", "one", NULL};

static long add(long a, long b) { return a + b; }
static long mul(long a, long b) { return a * b; }

static cell_t *at(struct sheet *sheet, int row, int column)
{
    cell_t *cell = &sheet->cells[row][column];
    cell->row = row;
    cell->column = column;
    return cell;
}

static void set_number(cell_t *cell, long number)
{
    cell->kind = NUMBER;
    cell->as.number = number;
    cell->dirty = true;
    book.stats.writes++;
}

static void set_text(cell_t *cell, const char *text)
{
    size_t length = strlen(text) + 1;
    cell->kind = TEXT;
    cell->as.text = malloc(length);
    memcpy(cell->as.text, text, length);
    book.stats.writes++;
}

static void set_formula(cell_t *cell, operation apply, cell_t *left, cell_t *right)
{
    cell->kind = FORMULA;
    cell->as.formula = (struct formula){apply, left, right};
    book.stats.writes++;
}

static long evaluate(const cell_t *cell)
{
    evaluations++;
    switch (cell->kind) {
    case NUMBER:
        return cell->as.number;
    case FORMULA: {
        long left = evaluate(cell->as.formula.left);
        long right = evaluate(cell->as.formula.right);
        return cell->as.formula.apply(left, right);
    }
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b)
{
    long left = *(const long *)a, right = *(const long *)b;
    return (left > right) - (left < right);
}

static void dump(FILE *out, struct sheet *sheet)
{
    for (size_t row = 0; row < COUNT(sheet->cells); row++) {
        for (size_t column = 0; column < COUNT(sheet->cells[0]); column++) {
            cell_t *cell = &sheet->cells[row][column];
            if (cell->kind == TEXT)
                fprintf(out, "%s ", cell->as.text);
            else
                fprintf(out, "%ld ", evaluate(cell));
        }
        fputc('\n', out);
    }
}

int main(void)
{
    struct sheet *sheet = &book;
    long values[] = {42, -7, 19, 0};
    set_text(at(sheet, 0, 0), "price");
    set_number(at(sheet, 0, 1), 12);
    set_number(at(sheet, 1, 1), 30);
    set_formula(at(sheet, 2, 1), add, at(sheet, 0, 1), at(sheet, 1, 1));
    set_formula(at(sheet, 3, 1), mul, at(sheet, 2, 1), at(sheet, 0, 1));
    long total = evaluate(at(sheet, 3, 1));
    qsort(values, COUNT(values), sizeof values[0], compare);
    dump(stdout, sheet);
    printf("%ld %d %ld %ld %s\n", total, evaluations, values[0], primes[5], words[1]);
    if (raw[5] != 0xff || wide[0] != 'w' || pi < 3)
        abort();
    return (int)(total % 256);
}
