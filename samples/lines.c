/* A filter: numbers the lines of standard input and tells the longest; `lines WORD` keeps lines with WORD. */
#include "rt.h"

struct reader {
    s32 fd;
    u32 used, filled;
    char block[128];
};

PROBEABLE int refill(struct reader *reader)
{
    s64 count = sys_read(reader->fd, reader->block, sizeof reader->block);
    reader->used = 0;
    reader->filled = count > 0 ? (u32)count : 0;
    return count > 0;
}

/* The length of the next line, without its newline, or -1 at the end; a longer line is cut. */
PROBEABLE s32 read_line(struct reader *reader, char *line, u32 size)
{
    u32 length = 0;
    for (;;) {
        if (reader->used == reader->filled && !refill(reader)) {
            line[length] = 0;
            return length ? (s32)length : -1;
        }
        char c = reader->block[reader->used++];
        if (c == '\n')
            break;
        if (length + 1 < size)
            line[length++] = c;
    }
    line[length] = 0;
    return (s32)length;
}

PROBEABLE const char *find_text(const char *line, const char *word)
{
    for (; *line; line++) {
        u32 i = 0;
        while (word[i] && line[i] == word[i])
            i++;
        if (!word[i])
            return line;
    }
    return *word ? NULL : line;
}

PROBEABLE void emit_line(u32 number, const char *line, s32 length)
{
    print_u64(number);
    print("\t");
    print(line);
    print("\t");
    print_s64(length);
    print("\n");
}

int main(int argc, char **argv)
{
    static struct reader input;
    char line[100];
    const char *word = argc > 1 ? argv[1] : "";
    u32 number = 0, kept = 0;
    s32 length, longest = 0;
    while ((length = read_line(&input, line, sizeof line)) >= 0) {
        number++;
        if (!find_text(line, word))
            continue;
        kept++;
        if (length > longest)
            longest = length;
        emit_line(number, line, length);
    }
    print_u64(kept);
    print(" of ");
    print_u64(number);
    print(" lines, longest ");
    print_s64(longest);
    print("\n");
    return kept ? 0 : 1;
}
