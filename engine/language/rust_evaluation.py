"""The value of an expression of Rust in its surroundings (gdb/rust-lang.c)."""

import re
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.evaluation import Evaluator
from engine.language.rust_printing import is_slice, is_tuple_struct
from engine.language.rust_types import builtin_type
from engine.language.syntax import Expression, TypeName
from engine.language.tokens import characters
from engine.language.value_types import CType
from engine.language.values import TypedValue

_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
_TRUTHS: Final = frozenset(("==", "!=", "<", ">", "<=", ">="))


class RustEvaluator(Evaluator):
    """Finds values of Rust's trees in one place."""

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
        known = self._around.type((text,))
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
                raw = characters(node.text[1:])
                return self._of_bytes(ct.array_of(self._type("u8", 0), len(raw)), raw)
            case "field":
                return self._field(self.value(node.parts[0]), int(node.text))
            case "member":
                base = self.value(node.parts[0])
                if self._is_method(base, node.text):
                    return self._method(base, node.text)
                return self.reach.member(self._active(base), node.text)
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
            case "range" | "none":
                raise CommandError("Ranges are not evaluated but behind '&' of a slice.")
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
        kind: CType | None = None
        if node.kind == "name":
            kind = builtin_type(node.text)
            if kind is None and self._around.variable(node.text) is None:
                kind = self._around.type((node.text,))
        kind = self.value(node).type if kind is None else kind
        return self.reach.made(ct.INT, kind.size or 0)

    def _active(self, value: TypedValue) -> TypedValue:
        """Return the value with the parts: a pointer's target, an enumeration's variant."""
        if value.type.resolved.kind is TypeKind.POINTER:
            value = self.reach.pointed(value)
        found = self.reach.variant(value)
        return value if found is None else self.reach.part(value, found)

    def _variable(self, name: str, scope: str = "") -> TypedValue:
        found = self._around.variable(name, scope)
        if found is None:
            raise CommandError(f"No symbol '{name}' in current context")
        return found

    def _field(self, value: TypedValue, number: int) -> TypedValue:
        value = self._active(value)
        kind = value.type.resolved
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
            concrete = self.reach.object_behind(value)
            if concrete is not None:
                return concrete
        return super()._unary(node)

    def _sliced(self, base: TypedValue, bounds: Expression) -> TypedValue:
        """A part of an array, a slice or a vector; gdb has a slice there, this is an array."""
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
        if first == last:
            raise CommandError("The slice is empty.")
        start = self._element(base, self._integer(first, ""))
        return self.reach.repeated(start, last - first)

    def _binary(self, node: Expression) -> TypedValue:
        result = super()._binary(node)
        if node.text in _TRUTHS or node.text in ("&&", "||"):
            return self._truth(holds=bool(result.number))
        return result

    def _combined(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        """Numbers are computed in a long, as gdb does for languages other than C."""
        kinds = [value.type.resolved.kind for value in (left, right)]
        if TypeKind.RECORD in kinds:
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
