"""A guest's instruction must not end the engine's own process.

Unicorn 2.1.4 calls abort() on some unallocated encodings while it translates them, and would on
any other that reaches an assertion. Its own call of abort (not the process's) is led to a few
host instructions that leave its execution loop the way an exception leaves it, as a refused
instruction fetch does in the middle of a translation; the engine then looks for the instruction
that cannot be translated. Nothing is scanned and nothing is paid while nothing happens.

Unicorn's printf and fprintf are led to nothing: a failing assertion writes to standard output,
which is the guest's.

Without executable host memory, on another host, or if the library is laid out differently, the
calls stay as they are: `Guard.active` says so.
"""

import ctypes
import mmap
import os
import struct
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from unicorn.unicorn_py3.unicorn import uclib

from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu.native_code import ABORT, ABORT_RECORD, SILENCE

ABORTED: Final = -1
"""Returned by `Guard.start` when Unicorn has given up; no uc_err is negative."""

_THREAD, _COUNT, _STOP, _ENGINE, _LEAVE, _CPU, _REAL, _WORDS = range(8)
# The engine structure's pointer to its CPUState, and the way back, in the pinned build.
_CPU_AT, _BACK_AT = 0x1B8, 0x81A8

# elf.h: dynamic tags and the relocation of an imported function.
_STRTAB, _SYMTAB, _PLTRELSZ, _JMPREL = 5, 6, 2, 23
_JUMP_SLOT: Final = 7
_SYMBOL, _RELOCATION = 24, 24
_IMPORTS: Final = 256
"""Symbols looked at for a name: imports come first in the table."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """The parts that a process has once: the record that the host code reads, and its code.

    Words of the record: the host thread that is inside Unicorn, how often it was left, the
    function that stops it and its argument, the one that leaves it and its argument, abort.
    """

    words: "memoryview[int]"
    owner: list[object]
    keep: tuple[object, ...]


class Guard:
    """Enters one engine so that it comes back.

    Attributes:
        active: whether Unicorn's failing assertions are caught here.
    """

    def __init__(self, handle: Any, engine: int, target: str) -> None:
        """Lead the library's failing assertions back here, if that can be done.

        Args:
            handle: Unicorn's handle of the engine.
            engine: address at which Unicorn keeps it.
            target: how Unicorn's functions of its architecture end.
        """
        self._handle = handle
        self._engine = engine
        self._leave = _address(getattr(uclib, f"cpu_loop_exit_{target}", None))
        self._cpu = _cpu_of(engine)
        shared = _install() if self._leave and self._cpu and native.possible() else None
        self.active = shared is not None
        self._shared = shared

    def start(self, pc: int, end: int, count: int) -> int:
        """Run as uc_emu_start does; its error, or ABORTED.

        After ABORTED pc is where the block begins that could not be translated.
        """
        shared = self._shared
        if shared is None:
            return int(api.emu_start(self._handle, pc, end, 0, count))
        words = shared.words
        if shared.owner[0] is not self:
            words[_ENGINE], words[_CPU], words[_LEAVE] = self._engine, self._cpu, self._leave
            shared.owner[0] = self
        words[_THREAD] = threading.get_ident()
        try:
            error: int = api.emu_start(self._handle, pc, end, 0, count)
        finally:
            words[_THREAD] = 0
        if words[_COUNT]:
            words[_COUNT] = 0
            return ABORTED
        return error


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


def _cpu_of(engine: int) -> int:
    """The CPUState of an engine; 0 if it is not where the pinned build keeps it."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return 0
    try:
        (cpu,) = struct.unpack("=Q", os.pread(memory, 8, engine + _CPU_AT))
        (back,) = struct.unpack("=Q", os.pread(memory, 8, cpu + _BACK_AT))
    except (OSError, OverflowError, struct.error):
        return 0
    finally:
        os.close(memory)
    return int(cpu) if back == engine else 0


@cache
def _install() -> _Shared | None:
    """Lead the library's imports to the host code; None where that cannot be done."""
    slots = _import_slots((b"abort", b"printf", b"fprintf"))
    record = mmap.mmap(-1, mmap.PAGESIZE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(record))
    words = memoryview(record)[: 8 * _WORDS].cast("Q")
    words[_STOP] = _address(api.emu_stop)
    words[_REAL] = _address(ctypes.CDLL(None).abort)
    code = native.place((ABORT.replace(ABORT_RECORD, struct.pack("=Q", at)), SILENCE, SILENCE))
    if slots is None or code is None:
        return None
    places, memory = code
    if not all(_redirect(slot, place) for slot, place in zip(slots, places, strict=True)):
        return None
    return _Shared(words, [None], (record, memory))


def _import_slots(names: tuple[bytes, ...]) -> list[int] | None:
    """Addresses of the words through which Unicorn calls these functions of the host.

    A dlopen handle is the loader's link_map: base address, name, dynamic section.
    """
    base, _, dynamic = struct.unpack("=3Q", ctypes.string_at(uclib._handle, 24))
    tags: dict[int, int] = {}
    while True:
        tag, value = struct.unpack("=2Q", ctypes.string_at(dynamic, 16))
        if not tag:
            break
        tags[tag] = value
        dynamic += 16
    if not {_STRTAB, _SYMTAB, _PLTRELSZ, _JMPREL} <= tags.keys():
        return None
    strings, symbols, jumps = (
        tags[tag] if tags[tag] >= base else tags[tag] + base for tag in (_STRTAB, _SYMTAB, _JMPREL)
    )
    table = ctypes.string_at(jumps, tags[_PLTRELSZ])
    slots = []
    for name in names:
        slot = _slot(name, table, strings, symbols)
        if slot is None:
            return None
        slots.append(base + slot)
    return slots


def _slot(name: bytes, table: bytes, strings: int, symbols: int) -> int | None:
    for index in range(1, _IMPORTS):
        (string,) = struct.unpack("=I", ctypes.string_at(symbols + _SYMBOL * index, 4))
        if ctypes.string_at(strings + string, len(name) + 1) == name + b"\0":
            info = struct.pack("=2I", _JUMP_SLOT, index)
            at = table.find(info)
            while at >= 0:
                if at % _RELOCATION == 8:
                    (slot,) = struct.unpack_from("=Q", table, at - 8)
                    return int(slot)
                at = table.find(info, at + 1)
            return None
    return None


def _redirect(slot: int, target: int) -> bool:
    """Write a slot through the kernel, which refuses where a store would kill."""
    try:
        memory = os.open("/proc/self/mem", os.O_RDWR)
    except OSError:
        return False
    try:
        return os.pwrite(memory, struct.pack("=Q", target), slot) == 8
    except (OSError, OverflowError):
        return False
    finally:
        os.close(memory)
