"""Methods and operators of C++'s containers that their layout answers, without any call.

Both printing and these use the one table of containers (`Containers`); what a container is made
of is known there alone.
"""

import operator
import re
from collections.abc import Callable
from itertools import islice
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.methods import methods_of
from engine.language import value_types as ct
from engine.language.containers import Containers
from engine.language.convenience_functions import string_of
from engine.language.held import Held
from engine.language.made_records import constant
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.value_types import is_reference
from engine.language.values import TypedValue, made

_ORDERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_MOST: Final = 1 << 20
"""Things that are looked through for one."""
_SEEN: Final = 1 << 12
"""Characters of a key that are compared."""


class ContainerMethods:
    """Answers for containers in one place of a program."""

    def __init__(self, around: Surroundings) -> None:
        """Answer in these surroundings."""
        self._around = around
        self._reach = Reach(around)
        self._containers = Containers(around, _SEEN, prints=False)

    def held(self, value: TypedValue) -> Held | None:
        """The things in a container; None for another value.

        Raises:
            GuestFaultError: memory that it leads to cannot be read.
        """
        if value.type.resolved.kind is not TypeKind.RECORD:
            return None
        if not self._containers.knows(value.type):
            return None
        if value.pages and value.pages is not self._around.pages:  # a result of a function
            return self._results(value)
        return self._containers.held(value)

    def _results(self, value: TypedValue) -> Held | None:
        around = self._around.afterwards(value.pages)
        return Containers(around, _SEEN, prints=False).held(value)

    def pointed(self, value: TypedValue) -> TypedValue | None:
        """The value behind `*` of a smart pointer or an optional; None for other values.

        Raises:
            CommandError: it is empty.
            GuestFaultError: memory cannot be read.
        """
        held = self.held(value)
        if held is None:
            return None
        if held.alone is not None and held.points is not None:  # an iterator gives a reference
            kind = ct.reference_to(held.alone.type, self._around.pointer)
            return self._reach.made(kind, held.points.number)
        if held.points is not None and held.text is None and held.at is None:
            found = self._reach.pointed(held.points)
            given = value.type.resolved.arguments
            if given and given[0].resolved.key == found.type.resolved.key:
                return replace(found, type=given[0])  # as its user calls it
            return found
        if "::optional<" in value.type.resolved.text:
            return self._contained(held)
        return None

    @staticmethod
    def _contained(held: Held) -> TypedValue:
        if held.at is None:
            raise CommandError("The optional holds no value.")
        return held.at(0)

    def truth(self, value: TypedValue) -> bool | None:
        """Tell what a smart pointer, an optional or a function is as a condition; None for others.

        Raises:
            GuestFaultError: memory cannot be read.
        """
        text = value.type.resolved.text
        held = self.held(value) if text.startswith("std::") else None
        if held is None:
            return None
        if re.match(r"std::(?:\w+::)*optional<", text):
            return held.at is not None
        if re.match(r"std::(?:\w+::)*(?:unique|shared)_ptr<", text):
            return held.points is not None and held.points.number != 0
        if re.match(r"std::(?:\w+::)*function<", text):
            return not held.title.endswith("[no target]")
        return None

    def element(self, value: TypedValue, index: TypedValue) -> TypedValue | None:
        """The value behind `[]` of a container; None for other values.

        Raises:
            CommandError: a map has no such key.
            GuestFaultError: memory cannot be read.
        """
        held = self.held(value)
        if held is None:
            return None
        if held.keyed:
            return self._of_key(held, index)
        if held.at is not None and not held.optional:
            return self._as_declared(value, "operator[]", held.at(index.number))
        if held.points is not None and held.alone is None:
            return self._reach.element(held.points, index.number)
        return None

    def _as_declared(self, value: TypedValue, name: str, found: TypedValue) -> TypedValue:
        """A character of a string as the method that gives it is declared: by reference.

        Of other containers gdb's own methods for libstdc++ give the element itself.
        """
        kind = value.type.resolved
        if not kind.text.startswith("std::__cxx11::basic_string<") or found.address is None:
            return found
        is_const = value.type.text.startswith("const ")
        declared = (one for one in methods_of(kind, name) if one.is_const == is_const)
        method = next(declared, None)
        result = None if method is None else method.type.resolved.target
        if result is None or not ct.is_reference(result):
            return found
        return self._reach.made(result.resolved, found.address)

    def _of_key(self, held: Held, wanted: TypedValue) -> TypedValue:
        found = self._find(held, wanted)
        if found is None:
            raise CommandError("There is no such key in the map.")
        return found

    def _find(self, held: Held, wanted: TypedValue) -> TypedValue | None:
        assert held.children is not None, "what has keys has children"
        sought = self._comparable(wanted)
        for key, part in islice(held.children(), _MOST):
            one = key if held.keyed else part
            if isinstance(one, TypedValue) and self._comparable(one) == sought:
                return part
        return None

    def compared(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue | None:
        """A comparison of texts, or one, a distance or a move of iterators; None for others.

        Raises:
            GuestFaultError: memory cannot be read.
        """
        if word in ("==", "!="):
            texts = [self._text(value) for value in (left, right)]
            if None not in texts:
                return self._truth(holds=(texts[0] == texts[1]) == (word == "=="))
        if word in ("+", "-") and right.type.resolved.kind in ct.INTEGERS:
            return self._advanced(left, right.number if word == "+" else -right.number)
        if word == "+" and left.type.resolved.kind in ct.INTEGERS:
            return self._advanced(right, left.number)
        places = [self._standing(value) for value in (left, right)]
        if places[0] is None or places[1] is None:
            return None
        first, second = places[0], places[1]
        if word in _ORDERS and self._is_ordered(left):
            return self._truth(holds=_ORDERS[word](first.number, second.number))
        if word in ("==", "!="):
            return self._truth(holds=(first.number == second.number) == (word == "=="))
        size = first.type.resolved.target.size
        if word == "-" and size and self._is_ordered(left):
            number = (first.number - second.number) // size
            return made(ct.LONG, number, self._around.order)
        return None

    def _advanced(self, value: TypedValue, steps: int) -> TypedValue | None:
        """An iterator that stands so many things further; None where things have no numbers."""
        place = self._standing(value)
        if place is None or not self._is_ordered(value) or len(value.raw) != place.type.size:
            return None
        raw = self._reach.moved(place, steps).raw
        return TypedValue(value.type, lambda: raw, order=self._around.order)

    def _text(self, value: TypedValue) -> bytes | None:
        """The whole of a text; None for other values."""
        held = self.held(value)
        if held is not None:
            return held.text if held.text is not None and not held.wide else None
        kind = value.type.resolved
        if kind.kind is TypeKind.ARRAY and kind.element.kind in ct.CHARS:
            return value.raw.partition(b"\0")[0]
        if kind.kind is TypeKind.POINTER and kind.target.kind in ct.CHARS:
            return string_of(self._around, value)[:_SEEN]
        return None

    def _standing(self, value: TypedValue) -> TypedValue | None:
        """The pointer to what an iterator stands at; None for other values."""
        held = self.held(value)
        return held.points if held is not None and held.alone is not None else None

    def _is_ordered(self, value: TypedValue) -> bool:
        held = self.held(value)
        return held is not None and held.at is not None

    def _comparable(self, value: TypedValue) -> object:
        """A value in a form in which equal ones are equal."""
        value = self._reach.used(value) if is_reference(value.type) else value
        held = self.held(value)
        if held is not None and held.text is not None:
            return held.text
        kind = value.type.resolved
        if kind.kind is TypeKind.ARRAY or (
            kind.kind is TypeKind.POINTER and kind.target.kind in ct.CHARS
        ):
            return string_of(self._around, value)[:_SEEN]
        if kind.kind is TypeKind.FLOAT:
            return value.real
        if kind.kind in (*ct.INTEGERS, TypeKind.ENUM, TypeKind.POINTER):
            return value.number
        return value.raw

    def method(
        self, value: TypedValue, name: str
    ) -> Callable[[list[TypedValue]], TypedValue] | None:
        """A method of a container as a function of its arguments; None where none is known.

        Raises:
            GuestFaultError: memory cannot be read.
        """
        held = self.held(value)
        if held is None or held.alone is not None:
            return None
        if name in held.answers:
            answer = held.answers[name]
            return _plain(lambda: answer)
        if held.optional:
            return self._of_optional(held, name)
        if held.wrapped is not None:
            thing = held.wrapped
            return _plain(lambda: thing) if name == "load" else None
        if (
            name in ("size", "length", "empty")
            and (held.count is not None or held.children is not None)
            and (held.points is None or held.count is not None)  # no smart pointer
        ):
            return _plain(lambda: self._size(held, empty=name == "empty"))
        if held.uses is not None and name in ("use_count", "expired"):
            return _plain(lambda: self._shared(held.uses or 0, expired=name == "expired"))
        if "::bitset<" in value.type.resolved.text:
            return self._of_bits(held, value, name)
        if name == "at":
            return lambda given: self._as_declared(value, "at", self._at(held, value, _one(given)))
        if (name in ("front", "back", "top") and not held.keyed and held.points is None) or (
            name in ("front", "back") and held.at is not None
        ):
            first = name == "front" or "::priority_queue<" in value.type.resolved.text
            return _plain(lambda: self._as_declared(value, name, self._end(held, last=not first)))
        if name in ("count", "contains") and (held.keyed or "set<" in value.type.resolved.text):
            return lambda given: self._truth(holds=self._find(held, _one(given)) is not None)
        points = held.points
        names = ("get",) if held.count is None else ("data", "c_str")
        if points is not None and name in names:
            return _plain(lambda: self._pointer(held, points))
        return None

    @staticmethod
    def _pointer(held: Held, points: TypedValue) -> TypedValue:
        """The pointer that a container gives; that of a text is to constants, with no own name."""
        if held.text is None:
            return points
        kind = points.type.resolved
        return replace(points, type=ct.pointer_to(constant(kind.target.resolved), kind.size or 0))

    def _of_optional(
        self, held: Held, name: str
    ) -> Callable[[list[TypedValue]], TypedValue] | None:
        """Methods of what holds one thing or none."""
        return {
            "value": _plain(lambda: self._contained(held)),
            "has_value": _plain(lambda: self._truth(holds=held.at is not None)),
        }.get(name)

    def _of_bits(
        self, held: Held, value: TypedValue, name: str
    ) -> Callable[[list[TypedValue]], TypedValue] | None:
        """Methods of a set of bits."""
        children = held.children
        assert children is not None, "its bits are children"
        if name == "test":
            return lambda given: self._at(held, value, _one(given))
        if name == "count":
            order = self._around.order
            return _plain(lambda: made(ct.UNSIGNED_LONG, sum(1 for _ in children()), order))
        if name in ("any", "none"):
            wanted = name == "any"
            return _plain(lambda: self._truth(holds=any(True for _ in children()) == wanted))
        return None

    def _shared(self, uses: int, *, expired: bool) -> TypedValue:
        if expired:
            return self._truth(holds=not uses)
        return made(ct.LONG, uses, self._around.order)

    def _size(self, held: Held, *, empty: bool) -> TypedValue:
        count = held.count
        if count is None:
            assert held.children is not None, "what is not counted has children"
            count = sum(1 for _ in islice(held.children(), 1 if empty else _MOST))
        if empty:
            return self._truth(holds=not count)
        return made(ct.UNSIGNED_LONG, count, self._around.order)

    def _truth(self, *, holds: bool) -> TypedValue:
        return made(ct.BOOL, int(holds), self._around.order)

    def _at(self, held: Held, value: TypedValue, index: TypedValue) -> TypedValue:
        if held.keyed:
            return self._of_key(held, index)
        if held.at is None or held.count is None:
            raise CommandError(f"{value.type.text} has no method at.")
        if not 0 <= index.number < held.count:
            raise CommandError(f'Index "{index.number}" should not be >= {held.count}.')
        return held.at(index.number)

    def _end(self, held: Held, *, last: bool) -> TypedValue:
        if held.at is not None and held.count is not None:
            if not held.count:
                raise CommandError("The container is empty.")
            return held.at(held.count - 1 if last else 0)
        found: TypedValue | None = None
        assert held.children is not None, "what has no numbers has children"
        for _, part in islice(held.children(), _MOST if last else 1):
            found = part
        if found is None:
            raise CommandError("The container is empty.")
        return found


def _plain(answer: Callable[[], TypedValue]) -> Callable[[list[TypedValue]], TypedValue]:
    """A method without arguments."""

    def called(given: list[TypedValue]) -> TypedValue:
        if given:
            raise CommandError("Too many arguments in function call.")
        return answer()

    return called


def _one(given: list[TypedValue]) -> TypedValue:
    if len(given) != 1:
        raise CommandError(f"The method takes one argument, {len(given)} were given.")
    return given[0]
