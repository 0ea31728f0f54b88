"""The things that containers hold, as everybody sees them who asks: printing, methods, fetches."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from engine.language.reach import Reach
from engine.language.values import TypedValue

Children = Iterator[tuple[TypedValue | str, TypedValue]]
"""Keys, or names, and values."""


class Held(Struct, frozen=True):
    """The things that a container holds.

    Attributes:
        title: in front of them; "" for a string.
        text: of a string: its first bytes.
        length: of a string: all of its bytes.
        children: made one by one; reading one may fail.
        named: keys are shown.
        count: the number of things in it; None where they have to be counted.
        at: gives the thing of a number, which is not checked; None where only the order is known.
        keyed: keys are values, by which things are found.
        points: the pointer that it owns, or to its first character; None for no such thing.
        shown: it is printed so; else as the structure that it is made as.
        alone: the only thing in it, which is printed in its place; None for no such thing.
        wrapped: the only thing in it, which is printed behind the title between braces with
            spaces; None for no such thing.
        wide: of a string of wider characters: the letter in front of its quotes, "L", "u", "U".
        optional: it is an optional, a variant or an any: the thing in it has no number.
        uses: of a pointer that is shared: how many share it.
        answers: results of methods without arguments that its parts are.
    """

    title: str
    text: bytes | None = None
    length: int = 0
    children: Callable[[], Children] | None = None
    named: bool = False
    count: int | None = None
    at: Callable[[int], TypedValue] | None = None
    keyed: bool = False
    points: TypedValue | None = None
    shown: bool = True
    alone: TypedValue | None = None
    wrapped: TypedValue | None = None
    wide: str = ""
    optional: bool = False
    uses: int | None = None
    answers: Mapping[str, TypedValue] = {}


class OtherLayoutError(Exception):
    """A container is not laid out as is known here, or nobody has made it."""


def part_along(reach: Reach, value: TypedValue, names: tuple[str, ...]) -> TypedValue:
    """A part of a part, and so on, of a value.

    Raises:
        OtherLayoutError: one of the names is that of no part.
    """
    for name in names:
        member = value.type.resolved.member(name)
        if member is None:
            raise OtherLayoutError
        value = reach.part(value, member)
    return value


def counted(name: str, count: int) -> str:
    """A container's name and the number of things in it: "std::map with 1 element"."""
    return f"{name} with {count} element{'' if count == 1 else 's'}"
