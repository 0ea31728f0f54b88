"""Places in definitions: `PATH:OFFSET`, `SYM[+OFF]`, `PATH:SYM`, a number, `FILE:LINE`."""

import re
import sys
from typing import Final

from msgspec import Struct

from engine.arch.plan import Mode
from engine.arch.program import Base
from engine.errors import ProbeError
from engine.fetch.compile import PLACE, split_offset
from engine.fetch.numbers import unsigned
from engine.fetch.variables import VariableScope
from engine.trace.errors import Command

PERF_PREFIX: Final = "perf:"
"""Begins a line that is a command of perf probe; in tracefs an event's name must follow."""
_MAX_SYMBOL_OFFSET = 0xFFFFFFFF
_MODULE = re.compile(r"([^:]+):(?!:)(.+)", re.DOTALL)
_PATH = re.compile(r"(.*/[^/:]*):([^0-9:/+-][^/]*)", re.DOTALL)
_LINE = re.compile(r"([^:]+):([0-9]+)", re.DOTALL)
_DIGITS = frozenset("0123456789")


class FileOffset(Struct, frozen=True, gc=False):
    """A uprobe's place.

    Attributes:
        path: of the file, as given.
        offset: in the file.
        reference: offset in the file of a counter of users (a semaphore), 0 for none.
    """

    path: str
    offset: int
    reference: int = 0

    def spelling(self, bits: int) -> str:
        """As the kernel lists it."""
        counter = f"({self.reference:#x})" if self.reference else ""
        return f"{self.path}:0x{self.offset:0{bits // 4}x}{counter}"


class SymbolPlace(Struct, frozen=True):
    """A kprobe's place by name.

    Attributes:
        name: of the function.
        offset: in it.
        module: the library it is searched in, by name or path; "" for the guest and then its
            libraries.
    """

    name: str
    offset: int = 0
    module: str = ""

    def spelling(self, bits: int) -> str:
        """As the kernel lists it."""
        offset = f"+{self.offset}" if self.offset else ""
        return f"{self.qualified}{offset}"

    @property
    def qualified(self) -> str:
        """The name with the module it is searched in."""
        return f"{self.module}:{self.name}" if self.module else self.name


class Address(Struct, frozen=True):
    """A kprobe's place by number: a link address of the guest."""

    value: int

    def spelling(self, bits: int) -> str:
        """As the kernel lists it."""
        return f"0x{self.value:0{bits // 4}x}"


class SourceLine(Struct, frozen=True):
    """A kprobe's place by line of source: an extension, the kernel has no such thing."""

    file: str
    line: int

    def spelling(self, bits: int) -> str:
        """As it is written."""
        return f"{self.file}:{self.line}"


KprobeTarget = SymbolPlace | Address | SourceLine
Target = FileOffset | KprobeTarget


class Lookup:
    """Look-ups in the program while a definition is read; this one knows nothing.

    With the answers of a program, errors come in the kernel's order. Without, the definition is
    read all the same and places are judged later (`Definition.error`).
    """

    def file(self, path: str) -> str:
        """Id of the error for a file: FILE_NOT_FOUND, NO_REGULAR_FILE; "" for none."""
        return ""

    def place(self, place: KprobeTarget, text: str, is_return: bool) -> str:
        """Id of the error for a place: BAD_PROBE_ADDR, NON_UNIQ_SYMBOL, BAD_RETPROBE; "".

        `text` is the place as written.
        """
        return ""

    def why(self) -> str:
        """The cause of the last error for a file or a place, in words of ours; "" for none."""
        return ""

    def entry(self, place: "Target", text: str) -> bool:
        """True if a place is a function's entry (a landing pad may be in front of it)."""
        return isinstance(place, SymbolPlace) and not place.offset

    def symbol(self, name: str, target: "Target", text: str) -> Base | None:
        """The address of a symbol, for a probe at a place (`text` as written); None for none."""
        return None

    def variables(self, target: "Target", text: str, is_return: bool) -> VariableScope | None:
        """The variables that arguments may name at a place (`text` as written); None for none."""
        return None


def perf_command(line: str, mode: Mode) -> str | None:
    """The command of a line `perf: COMMAND`; None for any other line, and in kernel mode."""
    text = line.lstrip(" \t")
    if mode is not Mode.STRICT or not text.startswith(PERF_PREFIX):
        return None
    return text.removeprefix(PERF_PREFIX).strip()


def path_symbol(word: str) -> tuple[str, str] | None:
    """Path and symbol of `PATH:SYM[+OFF]`, an extension; None for any other place."""
    found = _PATH.fullmatch(word)
    return (found[1], found[2]) if found else None


def read_file_offset(
    word: str, bits: int, command: Command, lookup: Lookup
) -> tuple[FileOffset, bool]:
    """A uprobe's place and whether it ends in `%return`.

    Raises:
        ProbeSyntaxError: with the kernel's error.
        ProbeError: where the kernel says EINVAL and no more.
    """
    path, colon, text = word.rpartition(":")
    if not colon or text[:1] not in _DIGITS:
        raise ProbeError(
            f"{word}: a uprobe's place is PATH:OFFSET with an offset in the file; "
            "LIB:SYMBOL without a '/' is a kprobe's, PATH:SYMBOL is not the kernel's (EINVAL)"
        )
    if problem := lookup.file(path):
        raise command.error(problem, PLACE, why=lookup.why())
    at = len(path) + 1
    text, reference = _read_reference(text, at, bits, command)
    text, is_return = _read_suffix(text, at, command)
    offset = unsigned(text, bits)
    if offset is None:
        raise command.error("BAD_UPROBE_OFFS", PLACE, at)
    return FileOffset(sys.intern(path), offset, reference), is_return


def _read_reference(text: str, at: int, bits: int, command: Command) -> tuple[str, int]:
    before, brace, inside = text.partition("(")
    if not brace:
        return text, 0
    number, closed, suffix = inside.partition(")")
    if not closed:
        raise command.error("REFCNT_OPEN_BRACE", PLACE, at + len(text))
    if suffix:
        raise command.error("BAD_REFCNT_SUFFIX", PLACE, at + len(text) - len(suffix))
    reference = unsigned(number, bits)
    if reference is None:
        raise command.error("BAD_REFCNT", PLACE, at + len(before) + 1)
    return before, reference


def _read_suffix(text: str, at: int, command: Command) -> tuple[str, bool]:
    before, percent, suffix = text.partition("%")
    if percent and suffix != "return":
        raise command.error("BAD_ADDR_SUFFIX", PLACE, at + len(before))
    return before, bool(percent)


def read_kprobe_place(
    word: str, bits: int, command: Command, mode: Mode
) -> tuple[KprobeTarget, bool]:
    """A kprobe's place and whether it ends in `%return`.

    In kernel mode a number takes no `%return`, as in the kernel.

    Raises:
        ProbeSyntaxError: with the kernel's error.
    """
    number = unsigned(word, bits)
    if number is not None:
        return Address(number), False
    text, is_return = _read_suffix(word, 0, command)
    if line := _LINE.fullmatch(text):
        return SourceLine(line[1], int(line[2])), is_return
    if mode is Mode.STRICT and (number := unsigned(text, bits)) is not None:
        return Address(number), is_return
    prefixed = _MODULE.fullmatch(text)
    module, symbol = path_symbol(text) or (prefixed.groups() if prefixed else ("", text))
    parts = split_offset(symbol, bits)
    if parts is None or not 0 <= parts[1] <= _MAX_SYMBOL_OFFSET:
        raise command.error("BAD_PROBE_ADDR", PLACE)
    name, offset = parts
    if not name or (not module and name[0] in _DIGITS):
        raise command.error("BAD_PROBE_ADDR", PLACE)
    return SymbolPlace(name, offset, module), is_return
