#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    int value;
    int index;
    struct node *next;
};

static struct node nodes[6] = {
    {332, 1, &nodes[1]}, {168, 2, &nodes[2]}, {924, 3, &nodes[3]},
    {691, 4, &nodes[4]}, {477, 5, &nodes[5]}, {443, 6, NULL},
};
static const char *lines[] = {
    "Border relations are fine.", "1 2 4 8 16 32", "3 256", "7 0", "ionefg", "4 3 2 1 6 5",
};
char host_table[16] = "maduiersnfotvbyl";
int phases_left = 6;
double score;

void explode_bomb(const char *why)
{
    printf("BOOM: %s\n", why);
    exit(8);
}

static int strings_not_equal(const char *left, const char *right)
{
    while (*left && *left == *right) {
        left++;
        right++;
    }
    return *left != *right;
}

void read_six_numbers(const char *line, int *numbers)
{
    int found = sscanf(line, "%d %d %d %d %d %d", numbers, numbers + 1, numbers + 2,
                       numbers + 3, numbers + 4, numbers + 5);
    if (found < 6)
        explode_bomb("numbers");
}

void phase_1(const char *line)
{
    if (strings_not_equal(line, "Border relations are fine."))
        explode_bomb("phase 1");
}

void phase_2(const char *line)
{
    int numbers[6];
    read_six_numbers(line, numbers);
    if (numbers[0] != 1)
        explode_bomb("phase 2");
    for (int i = 1; i < 6; i++)
        if (numbers[i] != 2 * numbers[i - 1])
            explode_bomb("phase 2");
}

void phase_3(const char *line)
{
    int which, want, got = 0;
    if (sscanf(line, "%d %d", &which, &want) < 2)
        explode_bomb("phase 3");
    switch (which) {
    case 0: got = 207; break;
    case 1: got = 311; break;
    case 2: got = 707; break;
    case 3: got = 256; break;
    case 4: got = 389; break;
    default: explode_bomb("phase 3");
    }
    if (got != want)
        explode_bomb("phase 3");
}

int func4(int target, int low, int high)
{
    int middle = low + (high - low) / 2;
    if (middle > target)
        return 2 * func4(target, low, middle - 1);
    if (middle < target)
        return 2 * func4(target, middle + 1, high) + 1;
    return 0;
}

void phase_4(const char *line)
{
    int target, want;
    if (sscanf(line, "%d %d", &target, &want) != 2 || target > 14)
        explode_bomb("phase 4");
    if (func4(target, 0, 14) != want)
        explode_bomb("phase 4");
}

void phase_5(const char *line)
{
    char text[7];
    for (int i = 0; i < 6; i++)
        text[i] = host_table[line[i] & 0xf];
    text[6] = 0;
    if (strcmp(text, "flyers"))
        explode_bomb("phase 5");
}

void phase_6(const char *line)
{
    int order[6];
    struct node *picked[6];
    read_six_numbers(line, order);
    for (int i = 0; i < 6; i++) {
        struct node *walk = nodes;
        for (int j = 1; j < order[i]; j++)
            walk = walk->next;
        picked[i] = walk;
    }
    for (int i = 0; i < 5; i++)
        picked[i]->next = picked[i + 1];
    picked[5]->next = NULL;
    score = picked[0]->value / 2.0;
}

int main(int argc, char **argv)
{
    void (*phases[])(const char *) = {phase_1, phase_2, phase_3, phase_4, phase_5, phase_6};
    if (argc > 1)
        lines[0] = argv[1];
    for (int i = 0; i < 6; i++) {
        phases[i](lines[i]);
        phases_left--;
        printf("Phase %d defused.\n", i + 1);
    }
    puts("Congratulations!");
    return 0;
}
