"""Texts of a `print fmt`: printk's conversions of what its expressions give (lib/vsprintf.c)."""

import re
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final, TypeAlias
from uuid import UUID

from engine.trace.printfmt.expressions import PrintNode, PrintReader, Sort, Values, wrapped
from engine.trace.printfmt.tokens import PrintType, UnprintableError, split
from engine.trace.rows import Column

Symbol: TypeAlias = Callable[[int], bytes]
PrintText: TypeAlias = Callable[[Values, Symbol], bytes]
"""Makes the text of a record's fields, given what names addresses."""
_Part: TypeAlias = PrintText
_CONVERSION: Final = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<most>\*|\d+))?(?P<length>hh|h|ll|l|L|z|t)?"
    r"(?:(?P<pointer>p[A-Za-z0-9]*)|(?P<letter>[diuxXocs%]))"
)
_SIZES: Final = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64, "L": 64, "z": 64, "t": 64}
_WIDTH_MOST: Final = 1 << 10
_INET, _INET6 = 2, 10
_SPACE: Final = {"h": " ", "hC": ":", "hD": "-", "hN": ""}


def print_text(expression: str, columns: Sequence[Column]) -> PrintText:
    """Compile a `print fmt`.

    Args:
        expression: of it, as a `format` file has it, with numbers in place of names.
        columns: of the event.

    Raises:
        UnprintableError: only the kernel itself could carry it out.
    """
    tokens = split(expression)
    at, form = 0, ""
    while at < len(tokens) and tokens[at].kind == "text":
        form += tokens[at].text
        at += 1
    if not at:
        raise UnprintableError("there is no text")
    reader, given = PrintReader(tokens[at:], columns), list[PrintNode]()
    while not reader.is_over:
        reader.need(",")
        given.append(reader.expression())
    parts = _TextPieces(given)
    made = parts.of(form)

    def text(values: Values, symbol: Symbol) -> bytes:
        return b"".join([part(values, symbol) for part in made])

    return text


class _TextPieces:
    """Makes the pieces of a text, and takes what they show from a list."""

    def __init__(self, given: Sequence[PrintNode]) -> None:
        self._given, self._at = given, 0

    def of(self, form: str) -> list[_Part]:
        """The pieces of a format."""
        found, at = list[_Part](), 0
        for match in _CONVERSION.finditer(form):
            found += _plain(form[at : match.start()])
            at = match.end()
            if match["letter"] == "%":
                found += _plain("%")
                continue
            found.append(self._converted(match))
        return [*found, *_plain(form[at:])]

    def _argument(self) -> PrintNode:
        if self._at >= len(self._given):
            raise UnprintableError("a value is missing")
        self._at += 1
        return self._given[self._at - 1]

    def _amount(self, text: str | None, none: int) -> Callable[[Values], int]:
        """A width or a precision, or a number that stands for none."""
        if text != "*":
            number = none if text is None else min(int(text), _WIDTH_MOST)
            return lambda values: number
        given = self._argument()
        if given.sort is not Sort.NUMBER:
            raise UnprintableError("a width that is no number")
        get = given.get
        return lambda values: max(min(get(values), _WIDTH_MOST), -_WIDTH_MOST)

    def _converted(self, match: re.Match[str]) -> _Part:
        width, most = self._amount(match["width"], 0), self._amount(match["most"], -1)
        flags, letter, node = match["flags"], match["letter"], self._argument()
        if match["pointer"]:
            return _pointer(match["pointer"], flags, width, node)
        if letter == "s":
            return _string(flags, width, most, node)
        if node.sort is not Sort.NUMBER:
            raise UnprintableError(f"no number for %{letter}")
        get = node.get
        if letter == "c":
            return lambda values, symbol: _padded(bytes([get(values) & 255]), flags, width(values))
        kind = PrintType(_SIZES[match["length"] or ""], letter in "di")

        def number(values: Values, symbol: Symbol) -> bytes:
            value = wrapped(get(values), kind)
            return _digits(value, letter, flags, width(values), most(values))

        return number


def _plain(text: str) -> list[_Part]:
    data = text.encode(errors="surrogateescape")
    return [lambda values, symbol: data] if data else []


def _padded(text: bytes, flags: str, width: int) -> bytes:
    if "-" in flags or width < 0:
        return text.ljust(abs(width))
    return text.rjust(width)


def _digits(value: int, letter: str, flags: str, width: int, most: int) -> bytes:
    base = {"x": "x", "X": "X", "o": "o"}.get(letter, "d")
    front = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    if letter in "uxXo":
        front = {"x": "0x", "X": "0X", "o": "0"}.get(letter, "") if "#" in flags else ""
    digits = format(abs(value), base)
    if most >= 0:
        digits = digits.rjust(most, "0")
    elif "0" in flags and "-" not in flags:
        digits = digits.rjust(width - len(front), "0")
    return _padded((front + digits).encode(), flags, width)


def _string(
    flags: str, width: Callable[[Values], int], most: Callable[[Values], int], node: PrintNode
) -> _Part:
    get = node.get
    if node.sort is not Sort.TEXT:
        raise UnprintableError("no text for %s")

    def text(values: Values, symbol: Symbol) -> bytes:
        found, limit = get(values), most(values)
        found = b"(null)" if found is None else found
        return _padded(found[:limit] if limit >= 0 else found, flags, width(values))

    return text


def _pointer(word: str, flags: str, width: Callable[[Values], int], node: PrintNode) -> _Part:
    kind, get = word[1:], node.get
    if kind == "ISpc" and node.sort is Sort.MEMORY:
        return lambda values, symbol: _padded(_socket(get(values)), flags, width(values))
    if kind in ("s", "S", "B") and node.sort is Sort.NUMBER:
        whole = kind != "s"

        def named(values: Values, symbol: Symbol) -> bytes:
            found = symbol(get(values) & (1 << 64) - 1)
            return _padded(found if whole else _function(found), flags, width(values))

        return named
    if node.sort is Sort.NUMBER and kind in ("", "x", "K"):
        mask = (1 << 64) - 1
        return lambda values, symbol: _padded(
            b"%016x" % (get(values) & mask), flags, width(values)
        )
    if node.sort is not Sort.MEMORY:
        raise UnprintableError(f"no address for %{word}")
    if kind in _SPACE:
        between = _SPACE[kind]
        return lambda values, symbol: between.join(
            f"{each:02x}" for each in get(values)[: max(width(values), 0)]
        ).encode()
    show = _SHOWN.get(kind)
    if show is None:
        raise UnprintableError(f"no address for %{word}")
    return lambda values, symbol: _padded(show(get(values)), flags, width(values))


def _function(symbol: bytes) -> bytes:
    """A symbol without offset and size, its module's name kept."""
    name, plus, behind = symbol.partition(b"+0x")
    _, space, module = behind.partition(b" [")
    return name + space + module if plus else symbol


def _internet(data: bytes) -> bytes:
    """An address of IPv6 as `ip6_compressed_string` writes one, an IPv4's behind it as such."""
    found = IPv6Address(data[:16].ljust(16, b"\0"))
    inner = found.ipv4_mapped
    return f"::ffff:{inner}".encode() if inner is not None else str(found).encode()


def _socket(data: bytes) -> bytes:
    """A `struct sockaddr` with its port."""
    family, port = int.from_bytes(data[:2], "little"), int.from_bytes(data[2:4], "big")
    if family == _INET:
        return b"%s:%d" % (str(IPv4Address(data[4:8].ljust(4, b"\0"))).encode(), port)
    if family == _INET6:
        return b"[%s]:%d" % (_internet(data[8:24]), port)
    return b"(invalid address)"


def _mac(data: bytes) -> bytes:
    return data[:6].hex(":").encode()


def _uuid(data: bytes, *, little: bool, upper: bool) -> bytes:
    data = data[:16].ljust(16, b"\0")
    text = str(UUID(bytes_le=data) if little else UUID(bytes=data))
    return (text.upper() if upper else text).encode()


_SHOWN: Final[dict[str, Callable[[bytes], bytes]]] = {
    "I4": lambda data: str(IPv4Address(data[:4].ljust(4, b"\0"))).encode(),
    "I6": lambda data: data[:16].hex(":", 2).encode(),
    "I6c": _internet,
    "M": _mac,
    "U": lambda data: _uuid(data, little=False, upper=False),
    "Ub": lambda data: _uuid(data, little=False, upper=False),
    "UB": lambda data: _uuid(data, little=False, upper=True),
    "Ul": lambda data: _uuid(data, little=True, upper=False),
    "UL": lambda data: _uuid(data, little=True, upper=True),
}
