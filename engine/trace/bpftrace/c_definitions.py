"""Types of C that a script defines: structures, unions, enumerations and names for types.

They are laid out as the compilers of the guest's machine lay them out. What a script only names
comes from elsewhere: the guest's debug information.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from msgspec import Struct

from engine.image.datatypes import DataType, TypeKind
from engine.language.made_records import MadeAlias, MadeRecord
from engine.language.prototypes import MadeEnum, contradict
from engine.language.value_types import (
    LONG,
    UNSIGNED_LONG,
    CType,
    MadeType,
    array_of,
    builtin,
    function_returning,
    integer,
    pointer_to,
)
from engine.trace.bpftrace.c_constants import constant, expression_of
from engine.trace.bpftrace.c_layout import MemberLayout
from engine.trace.bpftrace.c_macros import HAS_BTF, CMacro, CMacros
from engine.trace.bpftrace.c_standard_types import standard_type
from engine.trace.bpftrace.c_uses import CMacroUses
from engine.trace.bpftrace.expressions import ExpressionReader
from engine.trace.bpftrace.text import ScriptText, Span, WrongScriptError
from engine.trace.bpftrace.tokens import NAME, TokenStream
from engine.trace.bpftrace.tree import BlockExpression, CDefinition, Expression, WrittenType

_BASE: Final = frozenset(
    ("void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "bool")
) | {"_Bool"}
_IDLE: Final = frozenset(
    (
        *("const", "volatile", "restrict", "__restrict", "__restrict__", "extern", "static"),
        *("__extension__", "__volatile__", "__const", "register"),
    )
)
"""Words that change nothing about a layout."""
_ATTRIBUTES: Final = frozenset(("__attribute__", "__attribute"))
_MAX_NESTED: Final = 40
"""Structures and declarators in each other."""
_MAX_SIZE: Final = 1 << 31
"""Bytes of a type."""
_LARGEST_ALIGNMENT: Final = 16
"""Bytes that `aligned` without a number means."""


class TagReference(MadeType, frozen=True):
    """A structure, union or enumeration that is only named: "struct node".

    Attributes:
        definitions: what knows it, once it is asked.
    """

    definitions: "CDefinitions | None" = None

    @property
    def resolved(self) -> CType:
        """The type, if it is known anywhere."""
        assert self.definitions is not None, "it was made by them"
        return self.definitions.tagged(self.name) or self

    @property
    def text(self) -> str:
        """As C spells it."""
        return self.name

    def declared(self, name: str) -> str:
        """A declaration of a thing of this type."""
        return f"{self.name} {name}" if name else self.name

    @property
    def keyword(self) -> str:
        """The word in front of its name."""
        return self.name.partition(" ")[0]

    @property
    def is_declared_only(self) -> bool:
        """True if it is known nowhere."""
        return self.resolved is self

    @property
    def key(self) -> object:
        """Equal for equal types; what is in it does not matter."""
        return ("tag", self.name)


class CDefinitions:
    """Types that a script defines in C.

    Args:
        macros: of the script.
        outside: what the guest's debug information calls a name: "struct file", "size_t".
        pointer_size: bytes of an address, and of a long.
        unnamed_align: see `MemberLayout`.

    Attributes:
        macros: of the script.
        pointer_size: bytes of an address, and of a long.
        unnamed_align: see `MemberLayout`.
    """

    def __init__(
        self,
        macros: CMacros,
        outside: Callable[[str], DataType | None] = lambda name: None,
        pointer_size: int = 8,
        *,
        unnamed_align: bool = False,
    ) -> None:
        self.macros, self._outside = macros, outside
        self.pointer_size, self.unnamed_align = pointer_size, unnamed_align
        self._tags: dict[str, MadeType] = {}
        self._types: dict[str, CType] = {}
        self._enumerators: dict[str, tuple[int, MadeEnum]] = {}

    @classmethod
    def of(
        cls,
        definitions: Sequence[CDefinition],
        script: ScriptText,
        *,
        pointer_size: int = 8,
        unnamed_align: bool = False,
        outside: Callable[[str], DataType | None] = lambda name: None,
        defined: Iterable[str] = (HAS_BTF,),
    ) -> "CDefinitions":
        """The definitions of a script.

        Args:
            definitions: as they are written.
            script: the text that they are in.
            pointer_size: bytes of an address, and of a long.
            unnamed_align: bitfields without a name align structures: true on AArch64.
            outside: see the class.
            defined: names that are defined for the preprocessor.

        Raises:
            WrongScriptError: one of them is wrong, or needs a type that is known nowhere.
        """
        macros = CMacros(script, defined)
        found = cls(macros, outside, pointer_size, unnamed_align=unnamed_align)

        def value(text: str, span: Span) -> int:
            return constant(expression_of(script, text, span), script)

        for definition in macros.declarations(definitions, value):
            _DeclarationReader(found, script, definition.span).all()
        return found

    @property
    def includes(self) -> Sequence[str]:
        """Headers that the script names, as it writes them: "<linux/sched.h>"."""
        return self.macros.includes

    def struct(self, name: str) -> DataType | None:
        """A type of the script by its tag: "foo", "struct foo", "enum foo"; None for none."""
        for key in (name, *(f"{word} {name}" for word in ("struct", "union", "enum"))):
            if key in self._tags:
                return cast("DataType", self._tags[key])
        return None

    def tagged(self, name: str) -> CType | None:
        """A type with its keyword in front, of the script or of the guest."""
        return self._tags.get(name) or self._outside(name)

    def typedef(self, name: str) -> DataType | None:
        """The type of a name in the script or in all headers; None if it is no such name."""
        found = self._types.get(name)
        return cast(
            "DataType | None", standard_type(name, self.pointer_size) if found is None else found
        )

    def named(self, name: str) -> CType | None:
        """The same, and names of the guest."""
        return (
            self._types.get(name) or self._outside(name) or standard_type(name, self.pointer_size)
        )

    def enumerator(self, name: str) -> tuple[int, DataType] | None:
        """The value of a name of an enumeration of the script, and the enumeration."""
        found = self._enumerators.get(name)
        return None if found is None else (found[0], cast("DataType", found[1]))

    def macro(self, name: str) -> CMacro | None:
        """A macro."""
        return self.macros.macros.get(name)

    # -- for the reader -------------------------------------------------------------------------

    def add_tag(self, key: str, made: MadeType) -> bool:
        """Take in a type with its tag; False if there is one already."""
        return self._tags.setdefault(key, made) is made

    def add_type(self, name: str, made: CType) -> None:
        """Take in a name for a type."""
        self._types[name] = made

    def add_enumerators(self, made: MadeEnum) -> None:
        """Take in the names of an enumeration."""
        for name, value in made.names:
            self._enumerators[name] = (value, made)

    def reference(self, key: str) -> MadeType:
        """A type that is only named."""
        kind = TypeKind.ENUM if key.startswith("enum ") else TypeKind.RECORD
        return TagReference(kind, 4 if kind is TypeKind.ENUM else None, key, definitions=self)


class _Attributes(Struct):
    """Words of `__attribute__` that change a layout.

    Attributes:
        packed: nothing is aligned.
        boundary: bytes to be aligned to; 0 for what the type needs.
    """

    packed: bool = False
    boundary: int = 0


class _DeclarationReader:
    """Reads one definition of a script."""

    def __init__(self, definitions: CDefinitions, script: ScriptText, span: Span) -> None:
        self._definitions, self._script, self._end = definitions, script, span.end
        words = TokenStream(script, part=span)
        self._words = words
        self._depth = 0

        def no_block() -> BlockExpression:
            raise words.failure("expected expression")

        uses = CMacroUses(definitions.macros)
        self._expressions = ExpressionReader(words, no_block, uses.expression)

    def _failure(self, text: str, start: int | None = None) -> WrongScriptError:
        span = None if start is None else self._words.span(start)
        return self._words.failure(text, span)

    def all(self) -> None:
        """The definition, its names taken in."""
        words = self._words
        is_typedef = words.taken("typedef")
        attributes = _Attributes()
        base = self._specifiers(attributes)
        while is_typedef and words.start < self._end:
            start = words.start
            name, kind = self._declarator(base)
            self._attributes(attributes)
            if not name:
                raise self._failure("expected a name", start)
            made = MadeAlias(kind.kind, kind.size, name, made_of=kind)
            self._definitions.add_type(name, made)
            if not words.taken(","):
                break
        if words.start < self._end:
            raise self._failure("expected ';' after the definition")

    # -- types ----------------------------------------------------------------------------------

    def _specifiers(self, attributes: _Attributes) -> CType:
        """The type in front of a declarator."""
        words = self._words
        start = words.start
        base: list[str] = []
        found: CType | None = None
        while words.kind == NAME:
            word = words.word
            if word in _ATTRIBUTES:
                self._attributes(attributes)
            elif word in _IDLE:
                words.next()
            elif word in _BASE and found is None:
                base.append("_Bool" if word == "bool" else word)
                words.next()
            elif base or found is not None:
                break
            elif word in ("struct", "union", "enum"):
                found = self._tagged()
            else:
                found = self._definitions.named(word)
                if found is None:
                    raise self._failure(f"unknown type name '{word}'")
                words.next()
        if base:
            found = None if contradict(base) else self._number(base)
            if found is None:
                raise self._failure(f"'{' '.join(base)}' is no type of C", start)
        if found is None:
            raise self._failure("expected a type")
        return found

    def _number(self, base: list[str]) -> CType | None:
        made = builtin(base)
        is_long = made is LONG or made is UNSIGNED_LONG
        if made is not None and is_long and base.count("long") == 1:
            size = self._definitions.pointer_size
            return integer(size, signed=made is LONG)
        return made

    def _tagged(self) -> CType:
        """A structure, union or enumeration, with its members or only named."""
        words = self._words
        start = words.start
        keyword = words.word
        words.next()
        attributes = _Attributes()
        self._attributes(attributes)
        tag = ""
        if words.kind == NAME:
            tag = words.word
            words.next()
            self._attributes(attributes)
        key = f"{keyword} {tag}"
        if words.word != "{":
            if not tag:
                raise self._failure("expected a name or '{'")
            return self._definitions.reference(key)
        self._depth += 1
        if self._depth > _MAX_NESTED:
            raise self._failure(f"nested too deeply: more than {_MAX_NESTED} levels")
        words.next()
        made: MadeType
        if keyword == "enum":
            made = self._enumeration(key if tag else "enum")
        else:
            made = self._record(keyword, tag, attributes)
        self._depth -= 1
        if tag and not self._definitions.add_tag(key, made):
            raise self._failure(f"redefinition of '{key}'", start)
        return made

    def _enumeration(self, name: str) -> MadeEnum:
        words = self._words
        found: dict[str, int] = {}
        following = 0
        while words.word != "}":
            start = words.start
            one = words.name("expected the name of a value")
            if one in found:
                raise self._failure(f"redefinition of enumerator '{one}'", start)
            if words.taken("="):
                following = self._constant(found)
            found[one] = following
            following += 1
            if not words.taken(","):
                break
        words.expect("}")
        if not found:
            raise self._failure("an enumeration without values")
        least, most = min(found.values()), max(found.values())
        is_small = least >= -(1 << 31) and most < (1 << (31 if least < 0 else 32))
        made = MadeEnum(TypeKind.ENUM, 4 if is_small else 8, name, names=tuple(found.items()))
        self._definitions.add_enumerators(made)
        return made

    def _record(self, keyword: str, tag: str, attributes: _Attributes) -> MadeRecord:
        words = self._words
        layout = MemberLayout(
            is_union=keyword == "union", unnamed_align=self._definitions.unnamed_align
        )
        members: list[tuple[str | None, CType, int | None, _Attributes, int]] = []
        while words.word != "}":
            if words.taken(";"):
                continue
            own = _Attributes()
            base = self._specifiers(own)
            if words.word in (";", "}"):
                is_unnamed = isinstance(base, MadeRecord) and not base.name
                if is_unnamed:
                    members.append((None, base, None, own, words.start))
            else:
                self._members(base, own, members)
            if words.word != "}":
                words.expect(";")
        words.next()
        self._attributes(attributes)
        names: set[str] = set()
        for name, kind, bits, own, start in members:
            if name in names:
                place = self._words.span(start, start + len(name))
                raise self._words.failure(f"duplicate member '{name}'", place)
            if name:
                names.add(name)
            packed = attributes.packed or own.packed
            boundary = own.boundary
            fault = layout.add(name, kind, bits, packed=packed, boundary=boundary)
            if fault:
                raise self._words.failure(fault, self._words.span(start, start + 1))
        parts, size, boundary = layout.finished(attributes.boundary)
        if size > _MAX_SIZE:
            raise self._failure(f"a structure of more than {_MAX_SIZE} bytes")
        return MadeRecord(TypeKind.RECORD, size, tag, parts=parts, word=keyword, boundary=boundary)

    def _members(
        self,
        base: CType,
        attributes: _Attributes,
        members: list[tuple[str | None, CType, int | None, _Attributes, int]],
    ) -> None:
        """Members of one type, with commas between them."""
        words = self._words
        while True:
            start = words.start
            name, kind = self._declarator(base)
            bits: int | None = None
            if words.taken(":"):
                bits = self._constant({})
            own = _Attributes(attributes.packed, attributes.boundary)
            self._attributes(own)
            if bits is None:
                if not name:
                    raise self._failure("expected a member's name")
                kind = self._complete(kind, start)
            members.append((name, kind, bits, own, start))
            if not words.taken(","):
                return

    def _complete(self, kind: CType, start: int) -> CType:
        """A type that a member can have."""
        whole = kind.resolved
        is_open = whole.kind is TypeKind.ARRAY and whole.count is None
        if whole.kind is TypeKind.FUNCTION:
            raise self._failure("a member cannot be a function", start)
        if whole.size is None and not is_open:
            raise self._failure(f"field has incomplete type '{kind.text}'", start)
        return kind if isinstance(kind, MadeAlias) else whole

    # -- declarators ----------------------------------------------------------------------------

    def _declarator(self, base: CType) -> tuple[str, CType]:
        """A name and the type that it has, given the type in front."""
        name, wrap = self._wrapping()
        return name, wrap(base)

    def _wrapping(self) -> tuple[str, Callable[[CType], CType]]:
        words = self._words
        self._depth += 1
        if self._depth > _MAX_NESTED:
            raise self._failure(f"nested too deeply: more than {_MAX_NESTED} levels")
        stars = 0
        while words.word == "*" or words.word in _IDLE:
            stars += words.word == "*"
            words.next()
        if stars > _MAX_NESTED:
            raise self._failure("too many stars")
        name = ""
        inner: Callable[[CType], CType] | None = None
        if words.word == "(":
            words.next()
            name, inner = self._wrapping()
            words.expect(")")
        elif words.kind == NAME and words.word not in _ATTRIBUTES:
            name = words.word
            words.next()
        counts: list[int | None] = []
        is_function = False
        while words.word == "[" or words.word == "(":
            if words.word == "[":
                counts.append(self._count())
            else:
                is_function = True
                self._skip_brackets()
            if len(counts) > _MAX_NESTED:
                raise self._failure("too many dimensions")
        self._depth -= 1

        def wrap(kind: CType) -> CType:
            for _ in range(stars):
                kind = pointer_to(kind, self._definitions.pointer_size)
            for count in reversed(counts):
                kind = _array(kind, count)
            if is_function:
                kind = function_returning(kind)
            return kind if inner is None else inner(kind)

        return name, wrap

    def _count(self) -> int | None:
        words = self._words
        start = words.start
        words.next()
        if words.taken("]"):
            return None
        count = self._constant({})
        if not 0 <= count <= _MAX_SIZE:
            raise self._failure("the array has a negative size, or is too large", start)
        words.expect("]")
        return count

    def _constant(self, names: dict[str, int]) -> int:
        """A constant expression.

        Args:
            names: of the enumeration that is being read.
        """

        def named(name: str) -> int | None:
            known = self._definitions.enumerator(name)
            return names.get(name, None if known is None else known[0])

        expression = self._expressions.expression()
        return constant(expression, self._script, named, self._size_of)

    def _size_of(self, of: Expression | WrittenType) -> int | None:
        if not isinstance(of, WrittenType):
            name = getattr(of, "name", None)
            kind = self._definitions.named(name) if isinstance(name, str) else None
            return None if kind is None else kind.resolved.size
        found: CType | None = self._definitions.tagged(of.name) or self._definitions.named(of.name)
        found = found or self._number([word for word in of.name.split() if word in _BASE])
        for suffix in of.suffixes:
            if suffix == "*":
                return self._definitions.pointer_size
            found = None if found is None else _array(found, suffix)
        return None if found is None else found.resolved.size

    def _skip_brackets(self) -> None:
        """Parameters of a function, which nobody calls."""
        words = self._words
        depth = 0
        while True:
            if words.is_at_end or words.start >= self._end:
                raise self._failure("expected ')'")
            depth += (words.word == "(") - (words.word == ")")
            if words.begins("..."):
                words.go(words.start + 3)
            else:
                words.next()
            if not depth:
                return

    def _attributes(self, found: _Attributes) -> None:
        """Attributes that stand here."""
        words = self._words
        while words.kind == NAME and words.word in _ATTRIBUTES:
            words.next()
            words.expect("(")
            words.expect("(")
            while words.word != ")":
                name = words.name("expected an attribute").strip("_")
                if name == "packed":
                    found.packed = True
                elif name == "aligned":
                    found.boundary = self._alignment()
                elif words.word == "(":
                    self._skip_brackets()
                if not words.taken(","):
                    break
            words.expect(")")
            words.expect(")")

    def _alignment(self) -> int:
        words = self._words
        if not words.taken("("):
            return _LARGEST_ALIGNMENT
        start = words.start
        value = self._constant({})
        if value < 1 or value & (value - 1) or value > 1 << 20:
            raise self._failure("requested alignment is not a power of 2", start)
        words.expect(")")
        return value


def _array(element: CType, count: int | None) -> CType:
    if count is None:
        return MadeType(TypeKind.ARRAY, None, made_of=element)
    return array_of(element.resolved if element.size is None else element, count)
