"""The types of fetch arguments (the kernel's probe_fetch_types, kernel/trace/trace_probe.c).

`f32` and `f64` are ours: the kernel has no numbers with a point.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from engine.arch.program import FetchArg, FieldType, Source, ValueKind
from engine.fetch.era import MEASURED, Era
from engine.fetch.numbers import leading, unsigned

_SYMBOLS = {"symbol": ValueKind.SYMBOL, "symstr": ValueKind.SYMSTR}
_INTEGERS = {ValueKind.UNSIGNED: "u", ValueKind.SIGNED: "s", ValueKind.HEX: "x"}

TYPES: Final[dict[str, FieldType]] = {
    "string": FieldType(ValueKind.STRING, 0),
    "ustring": FieldType(ValueKind.USTRING, 0),
    "char": FieldType(ValueKind.CHAR, 1),
    **{
        f"{letter}{8 * size}": FieldType(kind, size)
        for kind, letter in _INTEGERS.items()
        for size in (1, 2, 4, 8)
    },
}
"""The types by name; `symbol` and `symstr` are as wide as an address and made when asked for."""

FLOATS: Final = {f"f{8 * size}": FieldType(ValueKind.FLOAT, size) for size in (4, 8)}
"""Types that the kernel does not have, by name."""

_STRING_DESCRIPTOR = 4


def find_type(
    name: str | None, bits: int, *, uprobe: bool, era: Era = MEASURED
) -> FieldType | None:
    """The type of that name, None if there is none.

    A bitfield `bW@O/SIZE` gives the unsigned integer it is taken from: `bitfield` reads the rest
    once the body is known to be good, as the kernel does.

    Args:
        name: as written; None where no type was given.
        bits: width of an address.
        uprobe: symbols are not known to uprobes.
        era: the rules of the kernel.
    """
    if name is None:
        return TYPES[f"x{bits}"]
    if name in _SYMBOLS:
        return None if uprobe else FieldType(_SYMBOLS[name], bits // 8)
    if name.startswith("b"):
        size = unsigned(name.partition("/")[2], bits)
        return TYPES.get(f"u{size}")
    if name == "char" and not era.char:
        return None
    return TYPES.get(name)


def bitfield(name: str, container: FieldType) -> FieldType | None:
    """The bitfield that `name` describes in a container, None if it does not fit or parse."""
    width, rest = leading(name[1:])
    if width == 0 or not rest.startswith("@"):
        return None
    offset, tail = leading(rest[1:])
    if tail == rest[1:] or not tail.startswith("/") or width + offset > 8 * container.size:
        return None
    return replace(container, kind=ValueKind.BITFIELD, width=width, offset=offset)


def event_bytes(kind: FieldType) -> int:
    """Bytes of a field in the kernel's own record; a string has a 4-byte descriptor."""
    size = _STRING_DESCRIPTOR if kind.is_string else kind.size
    return size * max(kind.count, 1)


def same_type(first: FieldType, second: FieldType) -> bool:
    """True if siblings of one event may have these types: bits of a bitfield do not matter."""
    return _name(first) == _name(second)


def _name(kind: FieldType) -> tuple[ValueKind, int, int]:
    plain = ValueKind.UNSIGNED if kind.kind is ValueKind.BITFIELD else kind.kind
    return plain, kind.size, kind.count


def beyond_linux(args: Iterable[FetchArg]) -> str:
    """Words about arguments that Linux has none for; "" if there are no such arguments."""
    names: list[str] = []
    for arg in args:
        inner = arg.base.fetch[0] if arg.base.fetch is not None else arg.base
        if arg.type.kind is ValueKind.FLOAT or inner.source is Source.VECTOR:
            names.append(arg.name)
    if not names:
        return ""
    return (
        f"{', '.join(names)}: Linux fetches neither vector registers nor numbers with a point; "
        "--mode kernel refuses them"
    )
