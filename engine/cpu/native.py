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
from dataclasses import dataclass
from typing import Final

from engine.cpu.ram import OUT_OF_MEMORY, PAGE, PHYSICAL_BASE, PageTable, Ram, Region

# bool fill(uc, vaddr, type, uc_tlb_entry *result, Control *control)
#   rdi          rsi    edx   rcx                   r8
# Binary search of the table for the region of vaddr; offsets are those of `ram.Control`.
_FILL: Final = bytes.fromhex(
    "49ff4038"  # inc qword [r8+56]      fills++
    "4d8b08"  # mov r9, [r8]             hi = count
    "31c0"  # xor eax, eax               lo = 0
    "4d8b5008"  # mov r10, [r8+8]        table
    # next:
    "4c39c8"  # cmp rax, r9
    "737c"  # jae fail
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
    "ebd9"  # jmp next
    # left:
    "4d89d9"  # mov r9, r11
    "ebd4"  # jmp next
    # found:
    "8b4718"  # mov eax, [rdi+24]        permissions
    "4989ca"  # mov r10, rcx
    "8d4af0"  # lea ecx, [rdx-16]        READ, WRITE, FETCH are 16, 17, 18
    "41b901000000"  # mov r9d, 1
    "41d3e1"  # shl r9d, cl
    "4c89d1"  # mov rcx, r10
    "4485c8"  # test eax, r9d
    "743b"  # je fail
    "4989f1"  # mov r9, rsi
    "4c034f10"  # add r9, [rdi+16]       physical address
    "4d89ca"  # mov r10, r9
    "4d2b5030"  # sub r10, [r8+48]
    "49c1ea0c"  # shr r10, 12
    "4d035020"  # add r10, [r8+32]       its byte in `touched`
    "41803a00"  # cmp byte [r10], 0
    "750a"  # jne ok
    "49ff4828"  # dec qword [r8+40]      budget--
    "7810"  # js over
    "41c60201"  # mov byte [r10], 1
    # ok:
    "4c8909"  # mov [rcx], r9
    "894108"  # mov [rcx+8], eax
    "b801000000"  # mov eax, 1
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

_ALIGN = 64


class TlbEntry(ctypes.Structure):
    """Unicorn's uc_tlb_entry."""

    _fields_ = (("paddr", ctypes.c_uint64), ("perms", ctypes.c_uint32))


class BlockClock(ctypes.Structure):
    """Shared with the block callback.

    `remaining` blocks may run before the emulator is stopped; `stop` is the address of
    uc_emu_stop; `stops` counts the times that happened.
    """

    _fields_ = (
        ("remaining", ctypes.c_uint64),
        ("stop", ctypes.c_uint64),
        ("stops", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class HostCode:
    """Addresses of the callbacks in executable host memory."""

    fill: int
    block: int
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
    block_at = -(-len(_FILL) // _ALIGN) * _ALIGN
    memory[: len(_FILL)] = _FILL
    memory[block_at : block_at + len(_BLOCK)] = _BLOCK
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.mprotect(address, PAGE, mmap.PROT_READ | mmap.PROT_EXEC)
    code = HostCode(address, address + block_at, memory)
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
    half = len(answers) // 2
    if answers[:half] != answers[half:]:
        return False
    stopped: list[int] = []
    stop = _StopFunction(lambda uc: stopped.append(uc or 0))
    clock = BlockClock(2, ctypes.cast(stop, ctypes.c_void_p).value, 0)
    block = _BlockFunction(code.block)
    for _ in range(3):
        block(7, 0x1000, 4, ctypes.addressof(clock))
    return stopped == [7] and clock.remaining == 0 and clock.stops == 1


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
