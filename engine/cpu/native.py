"""Small pieces of host machine code for the emulator's hottest callbacks.

A TLB miss and a block entry are far too frequent for Python (2,000 and 150 ns a call), so on
x86-64 hosts they are served by the code below, with the instructions it was assembled from
beside its bytes. Every piece is tried at start against known answers; where the host is
another machine, refuses executable memory, or fails the trial, Python twins are used: slower,
same results. `KPROBE_TUI_PORTABLE=1` forces the twins; the tests run both.
"""

import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.cpu.ram import OUT_OF_MEMORY, PAGE, PHYSICAL_BASE, PageTable, Ram, Region

# bool fill(uc, vaddr, type, uc_tlb_entry *result, Control *control)
#   rdi          rsi    edx   rcx                   r8
# Binary search of the table for the region of vaddr; offsets are those of `ram.Control`. At
# `limit` misses it stops the emulator, which then gets a larger TLB.
_FILL: Final = bytes.fromhex(
    "49ff4038"  # inc qword [r8+56]      fills++
    "4d8b08"  # mov r9, [r8]             hi = count
    "31c0"  # xor eax, eax               lo = 0
    "4d8b5008"  # mov r10, [r8+8]        table
    # next:
    "4c39c8"  # cmp rax, r9
    "0f8386000000"  # jae fail
    "4e8d1c08"  # lea r11, [rax+r9]
    "49d1eb"  # shr r11, 1               middle
    "4c89df"  # mov rdi, r11
    "48c1e705"  # shl rdi, 5
    "4c01d7"  # add rdi, r10             its entry
    "483b37"  # cmp rsi, [rdi]
    "720c"  # jb left
    "483b7708"  # cmp rsi, [rdi+8]
    "720b"  # jb found
    "498d4301"  # lea rax, [r11+1]
    "ebd5"  # jmp next
    # left:
    "4d89d9"  # mov r9, r11
    "ebd0"  # jmp next
    # found:
    "8b4718"  # mov eax, [rdi+24]        permissions
    "4989ca"  # mov r10, rcx
    "8d4af0"  # lea ecx, [rdx-16]        READ, WRITE, FETCH are 16, 17, 18
    "41b901000000"  # mov r9d, 1
    "41d3e1"  # shl r9d, cl
    "4c89d1"  # mov rcx, r10
    "4485c8"  # test eax, r9d
    "7445"  # je fail
    "4989f1"  # mov r9, rsi
    "4c034f10"  # add r9, [rdi+16]       physical address
    "4d89ca"  # mov r10, r9
    "4d2b5030"  # sub r10, [r8+48]
    "49c1ea0c"  # shr r10, 12
    "4d035020"  # add r10, [r8+32]       its byte in `touched`
    "41803a00"  # cmp byte [r10], 0
    "750a"  # jne ok
    "49ff4828"  # dec qword [r8+40]      budget--
    "781a"  # js over
    "41c60201"  # mov byte [r10], 1
    # ok:
    "4c8909"  # mov [rcx], r9
    "894108"  # mov [rcx+8], eax
    "b801000000"  # mov eax, 1
    "4d8b4838"  # mov r9, [r8+56]
    "4d3b4848"  # cmp r9, [r8+72]        fills, limit
    "7335"  # jae much
    "c3"  # ret
    # over:
    "49ff4028"  # inc qword [r8+40]
    "ba63000000"  # mov edx, 99          OUT_OF_MEMORY
    # fail:
    "49897010"  # mov [r8+16], rsi
    "49895018"  # mov [r8+24], rdx
    "498b4040"  # mov rax, [r8+64]       hole
    "4885c0"  # test rax, rax
    "7419"  # je refuse
    "488901"  # mov [rcx], rax
    "4989ca"  # mov r10, rcx
    "8d4af0"  # lea ecx, [rdx-16]
    "b801000000"  # mov eax, 1
    "d3e0"  # shl eax, cl
    "41894208"  # mov [r10+8], eax
    "b801000000"  # mov eax, 1
    # refuse:
    "c3"  # ret
    # much:
    "53"  # push rbx               keeps the stack aligned
    "498b7850"  # mov rdi, [r8+80]
    "41ff5058"  # call [r8+88]           uc_emu_stop(uc)
    "b801000000"  # mov eax, 1
    "5b"  # pop rbx
    "c3"  # ret
)

# void block(uc, address, size, BlockClock *clock)
#   rdi            rsi      edx   rcx
# Counts a guest block down; at zero it stops the emulator before the block runs.
_BLOCK: Final = bytes.fromhex(
    "488b01"  # mov rax, [rcx]           remaining
    "4885c0"  # test rax, rax
    "7407"  # je stop
    "48ffc8"  # dec rax
    "488901"  # mov [rcx], rax
    "c3"  # ret
    # stop:
    "48ff4110"  # inc qword [rcx+16]     stops++
    "ff6108"  # jmp [rcx+8]              uc_emu_stop(uc)
)

# void pause(BlockClock *clock)
#            rdi
# Makes the next block stop as if its time was up; the rest is kept in `aside`.
_PAUSE: Final = bytes.fromhex(
    "488b07"  # mov rax, [rdi]
    "4885c0"  # test rax, rax
    "740b"  # je already
    "48894718"  # mov [rdi+24], rax
    "48c70700000000"  # mov qword [rdi], 0
    # already:
    "c3"  # ret
)

# void edge(uc, uc_tb *current, uc_tb *previous, Sieve *sieve)
#   rdi         rsi             rdx              rcx
# Asks `sieve.ask`, with the same arguments, about a new block that holds a suspect byte pair,
# ends in the first byte of one (decoding stops at what is no instruction) or goes over the
# end of its region.
_EDGE: Final = bytes.fromhex(
    "4c8b01"  # mov r8, [rcx]           the Control
    "4d8b08"  # mov r9, [r8]            hi = count
    "4d8b5008"  # mov r10, [r8+8]       table
    "488b06"  # mov rax, [rsi]          pc of the block
    "4531db"  # xor r11d, r11d          lo = 0
    # next:
    "4d39cb"  # cmp r11, r9
    "0f8383000000"  # jae ask
    "4b8d140b"  # lea rdx, [r11+r9]
    "48d1ea"  # shr rdx, 1              middle
    "4989d0"  # mov r8, rdx
    "49c1e005"  # shl r8, 5
    "4d01d0"  # add r8, r10             its entry
    "493b00"  # cmp rax, [r8]
    "720c"  # jb left
    "493b4008"  # cmp rax, [r8+8]
    "720b"  # jb found
    "4c8d5a01"  # lea r11, [rdx+1]
    "ebd5"  # jmp next
    # left:
    "4989d1"  # mov r9, rdx
    "ebd0"  # jmp next
    # found:
    "440fb74e0a"  # movzx r9d, word [rsi+0xa]size of the block
    "4a8d1408"  # lea rdx, [rax+r9]
    "493b5008"  # cmp rdx, [r8+8]
    "774d"  # ja ask
    "49034010"  # add rax, [r8+0x10]
    "48034108"  # add rax, [rcx+8]      its host address
    "4c8b5110"  # mov r10, [rcx+0x10]   pairs
    "0fb610"  # movzx edx, byte [rax]
    # pair:
    "49ffc9"  # dec r9
    "7e23"  # jle last
    "48ffc0"  # inc rax
    "c1e208"  # shl edx, 8
    "440fb600"  # movzx r8d, byte [rax]
    "4409c2"  # or edx, r8d             first * 256 + second
    "4189d3"  # mov r11d, edx
    "41c1eb05"  # shr r11d, 5
    "478b1c9a"  # mov r11d, [r10+r11*4]
    "410fa3d3"  # bt r11d, edx
    "721b"  # jb ask
    "4489c2"  # mov edx, r8d
    "ebd8"  # jmp pair
    # last:
    "4189d3"  # mov r11d, edx
    "41c1eb05"  # shr r11d, 5
    "478b9c9a00200000"  # mov r11d, [r10+r11*4+0x2000]
    "410fa3d3"  # bt r11d, edx
    "7201"  # jb ask
    "c3"  # ret
    # ask:
    "ff6118"  # jmp [rcx+0x18]          ask(uc, current, previous, sieve)
)

_ALIGN = 64


class TlbEntry(ctypes.Structure):
    """Unicorn's uc_tlb_entry."""

    _fields_ = (("paddr", ctypes.c_uint64), ("perms", ctypes.c_uint32))


class BlockClock(ctypes.Structure):
    """Shared with the block callback.

    `remaining` blocks may run before the emulator is stopped; `stop` is the address of
    uc_emu_stop; `stops` counts the times that happened; `aside` is what `pause` has taken out
    of `remaining`.
    """

    _fields_ = (
        ("remaining", ctypes.c_uint64),
        ("stop", ctypes.c_uint64),
        ("stops", ctypes.c_uint64),
        ("aside", ctypes.c_uint64),
    )


class Sieve(ctypes.Structure):
    """What the callback for new blocks reads.

    `control` is the page table's `ram.Control`; `host` is what makes a physical address a host
    address; bit FIRST * 256 + SECOND of `pairs` says that these bytes are suspect, bit
    65,536 + FIRST that such a pair exists; `ask` is the callback for blocks with such bytes.
    """

    _fields_ = (
        ("control", ctypes.c_uint64),
        ("host", ctypes.c_uint64),
        ("pairs", ctypes.c_uint64),
        ("ask", ctypes.c_uint64),
    )


def sieve(
    ram: Ram, suspects: Mapping[int, frozenset[int]], ask: int
) -> tuple[Sieve, ctypes.Array[ctypes.c_char]]:
    """The callback's data and the bit field, which must live as long."""
    bits = bytearray((1 << 13) + 32)
    for first, seconds in suspects.items():
        bits[1 << 13 | first >> 3] |= 1 << (first & 7)
        for second in seconds:
            bits[first << 5 | second >> 3] |= 1 << (second & 7)
    pairs = ctypes.create_string_buffer(bytes(bits), len(bits))
    host = (ram.base - PHYSICAL_BASE) & 0xFFFFFFFFFFFFFFFF
    return Sieve(ctypes.addressof(ram.control), host, ctypes.addressof(pairs), ask), pairs


@dataclass(frozen=True, slots=True)
class HostCode:
    """Addresses of the callbacks in executable host memory."""

    fill: int
    block: int
    edge: int
    pause: int
    memory: mmap.mmap


def build() -> HostCode | None:
    """Place the callbacks in executable memory; None where that cannot be done here."""
    if os.environ.get("KPROBE_TUI_PORTABLE") == "1":
        return None
    if platform.machine() not in ("x86_64", "AMD64") or os.name != "posix":
        return None
    try:
        memory = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except (OSError, ValueError):
        return None
    places: list[int] = []
    at = 0
    for piece in (_FILL, _BLOCK, _EDGE, _PAUSE):
        memory[at : at + len(piece)] = piece
        places.append(at)
        at += -(-len(piece) // _ALIGN) * _ALIGN
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.mprotect(address, PAGE, mmap.PROT_READ | mmap.PROT_EXEC)
    fill_at, block_at, edge_at, pause_at = (address + place for place in places)
    code = HostCode(fill_at, block_at, edge_at, pause_at, memory)
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
_StopFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _trial(code: HostCode) -> bool:
    """Whether the host code answers as the Python twins do, on a small table."""
    regions = [
        Region(0x1000, 0x3000, 0x5000, 5),
        Region(0x8000, 0x9000, 0, 3),
        Region(0x7FFF_FFFF_0000, 0x7FFF_FFFF_F000, 0x20000, 1),
    ]
    probes = (0, 0x1000, 0x2FFF, 0x3000, 0x8010, 0x9000, 0x7FFF_FFFF_1234, 2**64 - 1)
    answers = []
    for portable in (False, True):
        ram = Ram(size=1 << 28, budget=3 * PAGE)
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
                    )
                )
        ram.close()
    if not _trial_of_edge(code):
        return False
    half = len(answers) // 2
    if answers[:half] != answers[half:]:
        return False
    stopped: list[int] = []
    stop = _StopFunction(lambda uc: stopped.append(uc or 0))
    clock = BlockClock(2, ctypes.cast(stop, ctypes.c_void_p).value, 0)
    block = _BlockFunction(code.block)
    for _ in range(3):
        block(7, 0x1000, 4, ctypes.addressof(clock))
    if stopped != [7] or clock.remaining != 0 or clock.stops != 1:
        return False
    clock.remaining = 5
    pause = _StopFunction(code.pause)
    pause(ctypes.addressof(clock))
    pause(ctypes.addressof(clock))
    return (clock.remaining, clock.aside) == (0, 5)


def _trial_of_edge(code: HostCode) -> bool:
    """Whether the sieve asks about the right ones of a few blocks."""
    ram = Ram(size=1 << 28, budget=3 * PAGE)
    table = PageTable(ram)
    table.load([Region(0x1000, 0x2000, 0x3000, 5), Region(0x5000, 0x6000, 0x8000, 5)])
    ram.write(0x8000, b"\x90\xc5\x01\x02\x90\x0f\xae\x90\x0f\xaf")
    asked: list[int] = []
    ask = _EdgeFunction(
        lambda uc, block, before, data: asked.append(ctypes.c_uint64.from_address(block).value)
    )
    suspects = {0xC5: frozenset(range(256)), 0x0F: frozenset({0xAE})}
    data, pairs = sieve(ram, suspects, ctypes.cast(ask, ctypes.c_void_p).value or 0)
    edge = _EdgeFunction(code.edge)
    suspect = ((0x5000, 2), (0x5000, 3), (0x5002, 4), (0x5005, 2), (0x5005, 1), (0x5FFE, 4))
    harmless = ((0x5000, 1), (0x5002, 3), (0x5007, 3), (0x5006, 2), (0x5007, 0))
    for pc, size in (*suspect, *harmless, (0x4FFF, 1)):
        block = ctypes.create_string_buffer(struct.pack("<QHH", pc, 1, size))
        edge(1, ctypes.addressof(block), 0, ctypes.addressof(data))
    ram.close()
    return asked == [*(pc for pc, _ in suspect), 0x4FFF] and bool(pairs)


def fill(ram: Ram, table: PageTable, address: int, access: int, entry: TlbEntry) -> bool:
    """The Python twin of the fill callback; the meaning of both.

    A refused access is noted in `ram.control`, and sent into the hole if there is one; a page
    counts against the budget when it is first reached.
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
            return True
    control.fault_address = address
    control.fault_access = access
    if not control.hole:
        return False
    entry.paddr = control.hole
    entry.perms = 1 << (access - 16 & 31)
    return True
