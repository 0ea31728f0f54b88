"""Values of C++'s library that stand for one thing: times, error codes, numbers, functions.

The words for times and error codes are those of libstdc++ 14's printers for gdb (libstdc++-v3/
python/libstdcxx/v6/printers.py). Libstdc++ and libc++ differ in the names of members alone.
"""

import errno
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Final

from engine.image.datatypes import TypeKind
from engine.image.methods import declaring_class
from engine.language import value_types as ct
from engine.language.held import Held, OtherLayoutError
from engine.language.parts import ContainerParts
from engine.language.real_texts import real
from engine.language.user_types import bare_type, template_arguments, user_type
from engine.language.value_types import CType
from engine.language.values import TypedValue

Look = Callable[[TypedValue], Held]
"""Reader of one value's contents."""

_LLVM: Final = "std::__1::"
_UNITS: Final = {
    Fraction(1): "s",
    Fraction(1, 1000): "ms",
    Fraction(1, 10**6): "us",
    Fraction(1, 10**9): "ns",
    Fraction(60): "min",
    Fraction(3600): "h",
    Fraction(86400): "d",
}
"""Periods of durations in seconds, and their suffixes."""
_RATIO: Final = re.compile(r"ratio<(-?\d{1,20})\w*, ?(\d{1,20})\w*>")
_CATEGORY: Final = re.compile(r"vtable for .*?(generic|system|future|io|iostream)_error_category")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HANDLER: Final = "_M_manager"
_TABLE_SLOT: Final = 5
"""The place of `destroy_deallocate` in the table of what libc++'s functions hold."""


class LibraryValues:
    """Looks into such values."""

    def __init__(self, parts: ContainerParts) -> None:
        """Find parts of values with these."""
        self._parts = parts

    def look(self, name: str) -> Look | None:
        """Find the reader of a type's values by its name; None for another one."""
        found = _LOOKS.get(f"std::{name.removeprefix(_LLVM)}" if _LLVM in name else name)
        return None if found is None else partial(found, self)

    def _either(self, value: TypedValue, *names: str) -> TypedValue:
        """A part by the name that one of the libraries has for it.

        Raises:
            OtherLayoutError: it has none of them.
        """
        for name in names:
            if value.type.resolved.member(name) is not None:
                return self._parts.part(value, name)
        raise OtherLayoutError

    # -- times ------------------------------------------------------------------------------

    def _duration(self, value: TypedValue) -> Held:
        count = self._either(value, "__r", "__rep_")
        shown = f"{self._number(count)}{_suffix(value.type)}"
        return _alone(f"std::chrono::duration = {{ {shown} }}", count=count)

    def _time_point(self, value: TypedValue) -> Held:
        duration = self._either(value, "__d", "__d_")
        count = self._either(duration, "__r", "__rep_")
        shown = f"{self._number(count)}{_suffix(duration.type)}"
        clock = bare_type(self._parts.argument(value.type).text).rpartition("::")[2]
        if clock != "system_clock":
            return _alone(f"std::chrono::{clock} time_point = {{ {shown} }}")
        when = self._date(count, duration.type)
        return _alone(f"std::chrono::sys_time = {{ {shown}{when} }}")

    def _date(self, count: TypedValue, kind: CType) -> str:
        """A time of the calendar in whole seconds; "" for one far away."""
        number = count.real if count.type.resolved.kind is TypeKind.FLOAT else count.number
        try:
            seconds = int(Fraction(number) * _period(kind) // 1)
            return f" [{_EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}]"
        except (OverflowError, ValueError):
            return ""

    def _number(self, value: TypedValue) -> str:
        if value.type.resolved.kind is TypeKind.FLOAT:
            return real(value.raw, self._parts.reach.order, is_quad=value.type.resolved.is_quad)
        return str(value.number)

    # -- numbers ----------------------------------------------------------------------------

    def _complex(self, value: TypedValue) -> Held:
        order = self._parts.reach.order
        if value.type.resolved.member("_M_value") is not None:
            whole = self._parts.part(value, "_M_value")
            half = (whole.type.size or 0) // 2
            raw = whole.raw[:half], whole.raw[half:]
            kind = self._parts.argument(value.type)
            halves = [TypedValue(kind, partial(bytes, part), order=order) for part in raw]
        else:
            halves = [self._parts.part(value, name) for name in ("__re_", "__im_")]
            both = halves[0].raw + halves[1].raw
            of = ct.number(TypeKind.COMPLEX, len(both), f"complex {halves[0].type.text}")
            whole = TypedValue(of, lambda: both, order=order)
        return Held(
            "",
            children=lambda: iter([("_M_value", whole)]),
            named=True,
            answers={"real": halves[0], "imag": halves[1]},
        )

    def _error(self, value: TypedValue) -> Held:
        code = self._either(value, "_M_value", "__val_")
        category = self._either(value, "_M_cat", "__cat_")
        name = bare_type(value.type.resolved.text).rpartition("::")[2]
        table = self._parts.word(category.number)
        match = _CATEGORY.match(self._parts.around.symbol(table))
        number, known = code.number, match[1] if match is not None else ""
        if not number and known == {"error_code": "system", "error_condition": "generic"}[name]:
            return _alone(f"std::{name} = {{ }}", value=code)
        word = errno.errorcode.get(number) if known in ("generic", "system") else None
        shown = f'"{known}"' if known else _user(category.type.resolved.target.resolved)
        return _alone(f"std::{name} = {{{shown}: {word or number}}}", value=code)

    # -- functions --------------------------------------------------------------------------

    def _function(self, value: TypedValue) -> Held:
        title = f"std::function<{_signature(value.type)}>"
        found = self._target(value)
        if found is None:
            return _alone(f"{title} [no target]")
        target, name = found
        children = [("target", target)]
        if target.type.resolved.kind is TypeKind.RECORD:
            title = f"{title} containing {user_type(name)}"
        return Held(title, children=lambda: iter(children), named=True)

    def _target(self, value: TypedValue) -> tuple[TypedValue, str] | None:
        """The thing that a function calls, and its type as a template has it; None for none."""
        if value.type.resolved.member("_M_manager") is not None:
            return self._target_of_manager(value)
        pointer = self._parts.part(value, "__f_", "__f_")
        if not pointer.number:
            return None
        table = self._parts.word(pointer.number)
        code = self._parts.word(table + _TABLE_SLOT * self._parts.size)
        owner = self._owner("destroy_deallocate", code)
        whole = self._parts.reach.at(owner, pointer.number)
        pair = self._parts.part(whole, "__f_", "__f_")
        first = next((one for one in pair.type.resolved.members if one.is_base), None)
        if first is None:
            raise OtherLayoutError
        inner = self._parts.reach.part(pair, first)
        stored = inner.type.resolved.member("__value_")
        if stored is None:  # an empty class is a base in place of a member
            stored = next((one for one in inner.type.resolved.members if one.is_base), None)
        if stored is None:
            raise OtherLayoutError
        return self._parts.reach.part(inner, stored), _argument_text(owner)

    def _target_of_manager(self, value: TypedValue) -> tuple[TypedValue, str] | None:
        manager = self._parts.part(value, _HANDLER).number
        if not manager:
            return None
        owner = self._owner(_HANDLER, manager)
        kind, name = self._parts.argument(owner, 1), _argument_text(owner, 1)
        place = self._parts.part(value, "_M_functor")
        if (kind.size or 0) > (place.type.size or 0):  # it is on the heap
            address = self._parts.part(place, "_M_unused", "_M_object").number
            return self._parts.reach.at(kind, address), name
        if place.address is not None:
            return self._parts.reach.at(kind, place.address), name
        raw = place.raw[: kind.size or 0]
        return TypedValue(kind, lambda: raw, order=self._parts.reach.order), name

    def _owner(self, name: str, code: int) -> CType:
        """The class that declares a function of a name by its address.

        Raises:
            OtherLayoutError: no debug information has it.
        """
        for function in self._parts.around.functions(name):
            if function.address == code:
                found = declaring_class(function.type.resolved)
                if found is not None:
                    return found
        raise OtherLayoutError


def _alone(title: str, **answers: TypedValue) -> Held:
    """A value that is a text as a whole."""
    return Held(title, children=lambda: iter(()), answers=answers)


def _user(kind: CType) -> str:
    return ContainerParts.shown_type(kind)


def _signature(kind: CType) -> str:
    return _argument_text(kind.resolved)


def _argument_text(kind: CType, number: int = 0) -> str:
    """A template's argument as the type's name has it.

    Raises:
        OtherLayoutError: there are fewer.
    """
    found = template_arguments(kind.text)
    if number >= len(found):
        raise OtherLayoutError
    return found[number]


def _period(kind: CType) -> Fraction:
    """Seconds of one unit of a duration.

    Raises:
        OtherLayoutError: its name does not tell.
    """
    match = _RATIO.search(kind.resolved.text)
    if match is None or not int(match[2]):
        raise OtherLayoutError
    return Fraction(int(match[1]), int(match[2]))


def _suffix(kind: CType) -> str:
    """The unit of a duration."""
    period = _period(kind)
    if period in _UNITS:
        return _UNITS[period]
    if period.denominator == 1:
        return f"[{period.numerator}]s"
    return f"[{period.numerator}/{period.denominator}]s"


_Look = Callable[[LibraryValues, TypedValue], Held]
_LOOKS: Final[dict[str, _Look]] = {
    "std::chrono::duration": LibraryValues._duration,
    "std::chrono::time_point": LibraryValues._time_point,
    "std::complex": LibraryValues._complex,
    "std::error_code": LibraryValues._error,
    "std::error_condition": LibraryValues._error,
    "std::function": LibraryValues._function,
}
"""Types, and how each is looked into."""
