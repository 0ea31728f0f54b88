/* x86-64: what the emulator gets wrong and the engine carries out: shld and shrd of a RIP-relative
 * operand by each immediate, and returns that pop more than 32 KiB. */
#include "guest.h"
unsigned long cell;
#define COUNTS "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,95,128,129,255"
enum { COUNT = 70 };
static const unsigned char counts[] = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,95,128,129,255};
#define SHIFTS(name, op, source) void name(unsigned long old, unsigned long source_, unsigned long *out); \
    asm(".text\n" #name ":\nmov %rsi,%r9\n.irp count," COUNTS "\nmov %rdi,cell(%rip)\npushq $2\npopfq\n" op " $\\count," source ",cell(%rip)\n" \
        "pushfq\npopq (%rdx)\nmov cell(%rip),%rax\nmov %rax,8(%rdx)\nadd $16,%rdx\n.endr\nret\n");
SHIFTS(left64, "shldq", "%rsi") SHIFTS(left32, "shldl", "%r9d") SHIFTS(left16, "shldw", "%si")
SHIFTS(right64, "shrdq", "%r9") SHIFTS(right32, "shrdl", "%esi") SHIFTS(right16, "shrdw", "%r9w")
typedef void shift(unsigned long, unsigned long, unsigned long *);
static void all(const char *name, shift *run, unsigned bits) {
    static const unsigned long values[][2] = {{0x123456789abcdef0, 0x0fedcba987654321}, {-1, 0}, {0, -1}, {0x8000000080008000, 0x4000000040004000}, {1, 1}};
    unsigned long out[2 * COUNT];
    for (unsigned i = 0; i < 5; i++) {
        run(values[i][0], values[i][1], out);
        for (unsigned k = 0; k < COUNT; k++) {
            unsigned count = counts[k] & (bits == 64 ? 63 : 31);
            if (count > bits) continue; /* undefined */
            printf("%s %u %u: %lx %lx\n", name, i, counts[k], out[2 * k + 1], out[2 * k] & (count == 1 ? 0x8c5 : 0xc5));
        }
    }
}
#define RETURN(name, size) long name(void); \
    asm(".text\n" #name ":\npush %rbx\nmov %rsp,%rbx\nsub $0x20000,%rsp\ncall 1f\nsub %rbx,%rsp\nlea 0x20000(%rsp),%rax\nmov %rbx,%rsp\npop %rbx\nret\n1: ret $" #size "\n");
RETURN(r7ff8, 0x7ff8) RETURN(r8000, 0x8000) RETURN(r9010, 0x9010) RETURN(rfff8, 0xfff8)
int main(void) {
    all("shld", left64, 64); all("shld", left32, 32); all("shld", left16, 16);
    all("shrd", right64, 64); all("shrd", right32, 32); all("shrd", right16, 16);
    SHOW(r7ff8()); SHOW(r8000()); SHOW(r9010()); SHOW(rfff8());
    guard_install();
    GUARD(({ asm volatile(".pushsection .rodata\nfixed: .quad 1\n.popsection\nshldl $3,%%eax,fixed(%%rip)" ::: "cc", "memory"); 0; }));
    GUARD(({ asm volatile("shldl $3,%%eax,0x70000000(%%rip)" ::: "cc", "memory"); 0; }));
    GUARD(({ asm volatile(".byte 0x8f,0xe9,0x78,0x90,0xc1"); 0; })); /* XOP: vprotb */
    GUARD(({ asm volatile(".byte 0x8f,0xc8"); 0; })); /* 8f /1 */
    return 0;
}
