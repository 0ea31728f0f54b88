"""Fetch arguments `[NAME=]BODY[:TYPE]` to data, with the kernel's errors and caret columns.

Follows kernel/trace/trace_probe.c of Linux 6.18 in what it accepts, in the order of its checks
and in the place an error points at. That place is mostly exact; an error found after the body
was read counts from behind the prefix of the outermost dereference, as in the kernel.

Variables, which the kernel knows from BTF, come from whoever gives an `ArgContext` its
`variables`; without, they are NOSUP_BTFARG.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from engine.arch.base import Arch
from engine.arch.program import Base, FetchArg, FieldType, Kind, Source
from engine.errors import ProbeSyntaxError
from engine.fetch.numbers import decimal, signed, unsigned
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
    "argument",
    "compile_args",
    "is_identifier",
    "split_offset",
]

_MAX_BODY = 63
_MAX_ARRAY = 64
_MAX_EVENT_BYTES = 3072
_MAX_PARAMETER = 2048  # THREAD_SIZE / sizeof(long)
_LAST_OP = 14  # of 16 fetch instructions the last is always the end
_AT_ENTRY = "entry("
_DIGITS = frozenset("0123456789")
_SIGN = re.compile(r"[+-]")
_FIELD_OF_RESULT = re.compile(r"\$retval(->|\.|\[)")
_MEMORY = (Source.ADDRESS, Source.IMAGE, Source.SYMBOL)
_OUT_OF_REACH = Base(Source.IMMEDIATE, value=0xFFFF_8000_0000_0000)
"""The kernel's half of the address space: no program has memory there."""
_STRING_VALUES = (Source.IMMEDIATE, Source.COMM, Source.TEXT)
_SYMBOL_VALUES = (Source.REGISTER, Source.STACK, Source.RETVAL)


def split_offset(text: str, bits: int) -> tuple[str, int] | None:
    """`SYM[+OFF|-OFF]` to its two parts, None where the offset is no number."""
    match = _SIGN.search(text)
    if match is None:
        return text, 0
    offset = signed(text[match.start() :], bits)
    return None if offset is None else (text[: match.start()], offset)


def argument(arch: Arch, index: int) -> Base:
    """Where a function's argument (from 0) is at its first instruction.

    Beyond the registers it is on the stack, above the return address if that is there too.
    (The kernel does the same on x86-64; on arm64 it would give 0.)
    """
    registers = arch.probes.arguments
    if index < len(registers):
        return Base(Source.REGISTER, register=registers[index])
    return Base(Source.STACK, value=index - len(registers) + (arch.roles.link is None))


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
        reader = _Reader(context, index, offset, size)
        args.append(reader.read(name, word[offset:]))
        size = reader.size
        missing = missing or reader.missing
    if missing:
        raise context.fail(missing, PLACE, 0)
    return tuple(args)


def _begins_name(head: str) -> bool:
    """Whether the kernel takes a character for a letter (lib/ctype.c): all of Latin-1 count."""
    if head.isascii():
        return is_identifier(head)
    byte = head.encode(errors="surrogateescape")[0]
    return byte >= 0xC0 and byte not in (0xD7, 0xF7)


class _Reader:
    """Reads one body.

    Attributes:
        offset: what the kernel's messages count from, in the word.
        ops: index of the fetch instruction that the kernel would have reached.
        size: bytes of the kernel's record so far.
        missing: error of a symbol that is not there.
    """

    __slots__ = ("_context", "_fetched", "_index", "missing", "offset", "ops", "size")

    def __init__(self, context: ArgContext, index: int, offset: int, size: int) -> None:
        self._context = context
        self._index = index
        self._fetched: Fetched | None = None
        self.offset = offset
        self.ops = 0
        self.size = size
        self.missing = ""

    def _fail(self, code: str, further: int = 0) -> ProbeSyntaxError:
        return self._context.fail(code, self._index, self.offset + further)

    def read(self, name: str, text: str) -> FetchArg:
        """The argument with that body."""
        if length(text) > _MAX_BODY:
            raise self._fail("ARG_TOO_LONG")
        if not text:
            raise self._fail("NO_ARG_BODY")
        body, colon, type_text = text.partition(":")
        type_name = type_text.partition("[")[0] if colon else None
        type_offset = len(body) + 1 if colon else 0
        kind = self._type(body, type_name, type_offset, type_text)
        base, derefs, user = self._value(body)
        if self._fetched is not None:
            return self._typed(name, text, self._fetched, type_name, type_offset, kind)
        self.size += event_bytes(kind)
        if self.size > _MAX_EVENT_BYTES:
            raise self._fail("EVENT_TOO_BIG")
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
                raise self._fail("ARRAY_NO_CLOSE", at + len(array))
            if suffix:
                raise self._fail("BAD_ARRAY_SUFFIX", at + len(number) + 1)
            count = unsigned(number, 32) or 0
            if not count:
                raise self._fail("BAD_ARRAY_NUM", at)
            if count > _MAX_ARRAY:
                raise self._fail("ARRAY_TOO_BIG", at)
        if body in ("$comm", "$COMM") or body.startswith('\\"'):
            if count or name not in (None, "string"):
                raise self._fail("NEED_STRING_TYPE", type_offset)
            return TYPES["string"]
        if body == "$duration" and name is None and self._context.extended:
            name = "u64"
        kind = find_type(name, self._context.arch.bits, uprobe=self._context.uprobe)
        if kind is None:
            raise self._fail("BAD_TYPE", type_offset)
        return replace(kind, count=count) if count else kind

    def _value(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """Base, dereferences and whether the last of them names user memory."""
        head = text[:1]
        if head in ("+", "-"):
            return self._dereference(text)
        if head == "$":
            if self._context.variables is not None and _FIELD_OF_RESULT.match(text):
                return self._named(text)
            return self._variable(text[1:]), (), False
        if head == "%":
            probes = self._context.arch.probes
            fixed = probes.fixed_registers.get(text[1:])
            if fixed is not None:  # checked as the register that the kernel takes it for
                return Base(Source.REGISTER, value=fixed), (), False
            register = probes.fetch_registers.get(text[1:])
            if register is None:
                raise self._fail("BAD_REG_NAME")
            return Base(Source.REGISTER, register=register), (), False
        if head == "@":
            return self._memory(text[1:]), (), False
        if head == "\\":
            return self._immediate(text[1:]), (), False
        variables = self._context.variables
        if _begins_name(head) or (variables is not None and head == "*"):
            return self._named(text)
        if variables is None and head == "(":  # a cast of a variable
            raise self._fail("NOSUP_BTFARG")
        raise self._fail("BAD_FETCH_ARG")

    def _named(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """A variable, or what it leads to."""
        variables = self._context.variables
        if variables is None:
            raise self._fail("NOSUP_BTFARG")
        try:
            found = variables.resolve(text)
        except VariableError as problem:
            raise explained(problem, self._context, self._index, self.offset) from problem
        for _ in found.derefs:
            self._next_op()
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
            if kind.is_string and not kind.count and kind.kind is not Kind.SYMSTR:
                found = found.as_string()
            elif type_name is None and found.kind is None:
                raise VariableError("NOSUP_DAT_ARG", 0, found.why)
            elif type_name is not None:
                if found.is_part:
                    raise VariableError("BAD_TYPE", type_offset, "it is a part of a register")
                memory = (found.base, found.derefs, False)
                found = replace(found, kind=self._check(kind, type_name, type_offset, *memory))
        except VariableError as problem:
            raise explained(problem, self._context, self._index, self.offset) from problem
        final = found.kind or kind
        if type_name == "ustring":
            final = kind
        self.size += event_bytes(final)
        if self.size > _MAX_EVENT_BYTES:
            raise self._fail("EVENT_TOO_BIG")
        return FetchArg(name, text, found.base, found.derefs, final)

    def _dereference(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        user = text[1:2] == "u"
        if user:
            text = text[0] + text[2:]
        number, brace, rest = text.removeprefix("+").partition("(")
        if not brace:
            raise self._fail("DEREF_NEED_BRACE")
        offset = signed(number, self._context.arch.bits)
        if offset is None:
            raise self._fail("BAD_DEREF_OFFS")
        # The 'u', and a '+' before a '-', are not counted by the kernel either.
        self.offset += len(number) + 1 + (not number.startswith("-"))
        end = rest.rfind(")")
        if end < 0:
            raise self._fail("DEREF_OPEN_BRACE", len(rest))
        here = self.offset
        base, derefs, _ = self._value(rest[:end])
        self._fetched = None  # its type is lost with the dereference, as in the kernel
        self.offset = here
        if not derefs and base.source in (Source.COMM, Source.TEXT):
            raise self._fail("COMM_CANT_DEREF")
        self._next_op()
        return base, (*derefs, offset), user

    def _variable(self, name: str) -> Base:
        context = self._context
        if name.startswith("retval"):
            if not context.is_return:
                raise self._fail("RETVAL_ON_PROBE")
            if not context.uprobe and name != "retval":
                raise self._fail("NOSUP_BTFARG")
            return Base(Source.RETVAL)
        if name == "duration" and context.extended and context.is_return:
            return Base(Source.DURATION)
        if name.startswith(_AT_ENTRY) and context.extended and context.is_return:
            return self._at_entry(name)
        if name == "stack":
            return Base(Source.STACK_POINTER)
        if name.startswith("stack") and name[5] in _DIGITS:
            number = decimal(name[5:], context.arch.bits)
            if number is None:
                raise self._fail("BAD_VAR")
            if not context.uprobe and number > _MAX_PARAMETER:
                raise self._fail("BAD_STACK_NUM")
            return Base(Source.STACK, value=number & 0xFFFFFFFF)
        if name in ("comm", "COMM"):
            return Base(Source.COMM)
        number = decimal(name[3:], context.arch.bits) if name.startswith("arg") else None
        if number is None:
            raise self._fail("BAD_VAR")
        if not 0 < number <= _MAX_PARAMETER:
            raise self._fail("BAD_ARG_NUM")
        if context.variables is not None and (context.at_entry or context.is_return):
            try:
                found = context.variables.parameter(number - 1)
            except VariableError as problem:
                raise explained(problem, context, self._index, self.offset) from problem
            if found is not None and not found.derefs:
                return found.base
        if context.at_entry:
            return argument(context.arch, number - 1)
        if context.is_return and not context.uprobe:
            return Base(Source.ENTRY, value=number - 1)
        raise self._fail("NOFENTRY_ARGS")

    def _at_entry(self, name: str) -> Base:
        """`$entry(BODY)`: what BODY gives where the function begins."""
        if not name.endswith(")"):
            raise self._fail("DEREF_OPEN_BRACE", len(name))
        context = self._context
        at_entry = replace(
            context, is_return=False, at_entry=not context.uprobe, variables=None, extended=False
        )
        start = self.offset + 1 + len(_AT_ENTRY)
        inner = _Reader(at_entry, self._index, start, self.size)
        base, derefs, _ = inner._value(name[len(_AT_ENTRY) : -1])
        if base.source in (Source.COMM, Source.TEXT):
            raise self._fail("COMM_CANT_DEREF")
        if inner.missing:
            self.missing = inner.missing
        if base.source is Source.REGISTER and not base.register:
            base = replace(base, source=Source.IMMEDIATE)
        return Base(Source.AT_ENTRY, fetch=(base, derefs))

    def _memory(self, text: str) -> Base:
        context = self._context
        bits = context.arch.bits
        self.ops += 1
        if text[:1] in _DIGITS:
            address = unsigned(text, bits)
            if address is None:
                raise self._fail("BAD_MEM_ADDR")
            return Base(Source.ADDRESS, value=address)
        if text.startswith("+"):
            if not context.uprobe:
                raise self._fail("FILE_ON_KPROBE")
            offset = signed(text[1:], bits)
            if offset is None:
                raise self._fail("BAD_FILE_OFFS")
            return Base(Source.IMAGE, value=offset)
        if context.uprobe:
            raise self._fail("SYM_ON_UPROBE")
        self.ops += 1  # the symbol's name takes one
        place = split_offset(text, bits)
        found = context.symbol(place[0]) if place else None
        if place is None or found is None:
            self.missing = "BAD_PROBE_ADDR" if place else "FAIL_REG_PROBE"
            return Base(Source.ADDRESS)
        value = found.value + place[1]
        return replace(found, value=value % (1 << bits) if value >= 1 << bits else value)

    def _immediate(self, text: str) -> Base:
        bits = self._context.arch.bits
        if text.startswith('"'):
            if len(text) < 2 or not text.endswith('"'):
                raise self._fail("IMMSTR_NO_CLOSE", len(text) + 1)
            return Base(Source.TEXT, text=text[1:-1].encode(errors="surrogateescape"))
        if text[:1] in _DIGITS:
            value = unsigned(text, bits)
        elif text.startswith("-"):
            value = signed(text, bits)
        else:
            value = signed(text[1:], bits) if text.startswith("+") else None
        if value is None:
            raise self._fail("BAD_IMM", 1)
        return Base(Source.IMMEDIATE, value=value % (1 << bits))

    def _next_op(self, code: str = "TOO_MANY_OPS", further: int = 0) -> None:
        self.ops += 1
        if self.ops > _LAST_OP:
            raise self._fail(code, further)

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
        if kind.kind is Kind.SYMSTR:
            if not (array_fits or (not memory and base.source in _SYMBOL_VALUES)):
                raise self._fail("BAD_SYMSTRING", type_offset)
            array_fits = False
            self._next_op()
        elif kind.is_string:
            if not memory and base.source not in _STRING_VALUES:
                raise self._fail("BAD_STRING", type_offset)
            array_fits = True
            if not memory or kind.count:
                self._next_op()
        elif not memory:
            self._next_op()
        if type_name.startswith("b"):
            field = bitfield(type_name, kind)
            if field is None:
                raise self._fail("BAD_BITFIELD", type_offset)
            kind = field
            self._next_op("BAD_BITFIELD", type_offset)
        if kind.count:
            if not array_fits:
                raise self._fail("BAD_STRING", type_offset)
            self._next_op()
        return kind
