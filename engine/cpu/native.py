"""Small pieces of host machine code for the emulator's hottest callbacks.

A TLB miss and a block entry are far too frequent for Python (2,000 and 150 ns a call), so on
x86-64 hosts they are served by the code in `native_code`. Every piece is tried at start
against known answers; where the host is another machine, refuses executable memory, or fails
the trial, Python twins are used: slower, same results. `KPROBE_TUI_PORTABLE=1` forces the
twins; the tests run both.
"""

import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from engine.cpu import hostmemory as host
from engine.cpu.leads import LeadTable
from engine.cpu.native_code import BLOCK, EDGE, FILL, INTERRUPT, LENDS, PAUSE
from engine.cpu.pagetable import PageTable, Region
from engine.cpu.ram import OUT_OF_MEMORY, PAGE, PHYSICAL_BASE, WRITE, Ram

_ALIGN = 64

ENTRY_BITS: Final = 1 << 20
"""Bits of `Sieve.entries`: an address has that of its remainder."""


class TlbEntry(ctypes.Structure):
    """Unicorn's uc_tlb_entry."""

    _fields_ = (("paddr", ctypes.c_uint64), ("perms", ctypes.c_uint32))


class BlockClock(ctypes.Structure):
    """Shared with the block callback; the guest's clock.

    It counts the times that control goes elsewhere than to the next instruction. That is a
    property of the program alone: where the emulator ends a block for reasons of its own, and
    where a breakpoint cuts one in two, the clock does not tick.

    `remaining` ticks may pass before the emulator is stopped; `stop` is the address of
    uc_emu_stop; `stops` counts the times that happened; `aside` is what `pause` has taken out
    of `remaining`; `expected` is the address behind the last block; `repeated` is the last
    block inside the machinery; (`low`, `low_size`) and (`high`, `high_size`) are the windows
    of the machinery. `last_branches` is where two words stand: the address behind the last
    instruction from which control went elsewhere, then that of the one before it. While `halted`
    is set no block begins: a stop of Unicorn's own, asked for by another thread, would come before
    or after the tick.
    """

    _fields_ = (
        ("remaining", ctypes.c_uint64),
        ("stop", ctypes.c_uint64),
        ("stops", ctypes.c_uint64),
        ("aside", ctypes.c_uint64),
        ("expected", ctypes.c_uint64),
        ("repeated", ctypes.c_uint64),
        ("high", ctypes.c_uint64),
        ("high_size", ctypes.c_uint64),
        ("low", ctypes.c_uint64),
        ("low_size", ctypes.c_uint64),
        ("last_branches", ctypes.c_uint64),
        ("halted", ctypes.c_uint64),
        ("repeated_at", ctypes.c_uint64),
        ("keeps_branches", ctypes.c_uint64),
    )


class Leading(ctypes.Structure):
    """The record that the exception callback reads.

    `number` is the emulator's exception for a breakpoint; `pc` and `expected` are the host
    addresses of the program counter and of the clock's word; `ask` is the callback for all that
    is no breakpoint of the table; `entries` and `mask` are those of a `leads.LeadTable`; `scratch`
    is the host address of the two registers that an entry may want saved.
    """

    _fields_ = (
        ("number", ctypes.c_uint64),
        ("pc", ctypes.c_uint64),
        ("expected", ctypes.c_uint64),
        ("ask", ctypes.c_uint64),
        ("entries", ctypes.c_uint64),
        ("mask", ctypes.c_uint64),
        ("scratch", ctypes.c_uint64),
    )

    def show(self, table: LeadTable) -> None:
        """Look breakpoints up in a table, which must live as long."""
        self.entries, self.mask = table.entries, table.mask


class Sieve(ctypes.Structure):
    """The record that the callback for new blocks reads.

    `control` is the page table's `ram.RamControl`; `host` is what makes a physical address a host
    address; bit FIRST * 256 + SECOND of `pairs` says that these bytes are suspect, bit
    65,536 + FIRST that such a pair exists, bit 65,792 + BYTE that a block which ends in it and
    two more, the last above 0x7F, is suspect, bit 66,048 + BYTE the same of it and one more;
    `ask` is the callback for blocks with such bytes, and for those whose address has its bit, of
    `ENTRY_BITS`, set in `entries`.
    """

    _fields_ = (
        ("control", ctypes.c_uint64),
        ("host", ctypes.c_uint64),
        ("pairs", ctypes.c_uint64),
        ("ask", ctypes.c_uint64),
        ("entries", ctypes.c_uint64),
    )


def sieve(
    ram: Ram,
    suspects: Mapping[int, frozenset[int]],
    ask: int,
    entries: int,
    ends: frozenset[int] = frozenset(),
    lasts: frozenset[int] = frozenset(),
) -> tuple[Sieve, ctypes.Array[ctypes.c_char]]:
    """The callback's data and the bit field, which must live as long; so must `entries`."""
    bits = bytearray((1 << 13) + 96)
    for first, seconds in suspects.items():
        bits[1 << 13 | first >> 3] |= 1 << (first & 7)
        for second in seconds:
            bits[first << 5 | second >> 3] |= 1 << (second & 7)
    for byte in ends:
        bits[(1 << 13) + 32 + (byte >> 3)] |= 1 << (byte & 7)
    for byte in lasts:
        bits[(1 << 13) + 64 + (byte >> 3)] |= 1 << (byte & 7)
    pairs = ctypes.create_string_buffer(bytes(bits), len(bits))
    host = (ram.base - PHYSICAL_BASE) & 0xFFFFFFFFFFFFFFFF
    control = ctypes.addressof(ram.control)
    return Sieve(control, host, ctypes.addressof(pairs), ask, entries), pairs


class HostCode(Struct, frozen=True):
    """Addresses of the callbacks in executable host memory."""

    fill: int
    block: int
    edge: int
    pause: int
    interrupt: int
    memory: object


def possible() -> bool:
    """True if the host can run this code and nobody has asked for the twins."""
    if os.environ.get("KPROBE_TUI_PORTABLE") == "1":
        return False
    return platform.machine() in ("x86_64", "AMD64") and os.name == "posix"


def lends() -> bool:
    """True if the host has vectors to lend, see `host_vectors`, and nobody has refused them."""
    return possible() and _has_vectors()


@cache
def _has_vectors() -> bool:
    placed = place((LENDS,))
    return placed is not None and bool(ctypes.CFUNCTYPE(ctypes.c_int)(placed[0][0])())


def bound(function: int, *arguments: int) -> Callable[[], None] | None:
    """A host function with its arguments built in: ctypes takes long to pass them.

    Args:
        function: its address.
        arguments: words, four at the most.

    Returns:
        A call of it, which drops its result; None where there is no host code.
    """
    if not possible():
        return None
    moves = (b"\x48\xbf", b"\x48\xbe", b"\x48\xba", b"\x48\xb9")  # mov rdi, rsi, rdx, rcx
    pieces = [
        move + struct.pack("=Q", value) for move, value in zip(moves, arguments, strict=False)
    ]
    # mov rax, function; jmp rax
    code = b"".join((*pieces, b"\x48\xb8", struct.pack("=Q", function), b"\xff\xe0"))
    placed = place((code,))
    if placed is None:
        return None
    (address,), memory = placed
    call = ctypes.PYFUNCTYPE(None)(address)
    call.memory = memory  # type: ignore[attr-defined]  # as long as the call is there
    return call


def place(pieces: tuple[bytes, ...], *, far: bool = False) -> tuple[list[int], object] | None:
    """Put code into executable memory: addresses and what must be kept; None if refused.

    Args:
        pieces: the code.
        far: away from libraries, so that translated code calls it by its whole address, as
            `unicorn_blocks` expects of the clock's callback.
    """
    size = -(-sum(len(piece) + _ALIGN for piece in pieces) // PAGE) * PAGE
    memory: mmap.mmap | ctypes.Array[ctypes.c_ubyte]
    try:
        if far:
            memory = host.distant(size)
        else:
            memory = mmap.mmap(-1, size, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except (OSError, ValueError):
        return None
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    places: list[int] = []
    at = 0
    for piece in pieces:
        ctypes.memmove(address + at, piece, len(piece))
        places.append(at)
        at += -(-len(piece) // _ALIGN) * _ALIGN
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if libc.mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC) and far:
        return None
    return [address + where for where in places], memory


def build() -> HostCode | None:
    """The callbacks in executable memory; None where that cannot be done here."""
    return _built() if possible() else None


@cache
def _built() -> HostCode | None:
    """Place the callbacks and try them: once, as what they work on comes with each call."""
    pieces = FILL, BLOCK, EDGE, PAUSE, INTERRUPT
    placed = place(pieces, far=True)
    if placed is None:
        return None
    (fill_at, block_at, edge_at, pause_at, interrupt_at), memory = placed
    code = HostCode(fill_at, block_at, edge_at, pause_at, interrupt_at, memory)
    return code if _trial(code) else None


_FillFunction = ctypes.CFUNCTYPE(
    ctypes.c_bool,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_BlockFunction = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p
)
_EdgeFunction = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
_InterruptFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)
_StopFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _trial(code: HostCode) -> bool:
    """True if the host code answers as the Python twins do, on a small table."""
    regions = [
        Region(0x1000, 0x3000, 0x5000, 5),
        Region(0x8000, 0x9000, 0, 3),
        Region(0x7FFF_FFFF_0000, 0x7FFF_FFFF_F000, 0x20000, 1),
    ]
    probes = (0, 0x1000, 0x2FFF, 0x3000, 0x8010, 0x9000, 0x7FFF_FFFF_1234, 2**64 - 1)
    answers = []
    for portable, watches in ((False, False), (False, True), (True, False), (True, True)):
        ram = Ram(size=1 << 28, budget=3 * PAGE)
        if watches:
            ram.watch_changes()
            ram.watch_reached()
        table = PageTable(ram)
        table.load(regions)
        native = _FillFunction(code.fill)
        for probe in probes:
            for access in (16, 17, 18):
                entry = TlbEntry()
                if portable:
                    done = fill(ram, table, probe, access, entry)
                else:
                    done = native(
                        None, probe, access, ctypes.addressof(entry), ctypes.addressof(ram.control)
                    )
                control = ram.control
                answers.append(
                    (
                        bool(done),
                        entry.paddr,
                        entry.perms,
                        control.fault_address,
                        control.fault_access,
                        control.budget,
                        control.fills,
                        tuple(ram.changed(0, 1 << 18)),
                        watches and tuple(ram.reached_pages(0, 1 << 18)),
                    )
                )
        ram.close()
    if not _trial_of_edge(code) or not _trial_of_interrupt(code):
        return False
    half = len(answers) // 2
    if answers[:half] != answers[half:]:
        return False
    block = _BlockFunction(code.block)
    stopped: list[int] = []
    stop = _StopFunction(lambda uc: stopped.append(uc or 0))
    branches = (ctypes.c_uint64 * 2)(), (ctypes.c_uint64 * 2)()
    clock = _trial_clock(
        ctypes.cast(stop, ctypes.c_void_p).value or 0, ctypes.addressof(branches[0])
    )
    twin = _trial_clock(0, ctypes.addressof(branches[1]))
    twin_stops = 0
    for at, size in _TRIAL_BLOCKS:
        block(7, at, size, ctypes.addressof(clock))
        if tick(twin, at, size):
            twin_stops += 1
        twin.last_branches, kept = clock.last_branches, twin.last_branches
        alike = bytes(clock)[32:] == bytes(twin)[32:] and clock.remaining == twin.remaining
        twin.last_branches = kept
        if not alike or branches[0][:] != branches[1][:]:
            return False
    if stopped != [7] * twin_stops or clock.stops != twin_stops or not twin_stops:
        return False
    before = bytes(clock)
    clock.halted = 1
    block(7, 0x1000, 4, ctypes.addressof(clock))
    clock.halted, clock.stops = 0, clock.stops - 1
    if len(stopped) != twin_stops + 1 or bytes(clock) != before:
        return False
    clock.remaining = 5
    pause = _StopFunction(code.pause)
    pause(ctypes.addressof(clock))
    pause(ctypes.addressof(clock))
    return (clock.remaining, clock.aside) == (0, 5)


_TRIAL_BLOCKS: Final = (
    *((0x1000, 4), (0x1004, 4), (0x1004, 4), (0x7000, 2), (0x7002, 1), (0x9000, 8)),
    *((0x7000, 2), (0x7000, 2), (0x5010, 2), (0x5FFF, 2), (0x5FFF, 2), (0x6001, 1)),
    *((0x4FFF, 3), (0x8000, 3), (0x7FFF, 3), (0x7FFF, 3), (0x1000, 4), (0x1000, 4)),
)


def _trial_clock(stop: int, branches: int) -> BlockClock:
    windows = {"high": 0x7000, "high_size": 0x1000, "low": 0x5000, "low_size": 0x1000}
    return BlockClock(remaining=9, stop=stop, last_branches=branches, keeps_branches=1, **windows)


def _trial_of_edge(code: HostCode) -> bool:
    """True if the sieve asks about the right ones of a few blocks."""
    ram = Ram(size=1 << 28, budget=3 * PAGE)
    table = PageTable(ram)
    table.load([Region(0x1000, 0x2000, 0x3000, 5), Region(0x5000, 0x6000, 0x8000, 5)])
    ram.write(
        0x8000, b"\x90\xc5\x01\x02\x90\x0f\xae\x90\x0f\xaf\xc2\x00\x80\xc2\x80\x7f\xe1\x10\x90"
    )
    asked: list[int] = []
    ask = _EdgeFunction(
        lambda uc, block, before, data: asked.append(ctypes.c_uint64.from_address(block).value)
    )
    suspects = {0xC5: frozenset(range(256)), 0x0F: frozenset({0xAE})}
    entries = mmap.mmap(-1, ENTRY_BITS // 8)
    entries[0x7004 >> 3] |= 1 << (0x7004 & 7)
    entries_at = ctypes.addressof(ctypes.c_char.from_buffer(entries))
    ask_at = ctypes.cast(ask, ctypes.c_void_p).value or 0
    ends_in, lasts = frozenset({0xC2}), frozenset({0xE1})
    data, pairs = sieve(ram, suspects, ask_at, entries_at, ends_in, lasts)
    edge = _EdgeFunction(code.edge)
    suspect = ((0x5000, 2), (0x5000, 3), (0x5002, 4), (0x5005, 2), (0x5005, 1), (0x5FFE, 4))
    ends = ((0x5009, 4), (0x500A, 3), (0x5010, 2), (0x500F, 3))
    harmless = ((0x5000, 1), (0x5002, 3), (0x5007, 3), (0x5006, 2), (0x5007, 0))
    no_ends = (
        (0x500B, 2),
        (0x500C, 1),
        (0x500D, 3),
        (0x500A, 4),
        (0x500A, 5),
        (0x5011, 1),
        (0x5010, 3),
    )
    far = 0x7004 + ENTRY_BITS
    for pc, size in (*suspect, *ends, *harmless, *no_ends, (0x4FFF, 1), (far, 1)):
        block = ctypes.create_string_buffer(struct.pack("<QHH", pc, 1, size))
        edge(1, ctypes.addressof(block), 0, ctypes.addressof(data))
    ram.close()
    return asked == [*(pc for pc, _ in (*suspect, *ends)), 0x4FFF, far] and bool(pairs)


def _trial_of_interrupt(code: HostCode) -> bool:
    """True if breakpoints of a small table lead where they should, and all else is asked about."""
    pc, expected = ctypes.c_uint64(), ctypes.c_uint64()
    scratch, saved = (ctypes.c_uint64 * 2)(0x1111, 0x2222), (ctypes.c_uint64 * 2)()
    asked: list[int] = []
    ask = _InterruptFunction(lambda uc, number, data: asked.append(pc.value))
    table = LeadTable()
    for at in range(40):
        saves = ctypes.addressof(saved) if at % 2 else 0
        table.put(0x401000 + 64 * at, 0x7000_0000 + at, 0x401003 + 64 * at, saves)
    for at in range(0, 40, 3):
        table.drop(0x401000 + 64 * at)
    leading = Leading(
        number=3,
        pc=ctypes.addressof(pc),
        expected=ctypes.addressof(expected),
        ask=ctypes.cast(ask, ctypes.c_void_p).value or 0,
        scratch=ctypes.addressof(scratch),
    )
    leading.show(table)
    interrupt, wanted = _InterruptFunction(code.interrupt), []
    for at in range(42):
        for number in (3, 4):
            pc.value, expected.value = 0x401000 + 64 * at, 0
            saved[:] = [0, 0]
            led = table.find(pc.value) if number == 3 else None
            if led is None:
                wanted.append(pc.value)
            led = led or (pc.value, 0, 0)
            interrupt(7, number, ctypes.addressof(leading))
            kept = tuple(scratch) if led[2] else (0, 0)
            if (pc.value, expected.value, tuple(saved)) != (*led[:2], kept):
                return False
    return asked == wanted


def fill(ram: Ram, table: PageTable, address: int, access: int, entry: TlbEntry) -> bool:
    """The Python twin of the fill callback; the meaning of both.

    Where changes of pages are wanted, one that has not been written to is open to no stores until
    one comes. A refused access is noted in `ram.control`, and sent into the hole if there is one;
    a page counts against the budget when it is first reached.
    """
    control = ram.control
    control.fills += 1
    region = table.find(address)
    if region is not None and region.perms & (1 << (access - 16)):
        # Not rounded to our pages: the emulator's own may be smaller (1 KiB on ARM).
        offset = address - region.start + region.physical
        if not ram.touch(offset, 1):
            access = OUT_OF_MEMORY
        else:
            entry.paddr = PHYSICAL_BASE + offset
            entry.perms = region.perms
            ram.mark_reached(offset, 1)
            if control.changed:
                if access == 17:
                    ram.mark_changed(offset, 1)
                elif not ram.changed(offset, 1):
                    entry.perms &= ~WRITE  # a store asks again
            return True
    control.fault_address = address
    control.fault_access = access
    if not control.hole:
        return False
    entry.paddr = control.hole
    entry.perms = 1 << (access - 16 & 31)
    return True


def tick(clock: BlockClock, address: int, size: int) -> bool:
    """The Python twin of the block callback; the meaning of both.

    Inside the machinery nothing counts but the repetitions of a string instruction, each of
    which the emulator executes as a block of its own. Returns whether the emulator is to stop
    before this block, which is then asked about again.
    """
    if clock.halted:
        clock.stops += 1
        return True
    inside = (
        clock.high <= address < clock.high + clock.high_size
        or clock.low <= address < clock.low + clock.low_size
    )
    if inside:
        left = clock.remaining + clock.aside
        counts = (address, left) == (clock.repeated, clock.repeated_at)
        clock.repeated, clock.repeated_at = address, left
    else:
        counts = address != clock.expected
    if counts:
        if not clock.remaining:
            clock.stops += 1
            return True
        clock.remaining -= 1
        if inside:
            clock.repeated_at = clock.remaining
        elif clock.keeps_branches:
            branches = (ctypes.c_uint64 * 2).from_address(clock.last_branches)
            branches[:] = [clock.expected, branches[0]]
    if not inside:
        clock.expected = address + size
    return False
