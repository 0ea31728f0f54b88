/* Strings: functions that take strings and buffers, for ustring and array arguments. */
#include "rt.h"

static const char *const TEXTS[] = {
    "the quick brown fox jumps over the lazy dog",
    "a probe is worth a thousand prints",
    "",
    "  leading and   repeated blanks ",
    "level",
};

PROBEABLE size_t text_length(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

PROBEABLE u32 count_words(const char *text)
{
    u32 words = 0;
    int inside = 0;
    for (; *text; text++) {
        int letter = *text != ' ';
        words += (u32)(letter && !inside);
        inside = letter;
    }
    return words;
}

PROBEABLE void reverse(char *to, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        to[i] = text[length - 1 - i];
    to[length] = 0;
}

PROBEABLE int equal(const char *left, const char *right)
{
    while (*left && *left == *right)
        left++, right++;
    return *left == *right;
}

PROBEABLE u32 hash_text(const char *text)
{
    u32 hash = 2166136261u; /* FNV-1a */
    while (*text)
        hash = (hash ^ (u8)*text++) * 16777619u;
    return hash;
}

int main(int argc, char **argv)
{
    char mirrored[64];
    u32 total = 0;
    (void)argc, (void)argv;
    for (u32 i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        const char *text = TEXTS[i];
        size_t length = text_length(text);
        u32 words = count_words(text);
        total += words;
        reverse(mirrored, text, length);
        print_u64(words);
        print(" words, ");
        print_hex(hash_text(text));
        print(equal(text, mirrored) ? ", palindrome: [" : ", mirrored: [");
        print(mirrored);
        print("]\n");
    }
    print("total ");
    print_u64(total);
    print("\n");
    return (int)total;
}
