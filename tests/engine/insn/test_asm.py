"""What a user types over an instruction becomes bytes."""

import sys

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


def test_without_keystone_the_message_names_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keystone", None)  # as if it were not installed
    monkeypatch.setattr(asm, "_keystone", asm._keystone.__wrapped__)  # none is kept from before
    with pytest.raises(CommandError) as caught:
        assemble(ARCH["x86_64"], 0, "nop")
    assert str(caught.value) == (
        "assembling needs the package keystone-engine: pip install 'kprobe-tui[assembler]'"
    )
