"""Members of classes by name: data, static data and functions, those of base classes too."""

from collections.abc import Iterator
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.methods import (
    ClassMethod,
    conversions_of,
    functions_of,
    inner_type,
    methods_of,
    static_data,
)
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.user_types import bare_type
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, TypedValue

_DEPTH: Final = 32
"""Classes above each other that are looked through."""
_TABLE: Final = "vtable for "


class MethodOfObject:
    """A function of a class, and the part of an object that it is called for.

    Attributes:
        object: that part.
        method: the function.
        is_named: the class was named: no other class's function takes its place.
    """

    def __init__(self, part: TypedValue, method: ClassMethod, *, is_named: bool) -> None:
        """Take both."""
        self.object, self.method, self.is_named = part, method, is_named


class ClassMembers:
    """Finds members in one place of a program."""

    def __init__(self, around: Surroundings, reach: Reach) -> None:
        """Find what these surroundings have."""
        self._around = around
        self._reach = reach

    def data(self, value: TypedValue, name: str) -> TypedValue | None:
        """A part or static data of an object, by name; None for none.

        Raises:
            GuestFaultError: a table of a virtual base class cannot be read.
        """
        scope, _, last = name.rpartition("::")
        part = self._part_named(value, scope)
        self._check_one(part, last)
        found = self._data(part, last, 0)
        is_call = found is None and any(True for _ in methods_of(part.type.resolved, "operator()"))
        if is_call:  # g++ marks what a lambda captures
            found = self._data(part, f"__{last}", 0)
        return found

    def _check_one(self, value: TypedValue, name: str) -> None:
        """Refuse a name that several base classes have (C++20, [class.member.lookup]).

        gdb refuses a virtual base's as well that another base hides; it is the hiding one here.

        Raises:
            CommandError: it is ambiguous.
        """
        kind = value.type.resolved
        if kind.member(name) is None or not any(member.is_base for member in kind.members):
            return
        found = list(_declarations(kind, name, (), 0))
        hidden = {
            key
            for owner, _ in found
            for key in _bases(owner)
            for one, _ in found
            if one.key == key
        }
        left = [(owner, text) for owner, text in found if owner.key not in hidden]
        if len({owner.key for owner, _ in left}) > 1:
            lines = "\n".join(f"  {text}" for _, text in left)
            raise CommandError(
                f"Request for member '{name}' is ambiguous in type '{bare_type(kind.text)}'. "
                f"Candidates are:\n{lines}"
            )

    def _data(self, value: TypedValue, name: str, depth: int) -> TypedValue | None:
        kind = value.type.resolved
        found = kind.member(name)
        if found is not None:
            return self._reach.part(value, found)
        static = self.static(kind, name)
        if static is not None or depth > _DEPTH:
            return static
        for member in kind.members:
            if member.is_base:
                inner = self._data(self._reach.part(value, member), name, depth + 1)
                if inner is not None:
                    return inner
        return None

    def static(self, kind: CType, name: str) -> TypedValue | None:
        """Static data of a class itself, by name; None for none."""
        told = static_data(kind.resolved, name)
        if told is None:
            return None
        if told.value is not None:
            raw = told.value
            return TypedValue(told.type, lambda: raw, order=self._reach.order)
        if not told.linkage:  # clang tells it where it is defined alone
            found = self._around.variable(f"{bare_type(kind.resolved.text)}::{name}")
            lost = TypedValue(told.type, lambda: b"", missing="<optimized out>")
            return lost if found is None else found
        address = self._around.linked(told.linkage)
        return None if address is None else self._reach.at(told.type, address)

    def inner_type(self, kind: CType, name: str) -> CType | None:
        """A type that a class declares in it; None for none."""
        return inner_type(kind.resolved, name)

    def methods(self, value: TypedValue, name: str) -> list[MethodOfObject]:
        """Functions of a name of an object's class, else those of its bases; [] for none.

        Raises:
            GuestFaultError: a table of a virtual base class cannot be read.
        """
        scope, _, last = name.rpartition("::")
        return self._methods(self._part_named(value, scope), last, 0, is_named=bool(scope))

    def _methods(
        self, value: TypedValue, name: str, depth: int, *, is_named: bool
    ) -> list[MethodOfObject]:
        kind = value.type.resolved
        found = [
            MethodOfObject(value, method, is_named=is_named) for method in methods_of(kind, name)
        ]
        if found or depth > _DEPTH:
            return found
        for member in kind.members:
            if member.is_base:
                part = self._reach.part(value, member)
                found += self._methods(part, name, depth + 1, is_named=is_named)
                if found:
                    return found
        return found

    def conversions(self, value: TypedValue) -> list[MethodOfObject]:
        """Functions that make values of other types of an object, those of bases too.

        Raises:
            GuestFaultError: a table of a virtual base class cannot be read.
        """
        return [
            MethodOfObject(part, method, is_named=False)
            for part in self.parts(value)
            for method in conversions_of(part.type.resolved)
        ]

    def _part_named(self, value: TypedValue, scope: str) -> TypedValue:
        """The part of an object that is of a class: itself, or a base."""
        if not scope:
            return value
        for part in self.parts(value):
            name = bare_type(part.type.resolved.text)
            if name == scope or name.endswith(f"::{scope}"):
                return part
        raise CommandError(f"{scope} is no base class of {value.type.resolved.text}.")

    def parts(self, value: TypedValue, depth: int = 0) -> Iterator[TypedValue]:
        """An object, and the parts of it that are of its base classes."""
        yield value
        for member in value.type.resolved.members if depth < _DEPTH else ():
            if member.is_base:
                yield from self.parts(self._reach.part(value, member), depth + 1)

    # -- what objects say of themselves -----------------------------------------------------

    def table(self, value: TypedValue) -> int | None:
        """The address of an object's table of virtual functions; None for an object without.

        Raises:
            GuestFaultError: it cannot be read.
        """
        if value.address is None or not has_table(value.type, 0):
            return None
        size = self._reach.pointer
        raw = value.raw[:size] if value.pages else self._around.read(value.address, size)
        return int.from_bytes(raw, self._reach.order)

    def whole(self, value: TypedValue) -> TypedValue | None:
        """The object that a part is of, in its own class; None where nobody says.

        Raises:
            GuestFaultError: its table cannot be read.
        """
        table = self.table(value)
        if table is None or value.address is None:
            return None
        text = self._around.symbol(table)
        name = text.removeprefix(_TABLE).rpartition("+")[0]
        kind = self._around.type((name,)) if text.startswith(_TABLE) and name else None
        if kind is None:
            return None
        size = self._reach.pointer
        raw = self._around.read(table - 2 * size, size)  # its distance from the whole's start
        up = int.from_bytes(raw, self._reach.order, signed=True)
        return self._reach.at(kind, value.address + up)


def _declarations(
    kind: CType, name: str, path: tuple[str, ...], depth: int
) -> Iterator[tuple[CType, str]]:
    """The classes that give an object a member of a name, with the way to each as gdb tells it."""
    path = (*path, bare_type(kind.text))
    own = next((member for member in kind.members if member.name == name), None)
    if own is not None:
        yield kind, f"'{own.type.declared(f'{path[-1]}::{name}')}' ({' -> '.join(path)})"
        return
    for member in kind.members if depth < _DEPTH else ():
        if member.is_base:
            yield from _declarations(member.type.resolved, name, path, depth + 1)


def _bases(kind: CType, depth: int = 0) -> Iterator[object]:
    """Keys of the classes above one."""
    for member in kind.members if depth < _DEPTH else ():
        if member.is_base:
            yield member.type.resolved.key
            yield from _bases(member.type.resolved, depth + 1)


def has_methods(kind: CType) -> bool:
    """True for a class that declares functions, those that compilers make included."""
    return any(True for _ in functions_of(kind.resolved))


def has_table(kind: CType, depth: int) -> bool:
    """True for a class whose objects begin with the address of a table of functions."""
    kind = kind.resolved
    if kind.kind is not TypeKind.RECORD or depth > _DEPTH:
        return False
    for member in kind.members:
        if member.offset_place or (member.name or "").startswith("_vptr"):
            return True
        if member.is_base and not member.offset and has_table(member.type, depth + 1):
            return True
    return False


def method_value(method: ClassMethod, address: int, reach: Reach) -> TypedValue:
    """A function of a class as a value."""
    return TypedValue(method.type, lambda: b"", MemoryPlace(address), order=reach.order)
