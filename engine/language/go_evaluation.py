"""The value of an expression of Go in its surroundings, as delve has it (pkg/proc/eval.go)."""

from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.image.gotypes import GoKind
from engine.language import value_types as ct
from engine.language.go_names import GoNames, path_of
from engine.language.go_numbers import (
    computed,
    computed_complex,
    is_ordered,
    letter_code,
    letter_of,
)
from engine.language.go_parts import GoParts
from engine.language.go_types import (
    BUILTIN,
    NIL,
    address_text,
    element_of,
    go_text,
    kind_of,
)
from engine.language.surroundings import Surroundings
from engine.language.syntax import Expression
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
_INDEXED: Final = frozenset((GoKind.ARRAY, GoKind.SLICE, GoKind.STRING, GoKind.MAP))
"""Kinds of what has elements, that a pointer leads to, too."""
_COMPLEX: Final = (GoKind.COMPLEX64, GoKind.COMPLEX128)
_DEEPEST: Final = 64
"""Structures and interfaces in each other that are compared."""
_MOST_ENTRIES: Final = 1 << 20
_COMPARED: Final = frozenset(("==", "!="))


class GoEvaluator(GoNames):
    """Finds values of Go's trees in one place."""

    def check(self, tree: Expression) -> None:
        """Look up the names of a tree, those of packages with what is asked of them.

        Raises:
            CommandError: one of them means nothing.
        """
        path, parts = path_of(tree), tree.parts
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

    # -- elements ---------------------------------------------------------------------------

    def _element(self, base: TypedValue, index: Expression) -> TypedValue:
        parts = self._go_parts
        target = base.type.resolved.target if kind_of(base.type) == GoKind.POINTER else None
        if target is not None and kind_of(target) in _INDEXED:
            base = self._pointed(base)
        if kind_of(base.type) in _INDEXED and not self._has_elements(base):
            return self._lost_element(base)
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

    def _has_elements(self, base: TypedValue) -> bool:
        is_headed = kind_of(base.type) in (GoKind.SLICE, GoKind.STRING)
        return self._go_parts.has_elements(base) if is_headed else not base.missing

    def _lost_element(self, base: TypedValue) -> TypedValue:
        kind = kind_of(base.type)
        if kind == GoKind.ARRAY:
            return self._lost(base.type.resolved.element, base)
        found = self._named_type("uint8") if kind == GoKind.STRING else element_of(base.type)
        if found is None:
            raise CommandError("the type of the elements is not known")
        return self._lost(found, base)

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
        if kind == GoKind.POINTER and kind_of(base.type.resolved.target) in _INDEXED:
            base = self._pointed(base)
            kind = kind_of(base.type)
        if kind not in (GoKind.STRING, GoKind.SLICE, GoKind.ARRAY):
            raise CommandError(f"a value of type {go_text(base.type)} has no parts")
        if not self._has_elements(base):
            lost = base.type
            if kind == GoKind.ARRAY:
                lost = self._named_type(f"[]{go_text(base.type.resolved.element)}")
            return self._lost(lost, base)
        length = parts.length(base)
        room = parts.capacity(base) if kind != GoKind.STRING and not base.missing else length
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
        size = (element.size if element is not None else 0) or 0
        content = b""
        if kind == GoKind.SLICE and parts.is_detached(base):
            content = parts.content(base, size)[first * size :]
        else:
            start += first * size
        return self._headed(found, start, last - first, top - first, content=content)

    def _headed(self, kind: CType, *words: int, content: bytes = b"") -> TypedValue:
        """A string or slice of words: address, length, capacity.

        Args:
            kind: its type.
            words: address, length and capacity, as many as the type has.
            content: the elements of one that no memory has, see `GoParts.is_detached`.
        """
        size = self._around.pointer
        raw = b"".join(word.to_bytes(size, self._order) for word in words)
        return self._of_bytes(kind, raw + content)

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
                if kind not in _COMPLEX:
                    raise CommandError(f"invalid argument for {name}")
                half = len(given[0].raw) // 2
                raw = given[0].raw[half:] if name == "imag" else given[0].raw[:half]
                return self._of_bytes(self._named_type(f"float{8 * half}"), raw)
            case "complex":
                whole = complex(given[0].real, given[1].real)
                return self._complex(self._named_type("complex128"), whole)
        return (min if name == "min" else max)(given, key=lambda one: one.real)

    def _complex(self, kind: CType, number: complex) -> TypedValue:
        half = BUILTIN["float32" if kind.size == 8 else "float64"]
        raws = (self.reach.made(half, part).raw for part in (number.real, number.imag))
        return self._of_bytes(kind, b"".join(raws))

    def _as_complex(self, value: TypedValue) -> complex:
        """The number that a value is.

        Raises:
            CommandError: the value is no number.
        """
        if kind_of(value.type) not in _COMPLEX:
            return complex(value.real)
        half = len(value.raw) // 2
        kind = BUILTIN["float32" if half == 4 else "float64"]
        parts = (self._of_bytes(kind, raw) for raw in (value.raw[:half], value.raw[half:]))
        return complex(*(part.real for part in parts))

    def _converted(self, value: TypedValue, kind: CType) -> TypedValue:
        """A value in another type (Go specification, "Conversions")."""
        if value.missing:
            return self._lost(kind, value)
        source, target = kind_of(value.type), kind_of(kind)
        if target in _INTEGERS and source in (*_INTEGERS, *_FLOATS):
            return self.reach.made(kind, value.real if source in _FLOATS else value.number)
        if target in _FLOATS and source in (*_INTEGERS, *_FLOATS):
            return self.reach.made(kind, value.real)
        if target == GoKind.STRING:
            return self._as_text(value, source)
        if target in _COMPLEX and source in _COMPLEX:
            return self._complex(kind, self._as_complex(value))
        pointers = (GoKind.POINTER, GoKind.UNSAFE_POINTER, GoKind.FUNC, GoKind.CHAN, GoKind.MAP)
        if target in (GoKind.POINTER, GoKind.UNSAFE_POINTER) and source in (*pointers, *_INTEGERS):
            found = self.reach.made(kind, int.from_bytes(value.raw, self._order))
            is_told = target == GoKind.POINTER and source in _INTEGERS and found.number
            label = address_text(go_text(kind), found.number) if is_told else ""
            return replace(found, label=label)
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
        length = self._go_parts.header(value)[1] if size in (1, 4) else -1
        if not size or not 0 <= length * size <= MOST:
            raise CommandError(f"can not convert {go_text(value.type)} to string")
        raw = self._go_parts.content(value, size) if length else b""
        if size == 4:
            codes = (raw[at : at + 4] for at in range(0, len(raw), 4))
            numbers = (int.from_bytes(code, self._order) for code in codes)
            raw = "".join(chr(n if n < 0x110000 else 0xFFFD) for n in numbers).encode()
        return self._text(raw)

    def _as_slice(self, value: TypedValue, kind: CType) -> TypedValue:
        """The bytes or characters of a string; bytes are shared, as nobody changes them."""
        element = element_of(kind)
        size = 0 if element is None else element.size
        if size not in (1, 4):
            raise CommandError(f"can not convert {go_text(value.type)} to {go_text(kind)}")
        if size == 1 and not isinstance(value.type, ct.MadeType):
            base, length, _ = self._go_parts.header(value)
            return self._headed(kind, base, length, length)
        raw = self._go_parts.text(value, MOST)
        if size == 4:
            codes = (letter_of(letter) for letter in raw.decode(errors="surrogateescape"))
            raw = b"".join(code.to_bytes(4, self._order) for code in codes)
        count = len(raw) // size
        return self._headed(kind, 0, count, count, content=raw)

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
            if value.missing and kind == GoKind.POINTER:
                return self._pointed(value)
            if kind == GoKind.POINTER and not value.number:
                raise CommandError("nil pointer dereference")
            if kind != GoKind.POINTER and kind not in _INTEGERS:
                raise CommandError(f"a value of type {go_text(value.type)} is no pointer")
            return self.reach.pointed(value)
        if word == "!":
            if kind != GoKind.BOOL:
                raise CommandError(f"operator ! can not be applied to {go_text(value.type)}")
            return self._made("bool", not value.number)
        if kind in _COMPLEX and word in ("-", "+"):
            number = self._as_complex(value)
            return self._complex(value.type, -number if word == "-" else number)
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
        if kinds & {*_COMPLEX} and kinds <= {*_COMPLEX, *_INTEGERS, *_FLOATS}:
            kind = left.type if kind_of(left.type) in _COMPLEX else right.type
            numbers = (self._as_complex(value) for value in (left, right))
            return self._complex(kind, computed_complex(word, *numbers))
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
        if {*kinds} & {*_COMPLEX} and {*kinds} <= {*_COMPLEX, *_INTEGERS, *_FLOATS}:
            return self._as_complex(left) == self._as_complex(right)
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


def held_type(text: str, around: Surroundings) -> str | None:
    """The type of what the interface that an expression names holds: "void" if it is nil.

    None is for a value of another type, and for one whose type or memory cannot be read.
    """
    try:
        value = GoEvaluator(around).value(around.language.tree(text, around))
        if kind_of(value.type) != GoKind.INTERFACE:
            return None
        inside = GoParts(around).concrete(value)
    except (CommandError, GuestFaultError):
        return None
    return "void" if inside is None else go_text(inside.type)


_FUNCTIONS: Final = frozenset(("len", "cap", "real", "imag", "complex", "min", "max"))
"""Functions of the language that a debugger can answer."""
