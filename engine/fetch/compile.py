"""Fetch arguments `[NAME=]BODY[:TYPE]` to data, with the kernel's errors and caret columns.

Follows kernel/trace/trace_probe.c of Linux 6.18 in what it accepts, in the order of its checks
and in the place an error points at. That place is mostly exact; an error found after the body
was read counts from behind the prefix of the outermost dereference, as in the kernel.

Variables, which the kernel knows from BTF, come from whoever gives an `ArgContext` its
`variables`; without, they are NOSUP_BTFARG.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from engine.arch.program import Base, FetchArg, FieldType, Source, ValueKind
from engine.fetch.bases import ArgCursor, BaseReader, split_offset
from engine.fetch.numbers import signed, unsigned
from engine.fetch.types import TYPES, bitfield, event_bytes, find_type
from engine.fetch.variables import Fetched, VariableError
from engine.fetch.words import (
    FIRST_ARG,
    MAX_ARGS,
    PLACE,
    RESERVED,
    ArgContext,
    check_unnamed,
    expanded,
    explained,
    is_identifier,
    length,
    read_name,
)

__all__ = [
    "FIRST_ARG",
    "MAX_ARGS",
    "PLACE",
    "ArgContext",
    "compile_args",
    "is_identifier",
    "split_offset",
]

_MAX_BODY = 63
_MAX_ARRAY = 64
_MAX_EVENT_BYTES = 3072
_FIELD_OF_RESULT = re.compile(r"\$retval(->|\.|\[)")
_MEMORY = (Source.ADDRESS, Source.IMAGE, Source.SYMBOL)
_OUT_OF_REACH = Base(Source.IMMEDIATE, value=0xFFFF_8000_0000_0000)
"""The kernel's half of the address space: no program has memory there."""
_STRING_VALUES = (Source.IMMEDIATE, Source.COMM, Source.TEXT)
_SYMBOL_VALUES = (Source.REGISTER, Source.STACK, Source.RETVAL)


def compile_args(words: Sequence[str], context: ArgContext) -> tuple[FetchArg, ...]:
    """The arguments of a definition.

    Args:
        words: the definition's words behind the place.
        context: what they may refer to.

    Raises:
        ProbeSyntaxError: with the kernel's error. Symbols that are not there are found last
            and blamed on the place, as the kernel only looks for them when it registers.
    """
    if not context.uprobe:
        check_unnamed(words, context)
    indexed = expanded(words, context)
    if len(indexed) > MAX_ARGS:
        raise context.fail("TOO_MANY_ARGS", FIRST_ARG, 0)
    args: list[FetchArg] = []
    names = set(RESERVED)
    missing = ""
    size = 0
    for number, (index, word) in enumerate(indexed, 1):
        name, offset = read_name(word, index, number, names, context)
        names.add(name)
        cursor = ArgCursor(context, index, offset)
        reader = _BodyReader(cursor, size)
        args.append(reader.read(name, word[offset:]))
        size = reader.size
        missing = missing or cursor.missing
    if missing:
        raise context.fail(missing, PLACE, 0)
    return tuple(args)


def _begins_name(head: str) -> bool:
    """True if the kernel takes a character for a letter (lib/ctype.c): all of Latin-1 count."""
    if head.isascii():
        return is_identifier(head)
    byte = head.encode(errors="surrogateescape")[0]
    return byte >= 0xC0 and byte not in (0xD7, 0xF7)


def _inner_body(cursor: ArgCursor, text: str) -> tuple[Base, tuple[int, ...]]:
    """The body of an `$entry(BODY)`."""
    base, derefs, _ = _BodyReader(cursor, 0).value(text)
    return base, derefs


class _BodyReader:
    """Reads one body.

    Attributes:
        size: bytes of the kernel's record so far.
    """

    __slots__ = ("_at", "_bases", "_context", "_fetched", "size")

    def __init__(self, cursor: ArgCursor, size: int) -> None:
        self._at = cursor
        self._context = cursor.context
        self._bases = BaseReader(cursor, _inner_body)
        self._fetched: Fetched | None = None
        self.size = size

    def read(self, name: str, text: str) -> FetchArg:
        """The argument with that body."""
        if length(text) > _MAX_BODY:
            raise self._at.fail("ARG_TOO_LONG")
        if not text:
            raise self._at.fail("NO_ARG_BODY")
        body, colon, type_text = text.partition(":")
        type_name = type_text.partition("[")[0] if colon else None
        type_offset = len(body) + 1 if colon else 0
        kind = self._type(body, type_name, type_offset, type_text)
        base, derefs, user = self.value(body)
        if self._fetched is not None:
            return self._typed(name, text, self._fetched, type_name, type_offset, kind)
        self.size += event_bytes(kind)
        if self.size > _MAX_EVENT_BYTES:
            raise self._at.fail("EVENT_TOO_BIG")
        kind = self._check(kind, type_name or "", type_offset, base, derefs, user)
        if kind.is_string and base.source is Source.IMMEDIATE and not derefs:
            derefs = (0,)  # the number is the string's address
        if base.source is Source.TEXT and self._context.uprobe and not self._context.extended:
            # The kernel looks for its own text in the program's memory: "(fault)".
            base, derefs = _OUT_OF_REACH, (0,)
        if base.source is Source.REGISTER and not base.register:
            base = replace(base, source=Source.IMMEDIATE)
        return FetchArg(name, text, base, derefs, kind)

    def _type(self, body: str, name: str | None, type_offset: int, type_text: str) -> FieldType:
        before, bracket, array = type_text.partition("[")
        count = 0
        if bracket:
            at = type_offset + len(before) + 1
            number, closed, suffix = array.partition("]")
            if not closed:
                raise self._at.fail("ARRAY_NO_CLOSE", at + len(array))
            if suffix:
                raise self._at.fail("BAD_ARRAY_SUFFIX", at + len(number) + 1)
            count = unsigned(number, 32) or 0
            if not count:
                raise self._at.fail("BAD_ARRAY_NUM", at)
            if count > _MAX_ARRAY:
                raise self._at.fail("ARRAY_TOO_BIG", at)
        if body in ("$comm", "$COMM") or body.startswith('\\"'):
            if count or name not in (None, "string"):
                raise self._at.fail("NEED_STRING_TYPE", type_offset)
            return TYPES["string"]
        if body == "$duration" and name is None and self._context.extended:
            name = "u64"
        kind = find_type(name, self._context.arch.bits, uprobe=self._context.uprobe)
        if kind is None:
            raise self._at.fail("BAD_TYPE", type_offset)
        return replace(kind, count=count) if count else kind

    def value(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """Base, dereferences and whether the last of them names user memory."""
        head = text[:1]
        if head in ("+", "-"):
            return self._dereference(text)
        if head == "$":
            if self._context.variables is not None and _FIELD_OF_RESULT.match(text):
                return self._named(text)
            return self._bases.variable(text[1:]), (), False
        if head == "%":
            probes = self._context.arch.probes
            fixed = probes.fixed_registers.get(text[1:])
            if fixed is not None:  # checked as the register that the kernel takes it for
                return Base(Source.REGISTER, value=fixed), (), False
            register = probes.fetch_registers.get(text[1:])
            if register is None:
                raise self._at.fail("BAD_REG_NAME")
            return Base(Source.REGISTER, register=register), (), False
        if head == "@":
            return self._bases.memory(text[1:]), (), False
        if head == "\\":
            return self._bases.immediate(text[1:]), (), False
        variables = self._context.variables
        if _begins_name(head) or (variables is not None and head == "*"):
            return self._named(text)
        if variables is None and head == "(":  # a cast of a variable
            raise self._at.fail("NOSUP_BTFARG")
        raise self._at.fail("BAD_FETCH_ARG")

    def _named(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """A variable, or what it leads to."""
        variables = self._context.variables
        if variables is None:
            raise self._at.fail("NOSUP_BTFARG")
        try:
            found = variables.resolve(text)
        except VariableError as problem:
            raise explained(problem, self._context, self._at.index, self._at.offset) from problem
        for _ in found.derefs:
            self._at.next_op()
        self._fetched = found
        return found.base, found.derefs, False

    def _typed(
        self,
        name: str,
        text: str,
        found: Fetched,
        type_name: str | None,
        type_offset: int,
        kind: FieldType,
    ) -> FetchArg:
        """A variable's argument: its own type where none is given."""
        try:
            if kind.is_string and not kind.count and kind.kind is not ValueKind.SYMSTR:
                found = found.as_string()
            elif type_name is None and found.kind is None:
                raise VariableError("NOSUP_DAT_ARG", 0, found.why)
            elif type_name is not None:
                if found.is_part:
                    raise VariableError("BAD_TYPE", type_offset, "it is a part of a register")
                memory = (found.base, found.derefs, False)
                found = replace(found, kind=self._check(kind, type_name, type_offset, *memory))
        except VariableError as problem:
            raise explained(problem, self._context, self._at.index, self._at.offset) from problem
        final = found.kind or kind
        if type_name == "ustring":
            final = kind
        self.size += event_bytes(final)
        if self.size > _MAX_EVENT_BYTES:
            raise self._at.fail("EVENT_TOO_BIG")
        return FetchArg(name, text, found.base, found.derefs, final)

    def _dereference(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        user = text[1:2] == "u"
        if user:
            text = text[0] + text[2:]
        number, brace, rest = text.removeprefix("+").partition("(")
        if not brace:
            raise self._at.fail("DEREF_NEED_BRACE")
        offset = signed(number, self._context.arch.bits)
        if offset is None:
            raise self._at.fail("BAD_DEREF_OFFS")
        # The 'u', and a '+' before a '-', are not counted by the kernel either.
        self._at.offset += len(number) + 1 + (not number.startswith("-"))
        end = rest.rfind(")")
        if end < 0:
            raise self._at.fail("DEREF_OPEN_BRACE", len(rest))
        here = self._at.offset
        base, derefs, _ = self.value(rest[:end])
        self._fetched = None  # its type is lost with the dereference, as in the kernel
        self._at.offset = here
        if not derefs and base.source in (Source.COMM, Source.TEXT):
            raise self._at.fail("COMM_CANT_DEREF")
        self._at.next_op()
        return base, (*derefs, offset), user

    def _check(
        self,
        kind: FieldType,
        type_name: str,
        type_offset: int,
        base: Base,
        derefs: tuple[int, ...],
        user: bool,
    ) -> FieldType:
        """Refuse a type that does not fit what was fetched; the final type."""
        memory = bool(derefs) or base.source in _MEMORY
        array_fits = memory and not user
        if kind.kind is ValueKind.SYMSTR:
            if not (array_fits or (not memory and base.source in _SYMBOL_VALUES)):
                raise self._at.fail("BAD_SYMSTRING", type_offset)
            array_fits = False
            self._at.next_op()
        elif kind.is_string:
            if not memory and base.source not in _STRING_VALUES:
                raise self._at.fail("BAD_STRING", type_offset)
            array_fits = True
            if not memory or kind.count:
                self._at.next_op()
        elif not memory:
            self._at.next_op()
        if type_name.startswith("b"):
            field = bitfield(type_name, kind)
            if field is None:
                raise self._at.fail("BAD_BITFIELD", type_offset)
            kind = field
            self._at.next_op("BAD_BITFIELD", type_offset)
        if kind.count:
            if not array_fits:
                raise self._at.fail("BAD_STRING", type_offset)
            self._at.next_op()
        return kind
