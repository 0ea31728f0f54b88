"""Programs of any number of small functions, each called once by way of a table."""

from pathlib import Path

from compiled import build

_FUNCTION = """\
.globl f{0}
.type f{0},@function
f{0}:
.cfi_startproc
lea {0}(%rdi,%rsi),%rax
add $1,%rax
xor %rdi,%rax
ret
.cfi_endproc
.size f{0},.-f{0}
"""
_START = """\
.globl _start
.type _start,@function
_start:
.cfi_startproc
lea table(%rip),%rbx
mov ${0},%r12d
1: call *(%rbx)
add $8,%rbx
dec %r12
jne 1b
xor %edi,%edi
mov $60,%eax
syscall
.cfi_endproc
.size _start,.-_start
.data
.balign 8
table:
"""
_LINK = ("-nostdlib", "-static", "-Wl,--eh-frame-hdr", "-Wl,-z,noexecstack")


def many_functions(folder: Path, count: int) -> Path:
    """A program of functions f0, f1, ...; skips the test without a compiler for x86-64."""
    source = [".text\n", *map(_FUNCTION.format, range(count)), _START.format(count)]
    source += [f".quad f{number}\n" for number in range(count)]
    return build(folder, f"many{count}", "".join(source), *_LINK)
