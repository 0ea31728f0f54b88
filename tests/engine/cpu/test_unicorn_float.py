"""Floating point that the host computes for a guest of its own kind."""

import os
import struct
import subprocess
import sys

import capstone
import pytest
from barecpu import CODE, DATA, BareCpu

from engine.cpu import native, unicorn_float
from engine.cpu.base import StopKind
from engine.cpu.unicorn_float_code import ROUTINES
from engine.cpu.unicorn_screen import Screen

needs_host = pytest.mark.skipif(
    not (native.possible() and unicorn_float.install("x86_64")),
    reason="not an x86-64 host, or no executable memory",
)


def test_bytes_are_the_instructions_beside_them() -> None:
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    starts: set[int] = set()
    jumps: dict[int, str] = {}
    at = 72  # behind the words in front
    for name, routine in ROUTINES:
        raw = bytes.fromhex(routine)
        decoded = list(engine.disasm_lite(raw, at))
        assert sum(size for _, size, _, _ in decoded) == len(raw), name
        starts |= {where for where, _, _, _ in decoded}
        jumps |= {
            int(text, 16): name
            for _, _, mnemonic, text in decoded
            if mnemonic[0] in "jc" and text.startswith("0x")
        }
        at += len(raw)
    assert len(jumps) > 20
    assert jumps.keys() <= starts


@needs_host
def test_control_words_move_without_leaving_the_emulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served: list[object] = []
    monkeypatch.setattr(Screen, "handle", lambda *given: served.append(given))
    # mov ecx, 1000; stmxcsr [rbx]; ldmxcsr [rbx]; fnstcw [rbx]; fldcw [rbx]; dec ecx; jne; syscall
    machine = BareCpu("x86_64")
    machine.write(CODE, bytes.fromhex("b9e8030000 0fae1b 0fae13 d93b d92b ffc9 75f2 0f05"))
    machine.write_register("rbx", DATA)
    assert machine.run().kind is StopKind.SYSCALL
    assert not served


@needs_host
def test_flags_are_in_mxcsr_as_registers_show_it() -> None:
    machine = BareCpu("x86_64")
    machine.write(CODE, bytes.fromhex("f20f1003 f20f5e4308 0f05"))  # movsd, divsd, syscall
    machine.write(DATA, struct.pack("<dd", 1.0, 0.0))
    machine.write_register("rbx", DATA)
    machine.run()
    assert machine.read_register("mxcsr") == 0x1F84


def test_without_host_code_nothing_is_led_elsewhere() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "from engine.cpu import unicorn_float; print(unicorn_float.install('x86_64'))",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"KPROBE_TUI_PORTABLE": "1"},
    )
    assert done.stdout == "False\n"


def test_an_unknown_target_changes_nothing() -> None:
    assert not unicorn_float.install("nosuch")


@needs_host
@pytest.mark.parametrize(
    "code",
    [
        *("0f3800c1", "440f3800c1", "0f3804c1", "0f3808c1", "0f3809c1", "0f380ac1", "0f380bc1"),
        *("0f381cc1", "0f381dc1", "0f381ec1", "0f3802c1", "440f3803c1", "0f3a0fc100"),
        "440f3a0fc108",
    ],
)
def test_mmx_behind_longer_opcodes_is_as_all_of_mmx(code: str) -> None:
    """TOP is 0 behind it and all registers are in use; with REX.R it is no other register."""
    # fld1; the instruction; stmxcsr [rbx]; fxsave [rbx+64]; emms; fnstsw ax
    code = "d9e8" + code + "0fae1b" + "0fae4340" + "0f77" + "dfe0" + "0f05"
    machine = BareCpu("x86_64", bytes.fromhex(code))
    machine.write_register("rbx", DATA)

    assert machine.run().kind is StopKind.SYSCALL

    assert int.from_bytes(machine.read(DATA, 4), "little") == 0x1F80
    status, tags = struct.unpack("<HB", machine.read(DATA + 66, 3))
    assert (status & 0x3800, tags) == (0, 0xFF)
    assert machine.read_register("rax") & 0x3800 == 0
    assert machine.read_register("ftag") == 0xFFFF


@needs_host
def test_emms_clears_the_top_of_the_stack() -> None:
    # fld1; emms; fnstsw ax; syscall
    machine = BareCpu("x86_64", bytes.fromhex("d9e8 0f77 dfe0 0f05"))
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("rax") & 0x3800 == 0
    assert machine.read_register("ftag") == 0xFFFF
