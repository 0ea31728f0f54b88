/* A hot loop around a small worker of several arguments; `loop N` sets the number of rounds. */
#include "rt.h"

static volatile u64 rounds_done;

PROBEABLE u32 mix(u32 state, u32 index, u16 salt, s32 bias)
{
    state ^= index * 2654435761u + salt;
    state = state << 7 | state >> 25;
    return state + (u32)bias;
}

PROBEABLE u32 run_rounds(u32 rounds)
{
    u32 state = 1;
    for (u32 i = 0; i < rounds; i++) {
        state = mix(state, i, (u16)(i * 3), -(s32)(i & 7));
        rounds_done++;
    }
    return state;
}

PROBEABLE u32 parse_number(const char *text)
{
    u32 value = 0;
    while (*text >= '0' && *text <= '9')
        value = value * 10 + (u32)(*text++ - '0');
    return value;
}

int main(int argc, char **argv)
{
    u32 rounds = argc > 1 ? parse_number(argv[1]) : 10000;
    u32 state = run_rounds(rounds);
    print("rounds ");
    print_u64(rounds_done);
    print(", state ");
    print_hex(state);
    print("\n");
    return 0;
}
