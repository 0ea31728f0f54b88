"""Words that describe the process, its registers and its symbols."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cguest import CHECKOUT
from gdbwords import echoed, of_gdb, said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))
SOURCE = r"""
/* What <sys/sdt.h> makes of DTRACE_PROBE1(zoo, fed, n). */
static unsigned short listeners __attribute__((section(".probes"), used));
static _Thread_local int mine = 3;
int global = 4;
int feed(int n)
{
    static int kept = 5;
    __asm__ volatile(
        "990: nop\n"
        ".pushsection .note.stapsdt,\"?\",\"note\"\n"
        ".balign 4\n .4byte 992f-991f, 994f-993f, 3\n"
        "991: .asciz \"stapsdt\"\n992: .balign 4\n"
        "993: .8byte 990b\n .8byte _.stapsdt.base\n .8byte %c1\n"
        ".asciz \"zoo\"\n .asciz \"fed\"\n .asciz \"-4@%0\"\n"
        "994: .balign 4\n.popsection\n"
        ".ifndef _.stapsdt.base\n"
        ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
        ".weak _.stapsdt.base\n .hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n"
        : : "r"(n), "i"(&listeners));
    return n + kept + mine + global;
}
int main(void)
{
    long double third = 1 / 3.0L;
    __asm__ volatile("fldt %0\n fld1\n fldz\n" : : "m"(third));
    return feed(1);
}
"""
WORDS = (
    *("info probes", "break feed", "run", "info probes", "info probes stap zo fe", "info float"),
    *("info probes nosuch", "info scope feed", "info scope main", "info address global"),
    *("info address n", "info address kept", "info address main", "info address nosuch"),
    *("info address mine", "info scope", "info address", "info line feed"),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or os.uname().machine != "x86_64":
        pytest.skip("no gcc for x86-64")
    tmp = tmp_path_factory.mktemp("described")
    (tmp / "described.c").write_text(SOURCE)
    command = ["gcc", "-g", "-O0", "-static", "-no-pie", "-fno-pie", "-o", "described"]
    subprocess.run([*command, "described.c"], check=True, cwd=tmp)
    return tmp / "described"


@pytest.mark.slow
def test_descriptions_read_as_in_gdb(program: Path) -> None:
    lines = echoed(WORDS)
    ours = said(GuestConfig(str(program)), *lines).replace("! ", "")
    assert _plain(ours) == _plain(of_gdb(program, *lines))


def _plain(text: str) -> str:
    """Without x87's pointers, which are not kept here, and what gdb says of threads."""
    text = re.sub(r"(Instruction Pointer|Operand Pointer|Opcode): .*", r"\1", text)
    return re.sub(r"^warning: .*\n|^.*libthread_db.*\n", "", text, flags=re.MULTILINE)


def test_the_auxiliary_vector_is_the_kernels() -> None:
    text = said(STRUCTS, "info auxv", "break main", "run", "info auxv")
    assert text.startswith("! The program has no auxiliary information now.\n")
    assert re.search(
        r"^6    AT_PAGESZ            System page size               4096$", text, re.M
    )
    assert re.search(r'^31   AT_EXECFN .* 0x[0-9a-f]+ ".*/structs"$', text, re.M)
    assert text.endswith("0    AT_NULL              End of vector                  0x0\n")


def test_the_process_and_what_it_was_stopped_by() -> None:
    lines = ("info program", "info inferiors", "break transfer", "run", "info program")
    text = said(STRUCTS, *lines, "step", "info program", "info inferiors")
    assert text.startswith("The program being debugged is not being run.\n  Num  Description ")
    assert "* 1    <null> " in text
    assert "\nIt stopped at breakpoint 1.\n" in text
    assert "\nIt stopped after being stepped.\n" in text
    assert re.search(r"^\* 1    process \d+ +1 \(emulator\) +.*/structs $", text, re.M)


def test_all_registers_are_those_of_the_processor() -> None:
    text = said(STRUCTS, "break transfer", "run", "info all-registers", "info vector")
    for name in ("rax", "eflags", "mxcsr", "st0", "xmm15"):
        assert re.search(rf"^{name} ", text, re.M), name
