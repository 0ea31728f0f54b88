"""System calls as events: the kernel's names for them and for their arguments.

`syscalls.txt` has what the `format` files of Linux 6.18 say (kernel/trace/trace_syscalls.c). What
an argument points to is recorded as later kernels do: a string, or the bytes of a write.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final, Protocol

from msgspec import Struct

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.errors import GuestFaultError
from engine.trace.rows import Column, EventInfo, EventSource

GROUP: Final = "syscalls"
ENTER: Final = "sys_enter_"
EXIT: Final = "sys_exit_"

STRING_MAX: Final = 255
"""Bytes of a string that are recorded."""
BYTES_MAX: Final = 63
"""Bytes of a buffer that are (syscall_user_buf_size)."""
_MORE: Final = b"..."

KERNEL_NAMES: Final = {
    "stat": "newstat",
    "fstat": "newfstat",
    "lstat": "newlstat",
    "uname": "newuname",
    "sendfile": "sendfile64",
    "umount2": "umount",
}
"""Calls whose function in the kernel, and so whose event, has another name."""

_BUFFERS: Final = {("write", "buf"): "count", ("pwrite64", "buf"): "count"}
"""Arguments that point to so many bytes instead of a string."""


class Argument(Struct, frozen=True):
    """One argument of a system call.

    Attributes:
        name: the kernel's.
        ctype: its type in the kernel's words.
        index: which one, from 0.
        string: whether it points to a string that is recorded.
        size_from: index of the argument that says how many bytes it points to; -1 for none.
    """

    name: str
    ctype: str
    index: int
    string: bool = False
    size_from: int = -1

    @property
    def is_read(self) -> bool:
        """True if what it points to is recorded too."""
        return self.string or self.size_from >= 0


def event_name(call: str) -> str:
    """The name of a call in the names of its events."""
    return KERNEL_NAMES.get(call, call)


@cache
def arguments(call: str, clone_backwards: bool) -> tuple[Argument, ...] | None:
    """The arguments of a call; None for one that is not known.

    Args:
        call: its name.
        clone_backwards: of `LinuxAbi`.
    """
    name = event_name(call)
    fields = _table().get(name)
    if fields is None:
        return None
    if name == "clone" and clone_backwards:
        fields = (*fields[:3], fields[4], fields[3])
    return described(name, fields)


def described(name: str, fields: Sequence[tuple[str, str]]) -> tuple[Argument, ...]:
    """The arguments of a call with what is recorded of them.

    Args:
        name: of it in the names of its events.
        fields: (type in the kernel's words, name) of each.
    """
    names = [field[1] for field in fields]
    found = []
    for index, (ctype, argument) in enumerate(fields):
        size = _BUFFERS.get((name, argument))
        string = ctype == "const char *" and size is None
        size_from = names.index(size) if size is not None else -1
        found.append(Argument(argument, ctype, index, string, size_from))
    return tuple(found)


def without_texts(found: Sequence[Argument]) -> tuple[Argument, ...]:
    """The same arguments, of which nothing is recorded but themselves."""
    return tuple(Argument(one.name, one.ctype, one.index) for one in found)


class CallerMemory(Protocol):
    """The memory of the program that makes a call."""

    def read(self, address: int, size: int) -> bytes:
        """The bytes there; GuestFaultError if they cannot be read."""

    def read_cstring(self, address: int, limit: int) -> bytes:
        """The bytes there up to a NUL, without it, and no more than the limit."""


def pointed_to(argument: Argument, values: Sequence[int], memory: CallerMemory) -> bytes:
    """Read what an argument points to, with a NUL behind it; nothing if it cannot be read."""
    address = values[argument.index]
    try:
        if argument.string:
            text = memory.read_cstring(address, STRING_MAX + 1)
            if len(text) > STRING_MAX:
                text = text[:STRING_MAX] + _MORE
        else:
            text = memory.read(address, min(values[argument.size_from], BYTES_MAX))
    except GuestFaultError:
        return b""
    return text + b"\0"


@cache
def _table() -> dict[str, tuple[tuple[str, str], ...]]:
    from importlib.resources import files  # loads what can look into archives

    found: dict[str, tuple[tuple[str, str], ...]] = {}
    text = (files("engine.trace") / "syscalls.txt").read_text(encoding="ascii")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, *fields = line.split("|")
        found[name] = tuple(
            (field.rpartition(" ")[0], field.rpartition(" ")[2]) for field in fields
        )
    return found


_LONG: Final = FieldType(ValueKind.HEX, 8)
_NUMBER: Final = FieldType(ValueKind.SIGNED, 4)
_TEXT: Final = FieldType(ValueKind.STRING, 0)


def enter_info(event_id: int, call: str, found: tuple[Argument, ...]) -> EventInfo:
    """The event of a call being made: its number, its arguments, what they point to."""
    columns = [Column("__syscall_nr", _NUMBER, ROW_HEAD, "int")]
    for argument in found:
        columns.append(Column(argument.name, _LONG, ROW_HEAD + len(columns), argument.ctype))
    for argument in found:
        if argument.is_read:
            ctype = "string" if argument.string else "bytes"
            name = f"__{argument.name}_val"
            columns.append(Column(name, _TEXT, ROW_HEAD + len(columns), ctype))
    return _info(event_id, ENTER + event_name(call), columns, EventSource.SYSCALL_ENTER)


def exit_info(event_id: int, call: str) -> EventInfo:
    """The event of a call that returns."""
    columns = [
        Column("__syscall_nr", _NUMBER, ROW_HEAD, "int"),
        Column("ret", FieldType(ValueKind.SIGNED, 8), ROW_HEAD + 1, "long"),
    ]
    return _info(event_id, EXIT + event_name(call), columns, EventSource.SYSCALL_EXIT)


def _info(event_id: int, name: str, columns: list[Column], source: EventSource) -> EventInfo:
    words = ROW_HEAD + len(columns)
    return EventInfo(event_id, GROUP, name, tuple(columns), words, source=source)
