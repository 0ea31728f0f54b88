"""A record's names are all that the emulator needs of an architecture."""

import struct
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from barecpu import BareCpu
from msgspec.structs import replace

from engine.arch import by_name
from engine.arch.abi import ElfAbi
from engine.arch.base import Arch, Register, Roles, TrapKind
from engine.arch.engines import (
    USER_START,
    CapstoneNames,
    EngineNames,
    Setting,
    UnicornNames,
    UserStart,
)
from engine.cpu import unicorn_machines
from engine.cpu.base import Stop, StopKind
from engine.cpu.pagetable import Region
from engine.cpu.ram import Ram
from engine.cpu.unicorn_cpu import UnicornCpu
from engine.errors import EngineError
from engine.insn.disasm import Disassembler

# RISC-V as a stranger: Unicorn refuses its breakpoints and leaves pc behind illegal instructions.
_NAMES = UnicornNames(
    arch="RISCV",
    modes=("UC_MODE_RISCV64",),
    target="riscv64",
    start=UserStart(
        at=0x3FFF_0000_0000,
        pages=struct.pack("<I", 0x30200073),  # mret
        entry=0,
        settings=(Setting("MSTATUS", 3 << 13), Setting("MEPC", USER_START)),
        level=None,
    ),
    registers=(("status", "FCSR"),),
    writable=(("status", 0x1F, 0),),
    advances=((2, 4),),
    refused_breakpoints=(b"\x02\x90", b"\x73\x00\x10\x00"),
)
_TRAPS = {2: TrapKind.ILLEGAL, 8: TrapKind.SYSCALL}


def _stranger(names: UnicornNames = _NAMES) -> Arch:
    general = (Register("x0", constant=True), *(Register(f"x{at}") for at in range(1, 32)))
    return replace(
        by_name("aarch64"),
        registers=(*general, Register("pc"), Register("status", bits=32, group="float")),
        parts=tuple(register.name for register in by_name("aarch64").registers),
        abi=ElfAbi(),
        roles=Roles(pc="pc", sp="x2", fp="x8", flags="status", tls="x4", link="x1"),
        engines=EngineNames(
            names, CapstoneNames("CS_ARCH_RISCV", ("CS_MODE_RISCV64", "CS_MODE_RISCVC"))
        ),
        breakpoint=b"\x02\x90",
        insn_align=2,
        suspects={},
        screen=lambda insns: (),
        classify_trap=lambda number: _TRAPS.get(number, TrapKind.OTHER),
    )


class _Bare(UnicornCpu):
    def __init__(self, code: bytes) -> None:
        arch = _stranger()
        ram = Ram(size=1 << 28, budget=1 << 24)
        super().__init__(arch, ram, Disassembler(arch).decode)
        physical = ram.allocate(4096)
        assert physical is not None
        self.page_table.load([Region(USER_START, USER_START + 4096, physical, 5)])
        self.flush_tlb()
        self.write(USER_START, code)
        self.write_register("pc", USER_START)


def test_refused_breakpoints_are_breakpoints() -> None:
    # addi x10, x10, -1; c.ebreak; c.nop; bnez x10, back; ebreak
    cpu = _Bare(bytes.fromhex("1305f5ff 0290 0100 e31c05fe 73001000"))
    cpu.write_register("x10", 3)
    hits: list[tuple[int, ...]] = []
    read = cpu.traps.reader(("x10", "pc"))

    def action() -> int:
        hits.append(read())
        return USER_START + 6

    cpu.traps.plant(USER_START + 4, action, USER_START + 6)
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.BREAKPOINT)
    assert cpu.read_register("pc") == USER_START + 12
    assert hits == [(2, USER_START + 4), (1, USER_START + 4), (0, USER_START + 4)]
    cpu.traps.remove(USER_START + 4)
    cpu.write_register("pc", USER_START + 4)
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.BREAKPOINT)
    assert cpu.read_register("pc") == USER_START + 4


def test_a_pc_that_went_on_comes_back() -> None:
    cpu = _Bare(bytes.fromhex("0100 0000"))
    assert cpu.run() == Stop(StopKind.TRAP, TrapKind.ILLEGAL, 2)
    assert cpu.read_register("pc") == USER_START + 2


def test_registers_by_their_own_names_and_masks() -> None:
    cpu = _Bare(b"")
    cpu.write_register("status", 0xFFFF)
    assert cpu.read_register("status") == 0x1F


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (replace(_NAMES, arch="VAX"), "this Unicorn has no VAX"),
        (replace(_NAMES, modes=("UC_MODE_66",)), "UC_MODE_66"),
        (replace(_NAMES, registers=(("status", "PSW"),)), "no register PSW of RISCV"),
        (
            replace(_NAMES, start=replace(_NAMES.start, level=("X2", 1, 1))),
            "did not reach user level",
        ),
    ],
)
def test_names_that_unicorn_does_not_know(names: UnicornNames, message: str) -> None:
    arch = _stranger(names)
    with pytest.raises(EngineError, match=message):
        UnicornCpu(arch, Ram(size=1 << 28, budget=1 << 24), Disassembler(arch).decode)


def test_an_architecture_that_unicorn_does_not_have() -> None:
    arch = by_name("ia64")
    with pytest.raises(EngineError, match="no emulator for ia64"):
        UnicornCpu(arch, Ram(size=1 << 28, budget=1 << 24), Disassembler(arch).decode)


@pytest.mark.parametrize("portable", ["0", "1"])
def test_bytes_that_differ_by_chance_are_no_float_flags(
    portable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved context holds pointers: one looked like the flags in one start of 300."""
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", portable)
    chance: Iterator[bytes] = chain((b"\0",), repeat(b"\4"))
    plain = unicorn_machines._context_bytes

    def with_a_pointer(context: Any) -> bytes:
        return plain(context) + next(chance)

    monkeypatch.setattr(unicorn_machines, "_context_bytes", with_a_pointer)
    unicorn_machines.machine_of.cache_clear()
    cpu = BareCpu("x86_64", bytes.fromhex("0f05"))
    assert cpu.float_flags() == 0
    cpu.run()
    assert cpu.float_flags() == 0
    unicorn_machines.machine_of.cache_clear()
