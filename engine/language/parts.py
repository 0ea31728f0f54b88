"""Parts of values by name, number and address, as all who look into containers need them."""

import re
from collections.abc import Callable
from typing import Final

from engine.image.datatypes import MAX_DEPTH, TypeKind
from engine.language import value_types as ct
from engine.language.held import Children, Held, OtherLayoutError, part_along
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.user_types import bare_type, printer_type, template_arguments
from engine.language.value_types import CType
from engine.language.values import TypedValue, made

_COUNT: Final = re.compile(r"<(?:.*, ?)?(\d+)(?:ul|u|l)?>$")
LARGEST_TEXT: Final = 1 << 62
"""Bytes of a string that cannot be: the string was never made."""


class ContainerParts:
    """Finds parts of values in one place of a program.

    Attributes:
        reach: members, elements and targets there.
        around: the place.
        size: bytes of a pointer.
    """

    def __init__(self, around: Surroundings, most: int) -> None:
        """Set up.

        Args:
            around: the place that the values are from.
            most: characters of a string that anybody wants to see.
        """
        self.reach = Reach(around)
        self.around = around
        self.size = around.pointer
        self._most = most

    def part(self, value: TypedValue, *names: str) -> TypedValue:
        """A part of a part, and so on, of a value.

        Raises:
            OtherLayoutError: one of the names is that of no part.
        """
        return part_along(self.reach, value, names)

    def argument(self, kind: CType, number: int = 0) -> CType:
        """A type that a template was given.

        Compilers do not always list them; then the type's name has them.

        Raises:
            OtherLayoutError: it was given fewer.
        """
        arguments = kind.resolved.arguments
        if number < len(arguments):
            return arguments[number]
        texts = template_arguments(kind.resolved.text)
        found = self.named_type(texts[number]) if number < len(texts) else None
        if found is None:
            raise OtherLayoutError
        return found

    def argument_text(self, kind: CType, number: int = 0) -> str:
        """The same as its users write it."""
        return printer_type(bare_type(self.argument(kind, number).text))

    @staticmethod
    def given_number(kind: CType) -> int:
        """The number that a template was given last, as its name tells.

        Raises:
            OtherLayoutError: it was given none.
        """
        match = _COUNT.search(kind.resolved.text)
        if match is None:
            raise OtherLayoutError
        return int(match[1])

    def word(self, address: int) -> int:
        """The number in memory that has a pointer's size."""
        return int.from_bytes(self.around.read(address, self.size), self.reach.order)

    def nth(self, kind: CType, first: int) -> Callable[[int], TypedValue]:
        """Gives elements that follow each other, by number."""
        size = kind.size or 1
        return lambda number: self.reach.at(kind, first + number * size)

    def run(self, kind: CType, first: int, count: int) -> Children:
        """Elements that follow each other."""
        at = self.nth(kind, first)
        return (("", at(number)) for number in range(count))

    def named_type(self, text: str) -> CType | None:
        """The type that a symbol's name mentions; None for one that is not known."""
        words = tuple(text.split()) if "<" not in text else (text,)
        return self.around.type(words) or (ct.builtin(words) if words else None)

    @staticmethod
    def shown_type(kind: CType) -> str:
        """A type as its users write it."""
        return printer_type(bare_type(kind.text))

    def truth(self, *, holds: bool) -> TypedValue:
        """A truth value."""
        return made(ct.BOOL, int(holds), self.reach.order)

    def text(self, start: TypedValue, length: int) -> Held:
        """A text by the pointer to its first character.

        Raises:
            OtherLayoutError: it is longer than any text, or of no characters.
            GuestFaultError: it cannot be read.
        """
        letter = start.type.resolved.target
        size = letter.size or 0
        if length >= LARGEST_TEXT or not (letter.kind in ct.CHARS or ct.wide_mark(letter)):
            raise OtherLayoutError
        taken = min(length, self._most) * size
        raw = self.around.read(start.number, taken) if length else b""
        at = self.nth(letter.resolved, start.number)
        mark = ct.wide_mark(letter)
        return Held("", raw, length * size, count=length, at=at, points=start, wide=mark)

    def bit(self, first: int, word: int) -> Callable[[int], TypedValue]:
        """Gives truth values that are packed into words, by number."""

        def bit(at: int) -> TypedValue:
            where = first + at // (8 * word) * word
            number = int.from_bytes(self.around.read(where, word), self.reach.order)
            return self.truth(holds=bool(number >> at % (8 * word) & 1))

        return bit

    def bits(self, first: int, word: int, count: int, room: int) -> Held:
        """The contents of a vector of bits.

        Args:
            first: address of its words.
            word: bytes of each.
            count: bits in it.
            room: bits that there is room for.

        Raises:
            OtherLayoutError: there are more than there is room for.
        """
        if not 0 <= count <= room:
            raise OtherLayoutError
        bit = self.bit(first, word)
        return Held(
            f"std::vector<bool> of length {count}, capacity {room}",
            children=lambda: (("", bit(at)) for at in range(count)),
            count=count,
            at=bit,
        )


def aligned(address: int, kind: CType) -> int:
    """The first address from one on where a value of a type may stand."""
    step = _alignment(kind, 0)
    return -(-address // step) * step


def _alignment(kind: CType, depth: int) -> int:
    """Bytes that a type's addresses are multiples of, where no source says otherwise."""
    kind = kind.resolved
    if depth > MAX_DEPTH:
        return 1
    if kind.kind is TypeKind.RECORD:
        found = [_alignment(member.type, depth + 1) for member in kind.members]
        return max(found, default=1)
    if kind.kind is TypeKind.ARRAY:
        return _alignment(kind.element, depth + 1)
    return kind.size or 1
