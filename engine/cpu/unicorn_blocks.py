"""The ways between translated blocks, made shorter.

Unicorn asks a function for the next block wherever a program returns, or goes to another page or
to a computed address. It looks into a small table of pointers to blocks, then into the block,
then into a hash table of all. Here it finds the code to go to in a table of the engine's own,
eight times as large, whose entries hold all that is compared. What makes an entry stale, Unicorn
counts: blocks that are dropped, all being dropped, the TLB being flushed. An entry knows the sum
of those numbers when it was made, and is one no longer when it has changed.

At the beginning of each block Unicorn calls a function that looks whether it is to stop. The call
is turned into a comparison of the same word in front of it. In the same way the call of the
clock (`native_code.BLOCK`) becomes a comparison, and what counts a tick where control has come
from elsewhere.

And each block that is translated makes Unicorn go through all entries of its TLB, for pages that
now hold code: those of the pages are found by their numbers.

All this is done to the machine code of the pinned build, which is known byte by byte; where it is
another nothing changes but the speed.
"""

import ctypes
import mmap
import struct
from functools import cache
from typing import Final

from msgspec import Struct

from engine.cpu import hostmemory as host
from engine.cpu import native
from engine.cpu import unicorn_blocks_code as code
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.native_code import BLOCK

_ENTRIES: Final = 1 << 15
_HEAD: Final = 64
_ENTRY: Final = 32
_RECORD: Final = 1
"""Index of a word in the head; the first is the address of the TCGContext."""
_CONTEXT: Final = 0x300
"""Place of the TCGContext in the engine structure."""
_OPAQUE: Final = 0x8170
"""Place of a word in a CPUState that Unicorn does not use."""


class _Build(Struct, frozen=True):
    """Code for one of Unicorn's targets.

    Attributes:
        sizes: functions whose code is known, and how long each is.
        checks: CRC-32 of the code of each, in hex: hashlib would load OpenSSL, 4 MB.
        lookup: what takes the place of the search's beginning.
        missing: what comes after it.
        asked: what takes the place of the beginning of the look at the stop request.
        stop: called where a block is not to begin, perhaps.
        dirty: what takes the place of a walk through the TLB, and where it stands in its function.
    """

    sizes: tuple[tuple[str, int], ...]
    checks: str
    lookup: bytes
    missing: bytes
    asked: bytes
    stop: bytes
    dirty: tuple[int, bytes]


_SIZES: Final = (
    ("helper_lookup_tb_ptr", 0xDC),
    ("helper_check_exit_request", 0x78),
    ("tcg_tb_phys_invalidate_count", 8),
    ("tb_flush", 0x136),
    ("tlb_flush_by_mmuidx", 8),
    ("tb_htable_lookup", 0x18F),
    ("tlb_reset_dirty_by_vaddr", 0xAB),
)
_BUILDS: Final = {
    "x86_64": _Build(
        _SIZES,
        "7caa0e582690dab5ad163bcb9053475d45e8e1d03a04da7d29b729c5",
        code.LOOKUP_X86,
        code.MISSING_X86,
        code.ASKED_X86,
        code.STOP_X86,
        (0x1F, code.DIRTY_X86),
    ),
    "aarch64": _Build(
        (*_SIZES, ("cpu_get_tb_cpu_state", 0x18E)),
        "c84daf592e4f5a58ad163bcb5242a7f3a3ed10d6723e3a467aff3707c23e7c91",
        code.LOOKUP_ARM,
        code.MISSING_ARM,
        code.ASKED_ARM,
        code.STOP_ARM,
        (0x30, code.DIRTY_ARM),
    ),
}
TARGETS: Final = tuple(_BUILDS)
"""The targets of Unicorn whose code is known."""


class BlockTable:
    """The table of one engine, which must live as long as it runs."""

    def __init__(self, engine: int, target: str) -> None:
        """Give an engine its table, if that can be done.

        Args:
            engine: address at which Unicorn keeps it.
            target: how Unicorn's functions of its architecture end.
        """
        self._memory: mmap.mmap | None = None
        cpu = linkage.cpu_of(engine)
        self.active = bool(cpu) and native.possible() and led(target)
        if not self.active:
            return
        self._memory = memory = host.private(_HEAD + _ENTRIES * _ENTRY)
        (context,) = struct.unpack("=Q", ctypes.string_at(engine + _CONTEXT, 8))
        memory[:8] = struct.pack("=Q", context)
        self._head = memoryview(memory)[:_HEAD].cast("Q")
        word = ctypes.c_uint64.from_address(cpu + _OPAQUE)
        word.value = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def keep(self, record: int) -> None:
        """Note, beside the table, the address of a record that belongs to the engine."""
        self._head[_RECORD] = record


def _known(target: str) -> dict[str, int] | None:
    """Addresses of the functions of a target; None if their code is not the known one."""
    build = _BUILDS.get(target)
    if build is None:
        return None
    if linkage.code_checks(build.sizes, target) != build.checks:
        return None
    return {name: linkage.address_of(f"{name}_{target}") for name, _ in build.sizes}


@cache
def led(target: str) -> bool:
    """Lead Unicorn's functions here, once; if that cannot be done nothing has changed."""
    places = _known(target)
    slots = linkage.slots_of((f"tcg_gen_code_{target}".encode(),))
    generate = linkage.address_of(f"tcg_gen_code_{target}")
    if places is None or slots is None or not generate:
        return False
    build = _BUILDS[target]
    asked = places["helper_check_exit_request"]
    state = places.get("cpu_get_tb_cpu_state", 0)
    missing = struct.pack("=2Q", places["tb_htable_lookup"], state) + build.missing
    placed = native.place((missing, build.stop + struct.pack("=Q", asked)))
    if placed is None:
        return False
    (missing_at, stop_at), first = placed
    words = struct.pack("=3Q", generate, asked, stop_at) + BLOCK[:16]
    placed = native.place((words + code.GENERATED,))
    if placed is None:
        return False
    (generated_at,), second = placed
    _KEPT.extend((first, second))
    lookup = build.lookup.replace(code.PLACE, struct.pack("=Q", missing_at + 16))
    within, dirty = build.dirty
    codes = {
        places["helper_lookup_tb_ptr"]: lookup,
        asked: build.asked,
        places["tlb_reset_dirty_by_vaddr"] + within: dirty,
    }
    before = {place: ctypes.string_at(place, len(new)) for place, new in codes.items()}
    if not linkage.rewrite(codes):
        linkage.rewrite(before)
        return False
    return linkage.redirect(slots, [generated_at + len(words)])


_KEPT: Final[list[object]] = []
"""The memory with the code: Unicorn runs it as long as the process lives."""
