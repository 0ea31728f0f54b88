"""System calls in the rows of a trace in strace's words: flags, strings, errors by their names.

A row has the call's numbers and the strings that two of its arguments point to. What lies in other
memory is not there any more when the row becomes text: it is shown as an address.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from engine import arch as architectures
from engine.errors import GuestFaultError
from engine.trace.rows import Column, EventInfo, string_at
from engine.trace.strace.call import CallStyle, GuestFacts, TracedCall, pointer
from engine.trace.strace.decoder import ArgumentForm, ShownCall, call_forms
from engine.trace.strace.kinds import LATE

_STYLE: Final = CallStyle(string_max=63)
_PLAIN: Final = frozenset({"", "fd", "hex", "octal", "none", "ioctl"})
"""Kinds of results that are shown without a look at the arguments."""
_WORD: Final = struct.Struct("<Q")
_NAME: Final = "sys_{}"

CallText = Callable[[Any, int], bytes]
"""Makes the text of the row at a position of a buffer."""


def _facts(arch: str) -> GuestFacts:
    found = architectures.by_name(arch)
    return GuestFacts("<" if found.byteorder == "little" else ">", found.linux)


def _call_name(info: EventInfo) -> str:
    """The name of the call without `sys_enter_` or `sys_exit_`, as strace has it."""
    name = info.name.split("_", 2)[2]
    return name if name in call_forms() else _OTHERS.get(name, name)


_OTHERS: Final = {
    **{f"new{name}": name for name in ("stat", "fstat", "lstat", "uname")},
    "newfstatat": "newfstatat",
    "sendfile64": "sendfile",
}
"""Calls whose functions in the kernel have other names."""


def exit_text(info: EventInfo, arch: str) -> CallText:
    """The text of a call's return: `sys_openat -> -1 ENOENT (No such file or directory)`."""
    name, facts, at = _call_name(info), _facts(arch), info.columns[1].word * 8
    form = call_forms().get(name)
    shown = name if form is not None and form.result in _PLAIN else "#"
    head = _NAME.format(info.name.split("_", 2)[2])
    unpack = struct.Struct("<q").unpack_from

    def text(data: Any, position: int) -> bytes:
        call = TracedCall(shown, (0,) * 6, facts, _STYLE, _nothing, _no_path)
        call.result = unpack(data, position + at)[0]
        return f"{head} -> {ShownCall(call, 0).result()}".encode(errors="surrogateescape")

    return text


def enter_text(info: EventInfo, arch: str) -> CallText | None:
    """The text of a call; None for one whose arguments nothing more is known of."""
    name, facts = _call_name(info), _facts(arch)
    form = call_forms().get(name)
    numbers = [column for column in info.columns[1:] if not column.type.is_string]
    if form is None or len(form.arguments) < len(numbers):
        return None
    strings = {column.name: column for column in info.columns if column.type.is_string}
    read = [strings.get(f"__{column.name}_val") for column in numbers]
    forms = form.arguments[: len(numbers)]
    head = _NAME.format(info.name.split("_", 2)[2])

    def text(data: Any, position: int) -> bytes:
        values = [_number(column, data, position) for column in numbers]
        memory = _StoredStrings()
        for column, value in zip(read, values, strict=True):
            if column is not None:
                memory.add(value, _string(column, data, position))
        arguments = (*values, *(0,) * (6 - len(values)))
        call = TracedCall(name, arguments, facts, _STYLE, memory.read, _no_path)
        shown = []
        for index, (column, each) in enumerate(zip(numbers, forms, strict=True)):
            one = _argument(call, index, each)
            if one is not None:
                shown.append(f"{column.name}: {one}")
        return f"{head}({', '.join(shown)})".encode(errors="surrogateescape")

    return text


def _argument(call: TracedCall, index: int, form: ArgumentForm) -> str | None:
    late = LATE.get(form.kind)
    if form.show is None or form.late or (late is not None and late(call)):
        return None if form.kind == "skip" else pointer(call.arguments[index])
    return form.show(call, index, form.words)


def _number(column: Column, data: Any, position: int) -> int:
    found: int = _WORD.unpack_from(data, position + 8 * column.word)[0]
    return found


def _string(column: Column, data: Any, position: int) -> bytes | None:
    return string_at(data, position, _number(column, data, position))


class _StoredStrings:
    """The strings of a row where they were in the guest; zeros follow them."""

    def __init__(self) -> None:
        self._found: list[tuple[int, bytes]] = []

    def add(self, address: int, text: bytes | None) -> None:
        """The row has the bytes at an address."""
        if text is not None:
            self._found.append((address, text))

    def read(self, address: int, size: int) -> bytes:
        """The bytes at an address."""
        for start, text in self._found:
            if start <= address <= start + len(text):
                return text[address - start :][:size].ljust(size, b"\0")
        raise GuestFaultError(address, "read")


def _nothing(address: int, size: int) -> bytes:
    raise GuestFaultError(address, "read")


def _no_path(number: int) -> str:
    return ""
