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
from engine.errors import UnloggedError
from engine.fetch.argument_words import (
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
from engine.fetch.bases import (
    ArgCursor,
    BaseReader,
    float_result,
    split_offset,
    vector_registers,
)
from engine.fetch.casts import (
    CURRENT,
    NESTING,
    PER_CPU,
    READS,
    cast_parts,
    first_member,
    member_columns,
)
from engine.fetch.dentry_types import DentryOffsets, dentry_words
from engine.fetch.meta_args import kernel_words
from engine.fetch.numbers import signed, unsigned, wrong_number
from engine.fetch.types import FLOATS, TYPES, bitfield, event_bytes, find_type
from engine.fetch.variables import TEXT_POINTER, Fetched, VariableError

__all__ = [
    "FIRST_ARG",
    "MAX_ARGS",
    "PLACE",
    "ArgContext",
    "compile_args",
    "compile_kernel_args",
    "is_identifier",
    "split_offset",
]

_MAX_BODY, _MAX_SHORT_BODY = 255, 63
"""Bytes of an argument (MAX_ARGSTR_LEN), and before `Era.long_arguments`."""
_MAX_NESTED = 8
"""Dereferences and casts within each other (TRACEPROBE_MAX_NESTED_LEVEL)."""
_MAX_ARRAY = 64
_MAX_EVENT_BYTES = 3072
_FIELD_OF_RESULT = re.compile(r"\$retval(->|\.|\[)")
_MEMORY = (Source.ADDRESS, Source.IMAGE, Source.SYMBOL)
_OUT_OF_REACH = Base(Source.IMMEDIATE, value=0xFFFF_8000_0000_0000)
"""The kernel's half of the address space: no program has memory there."""
_STRING_VALUES = (Source.IMMEDIATE, Source.COMM, Source.TEXT, Source.FIELD)
_SYMBOL_VALUES = (Source.REGISTER, Source.STACK, Source.RETVAL, Source.FIELD)


def compile_args(words: Sequence[str], context: ArgContext) -> tuple[FetchArg, ...]:
    """The arguments of a definition.

    Args:
        words: the definition's words behind the place.
        context: what they may refer to.

    Raises:
        ProbeSyntaxError: with the kernel's error. Symbols that are not there are found last
            and blamed on the place, as the kernel only looks for them when it registers.
    """
    if not context.uprobe and context.fields is None:
        check_unnamed(words, context)
    indexed = expanded(words, context)
    if len(indexed) > MAX_ARGS:
        raise context.fail("TOO_MANY_ARGS", FIRST_ARG, 0)
    args, missing = _read_all(indexed, context)
    if missing:
        raise context.fail(missing, PLACE, 0)
    return args


def compile_kernel_args(
    words: Sequence[str], context: ArgContext, dentry: DentryOffsets | None
) -> tuple[tuple[FetchArg, ...], str, Sequence[str]]:
    """The arguments of a kernel probe.

    The kernel looks for symbols when it registers the probe: until then they are no error.

    Args:
        words: the definition's words behind the place.
        context: what they may refer to.
        dentry: places of members for `%pd` and `%pD`; None if they are not known.

    Returns:
        the arguments, the error of a symbol that is not there (""), and the words as error_log
        shows them.

    Raises:
        ProbeSyntaxError: with the kernel's error.
        UnloggedError: what the kernel refuses without a word in its log.
    """
    indexed, is_new = kernel_words(words, context)
    if len(indexed) > MAX_ARGS:
        if context.era.count_said:
            raise context.fail("TOO_MANY_ARGS", FIRST_ARG, 0)
        if context.era.arguments_counted:
            raise UnloggedError(f"at most {MAX_ARGS} arguments", "E2BIG")
        indexed = indexed[:MAX_ARGS]
    if context.era.dentry_types:
        indexed = dentry_words(indexed, dentry)
        if not is_new and context.reworded is not None:
            words = [word for _, word in indexed]
            context = replace(context, fail=context.reworded(words))
    return (*_read_all(indexed, context), words)


def _read_all(
    indexed: Sequence[tuple[int, str]], context: ArgContext
) -> tuple[tuple[FetchArg, ...], str]:
    """The arguments in words with the indexes of their errors; the error of a missing symbol."""
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
    return tuple(args), missing


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

    __slots__ = ("_at", "_bases", "_context", "_depth", "_fetched", "size")

    def __init__(self, cursor: ArgCursor, size: int) -> None:
        self._at = cursor
        self._context = cursor.context
        self._bases = BaseReader(cursor, _inner_body)
        self._fetched: Fetched | None = None
        self._depth = 0
        self.size = size

    def read(self, name: str, text: str) -> FetchArg:
        """The argument with that body."""
        start = self._at.offset
        era = self._context.era
        if length(text) > (_MAX_BODY if era.long_arguments else _MAX_SHORT_BODY):
            raise self._at.fail("ARG_TOO_LONG", errno="E2BIG" if era.long_is_e2big else "EINVAL")
        if not text:
            raise self._at.fail("NO_ARG_BODY")
        body, colon, type_text = text.partition(":")
        type_name = type_text.partition("[")[0] if colon else None
        type_offset = len(body) + 1 if colon else 0
        kind = self._type(body, type_name, type_offset, type_text)
        if not era.size_after_body:
            self._grow(kind)
        base, derefs, user = self.value(body)
        if not era.caret_moves:
            self._at.offset = start
        if self._fetched is not None and self._context.kernel:
            kind, derefs = self._stored(self._fetched, type_name, kind)
        elif self._fetched is not None:
            return self._typed(name, text, self._fetched, type_name, type_offset, kind)
        if base.source is Source.FIELD and not derefs:
            base, derefs, kind = self._field(base, kind, type_name, type_offset)
        if era.size_after_body:
            self._grow(kind)
        kind = self._check(kind, type_name or "", type_offset, base, derefs, user)
        if kind.is_string and base.source is Source.IMMEDIATE and not derefs:
            derefs = (0,)  # the number is the string's address
        if base.source is Source.TEXT and self._context.uprobe and not self._context.extended:
            # The kernel looks for its own text in the program's memory: "(fault)".
            base, derefs = _OUT_OF_REACH, (0,)
        if base.source is Source.REGISTER and not base.register:
            base = replace(base, source=Source.IMMEDIATE)
        if base.source is Source.RETVAL and kind.kind is ValueKind.FLOAT and not derefs:
            register = float_result(self._context.arch)
            if register is not None:
                base = Base(Source.VECTOR, register=register)
        return FetchArg(name, text, base, derefs, kind)

    def _field(
        self, base: Base, kind: FieldType, type_name: str | None, type_offset: int
    ) -> tuple[Base, tuple[int, ...], FieldType]:
        """A field of another event as it is recorded: its string, or the one that it points to."""
        if not base.text:
            points = kind.is_string and kind.kind is not ValueKind.SYMSTR
            return base, (0,) if points else (), kind
        if type_name is None:
            kind = TYPES["string"]
        if not kind.is_string or kind.count or kind.kind is ValueKind.SYMSTR:
            error = self._at.fail("NEED_STRING_TYPE", type_offset)
            error.explain("the field is a string of the event's record")
            raise error
        return base, (), kind

    def _grow(self, kind: FieldType) -> None:
        self.size += event_bytes(kind)
        if self.size > _MAX_EVENT_BYTES:
            raise self._at.fail("EVENT_TOO_BIG")

    def _stored(
        self, found: Fetched, type_name: str | None, kind: FieldType
    ) -> tuple[FieldType, tuple[int, ...]]:
        """The type and the dereferences that BTF gives a kernel's variable."""
        if found.kind is None:
            return kind, found.derefs
        if type_name is None:
            return found.kind, found.derefs
        if "string" in type_name and self._context.era.btf_fields:
            try:
                found = found.as_string()
            except VariableError as problem:
                at = self._at
                raise explained(problem, self._context, at.index, at.offset) from problem
            for _ in range(found.string == TEXT_POINTER):
                self._at.next_op(errno="E2BIG")
        return kind, found.derefs

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
                if not self._context.era.comm_type_said:
                    raise UnloggedError(f"{body}: this is only a string")
                raise self._at.fail("NEED_STRING_TYPE", type_offset)
            return TYPES["string"]
        if body == "$duration" and name is None and self._context.extended:
            name = "u64"
        context = self._context
        kind = FLOATS.get(name or "") if context.extended else None
        if kind is None:
            kind = find_type(name, context.arch.bits, uprobe=context.uprobe, era=context.era)
        if kind is None:
            raise self._at.fail("BAD_TYPE", type_offset)
        return replace(kind, count=count) if count else kind

    def value(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """Base, dereferences and whether the last of them names user memory."""
        head, era = text[:1], self._context.era
        word = next((word for word in PER_CPU if text.startswith(word)), "")
        if era.nesting_counted and self._depth >= _MAX_NESTED and (head in NESTING or word):
            raise self._at.fail("TOO_MANY_NESTED")
        if head in ("+", "-"):
            return self._dereference(text)
        if word and era.task_and_cpu:
            return self._per_cpu(text, word)
        if head == "(" and era.event_casts:
            return self._cast(text)
        if text.startswith(CURRENT) and era.task_and_cpu and self._context.kernel:
            return self._task(text)
        if self._context.fields is not None and head in ("$", "%"):
            if head == "%":  # said behind "Invalid $-variable specified"
                raise self._at.fail("BAD_FETCH_ARG")
            return self._bases.field(text[1:]), (), False
        if head == "$":
            if self._context.variables is not None and (
                self._is_result(text) if self._context.kernel else _FIELD_OF_RESULT.match(text)
            ):
                return self._named(text)
            return self._bases.variable(text[1:]), (), False
        if head == "%":
            if not self._context.registers:
                raise self._at.fail("BAD_VAR")
            if self._context.extended and not text[1:].isidentifier():
                return self._bases.indexed(text), (), False
            probes = self._context.arch.probes
            fixed = probes.fixed_registers.get(text[1:])
            if fixed is not None:  # checked as the register that the kernel takes it for
                return Base(Source.REGISTER, value=fixed), (), False
            register = probes.fetch_registers.get(text[1:])
            if register is None and self._context.extended:
                vector = vector_registers(self._context.arch).get(text[1:])
                if vector is not None:
                    return Base(Source.VECTOR, register=vector), (), False
            if register is None:
                raise self._at.fail("BAD_REG_NAME")
            return Base(Source.REGISTER, register=register), (), False
        if head == "@":
            return self._bases.memory(text[1:]), (), False
        if head == "\\":
            return self._bases.immediate(text[1:]), (), False
        variables = self._context.variables
        if _begins_name(head) and era.btf:
            return self._named(text)
        if self._context.kernel:
            if head == "(" and era.casts:  # a cast of a variable
                raise self._at.fail("NOSUP_BTFARG")
            raise self._at.fail("BAD_FETCH_ARG")
        if variables is not None and head == "*":
            return self._named(text)
        if variables is None and head == "(":
            raise self._at.fail("NOSUP_BTFARG")
        raise self._at.fail("BAD_FETCH_ARG")

    def _is_result(self, text: str) -> bool:
        """True if BTF is asked about a return event's result."""
        context = self._context
        return context.is_return and context.era.btf_fields and text.startswith("$retval")

    def _named(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """A variable, or what it leads to."""
        variables = self._context.variables
        if variables is None:
            raise self._at.fail("NOSUP_BTFARG")
        try:
            found = variables.resolve(text)
        except VariableError as problem:
            raise explained(problem, self._context, self._at.index, self._at.offset) from problem
        self._read(text, first_member(text), found)
        return found.base, found.derefs, False

    def _read(self, text: str, at: int, found: Fetched, derefs: tuple[int, ...] = ()) -> None:
        """A variable, or the member that `text` ends with, is what was fetched last.

        Args:
            text: the whole expression of members.
            at: where the first member begins in it.
            found: the way to it.
            derefs: those before that way.
        """
        start, counts = self._at.offset, self._context.era.member_columns
        columns = member_columns(text, at) if self._context.kernel and counts else ()
        for number, _ in enumerate(found.derefs):
            self._at.offset = start + (columns[number] if columns else 0)
            self._at.next_op()
        self._fetched = replace(found, derefs=(*derefs, *found.derefs))

    def _nested(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """The body within a dereference or a cast."""
        self._depth += 1
        found = self.value(text)
        self._depth -= 1
        return found

    def _cast(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """`(STRUCT[,MEMBER])ARG->MEMBER`: ARG is the address of STRUCT, or of MEMBER in it."""
        context, start = self._context, self._at.offset
        if not context.era.function_casts:
            raise self._at.fail("TYPECAST_NOT_EVENT")
        if context.records is None or not (context.at_entry or context.is_return):
            raise self._at.fail("NOSUP_BTFARG", errno="EOPNOTSUPP")
        parts = cast_parts(self._at, text)
        self._at.offset = start + parts.inner_at
        base, derefs, _ = self._nested(text[parts.inner_at : parts.inner_end])
        self._at.offset = start
        try:
            found = context.records.cast(text, parts.close, parts.member_at)
        except VariableError as problem:
            raise explained(problem, context, self._at.index, start) from problem
        self._read(text, parts.member_at, replace(found, base=base), derefs)
        return base, (*derefs, *found.derefs), False

    def _task(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """`$current`, the running task's structure, or a member of that."""
        if text == CURRENT:
            return Base(Source.CURRENT), (), False
        if text[len(CURRENT)] != "-":
            raise self._at.fail("BAD_VAR")
        records = self._context.records
        if records is None:
            raise self._at.fail("NO_BTF_ENTRY")
        try:
            found = records.task(text)
        except VariableError as problem:
            raise explained(problem, self._context, self._at.index, self._at.offset) from problem
        self._read(text, first_member(text), found)
        return found.base, found.derefs, False

    def _per_cpu(self, text: str, word: str) -> tuple[Base, tuple[int, ...], bool]:
        """`this_cpu_ptr(ARG)`, `this_cpu_read(ARG)`: of `@SYM` the address counts."""
        if self._context.uprobe:
            raise self._at.fail("NOSUP_PERCPU")
        self._at.offset += len(word)
        rest = text[len(word) :]
        end = rest.rfind(")")
        if end < 0:
            raise self._at.fail("DEREF_OPEN_BRACE", len(rest))
        here = self._at.offset
        base, derefs, _ = self._nested(rest[:end])
        self._fetched, self._at.offset = None, here
        if not derefs and base.source in (Source.COMM, Source.TEXT):
            raise self._at.fail("COMM_CANT_DEREF")
        if not rest.startswith("@"):
            self._at.next_op()
        found = Base(Source.PER_CPU, fetch=(base, derefs))
        if word != READS:
            return found, (), False
        self._at.next_op()
        return found, (0,), False

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
            errno = wrong_number(number, self._context.arch.bits, is_signed=True)
            raise self._at.fail("BAD_DEREF_OFFS", errno=errno)
        # The 'u', and a '+' before a '-', are not counted by the kernel either.
        self._at.offset += len(number) + 1 + (not number.startswith("-"))
        end = rest.rfind(")")
        if end < 0:
            raise self._at.fail("DEREF_OPEN_BRACE", len(rest))
        here = self._at.offset
        base, derefs, _ = self._nested(rest[:end])
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
            self._at.next_op(errno=self._full)
        if type_name.startswith("b"):
            field = bitfield(type_name, kind)
            if field is None:
                raise self._at.fail("BAD_BITFIELD", type_offset)
            kind = field
            self._at.next_op("BAD_BITFIELD", type_offset)
        if kind.count:
            if not array_fits:
                raise self._at.fail("BAD_STRING", type_offset)
            self._at.next_op(errno=self._full)
        return kind

    @property
    def _full(self) -> str:
        return "E2BIG" if self._context.era.long_is_e2big else "EINVAL"
