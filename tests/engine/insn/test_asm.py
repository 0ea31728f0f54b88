"""What a user types over an instruction becomes bytes."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from assembling import assembles

from engine.arch import records
from engine.errors import CommandError
from engine.insn import asm
from engine.insn.asm import assemble, in_hexadecimal

ARCH = {arch.name: arch for arch in records()}


@assembles
@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("x86_64", "mov eax, 10", "b80a000000"),
        ("x86_64", "sub rsp, 64; call 4194560", "4883ec40e8f7ff3f00"),
        ("x86_64", "fadd st(0), st(1)", "d8c1"),
        ("aarch64", "stp x29, x30, [sp, #-32]!", "fd7bbea9"),
        ("aarch64", "add v0.16b, v1.16b, v12.16b", "20842c4e"),
        ("aarch64", "mov w10, #100", "8a0c8052"),
    ],
)
def test_numbers_are_decimal(name: str, text: str, code: str) -> None:
    assert assemble(ARCH[name], 0x100, text).hex() == code


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("mov eax, 10", "mov eax, 0xa"),
        ("ldr x10, [x11, #-256]", "ldr x10, [x11, #-0x100]"),
        ("fadd st(0), st(1); nop 7", "fadd st(0), st(1); nop 7"),
        ("mov v0.16b, v31.16b", "mov v0.16b, v31.16b"),
        ("mov eax, 0x10", "mov eax, 0x10"),
        ("mov eax, 010", "mov eax, 010"),
        ("L1: jmp L10", "L1: jmp L10"),
    ],
)
def test_only_decimal_numbers_are_spelled_anew(text: str, spelled: str) -> None:
    assert in_hexadecimal(text) == spelled


@assembles
@pytest.mark.parametrize("text", ["", "no such thing", "mov eax, [rip + nowhere]"])
def test_what_is_no_instruction(text: str) -> None:
    with pytest.raises(CommandError):
        assemble(ARCH["x86_64"], 0, text)


@pytest.mark.slow
@assembles
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("~x", "Keystone does not come to an end with that"),
        ("rep ,", "Keystone does not come to an end with that"),
        (".space 99999999999", ""),
        (".rept 99999999; nop; .endr", ""),
        ('.incbin "/etc/hostname"', "files are not read"),
        ('nop; .INCLUDE "/etc/passwd"', "files are not read"),
        ("mov eax, \u00e9", "instructions are some ASCII characters"),
        ("nop; " * 20_000, "instructions are some ASCII characters"),
        ("nop\nnop\0", ""),
    ],
)
def test_a_text_harms_nobody(text: str, why: str) -> None:
    """Keystone hangs, takes all memory or reads files for these; the next text is served."""
    began = time.monotonic()
    with suppress(CommandError):
        assemble(ARCH["x86_64"], 0, text)
        assert not why
    if why:
        with pytest.raises(CommandError, match=why):
            assemble(ARCH["x86_64"], 0, text)
    assert time.monotonic() - began < 60
    assert assemble(ARCH["x86_64"], 0, "nop") == b"\x90"


@assembles
def test_a_forked_process_has_its_own() -> None:
    assert assemble(ARCH["x86_64"], 0, "nop") == b"\x90"
    child = os.fork()
    if not child:
        try:
            os._exit(assemble(ARCH["x86_64"], 0, "int3")[0])
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0xCC
    assert assemble(ARCH["x86_64"], 0, "ret") == b"\xc3"


def test_without_keystone_the_message_names_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "keystone.py").write_text("raise ImportError")  # as if it were not installed
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(asm, "_assembler", asm._Assembler())
    with pytest.raises(CommandError) as caught:
        assemble(ARCH["x86_64"], 0, "nop")
    assert str(caught.value) == (
        "assembling needs the package keystone-engine: pip install 'kprobe-tui[assembler]'"
    )
