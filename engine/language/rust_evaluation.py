"""The value of an expression of Rust in its surroundings (gdb/rust-lang.c)."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.evaluation import Evaluator
from engine.language.rust_makers import RustMakers
from engine.language.rust_methods import OPERATORS, RustArguments, RustMethods, best
from engine.language.rust_names import RustNames
from engine.language.rust_pointers import behind
from engine.language.rust_printing import byte_text, is_slice, is_tuple_struct
from engine.language.rust_types import builtin_type, rust_text
from engine.language.syntax import Expression, TypeName
from engine.language.tokens import characters
from engine.language.value_types import CType
from engine.language.values import TypedValue

_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
_DEREFERENCES: Final = 8
"""Owners that are looked through for a field or a method."""
_TRUTHS: Final = frozenset(("==", "!=", "<", ">", "<=", ">="))


class RustEvaluator(Evaluator):
    """Finds values of Rust's trees in one place."""

    @cached_property
    def makers(self) -> RustMakers:
        """Make structures, tuples, ranges and slices."""
        return RustMakers(self.reach, self.operators)

    @cached_property
    def names(self) -> RustNames:
        """Look up paths."""
        return RustNames(self._around)

    @cached_property
    def traits(self) -> RustMethods:
        """Find methods that traits give types."""
        return RustMethods(self._around)

    @cached_property
    def arguments(self) -> RustArguments:
        """Put arguments into their types."""
        whole = Expression("range", "..", (Expression("none"), Expression("none")))
        return RustArguments(
            self.reach, self.traits, lambda base: self._sliced(base, whole), self._passed
        )

    def type(self, name: TypeName) -> CType:
        """The type that is written.

        Raises:
            CommandError: there is none such.
        """
        return self._type(" ".join(name.words).strip(), 0)

    def _type(self, text: str, depth: int) -> CType:
        if depth > 64:
            raise CommandError("the type is nested too deeply")
        match = re.match(r"(?:\*\s*(?:mut|const)\b|&\s*(?:mut\b)?)\s*", text)
        known = self.names.type(text)
        if known is not None:
            return known
        if match is not None:
            return ct.pointer_to(self._type(text[match.end() :], depth + 1), self.reach.pointer)
        array = re.fullmatch(r"\[(.+);\s*(\d+)\s*\]", text, re.DOTALL)
        if array is not None:
            return ct.array_of(self._type(array[1].strip(), depth + 1), int(array[2]))
        found = builtin_type(text)
        if found is None:
            raise CommandError(f"No symbol '{text}' in current context")
        return found

    def value(self, node: Expression) -> TypedValue:
        """The value of a tree.

        Raises:
            CommandError: it has none.
            GuestFaultError: memory cannot be read.
        """
        match node.kind:
            case "number":
                text = node.text.replace("_", "")
                return self._integer(int(text, 0) if text.lstrip("0") else 0, node.suffix)
            case "float":
                text = re.sub(r"f(32|64)$", "", node.text.replace("_", ""))
                kind = "f32" if node.text.endswith("f32") else "f64"
                return self.reach.made(self._type(kind, 0), float(text))
            case "truth":
                return self._truth(holds=node.text == "true")
            case "unit":
                return self._of_bytes(ct.VOID, b"")
            case "char":
                return self.reach.made(self._type("char", 0), _letter(node.text[1:-1]))
            case "byte":
                return self.reach.made(self._type("u8", 0), _letter(node.text[2:-1]))
            case "bytes":
                return self._byte_text(characters(node.text[1:]))
            case "raw":
                return self._raw_text(node.text)
            case "field":
                captured = self._captured(node)
                if captured is not None:
                    return captured
                return self._field(self.value(node.parts[0]), int(node.text))
            case "member":
                return self._captured(node) or self._member(self.value(node.parts[0]), node.text)
            case "made":
                return self._made(node)
            case "tuple":
                return self.makers.tuple_of([self.value(part) for part in node.parts])
            case "list":
                return self._array([self.value(part) for part in node.parts])
            case "filled":
                first, count = (self.value(part) for part in node.parts)
                if not 0 < count.number < 1 << 16:
                    raise CommandError("Array with negative, or too many elements")
                return self._array([first] * count.number)
            case "index":
                if node.parts[1].kind == "range":
                    raise CommandError("Can't take slice of array without '&'")
                return self._element(self.value(node.parts[0]), self.value(node.parts[1]))
            case "range":
                low, high = (None if end.kind == "none" else self.value(end) for end in node.parts)
                return self.makers.range(low, high, node.text)
            case "sizeof":
                return self._sized(node.parts[0])
            case "assign":
                super().value(node)
                return self._of_bytes(ct.VOID, b"")
        return super().value(node)

    def _truth(self, *, holds: bool) -> TypedValue:
        return self.reach.made(ct.BOOL, int(holds))

    def _integer(self, number: int, suffix: str) -> TypedValue:
        """A number; without a suffix it is an i32, or an i64 where it does not fit."""
        if number >> 128:
            raise CommandError("Integer literal is too large")
        fits = number < 1 << 31
        return self.reach.made(self._type(suffix or ("i32" if fits else "i64"), 0), number)

    def _sized(self, node: Expression) -> TypedValue:
        if node.kind == "filled" and (element := self._named_type(node.parts[0])) is not None:
            count = self.value(node.parts[1]).number
            return self.reach.made(ct.INT, (element.size or 0) * count)
        kind = self._named_type(node) or self.value(node).type
        return self.reach.made(ct.INT, kind.size or 0)

    def _named_type(self, node: Expression) -> CType | None:
        """The type that a name stands for; None for another tree."""
        if node.kind != "name":
            return None
        found = builtin_type(node.text)
        if found is not None or self.names.variable(node.text) is not None:
            return found
        return self.names.type(node.text)

    def _byte_text(self, raw: bytes) -> TypedValue:
        return self._of_bytes(byte_text(len(raw)), raw)

    def _raw_text(self, text: str) -> TypedValue:
        """A text without escapes: r"ab", br#"a"b"#."""
        raw = text[text.index('"') + 1 : text.rindex('"')].encode()
        if text.startswith("b"):
            return self._byte_text(raw)
        return self._of_bytes(ct.array_of(ct.CHAR, len(raw) + 1), raw + b"\0")

    def _made(self, node: Expression) -> TypedValue:
        kind = self.names.type(node.text)
        if kind is None:
            raise CommandError(f"Could not find type '{node.text}'")
        if kind.resolved.kind is not TypeKind.RECORD:
            raise CommandError("Struct expression applied to non-struct type")
        given = [(part.kind, part.text, self.value(part.parts[0])) for part in node.parts]
        base = next((value for sort, _, value in given if sort == "base"), None)
        fields = [(name, value) for sort, name, value in given if sort == "part"]
        return self.makers.record(kind, fields, base)

    # -- members and methods ----------------------------------------------------------------

    def _captured(self, node: Expression) -> TypedValue | None:
        """The captured part of a variable in a closure: `point.x` is `point__x` there."""
        words = [node.text]
        while (node := node.parts[0]).kind in ("member", "field"):
            words.append(node.text)
        if node.kind != "name" or self._around.local(node.text) is not None:
            return None
        return self._around.local("__".join([node.text, *reversed(words)]))

    def _member(self, base: TypedValue, name: str) -> TypedValue:
        active = self._active(base)
        for _ in range(_DEREFERENCES):
            kind = active.type.resolved
            if kind.kind is not TypeKind.RECORD or kind.member(name) is not None:
                break
            if kind.member(f"_ref__{name}") is not None:  # a closure has it by reference
                return self.reach.pointed(self.reach.member(active, f"_ref__{name}"))
            if self._is_method(active, name):
                return self._method(active, name)
            inner = self._behind(active)
            if inner is None:
                break
            active = self._active(inner)
        variant = self.reach.variant(self._whole(base))
        kind = active.type.resolved
        if variant is not None and kind.member(name) is None:
            if is_tuple_struct(kind):
                raise CommandError(
                    f"Attempting to access named field {name} of tuple variant {kind.text}, "
                    "which has only anonymous fields"
                )
            raise CommandError(f"Could not find field {name} of struct variant {kind.text}")
        return self.reach.member(active, name)

    def _called(self, node: Expression) -> TypedValue:
        called = node.parts[0]
        if called.kind == "dollar":
            return super()._called(node)
        if called.kind == "member":
            return self._called_method(self.value(called.parts[0]), called.text, node.parts[1:])
        given = [self.value(part) for part in node.parts[1:]]
        if called.kind == "name":
            known = self.names.variable(called.text)
            kind = self.names.type(called.text) if known is None else None
            if kind is not None and is_tuple_struct(kind.resolved):
                fields = enumerate(given)
                return self.makers.record(kind, [(f"__{at}", value) for at, value in fields])
            found = self._of_path(called.text, given)
            if found and (known is None or not known.type.resolved.parameters[0]):
                return self._applied(best(found, given[1:], called.text), given)
        function = self.operand(called)
        if function.type.resolved.kind is TypeKind.RECORD:
            return self._closure_called(function, given)
        return self._applied(self.callable_of(function), given)

    def _of_path(self, name: str, given: list[TypedValue]) -> list[TypedValue]:
        """Methods by a path that begins with a type or a trait: `Square::area`, `Area::area`."""
        scope, trait, last = self.traits.qualified(name)
        kind = self.names.type(scope) if scope else None
        if kind is None and scope and given:
            kind, trait = self._whole(given[0]).type, trait or scope
        if kind is None:
            return []
        own = self._found_method(kind.resolved, last, 0) if not trait else None
        return [own] if own is not None else self.traits.of(kind, last, trait)

    def _closure_called(self, value: TypedValue, given: list[TypedValue]) -> TypedValue:
        """The result of a closure, which is a structure of what it has captured."""
        value = self.reach.object_behind(value) or value
        name = value.type.resolved.text.replace("{closure_env#", "{closure#")
        found = self._around.variable(name) if "{closure_env#" in value.type.text else None
        if found is None or found.type.resolved.kind is not TypeKind.FUNCTION:
            raise CommandError("That is no function of the program.")
        wanted, _ = found.type.resolved.parameters
        if len(wanted) != len(given) or found.address is None:
            return self._of_method(found, value, given)
        # A closure's captured parts may be told as variables; its structure is not told then.
        values = [self._referred(value), *self.arguments.fitted(given, wanted)]
        return self._around.call(found.address, found.type.resolved.target, values)

    def _applied(self, function: TypedValue, given: list[TypedValue]) -> TypedValue:
        """The result of a function for arguments."""
        kind = function.type.resolved
        wanted, _ = kind.parameters
        if function.address is None:
            raise CommandError("That is no function of the program.")
        if kind.text.startswith("<text variable"):
            raise CommandError("The function's type is not known.")
        if len(given) != len(wanted):
            few = "few" if len(given) < len(wanted) else "many"
            raise CommandError(f"Too {few} arguments in function call.")
        values = self.arguments.fitted(given, wanted)
        return self._around.call(function.address, kind.target, values)

    def _called_method(
        self, base: TypedValue, name: str, parts: tuple[Expression, ...]
    ) -> TypedValue:
        """A method: a container's length is told by its layout, others are called."""
        if name in ("len", "is_empty") and not parts:
            count = self._length(base)
            if count is not None and name == "len":
                return self.reach.made(self._type("usize", 0), count)
            if count is not None:
                return self._truth(holds=not count)
        given = [self.value(part) for part in parts]
        known = self.methods.method(base, name)
        if known is not None:
            return known(given)
        for target in self._targets(base):
            found = self._found_method(target.type.resolved, name, 0)
            of_traits = [found] if found is not None else self.traits.of(target.type, name)
            if of_traits:
                return self._of_method(best(of_traits, given, name), target, given)
        whole = rust_text(self._whole(base).type.resolved)
        raise CommandError(f"Could not find function named '{whole}::{name}'")

    def _targets(self, base: TypedValue) -> Iterator[TypedValue]:
        """A value and what it leads to: behind pointers, owners, trait objects and `Deref`."""
        target: TypedValue | None = base
        for _ in range(_DEREFERENCES):
            if target is None:
                return
            while target.type.resolved.kind is TypeKind.POINTER:
                target = self.reach.pointed(target)
            yield target
            target = self._behind(target)

    def _behind(self, value: TypedValue) -> TypedValue | None:
        """The value that an owner, a trait object or a type with `Deref` leads to."""
        found = self.reach.object_behind(value)
        if found is None:
            found = behind(self.reach, self.methods.held, value)
        if found is None and value.type.resolved.kind is TypeKind.RECORD:
            found = self._by_trait("deref", value, [])
            if found is not None:
                found = self.reach.pointed(found)
        return found

    def _by_trait(
        self, name: str, value: TypedValue, given: list[TypedValue]
    ) -> TypedValue | None:
        """The result of a trait's method; None for a type that has none such."""
        found = self.traits.of(value.type, name)
        return self._of_method(best(found, given, name), value, given) if found else None

    def _found_method(self, kind: CType, name: str, depth: int) -> TypedValue | None:
        """A method of a type; one of a generic type has the arguments of the type."""
        found = super()._found_method(kind, name, depth)
        start = kind.text.find("<")
        if found is not None or start < 0:
            return found
        found = self._around.variable(f"{kind.text}::{name}{kind.text[start:]}")
        return found if found and found.type.resolved.kind is TypeKind.FUNCTION else None

    def _of_method(
        self, method: TypedValue, target: TypedValue, given: list[TypedValue]
    ) -> TypedValue:
        """The result of a method for a value, which is passed by its address or as it is."""
        wanted, _ = method.type.resolved.parameters
        if not wanted:
            raise CommandError("The function takes no self.")
        others = [
            self._referred(value) if self._takes_address(value, kind) else value
            for value, kind in zip(given, wanted[1:], strict=False)
        ]
        this = self._referred(target) if self._takes_address(target, wanted[0]) else target
        return self._applied(method, [this, *others, *given[len(others) :]])

    @staticmethod
    def _takes_address(value: TypedValue, kind: CType) -> bool:
        """True for a structure where a function takes a reference to one of its kind."""
        to = kind.resolved
        return (
            to.kind is TypeKind.POINTER
            and value.type.resolved.kind is TypeKind.RECORD
            and to.target.resolved.text == value.type.resolved.text
        )

    def _referred(self, value: TypedValue) -> TypedValue:
        """The address of a value; one that is not in memory is put there for the call."""
        if value.address is None or value.pages:
            return self.arguments.temporary(value.raw)
        return self.reach.address_of(value)

    def _length(self, value: TypedValue) -> int | None:
        """The number of things in an array, a slice or a container; None for other values."""
        kind = value.type.resolved
        if kind.kind is TypeKind.ARRAY:
            return kind.count
        if is_slice(kind):
            return self.reach.member(value, "length").number
        held = self.methods.held(value)
        return None if held is None else held.count

    def _active(self, value: TypedValue) -> TypedValue:
        """Return the value with the parts: a pointer's target, an enumeration's variant."""
        for _ in range(_DEREFERENCES):
            if value.type.resolved.kind is not TypeKind.POINTER:
                break
            value = self.reach.pointed(value)
        found = self.reach.variant(value)
        return value if found is None else self.reach.part(value, found)

    def _variable(self, name: str, scope: str = "") -> TypedValue:
        found = self.names.variable(name, scope)
        if found is not None:
            return found
        kind = builtin_type(name) or self.names.type(name)
        if kind is None:
            raise CommandError(f"No symbol '{name}' in current context")
        if kind.resolved.kind is TypeKind.RECORD and not kind.resolved.members:
            return self._of_bytes(kind, bytes(kind.size or 0))
        raise CommandError("Attempt to use a type name as an expression")

    def _field(self, value: TypedValue, number: int) -> TypedValue:
        is_variant = self.reach.variant(self._whole(value)) is not None
        value = self._active(value)
        kind = value.type.resolved
        if is_variant and not is_tuple_struct(kind):
            if kind.members:
                raise CommandError(f"Variant {kind.text} is not a tuple variant")
            raise CommandError(
                f"Cannot access field {number} of variant {kind.text}, there are only 0 fields"
            )
        if not kind.text.startswith("(") and not is_tuple_struct(kind):
            raise CommandError(
                f"Attempting to access anonymous field {number} of {kind.text}, which is not a "
                "tuple, tuple struct, or tuple-like variant"
            )
        if number >= len(kind.members):
            raise CommandError(
                f"Cannot access field {number} of {kind.text}, there are only "
                f"{len(kind.members)} fields"
            )
        return self.reach.part(value, kind.members[number])

    def _element(self, base: TypedValue, index: TypedValue) -> TypedValue:
        kind, number = base.type.resolved, index.number
        if is_slice(kind):
            if not 0 <= number < self.reach.member(base, "length").number:
                raise CommandError("Index greater than length")
            return self.reach.element(self.reach.member(base, "data_ptr"), number)
        if kind.kind is TypeKind.ARRAY:
            if not 0 <= number < (kind.count or 0):
                raise CommandError("Index greater than length")
            return self.reach.element(base, number)
        if kind.kind is TypeKind.POINTER:
            return self.reach.element(base, number)
        held = self.methods.held(base)
        rows = held is not None and held.at is not None
        if rows and not 0 <= number < (held.count or 0 if held is not None else 0):
            raise CommandError("Index greater than length")
        found = self.methods.element(base, index)
        if found is None and kind.kind is TypeKind.RECORD:
            found = self._by_trait("index", base, [index])
            found = None if found is None else self.reach.pointed(found)
        if found is None:
            raise CommandError("Cannot subscript non-array type")
        return found

    def _array(self, values: list[TypedValue]) -> TypedValue:
        size = values[0].type.size
        if any(value.type.size != size for value in values):
            raise CommandError("array elements must all be the same size")
        return self._of_bytes(
            ct.array_of(values[0].type, len(values)), b"".join(value.raw for value in values)
        )

    def _unary(self, node: Expression) -> TypedValue:
        part = node.parts[0]
        if node.text == "&" and part.kind == "index" and part.parts[1].kind == "range":
            return self._sliced(self.value(part.parts[0]), part.parts[1])
        if node.text == "!":
            value = self.value(part)
            if value.type.resolved.kind is TypeKind.BOOL:
                return self._truth(holds=not value.number)
            return self.reach.made(value.type, ~value.number)
        if node.text == "-":
            value = self.value(part)
            kind = self.operators.number_type(value)
            is_real = kind.kind is TypeKind.FLOAT
            return self.reach.made(kind, -(value.real if is_real else value.number))
        if node.text == "*":
            value = self.value(part)
            concrete = self._behind(value)
            if concrete is not None:
                return concrete
        return super()._unary(node)

    def _sliced(self, base: TypedValue, bounds: Expression) -> TypedValue:
        """A slice of an array, of a slice or of a vector."""
        low, high = bounds.parts
        kind = base.type.resolved
        held = self.methods.held(base)
        count = kind.count or 0 if kind.kind is TypeKind.ARRAY else held.count if held else None
        if count is None:
            raise CommandError("Can't take slice of this type")
        first = 0 if low.kind == "none" else self.value(low).number
        last = count if high.kind == "none" else self.value(high).number
        last += high.kind != "none" and bounds.text == "..="
        if first < 0:
            raise CommandError("Index less than zero")
        if last > count or first > count:
            raise CommandError("Index greater than length")
        if first > last:
            raise CommandError("Invalid range")
        if is_slice(kind):
            start = self.reach.member(base, "data_ptr")
        elif kind.kind is TypeKind.ARRAY:
            start = self.reach.made(
                ct.pointer_to(kind.element, self.reach.pointer),
                self.reach.address_of(base).number,
            )
        elif count:
            start = self.reach.address_of(self._element(base, self._integer(0, "")))
        else:
            raise CommandError("The slice is empty.")
        is_text = kind.text == "&str" or (held is not None and held.text is not None)
        return self.makers.slice(self.reach.moved(start, first), last - first, is_text=is_text)

    def _binary(self, node: Expression) -> TypedValue:
        result = super()._binary(node)
        if result.type.resolved.kind is TypeKind.RECORD:
            return result
        if node.text in _TRUTHS or node.text in ("&&", "||"):
            return self._truth(holds=bool(result.number))
        return result

    def _combined(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        """Numbers are computed in a long, as gdb does for languages other than C."""
        kinds = [value.type.resolved.kind for value in (left, right)]
        if TypeKind.RECORD in kinds:
            found = self._by_trait(OPERATORS[word], left, [right]) if word in OPERATORS else None
            if found is None and word == "!=":
                found = self._by_trait("eq", left, [right])
                found = None if found is None else self._truth(holds=not found.number)
            if found is not None:
                return found
            raise CommandError("Argument to arithmetic operation not a number or boolean.")
        if all(kind in ct.INTEGERS for kind in kinds) and TypeKind.BOOL not in kinds:
            wide = max(left.type.size or 0, right.type.size or 0, 8)
            unsigned = any(
                not value.type.resolved.is_signed and (value.type.size or 0) == wide
                for value in (left, right)
            )
            kind = ct.integer(wide, signed=not unsigned)
            left, right = (self.reach.made(kind, value.number) for value in (left, right))
        return super()._combined(word, left, right)


def _letter(text: str) -> int:
    """The code of the character between quotes."""
    match = _ESCAPE.fullmatch(text)
    if match is None:
        return ord(text[0])
    if match[1] or match[2]:
        return int(match[1] or match[2], 16)
    return ord(_LETTERS.get(match[3], match[3]))
