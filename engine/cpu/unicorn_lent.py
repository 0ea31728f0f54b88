"""Instructions that the host lends, run within Unicorn's translations.

Where the host has an instruction that Unicorn has not, the block it stands in need not end there:
the translation calls a few host instructions that do it on the emulator's registers and memory,
which costs some nanoseconds instead of the microseconds of the screen. Unicorn's translation of
an instruction, and its fetch of a byte of code, are led to routines that see to it
(`unicorn_lent_code`); which instructions there are, and the code for each, is the architecture's
(`engine.arch.engines.LentInsns`).

All this knows the pinned build byte by byte; where it is another, or room for code is used up,
the screen carries instructions out as before. It is installed when the first such instruction is
met: few programs have any.
"""

import ctypes
import mmap
import struct
import threading
from functools import cache
from typing import Final
from zlib import crc32

from engine.arch.engines import LentCode, LentInsns
from engine.cpu import hostmemory as host
from engine.cpu import native, unicorn_float, unicorn_locks
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.ram import PAGE
from engine.cpu.unicorn_blocks import BlockTable
from engine.cpu.unicorn_lent_code import ROUTINES, WORDS

_ROOM: Final = 16 << 20
"""Bytes for code, of some 100 an instruction."""
_ALIGN: Final = 16
"""Of code: the lower bits of its address tell about it."""
_SETS_FLAGS: Final = 1
_TRANSLATE: Final = 4
"""Index of the function that translates one instruction in the table of those of a target."""

_MAIN: Final = "gen_intermediate_code"
_TABLE_AT: Final = 0x26
"""Place in it of an instruction that names that table."""
_TRANSLATION_AT: Final = -0x220
"""Distance from it of the function that translates one instruction."""
_EXPORTED: Final = (
    *((_MAIN, 0x38), ("tcg_emit_op", 0xB9), ("tcg_gen_callN", 0x140), ("cpu_ldub_code", 0x30)),
    *(("cpu_ldub_data_ra", 0x180), ("cpu_stb_data_ra", 0x100), ("probe_access", 0x220)),
    *(("raise_exception_ra", 0x18), ("translator_loop", 0x340)),
)
"""Functions whose code is known, and how many bytes of it."""
_INSIDE: Final = (
    ("probe_access", -0x2760, 0x1400),  # loads
    (_MAIN, -0x1C660, 0x1C0),  # the beginning of a block
    (_MAIN, -0x22060, 0x2D),  # that of an instruction
    (_MAIN, _TRANSLATION_AT, 0x258),  # its translation
)
"""(function, distance from it, bytes) of others that have no name."""
_CHECKS: Final = {"x86_64": "9366b2c3e6ddb078"}
"""CRC-32 of the code, by target, in hex."""

_COUNTED_AT: Final = 0x38
_COUNT: Final = bytes.fromhex(
    "488b8720f7ffff"  # mov rax, [rdi-0x8e0]
    "488b4008"  # mov rax, [rax+8]
    "48ff4038"  # inc qword [rax+0x38]
)
"""Stands in front of all code: counts it in the record."""

_Make: Final = ctypes.CFUNCTYPE(
    ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64
)


class LentTranslations:
    """The lent instructions of one engine.

    Attributes:
        active: its translations call the host's code.
    """

    def __init__(self, target: str, insns: LentInsns | None, ways: BlockTable) -> None:
        """Have them called from now on, if that can be done; what is translated stays.

        Args:
            target: how Unicorn's functions of its architecture end.
            insns: them; None for none.
            ways: where the engine keeps what belongs to it.
        """
        possible = ways.active and native.possible()
        self._code = _led(target, insns) if possible and insns is not None else None
        self._record: mmap.mmap | None = None
        if self._code is not None:
            try:
                self._record = host.private(PAGE)
            except OSError:
                self._code = None
        if self._record is not None:
            ways.keep(ctypes.addressof(ctypes.c_char.from_buffer(self._record)))
        self.active = self._code is not None

    @property
    def count(self) -> int:
        """Number of those that have been begun within translations."""
        if self._record is None:
            return 0
        return int.from_bytes(self._record[_COUNTED_AT : _COUNTED_AT + 8], "little")

    def runs(self, address: int, raw: bytes) -> bool:
        """True if translations of an instruction call the host's code for it."""
        return self._code is not None and self._code.made(address, raw)


class _LentCodes:
    """The code of all instructions that were met, for all engines of a process."""

    def __init__(self, insns: LentInsns, room: mmap.mmap) -> None:
        self._insns = insns
        self._room = room
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(room))
        self._used = 0
        self._lock = threading.Lock()
        self._places: dict[tuple[bytes, int, bool], int] = {}
        self.routines: dict[str, int] = {}

    def make(self, address: int, at: int, size: int, hooked: int) -> int:
        """The code for an instruction, as `translate` wants it; 0 for none.

        Args:
            address: of the instruction.
            at: where its bytes stand.
            size: how many there are.
            hooked: its accesses are to be seen, if not 0.
        """
        raw = ctypes.string_at(at, size)
        with self._lock:
            return self._made(raw, address, hooked=bool(hooked))

    def _made(self, raw: bytes, address: int, *, hooked: bool) -> int:
        key = self._key(raw, address, hooked=hooked)
        place = self._places.get(key)
        if place is not None:
            return place
        code = self._insns.code(raw, address, self._routine, hooked=hooked)
        place = self._put(code) if code is not None else 0
        if place:
            self._places[key] = place
        else:  # what was translated now has none: `made` is asked next
            self._places.pop((*key[:2], not hooked), None)
        return place

    def _routine(self, name: str) -> int:
        return self.routines.get(name, 0)

    def made(self, address: int, raw: bytes) -> bool:
        """True if the last translation of an instruction calls code for it."""
        return any(
            self._key(raw, address, hooked=hooked) in self._places for hooked in (False, True)
        )

    def _key(self, raw: bytes, address: int, *, hooked: bool) -> tuple[bytes, int, bool]:
        return raw, address if self._insns.depends_on_address(raw) else 0, hooked

    def _put(self, code: LentCode) -> int:
        at, size = self._used, len(_COUNT) + len(code.code)
        if at + size > _ROOM:
            return 0
        self._room[at : at + size] = _COUNT + code.code
        self._used = -(-(at + size) // _ALIGN) * _ALIGN
        return self._base + at | (_SETS_FLAGS if code.sets_flags else 0)


def _known(target: str) -> bool:
    """True if the library's code for a target is the known one."""
    places = {name: linkage.address_of(f"{name}_{target}") for name, _ in _EXPORTED}
    if not all(places.values()):
        return False
    pieces = [(places[name], size) for name, size in _EXPORTED]
    return _checked(pieces) == _CHECKS.get(target, "")[:8] and (
        _checked([(places[name] + away, size) for name, away, size in _INSIDE])
        == _CHECKS[target][8:]
    )


def _checked(pieces: list[tuple[int, int]]) -> str:
    return f"{crc32(b''.join(ctypes.string_at(*piece) for piece in pieces)):08x}"


@cache
def _led(target: str, insns: LentInsns) -> _LentCodes | None:
    """Lead Unicorn's functions here, once; if that cannot be done nothing has changed."""
    slots = linkage.slots_of((f"cpu_ldub_code_{target}".encode(),))
    if slots is None or not _known(target):
        return None
    main = linkage.address_of(f"{_MAIN}_{target}")
    (distance,) = struct.unpack("=i", ctypes.string_at(main + _TABLE_AT + 3, 4))
    slots.append(main + _TABLE_AT + 7 + distance + 8 * _TRANSLATE)
    own = struct.unpack("=2Q", b"".join(ctypes.string_at(slot, 8) for slot in slots))
    if own != (unicorn_locks.fetcher(target), main + _TRANSLATION_AT):
        return None  # somebody else has led them
    try:
        room = mmap.mmap(
            -1,
            _ROOM,
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC,
        )
    except OSError:
        return None
    codes = _LentCodes(insns, room)
    make = _Make(codes.make)
    words = {name: linkage.address_of(f"{name}_{target}") for name in WORDS}
    words |= {"cpu_ldub_code": own[0], "translate": own[1], "make": linkage.address_in(make)}
    if not all(words.values()):
        return None
    placed = native.place((struct.pack(f"={len(WORDS)}Q", *words.values()) + _ALL,))
    if placed is None:
        return None
    (base,), memory = placed
    codes.routines |= {name: base + 8 * len(WORDS) + at for name, at in _PLACES.items()}
    if not unicorn_float.install(target):  # MXCSR does not hold all flags then
        del codes.routines["control"]
    if not linkage.redirect(slots, [codes.routines[name] for name in ("fetch", "translate")]):
        linkage.redirect(slots, list(own))
        return None
    unicorn_locks.asks_too(codes.routines["fetch"] + _BEHIND_NEXT)
    _KEPT.extend((make, memory))
    return codes


_ALL: Final = b"".join(bytes.fromhex(routine) for _, routine in ROUTINES)


def _places() -> dict[str, int]:
    at, found = 0, {}
    for name, routine in ROUTINES:
        found[name] = at
        at += len(routine) // 2
    return found


_PLACES: Final = _places()
_FETCHES: Final = bytes.fromhex("0fb6c04288442b40")
_BEHIND_NEXT: Final = bytes.fromhex(dict(ROUTINES)["fetch"]).index(_FETCHES)
"""In `fetch`: behind the call by which it fetches bytes itself."""
_KEPT: Final[list[object]] = []
"""The memory with the code: Unicorn runs it as long as the process lives."""
