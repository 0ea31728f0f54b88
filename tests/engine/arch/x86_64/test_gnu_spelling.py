"""Instructions in GNU's words, beside objdump's."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.arch import by_name
from engine.arch.x86_64.gnu_spelling import spelled
from engine.insn.disasm import Disassembler

_LINE = re.compile(r"\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t(.*)")
_FAR = re.compile(r"^((?:(?:bnd|notrack) )?(?:call|j[a-z]+|loop\w*|xbegin)\s+)([0-9a-f]+)$")
_WITH_WAIT = re.compile("9b .. .*")
"""Capstone takes these for two instructions."""


@pytest.mark.parametrize(
    ("raw", "intel", "att"),
    [
        ("89 7d fc", "mov    DWORD PTR [rbp-0x4],edi", "mov    %edi,-0x4(%rbp)"),
        ("c7 45 fc 00 00 00 00", "mov    DWORD PTR [rbp-0x4],0x0", "movl   $0x0,-0x4(%rbp)"),
        ("8d 04 7f", "lea    eax,[rdi+rdi*2]", "lea    (%rdi,%rdi,2),%eax"),
        ("0f 1f 40 00", "nop    DWORD PTR [rax+0x0]", "nopl   0x0(%rax)"),
        ("f3 48 ab", "rep stos QWORD PTR es:[rdi],rax", "rep stos %rax,%es:(%rdi)"),
        ("48 d1 fe", "sar    rsi,1", "sar    %rsi"),
        ("0f b6 c0", "movzx  eax,al", "movzbl %al,%eax"),
        ("48 98", "cdqe", "cltq"),
        ("64 48 8b 04 25 28 00 00 00", "mov    rax,QWORD PTR fs:0x28", "mov    %fs:0x28,%rax"),
        ("ff 50 08", "call   QWORD PTR [rax+0x8]", "call   *0x8(%rax)"),
        ("48 3d 00 f0 ff ff", "cmp    rax,0xfffffffffffff000", "cmp    $0xfffffffffffff000,%rax"),
        ("de e1", "fsubrp st(1),st", "fsubp  %st,%st(1)"),
        ("f2 0f 2a 45 ec", "cvtsi2sd xmm0,DWORD PTR [rbp-0x14]", "cvtsi2sdl -0x14(%rbp),%xmm0"),
        ("66 90", "xchg   ax,ax", "xchg   %ax,%ax"),
        ("66 2e 0f 1f 84 00 00 00 00 00", "cs nop WORD PTR [rax+rax*1+0x0]",
         "cs nopw 0x0(%rax,%rax,1)"),
    ],
)  # fmt: skip
def test_instructions_are_written_as_gdb_has_them(raw: str, intel: str, att: str) -> None:
    insn = Disassembler(by_name("x86_64")).decode(0x401000, bytes.fromhex(raw))[0]
    assert spelled(insn, "intel").text == intel
    assert spelled(insn, "att").text == att


@pytest.mark.slow
@pytest.mark.parametrize("flavor", ["intel", "att"])
@pytest.mark.parametrize("file", ["/usr/bin/bash", "/lib/x86_64-linux-gnu/libm.so.6"])
def test_a_whole_program_is_written_as_objdump_writes_it(file: str, flavor: str) -> None:
    if shutil.which("objdump") is None or not Path(file).exists():
        pytest.skip("objdump or the program is not there")
    disassembler = Disassembler(by_name("x86_64"))
    command = ["objdump", "-d", "-w", "-j", ".text", "-M", flavor, file]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    differing, count = [], 0
    for match in filter(None, map(_LINE.match, said.splitlines())):
        if _WITH_WAIT.match(match[2]) or "(bad)" in match[3]:
            continue
        want, _, refers = re.sub(r"\s*<[^>]*>", "", match[3]).rstrip().partition("        # ")
        want = _FAR.sub(r"\g<1>0x\2", want)
        insn = disassembler.decode(int(match[1], 16), bytes.fromhex(match[2]))[0]
        got = spelled(insn, flavor)
        count += 1
        if (got.text, got.refers) != (want.rstrip(), int(refers, 16) if refers else None):
            differing.append((match[2], want, got))
    assert count > 50_000
    assert not differing
