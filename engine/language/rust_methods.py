"""Functions of Rust's types and traits, and the form in which they take their arguments.

The debug information has a method in a module `{impl#3}` that tells neither its type nor its
trait: a method belongs to the type that its `self` is of. gdb finds those of a type's own alone.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.reach import Reach
from engine.language.rust_names import path_of
from engine.language.rust_printing import is_slice
from engine.language.rust_types import rust_text
from engine.language.surroundings import Surroundings
from engine.language.value_types import CType
from engine.language.values import TypedValue

OPERATORS: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "%": "rem",
    "&": "bitand",
    "|": "bitor",
    "^": "bitxor",
    "<<": "shl",
    ">>": "shr",
    "==": "eq",
    "!=": "ne",
}
"""Methods that operators stand for (core::ops, core::cmp)."""
_QUALIFIED: Final = re.compile(r"<(.+?)(?:\s+as\s+(.+))?>::(\w+)")


class RustMethods:
    """Finds methods in one place of a program."""

    def __init__(self, around: Surroundings) -> None:
        """Look in these surroundings."""
        self._around = around

    def of(self, kind: CType, name: str, trait: str = "") -> list[TypedValue]:
        """Functions that traits give a type, the type as their first argument.

        Args:
            kind: the type.
            name: of the method.
            trait: the trait's name; "" for any. The linker's names tell it, if there are several.
        """
        wanted = kind.resolved.text
        found: dict[int, TypedValue] = {}
        generic = wanted[wanted.find("<") :] if "<" in wanted else ""
        for word in dict.fromkeys((name, f"{name}<{wanted}>", name + generic)):
            for function in self._around.functions(word, nearest=False):
                if function.address is not None and self._is_for(function, wanted):
                    found[function.address] = function
        if trait and len(found) > 1:
            crate = wanted.partition("::")[0]
            traits = (trait, f"{crate}::{trait}")
            linked = {self._around.linked(f"<{wanted} as {one}>::{name}") for one in traits}
            found = {at: one for at, one in found.items() if at in linked} or found
        return list(found.values())

    def _is_for(self, function: TypedValue, wanted: str) -> bool:
        takes = function.type.resolved.parameters[0]
        if not takes:
            return False
        first = takes[0].resolved
        first = first.target.resolved if first.kind is TypeKind.POINTER else first
        path = path_of(self._around.symbol(function.address or 0))
        owner = path[-2] if len(path) > 1 else ""
        # Other functions are in modules, whose names have small letters.
        return first.text == wanted and (owner.startswith(("<", "{impl#")) or owner[:1].isupper())

    @staticmethod
    def qualified(name: str) -> tuple[str, str, str]:
        """The type, the trait and the function of "<Square as Area>::area" and "Area::area"."""
        match = _QUALIFIED.fullmatch(name)
        if match is not None:
            return match[1], match[2] or "", match[3]
        scope, _, last = name.rpartition("::")
        return scope, "", last

    def vtable(self, kind: CType, trait: str) -> int | None:
        """The address of a type's table of a trait's methods; None where there is none."""
        found = self._around.variable(f"<{kind.resolved.text} as {trait}>::{{vtable}}")
        return None if found is None else found.address


def best(functions: Sequence[TypedValue], given: Sequence[TypedValue], name: str) -> TypedValue:
    """The function whose parameters behind the first fit best.

    Args:
        functions: those of one name.
        given: the arguments behind the first.
        name: for a complaint.

    Raises:
        CommandError: none has as many parameters, or several fit alike.
    """
    counts = [len(one.type.resolved.parameters[0]) - 1 for one in functions]
    fitting = [one for one, count in zip(functions, counts, strict=True) if count == len(given)]
    if not fitting:
        few = "few" if len(given) < min(counts) else "many"
        raise CommandError(f"Too {few} arguments in function call.")
    points = [_points(one, given) for one in fitting]
    if points.count(max(points)) > 1:
        raise CommandError(f"Several functions named '{name}' fit these arguments.")
    return fitting[points.index(max(points))]


def _points(function: TypedValue, given: Sequence[TypedValue]) -> int:
    wanted = function.type.resolved.parameters[0][1:]
    points = 0
    for value, kind in zip(given, wanted, strict=True):
        kinds = (value.type.resolved.kind, kind.resolved.kind)
        whole = all(one in ct.INTEGERS for one in kinds)
        points += whole or kinds[0] is kinds[1]
        points += rust_text(value.type) == rust_text(kind)
    return points


class RustArguments:
    """Puts arguments into the types that functions take them in, or refuses them."""

    def __init__(
        self,
        reach: Reach,
        methods: RustMethods,
        sliced: Callable[[TypedValue], TypedValue],
        cast: Callable[[TypedValue, CType], TypedValue],
    ) -> None:
        """Set up.

        Args:
            reach: parts of values.
            methods: tables of traits.
            sliced: makes the slice of all of an array, a vector or a text.
            cast: puts a number into a type.
        """
        self._reach, self._methods = reach, methods
        self._sliced, self._cast = sliced, cast

    def fitted(self, given: Iterable[TypedValue], wanted: Iterable[CType]) -> list[TypedValue]:
        """Values as they are passed; a text that is written there is two: its bytes, its length.

        Raises:
            CommandError: one is of another type.
            GuestFaultError: memory cannot be read.
        """
        pairs = zip(given, wanted, strict=True)
        return [part for value, kind in pairs for part in self._fitted(value, kind)]

    def _fitted(self, value: TypedValue, kind: CType) -> Iterator[TypedValue]:
        to, of = kind.resolved, value.type.resolved
        if of.kind is TypeKind.RECORD and rust_text(value.type) == rust_text(kind):
            yield value
        elif is_slice(to):
            yield from self._slice(value, kind)
        elif to.text.startswith("&dyn ") and of.kind is TypeKind.POINTER:
            yield from self._object(value, kind)
        elif to.kind is TypeKind.POINTER:
            yield self._pointer(value, kind)
        elif TypeKind.RECORD in (to.kind, of.kind) or of.kind is TypeKind.ARRAY:
            raise self._other(value, kind)
        else:
            yield self._cast(value, kind)

    def _slice(self, value: TypedValue, kind: CType) -> Iterator[TypedValue]:
        of = value.type.resolved
        if of.kind is TypeKind.ARRAY and value.address is None and kind.resolved.text == "&str":
            raw = value.raw[:-1]  # without the byte of C that ends it
            usize = ct.integer(self._reach.pointer, signed=False)
            yield self.temporary(raw)
            yield self._reach.made(usize, len(raw))
            return
        if of.kind is not TypeKind.POINTER:
            raise self._other(value, kind)
        try:
            found = self._sliced(self._reach.pointed(value))
        except CommandError:
            raise self._other(value, kind) from None
        if found.type.resolved.text != kind.resolved.text.replace("&mut ", "&"):
            raise self._other(value, kind)
        yield found

    def _object(self, value: TypedValue, kind: CType) -> Iterator[TypedValue]:
        target = value.type.resolved.target
        trait = kind.resolved.text.removeprefix("&dyn ")
        table = self._methods.vtable(target, trait)
        if table is None:
            raise CommandError(
                f"The program has no table of {rust_text(target)} as {trait}: "
                f"no `{kind.resolved.text}` is made."
            )
        word = ct.integer(self._reach.pointer, signed=False)
        yield value
        yield self._reach.made(word, table)

    def _pointer(self, value: TypedValue, kind: CType) -> TypedValue:
        of, to = value.type.resolved, kind.resolved
        if of.kind is TypeKind.ARRAY and value.address is None:
            return value  # an object that is put on the stack
        if of.kind is not TypeKind.POINTER:
            raise self._other(value, kind)
        kinds = [one.target.resolved for one in (of, to)]
        alike = kinds[0].kind is kinds[1].kind is not TypeKind.ARRAY
        if not alike or (TypeKind.RECORD is kinds[0].kind and kinds[0].text != kinds[1].text):
            raise self._other(value, kind)
        return self._cast(value, kind)

    def temporary(self, raw: bytes) -> TypedValue:
        """Bytes that are put on the stack for a call; their address is passed."""
        kind = ct.array_of(ct.CHAR, len(raw))
        return TypedValue(kind, lambda: raw, order=self._reach.order)

    @staticmethod
    def _other(value: TypedValue, kind: CType) -> CommandError:
        expected, found = rust_text(kind), rust_text(value.type)
        return CommandError(f"mismatched types: expected `{expected}`, found `{found}`")
