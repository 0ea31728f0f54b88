"""Type information of C++ as `typeid` gives it (Itanium C++ ABI, 2.9; gdb/gnu-v3-abi.c)."""

from typing import Final

from engine.errors import CommandError
from engine.language import value_types as ct
from engine.language.class_members import ClassMembers
from engine.language.made_records import MadeRecord, constant, struct_of
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.user_types import bare_type
from engine.language.value_types import CType, is_reference
from engine.language.values import TypedValue

_NAME: Final = "gdb_gnu_v3_type_info"
"""gdb's own name of the structure: programs rarely describe std::type_info."""


_CODES: Final = {
    "void": "v",
    "wchar_t": "w",
    "bool": "b",
    "char": "c",
    "signed char": "a",
    "unsigned char": "h",
    "short": "s",
    "unsigned short": "t",
    "int": "i",
    "unsigned int": "j",
    "long": "l",
    "unsigned long": "m",
    "long long": "x",
    "unsigned long long": "y",
    "float": "f",
    "double": "d",
    "long double": "e",
    "const char": "Kc",
    "const void": "Kv",
    "char16_t": "Ds",
    "char32_t": "Di",
}
"""Mangled names of types of C (Itanium C++ ABI, 5.1.5.2)."""


class _TypeInfo(MadeRecord, frozen=True):
    """The structure as C++ writes it."""

    @property
    def text(self) -> str:
        """Return the name."""
        return self.name


class TypeIdentities:
    """Finds the objects of std::type_info of types."""

    def __init__(self, around: Surroundings, reach: Reach, members: ClassMembers) -> None:
        """Find what these surroundings have."""
        self._around, self._reach, self._members = around, reach, members

    def of_value(self, value: TypedValue) -> TypedValue:
        """The type information of a value; of an object that tells its class, of that class.

        Raises:
            CommandError: the program has none.
            GuestFaultError: the object cannot be read.
        """
        table = self._members.table(value) if value.address is not None else None
        if table is None:
            return self.of_type(value.type)
        size = self._reach.pointer
        raw = self._around.read(table - size, size)
        return self._reach.at(self._kind, int.from_bytes(raw, self._reach.order))

    def of_type(self, kind: CType) -> TypedValue:
        """The type information of a type.

        Raises:
            CommandError: the program has none.
        """
        if is_reference(kind):
            kind = kind.resolved.target
        name = bare_type(kind.resolved.text).replace(" *", "*")
        stars = len(name) - len(name.rstrip("*"))
        code = _CODES.get(name.rstrip("*"))
        # The library has those of numbers and of pointers to them; their names have no words.
        linked = f"_ZTI{'P' * stars}{code}" if code else f"typeinfo for {name}"
        place = self._around.linked(linked)
        if place is None:
            raise CommandError(f"could not find typeinfo symbol for '{name}'")
        return self._reach.at(self._kind, place)

    @property
    def _kind(self) -> CType:
        """The structure's type; C++ names it without a keyword."""
        size = self._reach.pointer
        void = ct.pointer_to(ct.VOID, size)
        text = ct.pointer_to(constant(ct.CHAR), size)
        made = struct_of(_NAME, ("_vptr.type_info", void), ("__name", text))
        return _TypeInfo(made.kind, made.size, made.name, parts=made.parts)

    def method(self, value: TypedValue, name: str) -> TypedValue | None:
        """The answer of a method of std::type_info; None for other values and methods.

        Raises:
            GuestFaultError: the name cannot be read.
        """
        if bare_type(value.type.resolved.text) != _NAME or name != "name":
            return None
        return self._reach.member(value, "__name")

    def compared(self, word: str, left: TypedValue, right: TypedValue) -> bool | None:
        """True if both are the same type's, or are not, as the operator asks; None for others.

        Raises:
            GuestFaultError: the names cannot be read.
        """
        names = [self.method(value, "name") for value in (left, right)]
        if names[0] is None or names[1] is None or word not in ("==", "!="):
            return None
        return (names[0].number == names[1].number) == (word == "==")
