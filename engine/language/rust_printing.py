"""Values of Rust as gdb prints them (gdb/rust-lang.c)."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from engine.escaping import escaped
from engine.image.datatypes import Member, TypeKind
from engine.image.variants import variant_part
from engine.language.languages import Forms
from engine.language.print_options import PrintOptions
from engine.language.reach import Reach
from engine.language.value_types import CType, MadeType, number
from engine.language.values import TypedValue

_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\033": "\\033",
    "\\": "\\\\",
    '"': '\\"',
}
_BYTES: Final = "b"
_BYTE: Final = number(TypeKind.UNSIGNED, 1, "u8")


class RustForms(Forms):
    """The forms of Rust's values; those that are C's are left to C's printer."""

    brackets = ("[", "]")

    def __init__(
        self, reach: Reach, options: PrintOptions, part: Callable[[TypedValue, str, int], str]
    ) -> None:
        """Set up.

        Args:
            reach: parts of values.
            options: how much is printed.
            part: prints a value inside another one: the value, a format letter, the depth.
        """
        self._reach, self._options, self._part = reach, options, part

    def whole(self, value: TypedValue, letter: str) -> str | None:
        """A text of bytes as gdb writes it; None for all else."""
        if letter or not is_byte_text(value.type):
            return None
        return f"b{self.quoted(value.raw, len(value.raw))}"

    def scalar(self, value: TypedValue) -> str | None:
        """A value without parts; None for one that C prints alike."""
        kind = value.type.resolved
        if kind.kind is TypeKind.VOID or (kind.text == "()" and not kind.size):
            return "()"
        if kind.text == "char" and kind.kind is TypeKind.UNSIGNED and kind.size == 4:
            return f"{value.number} '{_character(value.number)}'"
        return None

    def record(self, value: TypedValue, letter: str, depth: int) -> str:
        """A structure, a tuple, an enumeration or a slice.

        Raises:
            GuestFaultError: it cannot be read.
        """
        kind = value.type.resolved
        if variant_part(kind) is not None:
            return self._enumeration(value, letter, depth)
        if is_slice(kind):
            return self._slice(value, letter, depth)
        name = escaped(kind.text)
        parts = self._parts(value, kind.members, letter, depth)
        if name.startswith("("):
            return f"({self._joined(parts, depth)})"
        if not kind.members:
            return name
        opening, closing = "()" if is_tuple_struct(kind) else "{}"
        return f"{name} {opening}{self._joined(parts, depth)}{closing}"

    def _enumeration(self, value: TypedValue, letter: str, depth: int) -> str:
        found = self._reach.variant(value)
        if found is None:
            return f"{escaped(value.type.resolved.text)} {{<No data fields>}}"
        inner = self._reach.part(value, found)
        kind = inner.type.resolved
        name = escaped(kind.text)
        if not kind.members:
            return name
        opening, closing = "()" if is_tuple_struct(kind) else "{}"
        parts = self._parts(inner, kind.members, letter, depth)
        return f"{name}{opening}{', '.join(parts)}{closing}"

    def _slice(self, value: TypedValue, letter: str, depth: int) -> str:
        """A slice without its printer, or a box of one."""
        start, length = (self._reach.member(value, name) for name in ("data_ptr", "length"))
        shown = min(length.number, self._options.elements)
        if value.type.resolved.text == "&str":
            raw = b"".join(self._reach.element(start, at).raw for at in range(shown))
            return self.quoted(raw, length.number)
        parts = [
            self._part(self._reach.element(start, number), letter, depth + 1)
            for number in range(shown)
        ]
        more = "..." if shown < length.number else ""
        return f"{escaped(value.type.resolved.text)} [{', '.join(parts)}{more}]"

    def _parts(
        self, value: TypedValue, members: Sequence[Member], letter: str, depth: int
    ) -> list[str]:
        bare = value.type.resolved.text.startswith("(") or is_tuple_struct(value.type.resolved)
        return [
            ("" if bare else f"{escaped(member.name or '')}: ")
            + self._part(self._reach.part(value, member), letter, depth + 1)
            for member in members
        ]

    def _joined(self, parts: Iterable[str], depth: int) -> str:
        if not self._options.pretty:
            return ", ".join(parts)
        inner = "\n" + "  " * (depth + 1)
        return "".join([inner, f",{inner}".join(parts), "\n", "  " * depth])

    def quoted(self, raw: bytes, length: int) -> str:
        """A text in quotes.

        Args:
            raw: its first bytes, in UTF-8.
            length: all of its bytes.
        """
        text = raw.decode(errors="surrogateescape")
        limit, repeats = self._options.elements, self._options.repeats
        more = "..." if len(text) > limit or len(raw) < length else ""
        parts, plain = list[str](), ""
        for letter, run in groupby(text[:limit]):
            count = sum(1 for _ in run)
            if count <= repeats:
                plain += _in_text(letter) * count
                continue
            parts += [f'"{plain}"'] if plain else []
            plain = ""
            one = _in_text(letter) if letter != "'" else "\\'"
            parts.append(f"'{one}' <repeats {count} times>".replace('\\"', '"'))
        if plain or not parts:
            parts.append(f'"{plain}"')
        return ", ".join(parts) + more


def is_slice(kind: CType) -> bool:
    """True for a slice, a text, or a box of one: an address and a length."""
    return [member.name for member in kind.members] == ["data_ptr", "length"]


def is_tuple_struct(kind: CType) -> bool:
    """True for a structure whose parts have numbers in place of names."""
    names = [member.name for member in kind.members]
    return bool(names) and names == [f"__{number}" for number in range(len(names))]


def byte_text(count: int) -> MadeType:
    """The type of a text of bytes, b"ab"."""
    return MadeType(TypeKind.ARRAY, count, _BYTES, _BYTE, count)


def is_byte_text(kind: CType) -> bool:
    """True for the type of a text of bytes that an expression has made."""
    return isinstance(kind, MadeType) and kind.kind is TypeKind.ARRAY and kind.name == _BYTES


def _in_text(letter: str) -> str:
    """A character of a text."""
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    raw = letter.encode(errors="surrogateescape")
    return "".join(f"\\{byte:03o}" for byte in raw)


def _character(code: int) -> str:
    """A character between its quotes (rust_language::emitchar)."""
    named = {92: "\\\\", 39: "\\'", 10: "\\n", 13: "\\r", 9: "\\t", 0: "\\0"}
    if code in named:
        return named[code]
    if 32 <= code < 127:
        return chr(code)
    return f"\\x{code:02x}" if code <= 255 else f"\\u{{{code:06x}}}"
