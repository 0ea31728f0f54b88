/* Static probes as <sys/sdt.h> leaves them in a file, for tests that have no such header.
 *
 * MARKER(PROVIDER, NAME, SEMAPHORE, ARGUMENTS, OPERANDS...): texts, the name of a counter or "0",
 * and operands of asm. ARGUMENTS is what the note shall say, with %N for operands.
 */
#define SEMAPHORE(name) \
    __attribute__((section(".probes"), used)) volatile unsigned short name
#define MARKER(provider, name, semaphore, arguments, ...) \
    __asm__ volatile( \
        "990: nop\n" \
        ".pushsection .note.stapsdt,\"?\",\"note\"\n" \
        ".balign 4\n .4byte 992f-991f, 994f-993f, 3\n" \
        "991: .asciz \"stapsdt\"\n992: .balign 4\n" \
        "993: .8byte 990b\n .8byte _.stapsdt.base\n .8byte " semaphore "\n" \
        ".asciz \"" provider "\"\n .asciz \"" name "\"\n .asciz \"" arguments "\"\n" \
        "994: .balign 4\n.popsection\n" \
        ".ifndef _.stapsdt.base\n" \
        ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
        ".weak _.stapsdt.base\n .hidden _.stapsdt.base\n" \
        "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n" \
        : : __VA_ARGS__)
