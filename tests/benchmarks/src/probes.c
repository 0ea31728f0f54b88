/* Functions to probe: `probes NAME COUNT` calls one so often, with two numbers and a string, and
 * prints nothing. The first instruction says how a kprobe's hit goes on: in a boosted slot,
 * emulated, or in a slot with a second trap behind it. */
#include <stdlib.h>
#include <string.h>

typedef long function(long, long, const char *);
extern function boosted, emulated, trapped;

#ifdef __x86_64__
#define FIRST_BOOSTED "mov %rdi, %rax"
#define FIRST_TRAPPED "movaps %xmm0, %xmm0"
#define JUMP "jmp"
#define TYPE "@function"
#else
#define FIRST_BOOSTED "mov x3, x0"
#define FIRST_TRAPPED "mrs x3, tpidr_el0"
#define JUMP "b"
#define TYPE "%function"
#endif
#define DEFINE(name, first)                                                                      \
    __asm__(".text\n.balign 16\n.globl " name "\n.type " name ", " TYPE "\n" name ":\n" first     \
            "\n1: ret\n.size " name ", . - " name "\n")

DEFINE("boosted", FIRST_BOOSTED);
DEFINE("emulated", JUMP " 1f");
DEFINE("trapped", FIRST_TRAPPED);

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    function *called = !strcmp(argv[1], "boosted")    ? boosted
                       : !strcmp(argv[1], "emulated") ? emulated
                                                      : trapped;
    long count = atol(argv[2]);
    for (long i = 0; i < count; i++)
        called(i, i + 1, "sixteen bytes..");
    return 0;
}
