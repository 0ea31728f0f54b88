#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdbool.h>

typedef enum { red, green = 4, blue } color_t;
enum flags { F_READ = 1, F_WRITE = 2, F_EXEC = 4 };
typedef unsigned char byte;
typedef int (*binary_t)(int, int);

struct inner { short s; long l; };
struct fields {
    unsigned a : 3;
    int b : 5;
    unsigned long long c : 40;
    bool ready;
    color_t color;
    struct inner inner;
    struct inner *link;
    union { int i; float f; byte bytes[4]; } u;
    int grid[2][3];
    char name[12];
    binary_t op;
    double d;
    long double ld;
    struct { int x, y; };
};

char v_char = 'A';
signed char v_signed_char = -7;
unsigned char v_unsigned_char = 200;
short v_short = -300;
unsigned short v_unsigned_short = 60000;
int v_int = -123456;
unsigned int v_unsigned_int = 4000000000u;
long v_long = -5000000000L;
unsigned long v_unsigned_long = 18000000000000000000ul;
float v_float = 1.5f;
double v_double = -0.1;
bool v_bool = true;
int *v_pointer = &v_int;
char *v_string = "a\tb\"c\\d\001e";
int64_t v_int64 = 1ll << 40;
color_t v_color = blue;
enum flags v_flags = F_READ | F_EXEC;
char v_text[20] = "hello";
char v_repeat[40] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxyz";
int v_ints[20] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3};
int v_matrix[2][2][2] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}};
void *v_void = 0;
const volatile int v_cv = 9;
struct fields v_fields;
struct fields *v_fields_pointer = &v_fields;
byte v_bytes[4] = {1, 2, 0xff, 'z'};

static int plus(int left, int right) { return left + right; }
int times(int left, int right) { return left * right; }
float halve(float value) { return value / 2; }
struct inner make(short s, long l) { struct inner made = {s, l}; return made; }
char *pick(char **names, int which) { return names[which]; }
void nothing(void) {}

int loop(int count)
{
    int sum = 0;
    float part = 0;
    static int calls;
    calls++;
    for (int i = 0; i < count; i++) {
        int square = i * i;
        sum += square;
        part += 0.5f;
    }
    return sum + (int)part;
}

int recurse(int depth)
{
    int local = depth * 10;
    if (depth > 1)
        local += recurse(depth - 1);
    return local;
}

int main(void)
{
    char *names[] = {"zero", "one", "two"};
    v_fields.a = 5;
    v_fields.b = -3;
    v_fields.c = 0x1234567890ull;
    v_fields.ready = true;
    v_fields.color = green;
    v_fields.link = &v_fields.inner;
    v_fields.inner = make(3, 4);
    v_fields.u.f = 1.0f;
    memcpy(v_fields.grid, v_matrix, sizeof v_fields.grid);
    strcpy(v_fields.name, "fields");
    v_fields.op = times;
    v_fields.d = 2.25;
    v_fields.ld = 3.5L;
    v_fields.x = 11;
    int result = loop(5);
    result += recurse(3);
    result += plus(result, 2) + (int)halve(9);
    nothing();
    printf("%d %s\n", result, pick(names, 1));
    return 0;
}
