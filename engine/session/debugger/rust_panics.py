"""Panics of Rust: where they begin, and their messages as far as memory tells them.

A panic with a message begins in `rust_begin_unwind`, whose argument leads to `fmt::Arguments`: the
texts between the arguments, and of each argument its address and its formatter. Two layouts are
known: texts and arguments as slices, and since Rust 1.93 a template of bytes (library/core/src/fmt
of the Rust sources). An argument is written where its formatter is one of the library's for a
number, a truth value, a character or a text; others are written as "{}". A panic with a value of
the program's own begins in `std::panicking::begin_panic`.
"""

import re
from collections.abc import Callable
from typing import Final

from engine.errors import GuestFaultError
from engine.session.guest.session import Session

ENTRIES: Final = (
    "rust_begin_unwind",
    "__rustc::rust_begin_unwind",
    "std::panicking::begin_panic",
)
"""The functions that a panic begins in, under the names of all versions."""

_ANY: Final = "Box<dyn Any>"
_HOLE: Final = "{}"
_LONGEST: Final = 4096
_MOST: Final = 64
_VALUES: Final = 100
"""Values of a message that are read: what leads to itself in a guest's memory has an end."""
_HEADER: Final = 5
"""Words of a `PanicInfo` among which its place in the source is looked for."""
_NUMBER: Final = re.compile(r"[iu](8|16|32|64|128|size)")
_FORMATTER: Final = re.compile(
    r"<(?P<one>.+) as core::fmt::(?P<trait>\w+)>::fmt$"
    r"|<impl core::fmt::(?P<other>\w+) for (?P<two>.+)>::fmt$"
)
_PLACEHOLDER, _LONG_TEXT = 0xC0, 0x80


class PanicMessages:
    """Reads the message of the panic that is beginning."""

    def __init__(self, session: Session, name_of: Callable[[int], str]) -> None:
        """Nothing is read yet.

        Args:
            session: the guest, which stands at the first instruction of one of `ENTRIES`.
            name_of: a function by its address as debug information calls it: generics and all.
        """
        self._session = session
        self._name_of = name_of
        self._word = session.arch.bits // 8
        self._left = 0

    def message(self) -> str:
        """The message; "" where it cannot be told."""
        session = self._session
        first, second = (
            session.cpu.read_register(name) for name in session.arch.probes.arguments[:2]
        )
        pc = session.cpu.read_register(session.arch.roles.pc)
        self._left = _VALUES
        try:
            name = self._name_of(pc)
            if "begin_panic" in name and "begin_panic_handler" not in name:
                return self._payload(name, first, second)
            return self._of_info(first)
        except (GuestFaultError, UnicodeDecodeError):
            return ""

    def _payload(self, name: str, first: int, second: int) -> str:
        """A value that the program panics with: a text, or what the library's hook calls it."""
        if name.endswith("<&str>"):
            return self._str(first, second)
        if name.endswith("::String>"):
            return self._string(first)
        return _ANY

    def _of_info(self, info: int) -> str:
        """The message of a `PanicInfo`: the word in front of its place in the source."""
        words = self._words(info, _HEADER)
        for at, word in enumerate(words[1:], 1):
            if self._is_location(word):
                return self._arguments(words[at - 1]) if words[at - 1] else ""
        return ""

    def _is_location(self, address: int) -> bool:
        """True for a `Location`: a file's name, a line and a column."""
        try:
            start, size = self._words(address, 2)
            return 0 < size <= _LONGEST and self._str(start, size).endswith(".rs")
        except (GuestFaultError, UnicodeDecodeError):
            return False

    # -- arguments --------------------------------------------------------------------------

    def _arguments(self, address: int) -> str:
        """A `fmt::Arguments`."""
        told = self._slices(address)
        if told is not None:
            return told
        first, second = self._words(address, 2)
        if second & 1:  # a text alone, and its length
            return self._str(first, second >> 1)
        return self._template(first, second)

    def _slices(self, address: int) -> str | None:
        """The layout of slices: texts, arguments, and their forms; None if it is none."""
        try:
            words = self._words(address, 6)
        except GuestFaultError:
            return None
        texts: list[str] | None = None
        arguments: list[str] = []
        for number, (start, count) in enumerate(zip(words[::2], words[1::2], strict=True)):
            if not start or not count:
                continue  # nothing is said of how they are written, or there are none
            try:
                inner = self._words(start, 2 * count) if count <= _MOST else []
                pairs = list(zip(inner[::2], inner[1::2], strict=True))
                if pairs and (self._is_code(inner[1]) or self._is_code(inner[0])):
                    arguments = [self._argument(*pair) for pair in pairs]
                    continue
                if pairs and texts is None and all(size <= _LONGEST for _, size in pairs):
                    texts = [self._str(*pair) for pair in pairs]
                    continue
            except (GuestFaultError, UnicodeDecodeError):
                pass
            if not number:
                return None
        if texts is None:
            return None
        found = ""
        for number in range(max(len(texts), len(arguments))):
            found += "".join((*texts[number : number + 1], *arguments[number : number + 1]))
        return found

    def _template(self, at: int, arguments: int) -> str:
        """The layout of a template: lengths with texts behind them, and places of arguments."""
        found = ""
        for _ in range(4 * _MOST):
            code = self._read(at, 1)[0]
            at += 1
            if not code:
                return found
            if code == _PLACEHOLDER:
                found += self._argument(*self._words(arguments, 2))
                arguments += 2 * self._word
            elif code <= _LONG_TEXT:
                size = code
                if code == _LONG_TEXT:
                    size = int.from_bytes(self._read(at, 2), "little")
                    at += 2
                found += self._str(at, size)
                at += size
            else:
                break  # an argument with a width or the like, whose encoding is not told here
        return found + "..."

    def _argument(self, value: int, formatter: int) -> str:
        if self._is_code(value) and not self._is_code(formatter):
            value, formatter = formatter, value
        location = self._session.seen.modules.locate(formatter)
        symbol = location.symbol.demangled if location.symbol is not None else ""
        match = _FORMATTER.search(symbol)
        if match is None:
            return _HOLE
        kind, trait = match["one"] or match["two"], match["trait"] or match["other"]
        if kind == "&T":  # an old name, which does not say more
            kind = "&" + self._name_of(formatter).rpartition("fmt<")[2].removesuffix(">")
        return self._value(value, kind, trait)

    def _value(self, at: int, kind: str, trait: str) -> str:
        self._left -= 1
        if trait not in ("Display", "Debug") or self._left < 0:
            return _HOLE
        number = _NUMBER.fullmatch(kind)
        if number is not None:
            size = self._word if number[1] == "size" else int(number[1]) // 8
            return str(int.from_bytes(self._read(at, size), "little", signed=kind[0] == "i"))
        if kind == "core::fmt::Arguments":
            return self._arguments(at)
        if kind == "bool":
            return "true" if self._read(at, 1)[0] else "false"
        text = ""
        if kind == "char":
            code = int.from_bytes(self._read(at, 4), "little")
            text = chr(code) if code < 0x110000 else _HOLE
            return text if trait == "Display" else f"'{text}'"
        if kind == "&str":
            text = self._str(*self._words(at, 2))
        elif kind.startswith("&dyn "):  # its table has size, alignment and drop in front
            data, table = self._words(at, 2)
            return self._argument(data, self._words(table, 4)[3])
        elif kind.startswith("&"):
            return self._value(self._words(at, 1)[0], kind[1:], trait)
        elif kind.endswith("string::String"):
            text = self._string(at)
        else:
            return _HOLE
        return text if trait == "Display" else f'"{text}"'

    # -- memory -----------------------------------------------------------------------------

    def _string(self, at: int) -> str:
        """A `String`: its address and capacity in either order, then its length."""
        one, other, size = self._words(at, 3)
        return self._str(max(one, other), size)

    def _str(self, at: int, size: int) -> str:
        data = self._read(at, min(size, _LONGEST))
        return data.decode() + ("..." if size > _LONGEST else "")

    def _words(self, at: int, count: int) -> list[int]:
        data = self._read(at, count * self._word)
        step = self._word
        return [
            int.from_bytes(data[start : start + step], "little")
            for start in range(0, len(data), step)
        ]

    def _read(self, at: int, size: int) -> bytes:
        return self._session.seen.memory.peek(at, size)

    def _is_code(self, address: int) -> bool:
        symbol = self._session.seen.modules.locate(address).symbol
        return symbol is not None and symbol.is_function
