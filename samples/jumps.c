/* Unusual control flow: tail calls, a computed jump and a non-local exit, where return probes are tested. */
#include "rt.h"

static void *escape[5];
static volatile int last_error;

PROBEABLE u32 finish(u32 value, u32 steps)
{
    return value * 1000 + steps;
}

/* Two functions that only ever tail-call each other: no stack grows, no return is taken in between. */
PROBEABLE u32 odd_step(u32 value, u32 steps);

PROBEABLE u32 even_step(u32 value, u32 steps)
{
    if (steps >= 40)
        return finish(value, steps);
    return odd_step(value / 2 + 7, steps + 1);
}

PROBEABLE u32 odd_step(u32 value, u32 steps)
{
    return even_step(value * 3 + 1, steps + 1);
}

PROBEABLE s32 interpret(const u8 *program)
{
    enum { PUSH, ADD, MULTIPLY, NEGATE, STOP };
    static const void *const targets[] = {&&push, &&add, &&multiply, &&negate, &&stop};
    s32 stack[8] = {0};
    u32 top = 0;
#define NEXT goto *targets[*program++]
    NEXT;
push:
    stack[++top & 7] = *program++;
    NEXT;
add:
    top--;
    stack[top & 7] += stack[(top + 1) & 7];
    NEXT;
multiply:
    top--;
    stack[top & 7] *= stack[(top + 1) & 7];
    NEXT;
negate:
    stack[top & 7] = -stack[top & 7];
    NEXT;
stop:
    return stack[top & 7];
}

/* Declared as if it returned: the callers above it are abandoned in mid-flight. */
PROBEABLE int give_up(int error)
{
    last_error = error;
    __builtin_longjmp(escape, 1);
}

PROBEABLE int descend(int depth, int limit)
{
    if (depth == limit)
        return give_up(-depth) * 2;
    return descend(depth + 1, limit) + 1; /* the frames below never return */
}

PROBEABLE int guarded(int limit)
{
    if (__builtin_setjmp(escape))
        return last_error;
    return descend(0, limit);
}

int main(int argc, char **argv)
{
    static const u8 program[] = {0, 6, 0, 7, 2, 0, 8, 1, 3, 4}; /* -(6 * 7 + 8) */
    (void)argc, (void)argv;
    print("tail calls: ");
    print_u64(even_step(27, 0));
    print("\ncomputed jumps: ");
    print_s64(interpret(program));
    print("\nnon-local exit: ");
    for (int limit = 1; limit <= 5; limit += 2) {
        print_s64(guarded(limit));
        print(limit < 5 ? " " : "\n");
    }
    return 3;
}
