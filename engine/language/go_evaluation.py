"""The value of an expression of Go in its surroundings, as delve has it (pkg/proc/eval.go)."""

import re
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.image.dietypes import DieType
from engine.image.gotypes import GoKind, embedded_names
from engine.language import value_types as ct
from engine.language.evaluation import Evaluator
from engine.language.go_numbers import computed, is_ordered, letter_code
from engine.language.go_parts import GoParts
from engine.language.go_types import (
    BUILTIN,
    NIL,
    address_text,
    element_of,
    go_text,
    kind_of,
    slice_of,
)
from engine.language.surroundings import Surroundings
from engine.language.syntax import Expression, TypeName
from engine.language.tokens import characters
from engine.language.value_types import CType
from engine.language.values import MOST, TypedValue

_INTEGERS: Final = range(GoKind.INT, GoKind.UINTPTR + 1)
_FLOATS: Final = (GoKind.FLOAT32, GoKind.FLOAT64)
_NILS: Final = frozenset(
    (
        *(GoKind.POINTER, GoKind.UNSAFE_POINTER, GoKind.SLICE, GoKind.MAP, GoKind.CHAN),
        *(GoKind.FUNC, GoKind.INTERFACE),
    )
)
"""Kinds of what may be nil."""
_EMBEDDED: Final = 8
"""Structures embedded in each other that are looked through for a member."""
_DEEPEST: Final = 64
"""Structures and interfaces in each other that are compared."""
_MOST_ENTRIES: Final = 1 << 20
_COMPARED: Final = frozenset(("==", "!="))


class GoEvaluator(Evaluator):
    """Finds values of Go's trees in one place."""

    def __init__(self, around: Surroundings) -> None:
        """Evaluate in these surroundings."""
        super().__init__(around)
        self._go_parts = GoParts(around)

    # -- types ------------------------------------------------------------------------------

    def type(self, name: TypeName) -> CType:
        """The type that is written.

        Raises:
            CommandError: there is none such.
        """
        return self._named_type(" ".join(name.words))

    def value_or_type(self, text: str) -> tuple[CType, bool]:
        """The type that a text names, or that of an expression; True if it names one.

        Raises:
            CommandError: it means nothing.
        """
        node = self._around.language.tree(text, self._around)
        found = self._as_type(node)
        return (found, True) if found is not None else (self.value(node).type, False)

    def _named_type(self, text: str, depth: int = 0) -> CType:
        found = self._found_type(text, depth)
        if found is None:
            raise CommandError(f"could not find type {text}")
        return found

    def _found_type(self, text: str, depth: int = 0) -> CType | None:
        """A type by its text; None for no type."""
        text = _spelled(text)
        if depth > 64:
            raise CommandError("the type is nested too deeply")
        go = self._around.go
        if text in BUILTIN:
            # The program's own has constants and a description of the runtime's.
            known = go.named(go_text(BUILTIN[text])) if go is not None else None
            return BUILTIN[text] if known is None else known
        found = go.named(text) if go is not None else None
        if found is not None:
            return found
        if text.startswith("*"):
            return self._pointer_type(text[1:], depth)
        match = re.match(r"\[(\d*)\](.+)", text)
        if match is None:
            return None
        inner = self._found_type(match[2], depth + 1)
        if inner is None:
            return None
        whole = go.named(f"[{match[1]}]{go_text(inner)}") if go is not None else None
        if whole is not None:
            return whole
        return ct.array_of(inner, int(match[1])) if match[1] else slice_of(inner)

    def _pointer_type(self, text: str, depth: int) -> CType | None:
        inner = self._found_type(text, depth + 1)
        return None if inner is None else self._pointer_to(inner)

    def _pointer_to(self, kind: CType) -> CType:
        known = self._around.go.named(f"*{go_text(kind)}") if self._around.go is not None else None
        return ct.pointer_to(kind, self._around.pointer) if known is None else known

    def _as_type(self, node: Expression) -> CType | None:
        """The type that a tree names; None for one that has a value."""
        if node.kind == "gotype":
            return self._named_type(node.text)
        if node.kind == "unary" and node.text == "*":
            inner = self._as_type(node.parts[0])
            return None if inner is None else self._pointer_to(inner)
        name = _path(node)
        if not name or self._named(name) is not None:
            return None
        return self._found_type(name)

    def check(self, tree: Expression) -> None:
        """Look up the names of a tree, those of packages with what is asked of them.

        Raises:
            CommandError: one of them means nothing.
        """
        path, parts = _path(tree), tree.parts
        if tree.kind == "call":
            named = parts[0].kind == "name" and parts[0].text in _FUNCTIONS
            parts = parts[1:] if named or self._as_type(parts[0]) is not None else parts
        elif path and (tree.kind == "name" or self._named(path) is not None):
            self.value(tree)
            return
        for part in parts:
            self.check(part)

    # -- values -----------------------------------------------------------------------------

    def value(self, node: Expression) -> TypedValue:
        """The value of a tree.

        Raises:
            CommandError: it has none.
            GuestFaultError: memory cannot be read.
        """
        match node.kind:
            case "number":
                text = node.text.replace("_", "")
                octal = len(text) > 1 and text[0] == "0" and text.isdigit()
                number = int(text, 8) if octal else int(text, 0)
                if number >> 64:
                    raise CommandError("Numeric constant too large.")
                return self._made("int" if number < 1 << 63 else "uint64", number)
            case "float":
                text = node.text.replace("_", "")
                is_hex = text[:2].lower() == "0x"
                return self._made("float64", float.fromhex(text) if is_hex else float(text))
            case "truth":
                return self._made("bool", node.text == "true")
            case "char":
                return self._made("int32", letter_code(node.text[1:-1]))
            case "string":
                return self._text(characters(node.text))
            case "raw":
                return self._text(node.text[1:-1].encode())
            case "name":
                return self._name(node.text)
            case "member":
                return self._member(node)
            case "index":
                return self._element(self.value(node.parts[0]), node.parts[1])
            case "slice":
                return self._slice(node)
            case "assertion":
                return self._asserted(self.value(node.parts[0]), node.text)
            case "call":
                return self._applied(node)
            case "gotype":
                raise CommandError(f"{node.text} is a type, not an expression")
        return super().value(node)

    def _made(self, kind: str, number: float) -> TypedValue:
        return self.reach.made(self._named_type(kind), number)

    def _text(self, raw: bytes) -> TypedValue:
        """A text that no memory has."""
        return self._of_bytes(BUILTIN["string"], raw)

    def _named(self, name: str) -> TypedValue | None:
        """A variable, function or constant; None for none."""
        found = self._around.variable(name)
        go = self._around.go
        if found is not None or go is None:
            return found
        for spelled in go.spelled(name):
            constant = go.types.constant(spelled)
            if constant is not None:
                return self.reach.made(constant.type, constant.value)
            found = self._around.variable(spelled)
            if found is not None:
                return found
        return None

    def _name(self, name: str) -> TypedValue:
        found = self._named(name)
        if found is not None:
            return found
        if name == "nil":
            return self._of_bytes(NIL, b"")
        raise CommandError(f"could not find symbol value for {name}")

    # -- members ----------------------------------------------------------------------------

    def _member(self, node: Expression) -> TypedValue:
        """A member of a structure, or a thing of a package."""
        path = _path(node)
        first = path.partition(".")[0]
        if path and self._around.variable(first) is None:
            found = self._named(path)
            if found is not None:
                return found
        base = self.value(node.parts[0])
        found = self._field(base, node.text, 0)
        if found is not None:
            return found
        if kind_of(base.type) == GoKind.INTERFACE:
            inside = self._go_parts.concrete(base)
            found = None if inside is None else self._field(inside, node.text, 0)
            if found is not None:
                return found
        method = self._method_of(base.type, node.text)
        if method is not None:
            return method
        raise CommandError(f"{go_text(base.type)} has no member {node.text}")

    def _field(self, base: TypedValue, name: str, depth: int) -> TypedValue | None:
        """A member, one of an embedded structure's too; None for none."""
        if kind_of(base.type) == GoKind.POINTER:
            if not base.number:
                raise CommandError("nil pointer dereference")
            base = self.reach.pointed(base)
        if kind_of(base.type) != GoKind.STRUCT and not base.type.resolved.members:
            return None
        members = base.type.resolved.members
        for member in members:
            if member.name == name:
                return self.reach.part(base, member)
        inner = embedded_names(base.type) if isinstance(base.type, DieType) else frozenset()
        for member in members if depth < _EMBEDDED else ():
            if member.name in inner:
                part = self.reach.part(base, member)
                is_nil = kind_of(part.type) == GoKind.POINTER and not part.number
                found = None if is_nil else self._field(part, name, depth + 1)
                if found is not None:
                    return found
        return None

    def _method_of(self, kind: CType, name: str) -> TypedValue | None:
        """The function behind a method; None for none."""
        if kind_of(kind) == GoKind.POINTER:
            kind = kind.resolved.target
        package, dot, bare = go_text(kind).rpartition(".")
        if not dot:
            return None
        for spelled in (f"{package}.{bare}.{name}", f"{package}.(*{bare}).{name}"):
            found = self._around.variable(spelled)
            if found is not None:
                return found
        return None

    # -- elements ---------------------------------------------------------------------------

    def _element(self, base: TypedValue, index: Expression) -> TypedValue:
        parts = self._go_parts
        target = base.type.resolved.target if kind_of(base.type) == GoKind.POINTER else None
        if target is not None and kind_of(target) == GoKind.ARRAY:
            base = self.reach.pointed(base)
        match kind_of(base.type):
            case GoKind.MAP:
                return self._entry(base, self.value(index))
            case GoKind.SLICE | GoKind.ARRAY:
                return parts.element(base, self._bounded(base, index))
            case GoKind.STRING:
                at = self._bounded(base, index)
                if isinstance(base.type, ct.MadeType):
                    return self._made("uint8", base.raw[at])
                return self.reach.at(self._named_type("uint8"), parts.header(base)[0] + at)
            case GoKind.POINTER if base.type.resolved.target.size:
                return self.reach.element(base, self.value(index).number)
        raise CommandError(f"a value of type {go_text(base.type)} has no elements")

    def _bounded(self, base: TypedValue, index: Expression) -> int:
        at, length = self._integer(self.value(index)), self._go_parts.length(base)
        if not 0 <= at < length:
            raise CommandError("index out of bounds")
        return at

    def _integer(self, value: TypedValue) -> int:
        if kind_of(value.type) not in _INTEGERS and value.type.kind not in ct.INTEGERS:
            raise CommandError(f"a value of type {go_text(value.type)} is no index")
        return value.number

    def _entry(self, base: TypedValue, key: TypedValue) -> TypedValue:
        for number, (one, held) in enumerate(self._go_parts.entries(base)):
            if number > _MOST_ENTRIES:
                raise CommandError("the map has too many entries")
            if self._equal(one, key):
                return held
        raise CommandError("key not found")

    def _slice(self, node: Expression) -> TypedValue:
        base, (low, high, *most) = self.value(node.parts[0]), node.parts[1:]
        parts, kind = self._go_parts, kind_of(base.type)
        if kind == GoKind.POINTER and kind_of(base.type.resolved.target) == GoKind.ARRAY:
            base = self.reach.pointed(base)
            kind = GoKind.ARRAY
        if kind not in (GoKind.STRING, GoKind.SLICE, GoKind.ARRAY):
            raise CommandError(f"a value of type {go_text(base.type)} has no parts")
        length = parts.length(base)
        room = parts.capacity(base) if kind != GoKind.STRING else length
        first = 0 if low.kind == "none" else self._integer(self.value(low))
        last = length if high.kind == "none" else self._integer(self.value(high))
        top = self._integer(self.value(most[0])) if most and most[0].kind != "none" else room
        if not 0 <= first <= last <= top <= room:
            raise CommandError("index out of bounds")
        if kind == GoKind.STRING:
            if isinstance(base.type, ct.MadeType):
                return self._text(base.raw[first:last])
            return self._headed(base.type, parts.header(base)[0] + first, last - first)
        if kind == GoKind.SLICE:
            element, start = element_of(base.type), parts.header(base)[0]
            found: CType = base.type
        else:
            if base.address is None:
                raise CommandError("The array is not in memory.")
            element, start = base.type.resolved.element, base.address
            found = self._named_type(f"[]{go_text(element)}")
        start += first * ((element.size if element is not None else 0) or 0)
        return self._headed(found, start, last - first, top - first)

    def _headed(self, kind: CType, *words: int) -> TypedValue:
        """A string or slice of words: address, length, capacity."""
        size = self._around.pointer
        raw = b"".join(word.to_bytes(size, self._order) for word in words)
        return self._of_bytes(kind, raw)

    # -- interfaces, conversions, functions -------------------------------------------------

    def _asserted(self, base: TypedValue, text: str) -> TypedValue:
        if kind_of(base.type) != GoKind.INTERFACE:
            raise CommandError(f"a value of type {go_text(base.type)} is no interface")
        inside = self._go_parts.concrete(base)
        if inside is None:
            raise CommandError(f"interface conversion: {go_text(base.type)} is nil, not {text}")
        if text in ("data", "type"):  # as delve has it: whatever it is
            return inside
        wanted = self._named_type(text)
        if go_text(wanted) != go_text(inside.type):
            raise CommandError(
                f"interface conversion: {go_text(base.type)} is {go_text(inside.type)}, "
                f"not {go_text(wanted)}"
            )
        return inside

    def _applied(self, node: Expression) -> TypedValue:
        """A conversion, a function of the language, or one of the debugger's."""
        called, given = node.parts[0], node.parts[1:]
        if called.kind == "dollar":
            return super()._called(node)
        if called.kind == "name" and called.text in _FUNCTIONS and not self._named(called.text):
            return self._builtin(called.text, [self.value(part) for part in given])
        kind = self._as_type(called)
        if kind is None:
            raise CommandError(
                "Functions of Go are not called: the runtime could move stacks or collect "
                "garbage meanwhile."
            )
        if len(given) != 1:
            raise CommandError("a conversion has one argument")
        return self._converted(self.value(given[0]), kind)

    def _builtin(self, name: str, given: list[TypedValue]) -> TypedValue:
        if len(given) != (2 if name == "complex" else 1) and name not in ("min", "max"):
            raise CommandError(f"wrong number of arguments to {name}")
        match name:
            case "len":
                return self._made("int", self._go_parts.length(given[0]))
            case "cap":
                return self._made("int", self._go_parts.capacity(given[0]))
            case "real" | "imag":
                kind = kind_of(given[0].type)
                if kind not in (GoKind.COMPLEX64, GoKind.COMPLEX128):
                    raise CommandError(f"invalid argument for {name}")
                half = len(given[0].raw) // 2
                raw = given[0].raw[half:] if name == "imag" else given[0].raw[:half]
                return self._of_bytes(self._named_type(f"float{8 * half}"), raw)
            case "complex":
                raws = [self._made("float64", one.real).raw for one in given]
                return self._of_bytes(self._named_type("complex128"), b"".join(raws))
        return (min if name == "min" else max)(given, key=lambda one: one.real)

    def _converted(self, value: TypedValue, kind: CType) -> TypedValue:
        """A value in another type (Go specification, "Conversions")."""
        source, target = kind_of(value.type), kind_of(kind)
        if target in _INTEGERS and source in (*_INTEGERS, *_FLOATS):
            return self.reach.made(kind, value.real if source in _FLOATS else value.number)
        if target in _FLOATS and source in (*_INTEGERS, *_FLOATS):
            return self.reach.made(kind, value.real)
        if target == GoKind.STRING:
            return self._as_text(value, source)
        pointers = (GoKind.POINTER, GoKind.UNSAFE_POINTER, GoKind.FUNC, GoKind.CHAN, GoKind.MAP)
        if target in (GoKind.POINTER, GoKind.UNSAFE_POINTER) and source in (*pointers, *_INTEGERS):
            return self.reach.made(kind, int.from_bytes(value.raw, self._order))
        if target == GoKind.UINTPTR and source in pointers:
            return self.reach.made(kind, int.from_bytes(value.raw, self._order))
        if target == GoKind.SLICE and source == GoKind.STRING:
            return self._as_slice(value, kind)
        if source == target and (value.type.size or 0) == (kind.size or 0):
            if value.address is not None and not value.is_loaded:
                return self.reach.at(kind, value.address)
            return self._of_bytes(kind, value.raw)
        raise CommandError(f"can not convert {go_text(value.type)} to {go_text(kind)}")

    def _as_text(self, value: TypedValue, source: int) -> TypedValue:
        if source == GoKind.STRING:
            return self._text(self._go_parts.text(value, MOST))
        if source in _INTEGERS:
            code = value.number
            valid = 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000
            return self._text(chr(code if valid else 0xFFFD).encode())
        element = element_of(value.type) if source == GoKind.SLICE else None
        size = element.size if element is not None else None
        base, length, _ = self._go_parts.header(value) if size in (1, 4) else (0, -1, 0)
        if not size or not 0 <= length * size <= MOST:
            raise CommandError(f"can not convert {go_text(value.type)} to string")
        raw = self._around.read(base, length * size) if length else b""
        if size == 4:
            codes = (raw[at : at + 4] for at in range(0, len(raw), 4))
            numbers = (int.from_bytes(code, self._order) for code in codes)
            raw = "".join(chr(n if n < 0x110000 else 0xFFFD) for n in numbers).encode()
        return self._text(raw)

    def _as_slice(self, value: TypedValue, kind: CType) -> TypedValue:
        """The bytes of a string; they are shared, as nobody changes them."""
        element = element_of(kind)
        if element is None or element.size != 1 or isinstance(value.type, ct.MadeType):
            raise CommandError(f"can not convert {go_text(value.type)} to {go_text(kind)}")
        base, length, _ = self._go_parts.header(value)
        return self._headed(kind, base, length, length)

    # -- operators --------------------------------------------------------------------------

    def _unary(self, node: Expression) -> TypedValue:
        word, value = node.text, self.value(node.parts[0])
        kind = kind_of(value.type)
        if word == "&":
            if value.address is None:
                raise CommandError("can not take address of an expression that is not in memory")
            found = self.reach.made(self._pointer_to(value.type), value.address)
            return replace(found, label=address_text(go_text(found.type), value.address))
        if word == "*":
            if kind == GoKind.POINTER and not value.number:
                raise CommandError("nil pointer dereference")
            if kind != GoKind.POINTER and kind not in _INTEGERS:
                raise CommandError(f"a value of type {go_text(value.type)} is no pointer")
            return self.reach.pointed(value)
        if word == "!":
            if kind != GoKind.BOOL:
                raise CommandError(f"operator ! can not be applied to {go_text(value.type)}")
            return self._made("bool", not value.number)
        if kind in _FLOATS and word != "^":
            return self.reach.made(value.type, -value.real if word == "-" else value.real)
        if kind not in _INTEGERS:
            raise CommandError(f"operator {word} can not be applied to {go_text(value.type)}")
        number = value.number
        return self.reach.made(value.type, {"-": -number, "+": number, "^": ~number}[word])

    def _binary(self, node: Expression) -> TypedValue:
        word = node.text
        if word in ("&&", "||"):
            first = self._truth(node.parts[0])
            return self._made(
                "bool", self._truth(node.parts[1]) if first == (word == "&&") else first
            )
        left, right = self.value(node.parts[0]), self.value(node.parts[1])
        if word == "@":
            return self.reach.repeated(left, self._integer(right))
        if word in _COMPARED:
            return self._made("bool", self._equal(left, right) == (word == "=="))
        return self._combined(word, left, right)

    def _truth(self, node: Expression) -> bool:
        value = self.value(node)
        if kind_of(value.type) != GoKind.BOOL:
            raise CommandError(f"a value of type {go_text(value.type)} is no truth value")
        return bool(value.number)

    def _combined(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        kinds = {kind_of(left.type), kind_of(right.type)}
        if kinds == {GoKind.STRING}:
            first, second = (self._go_parts.text(value, MOST) for value in (left, right))
            if word == "+":
                return self._text(first + second)
            return self._made("bool", is_ordered(word, first, second))
        if not kinds <= {*_INTEGERS, *_FLOATS}:
            shown = f"{go_text(left.type)} and {go_text(right.type)}"
            raise CommandError(f"operator {word} can not be applied to {shown}")
        real = bool(kinds & {*_FLOATS})
        one, other = ((v.real if real else v.number) for v in (left, right))
        if word in ("<", ">", "<=", ">="):
            return self._made("bool", is_ordered(word, one, other))
        return self.reach.made(self._common(left, right), computed(word, one, other))

    def _common(self, left: TypedValue, right: TypedValue) -> CType:
        """The type of a result: that of the operand that is no plain int."""
        if kind_of(left.type) in _FLOATS or kind_of(right.type) not in _FLOATS:
            return right.type if go_text(left.type) == "int" else left.type
        return right.type

    def _equal(self, left: TypedValue, right: TypedValue, depth: int = 0) -> bool:
        """True if Go takes two values for equal."""
        if depth > _DEEPEST:
            raise CommandError("the values are nested too deeply")
        kinds = kind_of(left.type), kind_of(right.type)
        for one, other in ((left, right), (right, left)):
            if one.type is NIL:
                if kind_of(other.type) not in _NILS:
                    raise CommandError(f"a value of type {go_text(other.type)} is never nil")
                return not any(other.raw[: self._around.pointer])
        if GoKind.INTERFACE in kinds:
            inside = [
                self._go_parts.concrete(one) if kind == GoKind.INTERFACE else one
                for one, kind in zip((left, right), kinds, strict=True)
            ]
            first, second = inside
            if first is None or second is None:
                return first is second
            same = kind_of(first.type) == kind_of(second.type)
            return same and self._equal(first, second, depth + 1)
        if kinds == (GoKind.STRING, GoKind.STRING):
            lengths = [self._go_parts.length(one) for one in (left, right)]
            texts = (self._go_parts.text(one, MOST) for one in (left, right))
            return lengths[0] == lengths[1] and next(texts) == next(texts)
        if {*kinds} <= {*_INTEGERS, *_FLOATS}:
            return (
                left.real == right.real if {*kinds} & {*_FLOATS} else left.number == right.number
            )
        if kinds[0] != kinds[1] or kinds[0] in (GoKind.SLICE, GoKind.MAP, GoKind.FUNC):
            shown = f"{go_text(left.type)} and {go_text(right.type)}"
            raise CommandError(f"can not compare {shown}")
        if kinds[0] == GoKind.STRUCT:
            sides = [
                [self.reach.part(one, member) for member in one.type.resolved.members]
                for one in (left, right)
            ]
            if len(sides[0]) != len(sides[1]):
                raise CommandError("can not compare structures of different types")
            pairs = zip(sides[0], sides[1], strict=True)
            return all(self._equal(one, other, depth + 1) for one, other in pairs)
        return left.raw == right.raw


_FUNCTIONS: Final = frozenset(("len", "cap", "real", "imag", "complex", "min", "max"))
"""Functions of the language that a debugger can answer."""


def _path(node: Expression) -> str:
    """The name that a tree is, with its package; "" for what is none."""
    if node.kind == "name":
        return node.text
    if node.kind == "member" and node.parts[0].kind == "name":
        return f"{node.parts[0].text}.{node.text}"
    return ""


def _spelled(text: str) -> str:
    """A type's text as the compiler writes it."""
    text = re.sub(r"\s+", " ", text.strip()).replace('"', "")
    text = re.sub(r"\b(interface|struct) ?\{ ?\}", r"\1 {}", text)
    text = re.sub(r"\bany\b(?!\.)", "interface {}", text)
    text = re.sub(r"(?<![\w.])byte\b", "uint8", text)
    text = re.sub(r"(?<![\w.])rune\b", "int32", text)
    return re.sub(r"\* ", "*", re.sub(r"\] ", "]", text)).removeprefix("(").strip()
