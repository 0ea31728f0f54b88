"""Calls of functions of C++: which of several is meant, and what it is given.

What a result leads to is read from the memory that the function has left, which may be a copy of
the program's own.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.methods import ClassMethod
from engine.language import value_types as ct
from engine.language.class_members import ClassMembers, MethodOfObject, method_value
from engine.language.conversions import BY_USER, rank, same_type
from engine.language.operators import Operators
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.user_types import bare_type
from engine.language.value_types import CType, is_reference
from engine.language.values import TypedValue

_MORE: Final = 70
"""Cost of an argument that no parameter is declared for."""


def _in_sight(function: TypedValue, given: Sequence[TypedValue]) -> bool:
    """True for a function that an operator may stand for.

    Functions of other classes never do (their first parameter is `this`), those of the library's
    namespace only for its types, as names are looked up by arguments (C++20, 6.5.4).
    """
    parameters, _ = function.type.resolved.parameters
    if parameters and _is_object_pointer(parameters[0]):
        return False
    of_library = [_is_of_library(one.text) for one in parameters]
    return not any(of_library) or any(_is_of_library(one.type.resolved.text) for one in given)


def _is_object_pointer(kind: CType) -> bool:
    target = kind.resolved.target if kind.text.endswith("*") else None
    return target is not None and target.resolved.kind is TypeKind.RECORD


def _is_of_library(text: str) -> bool:
    return text.removeprefix("const ").startswith("std::")


class Candidate:
    """A function that is perhaps meant.

    Attributes:
        function: it, with its place.
        given: its arguments, the object's address first for a method.
        method: the function of a class that it is; None for another one.
    """

    def __init__(
        self,
        function: TypedValue,
        given: Sequence[TypedValue],
        method: MethodOfObject | None = None,
    ) -> None:
        """Take a function and its arguments."""
        self.function, self.given, self.method = function, list(given), method


class CppCalls:
    """Calls functions in one place of a program."""

    def __init__(
        self, around: Surroundings, reach: Reach, operators: Operators, members: ClassMembers
    ) -> None:
        """Call what these surroundings have.

        Args:
            around: the place.
            reach: what can be reached there.
            operators: casts.
            members: members of classes.
        """
        self._around = around
        self._reach = reach
        self._operators = operators
        self._members = members

    def of_methods(
        self,
        methods: Sequence[MethodOfObject],
        given: Sequence[TypedValue],
        whole: TypedValue | None = None,
    ) -> list[Candidate]:
        """Functions of a class as candidates for a call.

        Args:
            methods: the functions, each with the part of the object that it is for.
            given: the arguments.
            whole: the object, which virtual functions may see all of; None for such a part.
        """
        found: list[Candidate] = []
        for one in methods:
            method, part = one.method, one.object
            address = self._around.linked(method.linkage) if method.linkage else None
            if method.slot is not None and not one.is_named:
                table = self._members.table(part)
                if table is not None:
                    size = self._reach.pointer
                    raw = self._around.read(table + method.slot * size, size)
                    address = int.from_bytes(raw, self._reach.order)
            if address is None and not method.linkage:
                address = self._place_of(method)
            if address is None:
                continue
            function = method_value(method, address, self._reach)
            this = [] if method.is_static else [self._this(part, whole or part)]
            found.append(Candidate(function, [*this, *given], one))
        return found

    def _place_of(self, method: ClassMethod) -> int | None:
        """The code of a function that the linker has no name for: one of a lambda."""
        key = method.type.key
        same = (one for one in self._around.functions(method.name) if one.type.key == key)
        return next((one.address for one in same), None)

    def _this(self, part: TypedValue, whole: TypedValue) -> TypedValue:
        """The address of an object; one that is not in memory is put there for the call."""
        if part.address is not None and not part.pages:
            return self._reach.made(ct.pointer_to(part.type, self._reach.pointer), part.address)
        return self._temporary(whole if part.address == whole.address else part)

    def _temporary(self, value: TypedValue) -> TypedValue:
        raw = value.raw
        kind = ct.array_of(ct.CHAR, len(raw))
        return TypedValue(kind, lambda: raw, order=self._reach.order)

    def of_functions(
        self, functions: Sequence[TypedValue], given: Sequence[TypedValue]
    ) -> list[Candidate]:
        """Functions as candidates for a call."""
        return [Candidate(function, given) for function in functions]

    def made(self, kind: CType, given: Sequence[TypedValue]) -> TypedValue:
        """An object that one of its class's constructors makes of arguments.

        Raises:
            CommandError: the program has no code of one that fits; values that parameters have
                by default are not told by debug information.
        """
        name = bare_type(kind.resolved.text)
        nowhere = TypedValue(kind, lambda: b"", order=self._reach.order)
        this = self._reach.made(ct.pointer_to(kind, self._reach.pointer), 0)
        own = name.partition("<")[0].rpartition("::")[2]
        candidates: list[Candidate] = []
        for one in self._members.methods(nowhere, own):
            address = self._place_of_constructor(one.method, f"{name}::{own}")
            if address is not None:
                function = method_value(one.method, address, self._reach)
                candidates.append(Candidate(function, [this, *given], one))
        if not candidates:
            raise CommandError(f"The program has no code of a constructor of {name}.")
        chosen = self.best(candidates, f"{name}::{own}")
        wanted, _ = chosen.function.type.resolved.parameters
        passed = [self.passed(*pair) for pair in zip(given, wanted[1:], strict=True)]
        return self._around.construct(chosen.function.address or 0, kind, passed)

    def _place_of_constructor(
        self, method: ClassMethod, name: str, letter: str = "C"
    ) -> int | None:
        """The code of a constructor: whole objects have C1 in the linker's name, bases C2.

        Destructors have the `letter` D.
        """
        if not method.linkage:
            key = method.type.key
            same = (one for one in self._around.functions(name) if one.type.key == key)
            return next((one.address for one in same), None)
        before, _, behind = method.linkage.rpartition(f"{letter}4")
        names = (f"{before}{letter}{digit}{behind}" for digit in "12")
        found = (self._around.linked(one) for one in names)
        return next((address for address in found if address is not None), None)

    def _copier(self, value: TypedValue) -> tuple[int, ...]:
        """The code that copies an object and that ends the copy; empty without such code."""
        name = bare_type(value.type.resolved.text)
        own = name.partition("<")[0].rpartition("::")[2]
        for one in self._members.methods(value, own):
            address = self._place_of_constructor(one.method, f"{name}::{own}")
            if address is None:
                continue
            wanted, _ = method_value(one.method, address, self._reach).type.resolved.parameters
            if len(wanted) != 2 or not is_reference(wanted[1]) or wanted[1].text.endswith("&&"):
                continue
            if not same_type(wanted[1].resolved.target, value.type):
                continue
            ends = (
                self._place_of_constructor(end.method, f"{name}::~{own}", "D")
                for end in self._members.methods(value, f"~{own}")
            )
            return address, next((end for end in ends if end is not None), 0)
        return ()

    def best(self, candidates: Sequence[Candidate], name: str) -> Candidate:
        """The function that is meant: its parameters fit the arguments best.

        Raises:
            CommandError: none fits.
        """
        given = {len(one.given) for one in candidates}
        fewest = min(len(one.function.type.resolved.parameters[0]) for one in candidates)
        if max(given) < fewest:
            raise CommandError("Too few arguments in function call.")
        ranked = [
            (cost, number)
            for number, one in enumerate(candidates)
            if (cost := self._cost(one)) is not None
        ]
        if not ranked:
            of_class = candidates[0].method is not None and "operator" not in name
            what = "method" if of_class else "function"
            raise CommandError(f"Cannot resolve {what} {name} to any overloaded instance")
        return candidates[min(ranked)[1]]

    def _cost(self, candidate: Candidate) -> tuple[int, int] | None:
        wanted, more = candidate.function.type.resolved.parameters
        given = candidate.given
        if len(given) < len(wanted) or (len(given) > len(wanted) and not more):
            return None
        costs: list[int] = [_MORE] * (len(given) - len(wanted))
        of = candidate.method
        for number, (value, kind) in enumerate(zip(given, wanted, strict=False)):
            if not number and of is not None and not of.method.is_static:
                const = of.object.type.text.startswith("const ")
                if const and not of.method.is_const:
                    return None
                costs.append(int(not const and of.method.is_const))
                continue
            cost = rank(value, kind)
            if cost is None and self._conversion(value, kind, explicit=False) is not None:
                cost = BY_USER
            if cost is None:
                return None
            costs.append(cost)
        return max(costs, default=0), sum(costs)

    def called(self, candidate: Candidate) -> TypedValue:
        """The result of a function.

        Raises:
            CommandError: it cannot be called with these arguments, or does not return.
        """
        function = candidate.function
        kind = function.type.resolved
        if function.address is None:
            raise CommandError("That is no function of the program.")
        wanted, more = kind.parameters
        given = candidate.given
        if len(given) < len(wanted):
            raise CommandError("Too few arguments in function call.")
        if len(given) > len(wanted) and not more:
            raise CommandError("Too many arguments in function call.")
        passed = [self.passed(one, type_) for one, type_ in zip(given, wanted, strict=False)]
        passed += [self.passed(one, None) for one in given[len(wanted) :]]
        return self._around.call(function.address, kind.target, passed)

    def passed(self, value: TypedValue, kind: CType | None) -> TypedValue:
        """An argument in the type that a function takes it in.

        Raises:
            CommandError: it cannot be that.
        """
        if kind is None:
            return self._promoted(value)
        if value.type.kind is TypeKind.ARRAY and value.address is None:
            return value  # a text of the user's, or an object that is put on the stack
        if is_reference(kind):
            return self._referred(value, kind)
        to = kind.resolved
        if to.kind is TypeKind.RECORD:
            part = self.as_class(value, kind)
            return replace(part, copier=self._copier(part)) if part.address else part
        made = self.converted_by_user(value, kind, explicit=False)
        return self.converted(value if made is None else made, kind)

    def converted_by_user(
        self, value: TypedValue, kind: CType, *, explicit: bool
    ) -> TypedValue | None:
        """Convert an object by a function of its class; None where none fits.

        Args:
            value: the object.
            kind: a type that is no class's.
            explicit: a cast or a condition asks, so that functions marked `explicit` count.

        Raises:
            CommandError: the function cannot be called.
        """
        found = self._conversion(value, kind, explicit=explicit)
        return None if found is None else self.called(found)

    def _conversion(self, value: TypedValue, kind: CType, *, explicit: bool) -> Candidate | None:
        """The function that converts an object best: to the very type, else to a number."""
        if value.type.resolved.kind is not TypeKind.RECORD:
            return None
        if is_reference(kind):
            kind = kind.resolved.target
        if kind.resolved.kind is TypeKind.RECORD:
            return None
        methods = [
            one
            for one in self._members.conversions(value)
            if explicit or not one.method.is_explicit
        ]
        ranked: list[tuple[int, int, Candidate]] = []
        for number, candidate in enumerate(self.of_methods(methods, ())):
            result = candidate.function.type.resolved.target
            given = TypedValue(result, partial(bytes, result.size or 0), order=self._reach.order)
            cost = rank(given, kind)
            if cost is not None:
                ranked.append((cost, number, candidate))
        return min(ranked, key=lambda one: one[:2])[2] if ranked else None

    def _promoted(self, value: TypedValue) -> TypedValue:
        if value.type.kind is TypeKind.ARRAY and value.address is None:
            return value
        bare = self._reach.scalar(value)
        kind = bare.type.resolved
        if kind.kind is TypeKind.FLOAT:
            return self._operators.cast(bare, ct.DOUBLE)
        if kind.kind in (*ct.INTEGERS, TypeKind.ENUM):
            return self._operators.cast(bare, ct.promoted(kind))
        return bare

    def _referred(self, value: TypedValue, kind: CType) -> TypedValue:
        """The address that is passed for a reference."""
        target = kind.resolved.target
        if target.resolved.kind is TypeKind.RECORD:
            value = self.as_class(value, target)
        elif not same_type(value.type, target):
            made = self.converted_by_user(value, target, explicit=False)
            value = self._operators.cast(value if made is None else made, target.resolved)
        if value.address is None or value.pages:
            return self._temporary(value)
        return self._reach.made(kind, value.address)

    def as_class(self, value: TypedValue, kind: CType) -> TypedValue:
        """An object as one of a base class, or of its own.

        Raises:
            CommandError: it is none of such a class.
        """
        for part in self._members.parts(value):
            if same_type(part.type, kind):
                return part
        raise CommandError("Invalid cast.")

    def is_of(self, value: TypedValue, kind: CType) -> bool:
        """True for an object of a class or of one that is derived from it."""
        return any(same_type(part.type, kind) for part in self._members.parts(value))

    def converted(self, value: TypedValue, kind: CType) -> TypedValue:
        """A scalar in another type; pointers to classes lead to the part that is meant.

        Raises:
            CommandError: it cannot be that.
        """
        moved = self.moved(value, kind)
        return self._operators.cast(value, kind) if moved is None else moved

    def moved(self, value: TypedValue, kind: CType) -> TypedValue | None:
        """A pointer to a class as one to a base or a derived class; None for other values.

        Raises:
            GuestFaultError: a table of a virtual base class cannot be read.
        """
        given, to = value.type.resolved, kind.resolved
        if not (given.kind is to.kind is TypeKind.POINTER and value.type.kind is to.kind):
            return None
        if given.owner is not None or to.owner is not None or not value.number:
            return None
        source, target = given.target.resolved, to.target.resolved
        if not source.kind is target.kind is TypeKind.RECORD or same_type(source, target):
            return None
        place = self._base_place(source, target, value.number)
        if place is not None:
            return self._reach.made(kind, place)
        down = self._base_place(target, source, value.number)
        if down is not None:
            return self._reach.made(kind, 2 * value.number - down)
        return None

    def _base_place(self, kind: CType, base: CType, address: int) -> int | None:
        """The address of a base in an object of a class; None where it has none such."""
        whole = self._reach.at(kind, address)
        for part in self._members.parts(whole):
            if same_type(part.type, base):
                return part.address
        return None

    # -- operators --------------------------------------------------------------------------

    def operator(self, word: str, given: Sequence[TypedValue]) -> TypedValue | None:
        """The result of an operator that the program defines; None where it defines none.

        Args:
            word: of it.
            given: its operands, the first one perhaps an object.

        Raises:
            CommandError: it is defined for other operands alone, or cannot be called.
        """
        name = f"operator{word}"
        is_object = given[0].type.resolved.kind is TypeKind.RECORD
        methods = self._members.methods(given[0], name) if is_object else ()
        own = list(self.of_methods(methods, given[1:])) if methods else []
        functions = [one for one in self._around.functions(name) if _in_sight(one, given)]
        candidates = [*own, *self.of_functions(functions, given)]
        if not candidates:
            if methods:  # declared, but without code: the program calls it nowhere
                raise CommandError(f"Could not find {name}.")
            return None
        if len(given) == 1:
            candidates = [one for one in candidates if self._cost(one) is not None]
            if not candidates:
                return None
        return self.called(self.best(candidates, name))
