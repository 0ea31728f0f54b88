"""An IA-64 core with a few mapped pages: for code of a test's own, and for recorded guests."""

import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.arch.ia64.breaks import break_kind
from engine.arch.ia64.bundle import TEMPLATES, Bundle
from engine.arch.ia64.encode import assemble
from engine.cpu.base import Stop, StopKind
from engine.cpu.ia64.core import Ia64Cpu
from engine.cpu.pagetable import Region
from engine.cpu.ram import EXECUTE, PAGE, READ, WRITE, Ram

DATA_DIR = Path(__file__).parents[1] / "data" / "ia64"
CODE, DATA, STACK = 0x4000_0000_0000_0000, 0x6000_0000_0000_0000, 0x8000_0000_0000_0000
_STACKS = (
    (0x9FFF_FFFF_FFF0_0000, 0xA000_0000_0000_0000),
    (0x9FFF_FFFF_7F60_0000, 0x9FFF_FFFF_7FE0_0000),
)
_WRITE, _EXIT, _EXIT_GROUP = 1027, 1025, 1236
JIT_AFTER = 0
"""Runs of a block after which cores make machine code of it; 0 for never."""


def bundle(template: str, *texts: str, address: int = CODE) -> bytes:
    """A bundle from the names of its units ("MII;" ends in a stop) and its instructions."""
    number = TEMPLATES.index(template.rstrip(";")) | template.endswith(";")
    units = template.rstrip(";")
    if units == "MLX":
        first = assemble(texts[0], "M", address)[0]
        word, extra = assemble(texts[1], "X", address)
        return Bundle(number, (first, extra, word)).pack()
    words = [assemble(text, unit, address)[0] for text, unit in zip(texts, units, strict=True)]
    return Bundle(number, (words[0], words[1], words[2])).pack()


def code(*lines: str, address: int = CODE) -> bytes:
    """Instructions, one a bundle, each "UNIT text"; the other slots are nops."""
    out = b""
    for line in lines:
        unit, _, text = line.partition(" ")
        at = address + len(out)
        if unit == "X":
            out += bundle("MLX;", "nop.m 0x0", text, address=at)
        elif unit == "M":
            out += bundle("MII;", text, "nop.i 0x0", "nop.i 0x0", address=at)
        elif unit == "F":
            out += bundle("MFI;", "nop.m 0x0", text, "nop.i 0x0", address=at)
        else:
            out += bundle(f"MI{unit};", "nop.m 0x0", "nop.i 0x0", text, address=at)
    return out


class BareIa64(Ia64Cpu):
    """Code at CODE (read, execute), data at DATA and a register stack at STACK (read, write)."""

    def __init__(
        self, program: bytes = b"", *, writable_code: bool = False, **options: Any
    ) -> None:
        self.memory = Ram(size=1 << 28, budget=1 << 26)
        options.setdefault("jit_after", JIT_AFTER)
        super().__init__(self.memory, classify_break=break_kind, **options)
        self.regions = [
            self._region(CODE, 4, READ | EXECUTE | (WRITE if writable_code else 0)),
            self._region(DATA, 4, READ | WRITE),
            self._region(STACK, 64, READ | WRITE),
        ]
        self.map(self.regions)
        self.write(CODE, program)
        self.write_register("ip", CODE)
        self.write_register("bsp", STACK)

    def map(self, regions: list[Region]) -> None:
        """Replace the page table."""
        self.page_table.load(sorted(regions, key=lambda region: region.start))
        self.flush_tlb()

    def _region(self, start: int, pages: int, perms: int) -> Region:
        offset = self.memory.allocate(pages * PAGE)
        assert offset is not None
        return Region(start, start + pages * PAGE, offset, perms)


class Guest:
    """A freestanding static program that writes and exits."""

    def __init__(self, elf: bytes, start: dict[str, Any]) -> None:
        """`start` is the first line of a recorded run."""
        self.memory = Ram(size=1 << 28, budget=1 << 26)
        self.cpu = Ia64Cpu(self.memory, classify_break=break_kind, jit_after=JIT_AFTER)
        self.output = bytearray()
        self.exit: int | None = None
        pages = dict(_pages(elf))
        regions = [self._region(page * PAGE, (page + 1) * PAGE, pages[page]) for page in pages]
        regions += [self._region(low, high, READ | WRITE) for low, high in _STACKS]
        self.cpu.page_table.load(sorted(regions, key=lambda region: region.start))
        self.cpu.flush_tlb()
        for address, data, _, _ in _segments(elf):
            self.cpu.write(address, data)
        self.cpu.write(int(start["stack_at"], 16), bytes.fromhex(start["stack"]))
        self.cpu.write_register("bsp", int(start["state"]["bsp"], 16))
        self.cpu.write_register("cfm", int(start["state"]["cfm"], 16))
        for name, value in start["state"].items():
            if name not in ("bsp", "bspstore", "cfm"):
                put(self.cpu, name, value)
        self.cpu.write_register("ip", int(start["ip"], 16))

    def _region(self, start: int, end: int, perms: int) -> Region:
        offset = self.memory.allocate(end - start)
        assert offset is not None
        return Region(start, end, offset, perms)

    def add(self, start: int, perms: int, data: bytes) -> None:
        """Map a page with some bytes."""
        region = self._region(start, start + PAGE, perms)
        regions = [*self.cpu.page_table.regions, region]
        self.cpu.page_table.load(sorted(regions, key=lambda region: region.start))
        self.cpu.flush_tlb()
        self.cpu.write(start, data)

    def system_call(self) -> None:
        """Do what the guest asks for."""
        cpu = self.cpu
        number, first, second, third = cpu.read_registers(("r15", "out0", "out1", "out2"))
        if number == _WRITE:
            self.output += cpu.read(second, third)
            cpu.write_register("r8", third)
            cpu.write_register("r10", 0)
        else:
            assert number in (_EXIT, _EXIT_GROUP), number
            self.exit = first & 255

    def run(self, single: bool = False) -> Stop | None:
        """Up to the exit, or the stop that is none of the above."""
        while self.exit is None:
            stop = self.cpu.step() if single else self.cpu.run()
            if stop is None:
                continue
            if stop.kind is not StopKind.SYSCALL:
                return stop
            self.system_call()
        return None


def _segments(elf: bytes) -> Iterator[tuple[int, bytes, int, int]]:
    (table,) = struct.unpack_from("<Q", elf, 32)
    (count,) = struct.unpack_from("<H", elf, 56)
    for at in range(table, table + 56 * count, 56):
        kind, flags, offset, address, _, stored, size, _ = struct.unpack_from("<IIQQQQQQ", elf, at)
        if kind == 1:
            yield address, elf[offset : offset + stored], size, flags


def _pages(elf: bytes) -> dict[int, int]:
    pages: dict[int, int] = {}
    for address, _, size, flags in _segments(elf):
        perms = (flags >> 2 & 1) * READ | (flags >> 1 & 1) * WRITE | (flags & 1) * EXECUTE
        for page in range(address // PAGE, (address + size + PAGE - 1) // PAGE):
            pages[page] = pages.get(page, 0) | perms
    return pages


def _float(text: str) -> int:
    sign, exponent, significand = text.split(":")
    return int(sign) << 81 | int(exponent, 16) << 64 | int(significand, 16)


def put(cpu: Ia64Cpu, name: str, value: Any) -> None:
    """Set a register to what a recording says."""
    if name == "um":
        cpu.write_register("psr", int(value))
    elif ":" in str(value):
        cpu.write_register(name, _float(value))
    else:
        cpu.write_register(name, int(value.removeprefix("N"), 16))


def get(cpu: Ia64Cpu, name: str) -> Any:
    """A register as a recording says it."""
    if name == "um":
        return cpu.read_register("psr")
    value = cpu.read_register(name)
    if name[0] == "f" and name[1:].isdigit():
        return f"{value >> 81}:{value >> 64 & 0x1FFFF:05x}:{value & (1 << 64) - 1:x}"
    nat = name[0] == "r" and name[1:].isdigit() and cpu.read_register(f"nat{name[1:]}")
    return ("N" if nat else "") + f"{value:x}"


def trace(name: str) -> Iterator[Any]:
    """Lines of a recorded run."""
    with gzip.open(DATA_DIR / "traces" / f"{name}.jsonl.gz", "rt") as file:
        yield from map(json.loads, file)


def traces() -> dict[str, Any]:
    """What is known of each recorded run: rc, stdout, insts."""
    found: dict[str, Any] = json.loads((DATA_DIR / "traces" / "index.json").read_text())
    return found


def program(name: str) -> bytes:
    """An ELF file of `tests/data/ia64/guests`."""
    return (DATA_DIR / "guests" / f"{name}.elf").read_bytes()
