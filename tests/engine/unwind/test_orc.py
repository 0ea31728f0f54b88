"""Rows from ORC: carried out on made stacks, compared with what the instructions do."""

import json
import lzma
import random
import re
from collections.abc import Mapping

import pytest
from kernelimages import (
    AMD64_61,
    AMD64_612,
    DATA,
    GOLDEN,
    MODULES,
    SLOW_612,
    kernel_image,
    module_path,
    open_module,
)
from orckit import BASE, PARTIAL, REGS, new, old, orc_image, orc_types

from engine.arch import by_name
from engine.arch.frames import Flow
from engine.guest.modules import Module
from engine.image.elf import ElfImage
from engine.image.kernel.kernelimage import KernelImage
from engine.unwind.functions import Functions
from engine.unwind.orc import OrcTables
from engine.unwind.prologue import Prologues
from engine.unwind.rows import Caller, CfaRegister, CfiRow
from engine.unwind.unwinder import EndReason, Unwinder, UnwindGuest

_ARCH = by_name("x86_64")
_PREV, _BP, _SP, _R10, _BP_IN, _SP_IN = 1, 4, 5, 6, 8, 9
_STACK = 0xFFFFC90000000000


def _tables(image: ElfImage) -> OrcTables:
    module = Module("vmlinux", image, 0)
    return OrcTables(_ARCH, lambda at: module if module.contains(at) else None)


class _Words:
    """A stack: word number N holds 0x1000 + N, some hold what a test says."""

    def __init__(self, held: Mapping[int, int] | None = None) -> None:
        self._held = held or {}

    def __call__(self, address: int, size: int) -> bytes:
        word = self._held.get(address, 0x1000 + (address - _STACK) // 8)
        return word.to_bytes(8, "little")[:size]


def _caller(entry: bytes, registers: Mapping[str, int], words: _Words | None = None) -> Caller:
    image = orc_image([(0, entry)], btf=orc_types(split=False), banner=b"Linux version 6.1.0 ()\0")
    row = _tables(image).row(BASE, True)
    assert row is not None
    found = row.caller(_ARCH, registers, words or _Words())
    assert isinstance(found, Caller)
    return found


def test_a_call_by_the_stack_pointer() -> None:
    known = {"rsp": _STACK, "rbp": 7, "rbx": 5}
    found = _caller(old(_SP, 24, _PREV, -16), known)
    assert (found.cfa, found.pc) == (_STACK + 24, 0x1002)
    assert found.registers["rbp"] == 0x1001
    assert found.registers["rsp"] == _STACK + 24
    assert "rbx" not in found.registers


def test_a_frame_pointer_that_nobody_has_saved_is_the_callers() -> None:
    found = _caller(old(_SP, 8), {"rsp": _STACK, "rbp": 7})
    assert found.registers["rbp"] == 7


def test_frames_by_the_frame_pointer_and_by_others() -> None:
    known = {"rsp": _STACK, "rbp": _STACK + 32, "r10": _STACK + 64}
    assert _caller(old(_BP, 16, _PREV, -16), known).cfa == _STACK + 48
    # Others are taken as they are.
    assert _caller(old(_R10, 8, _BP, 0), known).cfa == _STACK + 64
    assert _caller(old(_R10, 8, _BP, 0), known).registers["rbp"] == 0x1004


def test_a_stack_pointer_on_the_stack() -> None:
    known = {"rsp": _STACK, "rbp": _STACK + 32}
    words = _Words({_STACK: _STACK + 0x100, _STACK + 24: _STACK + 0x200})
    assert _caller(old(_BP_IN, -8, _BP, 0), known, words).cfa == _STACK + 0x200
    assert _caller(old(_SP_IN, 8), known, words).cfa == _STACK + 0x108


def test_releases_before_5_12_move_first() -> None:
    words = _Words({_STACK + 8: _STACK + 0x100})
    image = orc_image(
        [(0, old(_SP_IN, 8))], btf=orc_types(split=False), banner=b"Linux version 5.10.0 ()\0"
    )
    row = _tables(image).row(BASE, True)
    assert row is not None
    found = row.caller(_ARCH, {"rsp": _STACK}, words)
    assert isinstance(found, Caller)
    assert found.cfa == _STACK + 0x100


def test_saved_registers() -> None:
    found = _caller(old(_SP, 0, kind=REGS), {"rsp": _STACK, "rbp": 7})
    registers = dict(found.registers)
    assert found.pc == 0x1000 + 16
    assert [registers[name] - 0x1000 for name in ("r15", "rbp", "rdi", "rip", "rsp")] == [
        0,
        4,
        14,
        16,
        19,
    ]
    partial = _caller(old(_SP, 16, kind=PARTIAL), {"rsp": _STACK, "rbp": 7})
    assert (partial.pc, partial.registers["rsp"]) == (0x1002, 0x1005)
    assert partial.registers["rbp"] == 7


def test_interrupts_are_exact_where_the_entry_says_so() -> None:
    rows = [(0, new(_SP, 0, kind=3)), (8, new(_SP, 0, kind=3, signal=1))]
    tables = _tables(orc_image(rows, btf=orc_types(split=True)))
    found = [tables.row(BASE + at, True) for at in (0, 8)]
    assert [row.signal_frame for row in found if row] == [False, True]


def test_a_walk_ends_where_the_tables_say() -> None:
    rows = [
        (0, old(_SP, 16)),
        (0x20, old(_SP, 24)),
        (0x40, old(0, 0, end=1)),
        (0x60, old(0, 0)),
    ]
    # Each return address lies behind the call: the first instruction of 0x40 is not its frame's.
    words = _Words({_STACK + 8: BASE + 0x40, _STACK + 32: BASE + 0x48})
    module = Module("vmlinux", orc_image(rows, btf=orc_types(split=False)), 0)
    view = UnwindGuest(
        _ARCH,
        lambda at: module if module.contains(at) else None,
        words,
        module.image.read_vaddr,
        module.contains,
    )
    unwinder = Unwinder(view)
    registers = {"rsp": _STACK, "rip": BASE, "rbp": 0}
    walk = unwinder.walk(registers)
    assert [(frame.pc - BASE, frame.source) for frame in walk.frames] == [
        (0, "orc"),
        (0x40, "orc"),
        (0x48, "orc"),
    ]
    assert walk.end.reason is EndReason.OUTERMOST
    assert unwinder.places(registers) == tuple(frame.pc for frame in walk.frames)
    assert _tables(module.image).row(BASE + 0x60, True) is None


def test_damaged_tables_are_noted_and_left() -> None:
    image = orc_image([(0, old(_SP, 8)[:5])])
    assert _tables(image).row(BASE, True) is None
    assert ".orc_unwind" in image.damage.found()[0]


def test_registers_without_a_meaning_give_no_row() -> None:
    rows = [(0, old(13, 8)), (8, old(_SP, 8, 9))]
    tables = _tables(orc_image(rows, btf=orc_types(split=False)))
    assert [tables.row(BASE + at, True) for at in (0, 8)] == [None, None]


# -- real kernels ---------------------------------------------------------------------------


def _follows_a_call(image: KernelImage, address: int) -> bool:
    assert _ARCH.unwind is not None
    for size in range(2, 8):
        insn = _ARCH.unwind.read(image.read(address - size, size), address - size)
        if insn is not None and insn.size == size and insn.flow is Flow.CALL:
            return True
    return False


@pytest.mark.parametrize("name", [AMD64_61, SLOW_612])
def test_recorded_return_addresses(name: str) -> None:
    """Those that return probes printed: "(ksys_write+0x6b/0xf0 <- vfs_write)"."""
    image = kernel_image(name)
    tables = _tables(image.elf)
    path = DATA / GOLDEN[name] / "recorded.given.jsonl.xz"
    with lzma.open(path, "rt") as lines:
        text = "\n".join(json.loads(line).get("trace") or "" for line in lines)
    places = set(re.findall(r"\(([\w.]+)\+0x([0-9a-f]+)/0x([0-9a-f]+) <- ", text))
    assert len(places) > 3
    for symbol, offset, size in places:
        found = [
            (tables.row(start + int(offset, 16), False), start + int(offset, 16))
            for start in image.names.all_of(symbol)
            if (at := image.names.at(start)) and at.end - start == int(size, 16)
        ]
        assert any(row is not None and _follows_a_call(image, at) for row, at in found), symbol


@pytest.mark.parametrize("title", MODULES)
def test_rows_of_modules(title: str) -> None:
    """Where a called function returns to in a module there is a row, and at its first place."""
    path = module_path(title)
    module = open_module(path, kernel_image(AMD64_61))
    assert module is not None
    tables, entries = _tables(module.elf), 0
    for function in Module("module", module.elf, 0).symbols.functions():
        row = tables.row(function.address, True)
        if row is None or function.name.endswith(".cold"):
            continue  # stubs of imports have no entry
        entries += 1
        assert _is_entry(row), function.name
        code = module.read(function.address, function.size)
        behind = function.address + code.find(b"\xe8") + 5
        if behind > function.address + 4 and _follows_a_call(module, behind):
            assert tables.row(behind, False) is not None
    assert entries


@pytest.mark.slow
@pytest.mark.parametrize("name", [AMD64_61, AMD64_612])
def test_rows_are_what_the_instructions_do(name: str) -> None:
    image = kernel_image(name)
    module = Module("vmlinux", image.elf, 0)
    tables = _tables(image.elf)
    functions = Functions(_ARCH, lambda at: module)
    found = Prologues(_ARCH, image.elf.read_vaddr, functions.at, lambda address: False)
    sites = [
        address
        for address, letter in zip(image.names.addresses, image.names.types, strict=True)
        if chr(letter) in "tT" and (row := tables.row(address, True)) and _is_entry(row)
    ]
    places = different = 0
    for start in random.Random(5).sample(sites, 300):
        span = image.names.at(start)
        assert span is not None
        at = start
        while at < span.end:
            insn = found.insn(at)
            if insn is None:
                break
            said, row = tables.row(at, True), next(found.rows(at, True), None)
            if said is not None and isinstance(said.cfa, CfaRegister) and row is not None:
                same_base = (
                    isinstance(row.cfa, CfaRegister) and row.cfa.register == said.cfa.register
                )
                places += same_base
                different += same_base and row.cfa != said.cfa
            at += insn.size
    assert places > 5000
    assert different <= places / 100


def _is_entry(row: CfiRow) -> bool:
    return row.cfa == CfaRegister("rsp", 8)
