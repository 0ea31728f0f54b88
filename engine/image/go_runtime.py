"""The structures in which Go's runtime keeps goroutines and threads, by a program's DWARF.

The structures are those of runtime/runtime2.go: `g` is a goroutine, `m` a thread of the system.
Offsets differ from one release to the next, so none is assumed: a program without debug
information (`-ldflags=-w`) cannot be asked.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.errors import ImageError
from engine.image.datatypes import DataType
from engine.image.elf import ElfImage
from engine.image.expressions import Where
from engine.image.names import GlobalNames
from engine.image.reader import DamagedError
from engine.image.variables import Variables

_TABLE: Final = "gopclntab"
"""The end of the name of the section with Go's table of functions."""
_LARGEST: Final = 1 << 16
"""Bytes of a structure; more than that is damage."""

_G: Final = (
    *("stack.lo", "stack.hi", "m", "sched.sp", "sched.pc", "atomicstatus", "goid"),
    *("waitreason", "gopc", "startpc", "lockedm"),
)
_M: Final = ("g0", "gsignal", "procid", "curg", "alllink")
_GLOBALS: Final = ("runtime.allgs", "runtime.allm")
_TEXTS: Final = ("runtime.gStatusStrings", "runtime.waitReasonStrings")


class GoField(Struct, frozen=True):
    """A number in a structure: bytes from the structure's first one, and its own bytes."""

    offset: int
    size: int


class GoRuntime(Struct, frozen=True):
    """The places of what a debugger asks of the runtime.

    Attributes:
        g_size: bytes of a goroutine's structure.
        g: its fields, by names as in "sched.pc"; "sched.bp" only where there is one.
        m_size: bytes of a thread's structure.
        m: its fields.
        addresses: link addresses of variables, by name.
        texts: link addresses and numbers of entries of tables of strings: "runtime.gStatusStrings"
            and "runtime.waitReasonStrings".
    """

    g_size: int
    g: Mapping[str, GoField]
    m_size: int
    m: Mapping[str, GoField]
    addresses: Mapping[str, int]
    texts: Mapping[str, tuple[int, int]]


class GoFile(Struct, frozen=True):
    """The part that Go has in a file.

    Attributes:
        is_go: Go's linker has made it.
        runtime: the runtime in it; None where debug information does not tell.
    """

    is_go: bool = False
    runtime: GoRuntime | None = None


def go_file(image: ElfImage) -> GoFile:
    """The part that Go has in a file; damaged debug information tells of no runtime."""
    if not any(section.name.endswith(_TABLE) for section in image.sections):
        return GoFile()
    try:
        info = Variables(image).info
        return GoFile(True, None if info is None else _read(GlobalNames(info)))
    except (ImageError, DamagedError):
        return GoFile(True)


def _read(names: GlobalNames) -> GoRuntime | None:
    g, m = names.type("runtime.g"), names.type("runtime.m")
    if g is None or m is None:
        return None
    g_size, m_size = g.size or 0, m.size or 0
    g_fields = {name: field for name in (*_G, "sched.bp") if (field := _field(g, name))}
    m_fields = {name: field for name in _M if (field := _field(m, name))}
    addresses: dict[str, int] = {}
    texts: dict[str, tuple[int, int]] = {}
    for name in (*_GLOBALS, *_TEXTS):
        variable = names.variable(name)
        place = variable.location if variable is not None else None
        if variable is None or place is None or place.where is not Where.MEMORY:
            return None
        if name in _TEXTS:
            texts[name] = place.term.offset, variable.type.resolved.count or 0
        else:
            addresses[name] = place.term.offset
    whole = all(name in g_fields for name in _G) and len(m_fields) == len(_M)
    if not whole or not _holds(g_size, g_fields) or not _holds(m_size, m_fields):
        return None
    return GoRuntime(g_size, g_fields, m_size, m_fields, addresses, texts)


def _holds(size: int, fields: Mapping[str, GoField]) -> bool:
    """True if a structure of a size has all of its fields within."""
    if not 0 < size <= _LARGEST:
        return False
    return all(one.offset >= 0 and one.offset + one.size <= size for one in fields.values())


def _field(kind: DataType, name: str) -> GoField | None:
    """A field by a path of names; where atomic.Uint32 and the like stand, the number in them."""
    offset, at = 0, kind.resolved
    for part in name.split("."):
        member = at.member(part)
        if member is None:
            return None
        offset, at = offset + member.offset, member.type.resolved
    for _ in range(3):
        value = at.member("value")
        if value is None:
            break
        offset, at = offset + value.offset, value.type.resolved
    size = at.size
    return GoField(offset, size) if size in (1, 2, 4, 8) else None
