"""The value of an expression's tree in its surroundings.

Where gdb goes its own way it is gdb's: `@` makes arrays, `{TYPE} ADDR` reads memory, a value's
history is `$1`, `$`, `$$`.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError, GuestFaultError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.container_methods import ContainerMethods
from engine.language.convenience_functions import call
from engine.language.languages import C
from engine.language.made_records import constant
from engine.language.operators import Operators
from engine.language.reach import Reach
from engine.language.surroundings import Surroundings
from engine.language.syntax import Expression, TakenTypes, TypeName, parse_type
from engine.language.tokens import characters
from engine.language.user_types import bare_type
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, RegisterPlace, TypedValue

_BASES: Final = 16
"""Classes above each other whose methods are looked through."""
_UNKNOWN: Final = (ct.UNKNOWN_FUNCTION, ct.UNKNOWN_CHOICE)
_KEYWORDS: Final = ("struct", "union", "enum", "class")
_DIRECT: Final = frozenset((TypeKind.POINTER, TypeKind.ARRAY))
_NUMERIC: Final = frozenset((*ct.INTEGERS, TypeKind.ENUM, TypeKind.FLOAT))
_UNARY_WRONG: Final = {
    "-": "Argument to negate operation not a number.",
    "+": "Argument to positive operation not a number.",
    "~": "Argument to complement operation not an integer, boolean.",
}


_LONGEST: Final = 1 << 14
"""Characters of an expression: the end of each template in it is looked for."""
_DEEPEST: Final = 200
"""Levels of its tree."""


def is_type(around: Surroundings) -> Callable[[str], bool]:
    """Tells whether a name is that of a type there, and of no variable."""

    def asked(name: str) -> bool:
        if around.variable(name) is not None and not around.prefers_type(name):
            return False
        return around.type((name,)) is not None

    return asked


def is_known(around: Surroundings) -> Callable[[str], bool]:
    """Tells whether a name is that of a type, a variable or a function there."""

    def asked(name: str) -> bool:
        return around.type((name,)) is not None or around.variable(name) is not None

    return asked


def checker(around: Surroundings) -> Callable[[str], None]:
    """Refuses a name that means nothing there."""
    return lambda name: evaluator_of(around).check(Expression("name", name))


def tree_of(text: str, around: Surroundings) -> Expression:
    """An expression's tree in the language of the code there.

    Raises:
        CommandError: it means nothing, or is longer or deeper than anybody types.
    """
    if len(text) > _LONGEST:
        raise CommandError(f"the expression has more than {_LONGEST} characters")
    tree = around.language.tree(text, around)
    level, depth = [tree], 0
    while level:
        level = [part for one in level for part in one.parts]
        depth += 1
        if depth > _DEEPEST:
            raise CommandError("the expression is nested too deeply")
    return tree


def evaluator_of(around: Surroundings) -> "Evaluator":
    """Finds values of trees of the language of the code there."""
    return around.language.evaluator(around)


def evaluate(text: str, around: Surroundings) -> TypedValue:
    """The value of an expression.

    Raises:
        CommandError: it means nothing there.
        GuestFaultError: memory cannot be read.
    """
    return evaluator_of(around).value(tree_of(text, around))


def checked(text: str, around: Surroundings) -> Expression:
    """An expression's tree, for one who evaluates it later and often.

    Raises:
        CommandError: it is none, or has a name that means nothing there.
    """
    tree = tree_of(text, around)
    evaluator_of(around).check(tree)
    return tree


def type_of(text: str, around: Surroundings) -> tuple[CType, bool]:
    """The type that a text names, or that of an expression; True if it names one.

    Raises:
        CommandError: it means nothing there.
    """
    evaluator = evaluator_of(around)
    if around.language is not C:
        return evaluator.value_or_type(text)
    text = around.expanded(text)
    name = parse_type(text, is_type(around), is_known(around))
    if name is not None:
        return evaluator.type(name), True
    node = tree_of(text, around)
    if node.kind == "type" and node.type is not None:
        return evaluator.type(node.type), True
    return evaluator.value(node).type, False


class Evaluator:
    """Finds values of trees in one place.

    Attributes:
        reach: what can be reached from values there.
        operators: what is done with them.
    """

    def __init__(self, around: Surroundings) -> None:
        """Evaluate in these surroundings."""
        self._around = around
        self._order = around.order
        self.reach = Reach(around)
        self.operators = Operators(self.reach)

    @cached_property
    def methods(self) -> ContainerMethods:
        """Methods of containers; conditions that are asked at each hit rarely want any."""
        return ContainerMethods(self._around)

    def type(self, name: TypeName) -> CType:
        """The type that is written.

        Raises:
            CommandError: there is none such.
        """
        words = name.words
        found = (
            self._around.type(words) if name.of is None else self.type_of_value(name.of, words[0])
        )
        if found is None:
            found = ct.builtin(words)
        if found is None:
            shown = " ".join(words)
            if words[0] in _KEYWORDS:
                self._check_keyword(*words)
                raise CommandError(f"No {words[0]} type named {words[-1]}.")
            raise CommandError(f'No symbol "{shown}" in current context.')
        if name.constant and name.suffixes:  # what a pointer leads to
            found = constant(found)
        for suffix in name.suffixes:
            if suffix == "*":
                found = ct.pointer_to(found, self._around.pointer)
            elif suffix == "&":
                found = ct.reference_to(found, self._around.pointer)
            elif isinstance(suffix, TakenTypes):
                taken = None if suffix.types is None else tuple(map(self.type, suffix.types))
                found = ct.function_returning(found, taken, more=suffix.more)
            else:
                found = ct.array_of(found, int(suffix[1:-1] or 0))
        return found

    def type_of_value(self, node: Expression, word: str) -> CType:
        """The type that an expression's value has: `typeof(EXPR)`.

        Args:
            node: the expression.
            word: in front of it.

        Raises:
            CommandError: it has no value.
            GuestFaultError: memory cannot be read.
        """
        if node.kind == "type" and node.type is not None:
            return self.type(node.type)
        return self.value(node).type

    def _not_called(self, value: TypedValue) -> str:
        """Why a value is not called: a number is an address of which nothing is known."""
        kind = value.type.resolved.kind
        number = value.number if kind in (*ct.INTEGERS, TypeKind.POINTER) else value.address
        if number is None or kind in (TypeKind.RECORD, TypeKind.FLOAT):
            return "Invalid data type for function to be called."
        symbol = self._around.symbol(number)
        name = symbol if symbol and "+" not in symbol else f"at 0x{number:#x}"
        return f"'{name}' has unknown return type; cast the call to its declared return type"

    def callable_of(self, value: TypedValue) -> TypedValue:
        """The function that a value is, or points to.

        Raises:
            CommandError: it is none, or what it takes and returns is not known.
        """
        given, kind = value, value.type.resolved
        if kind.kind is TypeKind.POINTER and kind.owner is None:
            value = self.reach.pointed(value)
            kind = value.type.resolved
        if kind.kind is not TypeKind.FUNCTION or value.address is None:
            raise CommandError(self._not_called(given))
        if not kind.target.text:
            raise CommandError("The function's type is not known.")
        return value

    @staticmethod
    def _returns_unknown(function: TypedValue) -> bool:
        """True for a function whose result nobody describes, as one of an assembler."""
        kind = function.type.resolved
        return function.type.text in _UNKNOWN or (
            kind.kind is TypeKind.FUNCTION and kind.target.text == ct.UNSPECIFIED
        )

    def check(self, tree: Expression) -> None:
        """Look up the names of a tree.

        Raises:
            CommandError: one of them means nothing.
        """
        if tree.kind in ("name", "scoped", "entry"):
            # A member of `this` has a meaning where no object is there to read it from.
            with suppress(GuestFaultError):
                self.value(tree)
            return
        for part in tree.parts:
            self.check(part)

    def value_or_type(self, text: str) -> tuple[CType, bool]:
        """The type that a text names, or that of an expression; True if it names one.

        Raises:
            CommandError: it means nothing.
        """
        found = self._around.type((text.strip(),))
        if found is not None and self._around.variable(text.strip()) is None:
            return found, True
        return self.value(tree_of(text, self._around)).type, False

    def value(self, node: Expression) -> TypedValue:
        """The value of a tree.

        Raises:
            CommandError: it has none.
            GuestFaultError: memory cannot be read.
        """
        match node.kind:
            case "number":
                return self._number(node)
            case "float":
                letter = node.text[-1].lower()
                kind = ct.FLOAT if letter == "f" else ct.DOUBLE
                return self.reach.made(kind, float(node.text.rstrip("fFlL")))
            case "char" if node.text[0] != "'":
                return self._wide_character(node.text)
            case "char":
                raw = characters(node.text)
                if len(raw) != 1:
                    raise CommandError(
                        "Empty character constant."
                        if not raw
                        else f"Unmatched single quote: {node.text}"
                    )
                return self.reach.made(ct.CHAR, raw[0])
            case "string":
                return self._string(node.text)
            case "name":
                return self._variable(node.text)
            case "scoped":
                return self._variable(node.parts[0].text, node.text)
            case "entry":
                return self._around.at_entry(node.text)
            case "dollar":
                return self._dollar(node.text[1:])
            case "unary":
                return self._unary(node)
            case "postfix":
                return self._step(node.parts[0], 1 if node.text == "++" else -1, before=True)
            case "binary":
                return self._binary(node)
            case "assign":
                return self._assign(node)
            case "choice":
                condition, yes, no = node.parts
                return self.value(yes if self.operand(condition).truth else no)
            case "comma":
                self.value(node.parts[0])
                return self.value(node.parts[1])
            case "index":
                base, index = (self.operand(part) for part in node.parts)
                if base.type.resolved.kind is TypeKind.RECORD:
                    found = self.methods.element(base, index)
                    if found is not None:
                        return found
                return self._subscripted(base, index)
            case "member" | "arrow":
                base = self._object(node)
                if self._is_method(base, node.text):
                    return self._method(base, node.text)
                return self.reach.member(base, node.text, arrow=node.kind == "arrow")
        return self._with_type(node)

    def _measured(self, node: Expression) -> CType:
        """The type that `sizeof` measures; what a pointer leads to is not read for it."""
        if node.kind == "unary" and node.text == "*":
            kind = self.operand(node.parts[0]).type.resolved
            if kind.kind is TypeKind.POINTER and kind.owner is None:
                return kind.target
        return self.operand(node).type

    def _string(self, text: str) -> TypedValue:
        """A text as an array of characters: "abc", L"abc"."""
        mark, _, body = text.partition('"')
        raw = characters(f'"{body}') + b"\0"
        kind = ct.LETTERS.get(mark, ct.CHAR)
        size = kind.size or 1
        if size > 1:
            codes = raw.decode(errors="replace")
            ends = "be" if self._around.order == "big" else "le"
            raw = codes.encode(f"utf-{8 * size}-{ends}", errors="replace")
        return self._of_bytes(ct.array_of(kind, len(raw) // size), raw)

    def _wide_character(self, text: str) -> TypedValue:
        """A character of a wider type: L'a', u'a', U'a'."""
        mark, _, body = text.partition("'")
        letters = characters(f"'{body}").decode(errors="replace")
        if len(letters) != 1:
            raise CommandError(f"Unmatched single quote: {text}")
        return self.reach.made(ct.LETTERS.get(mark, ct.CHAR), ord(letters))

    def operand(self, node: Expression) -> TypedValue:
        """The same as an operator takes it: a reference is what it refers to.

        Raises:
            CommandError: it has none.
            GuestFaultError: memory cannot be read.
        """
        return self.reach.used(self.value(node))

    def _subscripted(self, base: TypedValue, index: TypedValue) -> TypedValue:
        """An element of an array, or of what a pointer points into; the two may be swapped."""
        sides = [(base, index), (index, base)]
        found = next((one for one in sides if one[0].type.kind in _DIRECT), None)
        if found is None:
            kind = base.type.resolved
            if kind.kind is TypeKind.FUNCTION:
                raise CommandError("cannot subscript requested type")
            if kind.kind is TypeKind.RECORD:
                raise CommandError("Structure has no component named operator[].")
            raise CommandError(f"cannot subscript something of type `{kind.text}'")
        if found[0].type.resolved.owner is not None:
            raise CommandError("cannot subscript requested type")
        return self.reach.element(found[0], found[1].number)

    def _with_type(self, node: Expression) -> TypedValue:
        if node.kind == "cast" and node.type is not None:
            unknown = self.unknown_call(node.parts[0], self.type(node.type))
            if unknown is not None:
                return unknown
            return self.operators.cast(self.operand(node.parts[0]), self.type(node.type))
        if node.kind == "brace" and node.type is not None:
            address = self.reach.scalar(self.operand(node.parts[0])).number
            return self.reach.at(self.type(node.type), address)
        if node.kind == "sizeof type" and node.type is not None:
            return self._size(self.type(node.type))
        if node.kind == "sizeof":
            return self._size(self._measured(node.parts[0]))
        if node.kind == "type":
            raise CommandError("Attempt to use a type name as an expression")
        if node.kind == "call":
            return self._called(node)
        raise CommandError("this expression has no value")

    def _called(self, node: Expression) -> TypedValue:
        """The result of a function of the program, or of one of the debugger's own."""
        called = node.parts[0]
        if called.kind == "dollar":
            own = self._around.function(called.text[1:])
            if own is not None:
                given = [self.operand(part) for part in node.parts[1:]]
                return call(called.text[1:], own, self._around, given)
        this: list[TypedValue] = []
        if called.kind in ("member", "arrow"):
            base = self._object(called)
            known = self.methods.method(base, called.text)
            if known is not None:
                return known([self.operand(part) for part in node.parts[1:]])
            if self._is_method(base, called.text):
                this = [self.reach.address_of(self._whole(base))]
        function = self.operand(node.parts[0])
        function = self.callable_of(function)
        assert function.address is not None, "it can be called"
        kind = function.type.resolved
        if self._returns_unknown(function):
            address = self._address_of_call(function)
            name = self._around.symbol(address) or f"{address:#x}"
            raise CommandError(
                f"'{name}' has unknown return type; cast the call to its declared return type"
            )
        wanted, more = kind.parameters
        given = this + [self.operand(part) for part in node.parts[1:]]
        if len(given) < len(wanted):
            raise CommandError("Too few arguments in function call.")
        if len(given) > len(wanted) and not more:
            raise CommandError("Too many arguments in function call.")
        values = [self._passed(value, None) for value in given]
        for at, type_ in enumerate(wanted):
            values[at] = self._passed(given[at], type_)
        return self._around.call(function.address, kind.target, values)

    def unknown_call(self, node: Expression, kind: CType) -> TypedValue | None:
        """The result of a function without debug information, as what it is cast to.

        None for all else.
        """
        called = node.parts[0] if node.kind == "call" else node
        if node.kind != "call" or called.kind != "name":
            return None
        function = self._around.variable(called.text)
        if function is None or not self._returns_unknown(function):
            return None
        given = [self._passed(self.operand(part), None) for part in node.parts[1:]]
        return self._around.call(self._address_of_call(function), kind, given)

    def _address_of_call(self, function: TypedValue) -> int:
        """The address of a function; the program chooses some by its processor (STT_GNU_IFUNC)."""
        address = function.address or 0
        if function.type.text == ct.UNKNOWN_CHOICE:
            return self._around.call(address, ct.UNSIGNED_LONG, []).number
        return address

    def _object(self, node: Expression) -> TypedValue:
        """The structure whose member is asked for; smart pointers before `->` are followed."""
        base = self.operand(node.parts[0])
        if node.kind == "arrow" and base.type.resolved.kind is TypeKind.RECORD:
            return self.methods.pointed(base) or base
        return base

    def _whole(self, base: TypedValue) -> TypedValue:
        """A structure, or the one that a pointer points at."""
        is_pointer = base.type.resolved.kind is TypeKind.POINTER
        return self.reach.pointed(base) if is_pointer else base

    def _is_method(self, base: TypedValue, name: str) -> bool:
        """True for the name of a method of the program's, which is no member with a place."""
        kind = base.type.resolved
        kind = kind.target.resolved if kind.kind is TypeKind.POINTER else kind
        return (
            kind.kind is TypeKind.RECORD
            and kind.member(name) is None
            and self._found_method(kind, name, 0) is not None
        )

    def _method(self, base: TypedValue, name: str) -> TypedValue:
        found = self._found_method(self._whole(base).type.resolved, name, 0)
        assert found is not None, "it was found before"
        return found

    def _found_method(self, kind: CType, name: str, depth: int) -> TypedValue | None:
        """The function behind a method of a class or of its bases; None for none."""
        whole = f"{bare_type(kind.text)}::{name}"
        found = self._around.variable(whole)
        if found is not None and found.type.resolved.kind is TypeKind.FUNCTION:
            return found
        for member in kind.members if depth < _BASES else ():
            if member.is_base:
                found = self._found_method(member.type.resolved, name, depth + 1)
                if found is not None:
                    return found
        return None

    def _passed(self, value: TypedValue, kind: CType | None) -> TypedValue:
        """An argument in the type that a function takes it in (C11 6.5.2.2)."""
        if value.type.kind is TypeKind.ARRAY and value.address is None:
            return value  # a text of the user's
        if kind is not None and kind.resolved.kind is not TypeKind.RECORD:
            return self.operators.cast(value, kind)
        bare = self.reach.scalar(value)
        if bare.type.resolved.kind is TypeKind.FLOAT:
            return self.operators.cast(bare, ct.DOUBLE)
        if bare.type.resolved.kind in ct.INTEGERS:
            return self.operators.cast(bare, ct.promoted(bare.type.resolved))
        return bare

    def _number(self, node: Expression) -> TypedValue:
        text = node.text
        octal = len(text) > 1 and text[0] == "0" and text[1:].isdigit()
        try:
            whole = int(text, 8) if octal else int(text, 0)
        except ValueError:
            raise CommandError(f'Invalid number "{text}".') from None
        if whole >> 64:
            raise CommandError("Numeric constant too large.")
        unsigned, longs = "u" in node.suffix, node.suffix.count("l")
        decimal = text[:1] != "0" or text == "0"
        for size in (4, 8):
            if longs and size < 8:
                continue
            if not unsigned and whole < 1 << 8 * size - 1:
                return self.reach.made(ct.integer(size, signed=True), whole)
            if (unsigned or not decimal) and whole < 1 << 8 * size:
                return self.reach.made(ct.integer(size, signed=False), whole)
        return self.reach.made(ct.UNSIGNED_LONG, whole)

    def _variable(self, name: str, scope: str = "") -> TypedValue:
        found = self._around.variable(name, scope)
        function, _, last = name.rpartition("::")
        if found is None and function and not scope and self._around.variable(function):
            found, name, scope = self._around.variable(last, function), last, function
        if found is None and not scope:
            found = self._of_this(name)
        if found is None:
            if function and self._around.variable(function) is None:
                name = function
            where = "specified" if scope else "current"
            raise CommandError(f'No symbol "{name}" in {where} context.')
        return found

    def _of_this(self, name: str) -> TypedValue | None:
        """A member of the object whose method runs."""
        this = self._around.variable("this") if name != "this" else None
        if this is None or this.type.kind is not TypeKind.POINTER:
            return None
        if this.type.target.resolved.member(name) is None:
            return None
        return self.reach.member(this, name)

    def _dollar(self, name: str) -> TypedValue:
        around = self._around
        if name == "":
            return around.history(0)
        if name == "$":
            return around.history(-1)
        if name.startswith("$") and name[1:].isdigit():
            return around.history(-int(name[1:]))
        if name.isdigit():
            return around.history(int(name))
        found = around.register(name) or around.convenience(name)
        return found or self._of_bytes(ct.VOID, b"")

    def _size(self, kind: CType) -> TypedValue:
        size = kind.size
        if size is None:
            size = 1
        return self.reach.made(ct.INT, size)  # gdb's sizeof is an int

    def _check_keyword(self, word: str, name: str) -> None:
        """Refuse a keyword in front of a type that is of another kind.

        Raises:
            CommandError: it is.
        """
        others = [one for one in _KEYWORDS if one not in (word, "class")]
        if any(self._around.type((one, name)) is not None for one in others):
            *first, last = ("class", *others)
            article = "an" if word == "enum" else "a"
            raise CommandError(
                f"This context has {', '.join(first)} or {last} {name}, not {article} {word}."
            )

    def _check_address(self, name: str, value: TypedValue) -> None:
        """Refuse the address of a variable that is in no memory, as gdb says it.

        Raises:
            CommandError: it is in a register, or nowhere.
        """
        if isinstance(value.place, RegisterPlace):
            where = f"which is in register ${value.place.name}"
            raise CommandError(f'Address requested for identifier "{name}" {where}')
        if value.place is None and not value.missing and value.type.kind is not TypeKind.FUNCTION:
            raise CommandError(f"Can't take address of \"{name}\" which isn't an lvalue.")

    def _unary(self, node: Expression) -> TypedValue:
        word, part = node.text, node.parts[0]
        if word in ("++", "--"):
            return self._step(part, 1 if word == "++" else -1, before=False)
        if word == "&" and part.kind == "type":
            raise CommandError("Attempt to take address of value not located in memory.")
        value = self.operand(part)
        if word == "&" and part.kind == "name":
            self._check_address(part.text, value)
        return self._of_sign(word, value)

    def _of_sign(self, word: str, value: TypedValue) -> TypedValue:
        """The result of a sign in front of a value."""
        if word == "*":
            return self.methods.pointed(value) or self.reach.pointed(value)
        if word == "&":
            return self.reach.address_of(value)
        if word == "!":
            return self.reach.made(ct.INT, int(not value.truth))
        if word in _UNARY_WRONG and value.type.resolved.kind not in _NUMERIC:
            raise CommandError(_UNARY_WRONG[word])
        kind = ct.promoted(self.operators.number_type(value))
        if kind.kind is TypeKind.FLOAT:
            if word == "~":
                raise CommandError(_UNARY_WRONG[word])
            return self.reach.made(kind, -value.exact if word == "-" else value.exact)
        number = value.number
        return self.reach.made(kind, {"-": -number, "+": number, "~": ~number}[word])

    def _binary(self, node: Expression) -> TypedValue:
        word = node.text
        if word in ("&&", "||"):
            first = self.operand(node.parts[0]).truth
            if first == (word == "||"):
                return self.reach.made(ct.INT, int(first))
            return self.reach.made(ct.INT, int(self.operand(node.parts[1]).truth))
        left, right = self.operand(node.parts[0]), self.operand(node.parts[1])
        if word == "@":
            return self.reach.repeated(left, right.number)
        return self._combined(word, left, right)

    def _combined(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        scalar = self.reach.scalar
        return self.operators.combined(word, scalar(left), scalar(right))

    def _assign(self, node: Expression) -> TypedValue:
        target, source = node.parts
        value = self.operand(source)
        if target.kind == "dollar" and self._around.register(target.text[1:]) is None:
            name = target.text[1:]
            if name.isdigit() or name in ("", "$"):
                raise CommandError("Left operand of assignment is not a modifiable lvalue.")
            if node.text:
                value = self._combined(node.text, self.value(target), value)
            kept = replace(value.remembered(), kept=False)
            self._around.set_convenience(name, kept)
            return kept
        old = self.operand(target)
        if node.text:
            value = self._combined(node.text, old, value)
        return self._stored(old, value)

    def _stored(self, old: TypedValue, value: TypedValue) -> TypedValue:
        """Put a value in the place of another one; it as it is there then."""
        if old.place is None:
            raise CommandError("Left operand of assignment is not an lvalue.")
        if old.kept:
            raise CommandError("Left operand of assignment is not a modifiable lvalue.")
        raw = self.operators.cast(value, old.type).raw
        self._around.store(old.place, raw)
        if old.address is None:
            return TypedValue(old.type, lambda: raw, old.place, order=self._order)
        if isinstance(old.place, MemoryPlace) and old.place.bits:
            cut = int.from_bytes(raw, self._order) & (1 << old.place.bits) - 1
            if old.type.is_signed and cut >> old.place.bits - 1:
                cut -= 1 << old.place.bits
            return self.reach.made(old.type, cut)
        return self.reach.at(old.type, old.address)

    def _step(self, part: Expression, by: int, *, before: bool) -> TypedValue:
        old = self.operand(part)
        raw = old.raw
        own = part.kind == "dollar" and self._around.register(part.text[1:]) is None
        was = TypedValue(old.type, lambda: raw, order=self._order)
        one = self.reach.made(ct.INT, by)
        if old.type.kind is TypeKind.POINTER:
            fresh = self.reach.moved(was, by)
        else:
            fresh = self.operators.combined("+", was, one)
        if own:
            self._around.set_convenience(part.text[1:], fresh)
            return was if before else fresh
        now = self._stored(old, fresh)
        return was if before else now

    def _of_bytes(self, kind: CType, raw: bytes) -> TypedValue:
        return TypedValue(kind, lambda: raw, order=self._order)
