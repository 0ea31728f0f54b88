"""Values and memory by format letters: print/x, x/x, and C's printf (gdb/printcmd.c)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from engine.errors import CommandError, GuestFaultError
from engine.escaping import escaped
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.memory_texts import marked_error
from engine.language.quoting import character
from engine.language.real_texts import DIGITS, real
from engine.language.value_types import CType
from engine.language.values import MOST, Order, TypedValue

if TYPE_CHECKING:
    from engine.language.printing import Printer

FORMATS: Final = "xduotacfszr"
"""Letters behind the slash of `print`."""


def formatted(
    raw: bytes,
    letter: str,
    order: Order,
    *,
    kind: CType | None = None,
    address: Callable[[int], str] = hex,
    padded: bool = False,
) -> str:
    """Bytes by a format letter, as `print/x` and `x/x` show them.

    Args:
        raw: a number's bytes.
        letter: one of x d u o t a c f z.
        order: of bytes.
        kind: its type, if it has one.
        address: prints an address with its symbol.
        padded: with leading zeros, as `x` does.

    Raises:
        CommandError: there is no such letter.
    """
    size = len(raw)
    whole = int.from_bytes(raw, order)
    signed = int.from_bytes(raw, order, signed=True)
    match letter:
        case "x":
            return f"{whole:#0{2 * size + 2}x}" if padded else f"{whole:#x}"
        case "z":
            return f"{whole:#0{2 * size + 2}x}"
        case "d":
            return str(signed)
        case "u":
            return str(whole)
        case "o":
            return f"0{whole:o}" if whole else "0"
        case "t":
            return f"{whole:0{8 * size}b}" if padded else f"{whole:b}"
        case "a":
            wide = signed if kind is not None and kind.is_signed else whole
            return address(wide & (1 << 64) - 1)
        case "c":
            number = raw[0] if order == "little" else raw[-1]
            if kind is None or kind.is_signed:
                number -= 256 * (number > 127)
            return f"{number} {character(number)}"
        case "f":
            if (size in DIGITS and size > 2) or size > 8 or _is_real(kind):
                return real(raw, order)
            return str(signed if kind is None or kind.is_signed else whole)
    raise CommandError(f'Undefined output format "{letter}".')


def _is_real(kind: CType | None) -> bool:
    return kind is not None and kind.kind is TypeKind.FLOAT


def printed(
    printer: "Printer", value: TypedValue, flags: str, letter: str, *, wide: bool = False
) -> str:
    """A value as C's printf prints it.

    Args:
        printer: reads strings.
        value: the value that is printed.
        flags: flags, width and precision.
        letter: of the conversion.
        wide: a text or character of wchar_t (%ls).

    Raises:
        CommandError: the value does not fit the conversion.
        GuestFaultError: it cannot be read.
    """
    if letter in "fFgGeEa":
        return f"%{flags}{letter}" % value.real
    if letter == "s" and wide:
        return f"%{flags}s" % escaped(_wide_text(printer, value), keep="\n\t")
    if letter == "s":
        if value.type.resolved.kind is TypeKind.ARRAY:
            raw = value.raw.partition(b"\0")[0]
        else:
            raw, _ = printer.texts.until_nul(value.number, MOST)
        return f"%{flags}s" % escaped(raw, keep="\n\t")
    if value.is_place and value.address is not None:
        number = value.address
    elif value.type.kind is TypeKind.FLOAT:
        number = int(value.real)
    else:
        number = value.number
    if letter == "c":
        return f"%{flags}s" % escaped(bytes([number & 0xFF]), keep="\n\t")
    if letter == "p":
        return f"%{flags}s" % (f"{number:#x}" if number else "(nil)")
    if letter in "ouxX" and number < 0:
        number &= (1 << 8 * (value.type.size or 8)) - 1
    return f"%{flags}{'d' if letter in 'iu' else letter}" % number


def _wide_text(printer: "Printer", value: TypedValue) -> str:
    """A text of wchar_t, up to its NUL."""
    kind, size = value.type.resolved, ct.LETTERS["L"].size or 4
    if kind.kind is TypeKind.ARRAY:
        raw = value.raw[: len(value.raw) // size * size]
    else:
        raw, _ = printer.texts.wide_until_nul(value.number, size, MOST)
    ends = "be" if printer.around.order == "big" else "le"
    return raw.decode(f"utf-32-{ends}", errors="replace").partition("\0")[0]


def lines_of(
    printer: "Printer", address: int, count: int, letter: str, size: int
) -> Iterator[tuple[str, int]]:
    """`x`: lines of memory, each with the address behind it.

    Args:
        printer: prints.
        address: the first byte.
        count: units.
        letter: one of FORMATS but i.
        size: bytes of a unit.

    Raises:
        GuestFaultError: it cannot be read, and is no string; the lines before stand.
    """
    at, end = address, 0
    if letter == "s":
        for _ in range(count):
            try:
                text, taken = printer.texts.text_at(at, size)
            except GuestFaultError as error:  # a line of its own, as in gdb's val_print_string()
                text = marked_error(error)
                taken = 1
            yield f"{printer.linked_address(at)}:\t{text}", at + taken
            at += taken
        return
    row = 8 if letter == "c" or size <= 2 else 16 // size
    if letter == "a":
        row = 2
    for start in range(0, count, row):
        cells: list[str] = []
        here = at
        for _ in range(min(row, count - start)):
            raw = printer.around.read(at, size)
            cells.append(
                formatted(
                    raw, letter, printer.around.order, address=printer.linked_address, padded=True
                )
            )
            at += size
        end = at
        yield "\t".join([f"{printer.linked_address(here)}:", *cells]), end
