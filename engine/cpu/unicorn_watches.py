"""Watched data of a processor in system mode: loads and stores are told before they are made.

QEMU marks pages of watched addresses in the emulator's table of addresses, so that accesses to
these alone take the long way; Unicorn has left out the two functions that say which pages are
meant and what happens there. The library's calls of these two lead to the host code below. An
instruction that is stopped in front of its access has done nothing: it is left as at a page fault.

What is told are accesses of instructions. The processor's own, when it delivers an interrupt or
walks page tables, and those of devices are not.
"""

import ctypes
import weakref
from collections.abc import Callable, Sequence
from struct import pack
from typing import Final

from msgspec import Struct

from engine.cpu import native
from engine.cpu.host_links import HostLink, HostLinks
from engine.cpu.unicorn_library import Emulator
from engine.cpu.unicorn_linkage import address_in, address_of, redirect, slots_of

MOST: Final = 16
"""Ranges that are watched at the same time."""
READ, WRITE = 1, 2
"""Kinds of accesses, as QEMU has them (BP_MEM_READ, BP_MEM_WRITE)."""
_STOP: Final = -2
_OTHERWISE: Final = "this build of Unicorn is laid out otherwise"
WATCHED_FUNCTIONS: Final = (
    b"cpu_watchpoint_address_matches_x86_64",
    b"cpu_check_watchpoint_x86_64",
)
"""The functions of the library that ask for watched data."""

# Both begin with `mov rax, words`, which is put in front of them; see `_WatchWords`.

# int cpu_watchpoint_address_matches(cpu, page address, size)
#   eax                              rdi  rsi           rdx
_MATCHES: Final = bytes.fromhex(
    "483b38"  # cmp rdi, [rax]
    "7531"  # jne other
    "488d5416ff"  # lea rdx, [rsi+rdx-1]
    "488b4838"  # mov rcx, [rax+56]           pages
    "4c8d5048"  # lea r10, [rax+72]           ranges
    "4531db"  # xor r11d, r11d
    # next:
    "4885c9"  # test rcx, rcx
    "7418"  # je done
    "493b7208"  # cmp rsi, [r10+8]            last
    "7709"  # ja another
    "493b12"  # cmp rdx, [r10]                first
    "7204"  # jb another
    "450b5a10"  # or r11d, [r10+16]           kinds
    # another:
    "4983c218"  # add r10, 24
    "48ffc9"  # dec rcx
    "ebe3"  # jmp next
    # done:
    "4489d8"  # mov eax, r11d
    "c3"  # ret
    # other:
    "ff6028"  # jmp qword ptr [rax+40]
)

# void cpu_check_watchpoint(cpu, address, size, attributes, kinds, return address)
#                           rdi  rsi      rdx   ecx         r8d    r9
# Only translated code can be left in the middle: whatever else comes is let pass.
_CHECK: Final = bytes.fromhex(
    "483b38"  # cmp rdi, [rax]
    "7532"  # jne other
    "488b4840"  # mov rcx, [rax+64]           told
    "4885c9"  # test rcx, rcx
    "7428"  # je out
    "4d85c9"  # test r9, r9
    "7423"  # je out
    "4c8d5c16ff"  # lea r11, [rsi+rdx-1]
    "4c8d5048"  # lea r10, [rax+72]
    # next:
    "493b7208"  # cmp rsi, [r10+8]
    "770b"  # ja another
    "4d3b1a"  # cmp r11, [r10]
    "7206"  # jb another
    "45854210"  # test dword ptr [r10+16], r8d
    "750d"  # jne found
    # another:
    "4983c218"  # add r10, 24
    "48ffc9"  # dec rcx
    "75e6"  # jne next
    # out:
    "c3"  # ret
    # other:
    "ff6030"  # jmp qword ptr [rax+48]
    # found:
    "53"  # push rbx
    "4151"  # push r9
    "4883ec08"  # sub rsp, 8
    "4889c3"  # mov rbx, rax
    "4889f7"  # mov rdi, rsi
    "4889d6"  # mov rsi, rdx
    "4489c2"  # mov edx, r8d
    "ff5010"  # call qword ptr [rax+16]       ask(address, size, kinds)
    "83f8fe"  # cmp eax, -2
    "7408"  # je stop
    "4883c408"  # add rsp, 8
    "4159"  # pop r9
    "5b"  # pop rbx
    "c3"  # ret
    # stop:
    "488b7b08"  # mov rdi, [rbx+8]
    "ff5318"  # call qword ptr [rbx+24]       uc_emu_stop(uc)
    "488b3b"  # mov rdi, [rbx]
    "c787a081000001000100"  # mov dword ptr [rdi+0x81a0], 0x10001  EXCP_HLT
    "488b742408"  # mov rsi, [rsp+8]
    "ff5320"  # call qword ptr [rbx+32]       cpu_loop_exit_restore(cpu, return address)
)
_Ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32)


class DataRange(Struct, frozen=True, order=True):
    """Watched bytes.

    Attributes:
        first: address of the first one, as the instruction that runs sees memory.
        size: how many.
        kinds: `READ`, `WRITE` or both.
    """

    first: int
    size: int
    kinds: int


class DataAccess(Struct, frozen=True):
    """A load or store.

    Attributes:
        address: of its first byte.
        size: bytes.
        kinds: `READ` or `WRITE`.
    """

    address: int
    size: int
    kinds: int

    def meets(self, watched: DataRange) -> bool:
        """True if a range that is watched for this kind has one of its bytes."""
        return bool(
            self.kinds & watched.kinds
            and self.address < watched.first + watched.size
            and watched.first < self.address + self.size
        )


class _RangeWords(ctypes.Structure):
    _fields_ = (
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("kinds", ctypes.c_uint64),
    )


class _WatchWords(ctypes.Structure):
    """The words that the host code reads: `pages` and `told` are numbers of ranges."""

    _fields_ = (
        ("cpu", ctypes.c_uint64),
        ("uc", ctypes.c_uint64),
        ("ask", ctypes.c_uint64),
        ("stop", ctypes.c_uint64),
        ("exit", ctypes.c_uint64),
        ("matches", ctypes.c_uint64),
        ("check", ctypes.c_uint64),
        ("pages", ctypes.c_uint64),
        ("told", ctypes.c_uint64),
        ("ranges", _RangeWords * MOST),
    )


WATCH_LINKS: Final = HostLinks[_WatchWords](("matches", "check"))
"""The links of processors with watched data in the library's questions for them."""


class WatchedData:
    """The watched data of one processor."""

    def __init__(
        self, emulator: Emulator, uc: int, cpu: int, told: Callable[[DataAccess], bool]
    ) -> None:
        """Watch nothing yet.

        Args:
            emulator: the processor's; its code has the offsets that the host code has.
            uc: address of its handle.
            cpu: address of its CPUState.
            told: called in front of each access while `tell` is on; True if the processor stops
                there. Nothing may be raised.

        Raises:
            ValueError: this build of Unicorn, or this host, does not allow it.
        """
        self._emulator = emulator
        leave = address_of("cpu_loop_exit_restore_x86_64")
        if not leave:
            raise ValueError(_OTHERWISE)
        self._ask = ask = _Ask(lambda *access: _STOP if told(DataAccess(*access)) else 0)
        link = _link(
            {
                "cpu": cpu,
                "uc": uc,
                "stop": address_of("uc_emu_stop"),
                "exit": leave,
                "ask": address_in(ask),
            }
        )
        self._words = link.record
        self._forgetting = weakref.finalize(self, WATCH_LINKS.give_back, link, ("cpu", "uc"))
        self._forgetting.atexit = False

    def put(self, ranges: Sequence[DataRange]) -> None:
        """Watch these and no others, while the processor does not run.

        Raises:
            ValueError: these are more than `MOST`.
        """
        if len(ranges) > MOST:
            raise ValueError(f"{MOST} ranges of data are watched at the most")
        words = self._words
        for at, one in enumerate(ranges):
            words.ranges[at] = _RangeWords(one.first, one.first + one.size - 1, one.kinds)
        words.pages = len(ranges)
        words.told = min(words.told, len(ranges))
        self._emulator.flush_translations()

    def tell(self, on: bool) -> None:
        """Say whether accesses are told of."""
        self._words.told = self._words.pages if on else 0


def _link(words: dict[str, int]) -> HostLink[_WatchWords]:
    """Have the library ask for one processor's watched data.

    Args:
        words: of that processor.

    Raises:
        ValueError: this build of Unicorn, or this host, does not allow it.
    """
    link = WATCH_LINKS.taken(words)
    if link is not None:
        return link
    slots = slots_of(WATCHED_FUNCTIONS)
    if slots is None:
        raise ValueError(_OTHERWISE)
    record = _WatchWords(**words)
    record.matches, record.check = (ctypes.c_uint64.from_address(slot).value for slot in slots)
    move = b"\x48\xb8" + pack("=Q", ctypes.addressof(record))  # mov rax, words
    placed = native.place((move + _MATCHES, move + _CHECK))
    if placed is None or not redirect(slots, placed[0]):
        raise ValueError("the host refuses to change the emulator's calls")
    return WATCH_LINKS.add(record, *placed)
