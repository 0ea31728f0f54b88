"""The base of a fetch: `$VAR`, `@ADDR`, an immediate; the kernel's errors and caret columns."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from engine.arch.base import Arch, Register
from engine.arch.program import Base, Source
from engine.errors import ProbeSyntaxError
from engine.fetch.argument_words import ArgContext, explained
from engine.fetch.numbers import decimal, signed, unsigned, wrong_number
from engine.fetch.variables import VariableError

_MAX_PARAMETER: Final = 2048  # THREAD_SIZE / sizeof(long)
_AT_ENTRY: Final = "entry("
_FLOATING: Final = ("vector", "float")
_PLAIN_BITS: Final = (64, 128)
_LAST_OP: Final = 14  # of 16 fetch instructions the last is always the end
_SIGN: Final = re.compile(r"[+-]")
_INDEXED: Final = re.compile(
    r"(?:%(?P<base>\w+)\+)?%(?P<index>\w+)(?:\*(?P<scale>1|2|4|8|16))?", re.ASCII
)
DIGITS: Final = frozenset("0123456789")


def split_offset(text: str, bits: int) -> tuple[str, int] | None:
    """`SYM[+OFF|-OFF]` to its two parts, None where the offset is no number."""
    match = _SIGN.search(text)
    if match is None:
        return text, 0
    offset = signed(text[match.start() :], bits)
    return None if offset is None else (text[: match.start()], offset)


def argument(arch: Arch, index: int) -> Base:
    """The place of a function's argument (from 0) at its first instruction.

    Beyond the registers it is on the stack, above the return address if that is there too.
    (The kernel does the same on x86-64; on arm64 it would give 0.)
    """
    registers = arch.probes.arguments
    if index < len(registers):
        return Base(Source.REGISTER, register=registers[index])
    return Base(Source.STACK, value=index - len(registers) + (arch.roles.link is None))


def vector_registers(arch: Arch) -> Mapping[str, str]:
    """The registers whose lowest 64 bits hold numbers with a point, by all their names.

    Those of x87 and of IA-64 are not among them: they keep a form of their own.
    """
    return _vector_names(arch.registers)


@lru_cache(maxsize=8)
def _vector_names(registers: tuple[Register, ...]) -> Mapping[str, str]:
    return {
        name: one.name
        for one in registers
        if one.group in _FLOATING and one.bits in _PLAIN_BITS and one.dwarf is not None
        for name in (one.name, *one.aliases)
    }


def float_result(arch: Arch) -> str | None:
    """The register of those with a function's result where that is a number with a point."""
    convention = arch.abi.calls
    if convention is None or not convention.vectors:
        return None
    first = convention.vectors[0]
    name = next((one.name for one in arch.registers if one.dwarf == first), "")
    return name if name in vector_registers(arch) else None


class ArgCursor:
    """The place in a definition's word that is being read, and what was met before it.

    Attributes:
        context: what arguments may refer to.
        index: of the word.
        offset: what the kernel's messages count from, in the word.
        ops: index of the fetch instruction that the kernel would have reached.
        missing: error of a symbol that is not there.
    """

    __slots__ = ("context", "index", "missing", "offset", "ops")

    def __init__(self, context: ArgContext, index: int, offset: int) -> None:
        self.context = context
        self.index = index
        self.offset = offset
        self.ops = 0
        self.missing = ""

    def fail(self, code: str, further: int = 0, errno: str = "") -> ProbeSyntaxError:
        """The kernel's error, so many characters behind the place; `errno` if not the usual."""
        error = self.context.fail(code, self.index, self.offset + further)
        error.errno = errno or error.errno
        return error

    def next_op(self, code: str = "TOO_MANY_OPS", further: int = 0, errno: str = "") -> None:
        """Count a fetch instruction.

        Raises:
            ProbeSyntaxError: the kernel has no room for it.
        """
        self.ops += 1
        if self.ops > _LAST_OP:
            raise self.fail(code, further, errno)


def _wrong_immediate(text: str, bits: int) -> str:
    if text[:1] in DIGITS:
        return wrong_number(text, bits, is_signed=False)
    if text[:1] in ("+", "-"):
        return wrong_number(text.removeprefix("+"), bits, is_signed=True)
    return "EINVAL"


ReadBody = Callable[[ArgCursor, str], tuple[Base, tuple[int, ...]]]
"""Reads a body within another one: its base and dereferences."""


class BaseReader:
    """Reads the base of an argument: a variable, an address or an immediate."""

    __slots__ = ("_at", "_read_body")

    def __init__(self, cursor: ArgCursor, read_body: ReadBody) -> None:
        """`read_body` is for the body of `$entry(BODY)`."""
        self._at = cursor
        self._read_body = read_body

    def variable(self, name: str) -> Base:
        """`$NAME`."""
        context = self._at.context
        if name.startswith("retval") and (context.era.btf_fields or name == "retval"):
            if not context.is_return:
                raise self._at.fail("RETVAL_ON_PROBE")
            if not context.uprobe and name != "retval":
                raise self._at.fail("NOSUP_BTFARG")
            return Base(Source.RETVAL)
        if name == "duration" and context.extended and context.is_return:
            return Base(Source.DURATION)
        if name.startswith(_AT_ENTRY) and context.extended and context.is_return:
            return self._at_entry(name)
        if name == "stack":
            return Base(Source.STACK_POINTER)
        if name.startswith("stack") and name[5] in DIGITS:
            number = decimal(name[5:], context.arch.bits)
            if number is None:
                raise self._at.fail("BAD_VAR")
            if not context.uprobe and number > _MAX_PARAMETER:
                raise self._at.fail("BAD_STACK_NUM")
            return Base(Source.STACK, value=number & 0xFFFFFFFF)
        if name in ("comm", "COMM"):
            return Base(Source.COMM)
        number = decimal(name[3:], context.arch.bits) if name.startswith("arg") else None
        known = context.era.return_args or context.at_entry
        if number is None or not known:
            raise self._at.fail("BAD_VAR")
        if not 0 < number <= _MAX_PARAMETER:
            raise self._at.fail("BAD_ARG_NUM")
        if context.variables is not None and (context.at_entry or context.is_return):
            try:
                found = context.variables.parameter(number - 1)
            except VariableError as problem:
                raise explained(problem, context, self._at.index, self._at.offset) from problem
            if found is not None and not found.derefs:
                return found.base
        if context.at_entry:
            return argument(context.arch, number - 1)
        if context.is_return and not context.uprobe:
            return Base(Source.ENTRY, value=number - 1)
        raise self._at.fail("NOFENTRY_ARGS")

    def field(self, name: str) -> Base:
        """`$NAME` of an event probe: a field of the other event, or the thread's name."""
        fields = self._at.context.fields
        found = fields(name) if fields is not None else None
        if found is None and name in ("comm", "COMM"):
            found = Base(Source.COMM)
        if found is None:
            raise self._at.fail("BAD_VAR")
        return found

    def _at_entry(self, name: str) -> Base:
        """`$entry(BODY)`: what BODY gives where the function begins."""
        if not name.endswith(")"):
            raise self._at.fail("DEREF_OPEN_BRACE", len(name))
        context = self._at.context
        at_entry = replace(context, is_return=False, at_entry=not context.uprobe, variables=None)
        start = self._at.offset + 1 + len(_AT_ENTRY)
        inner = ArgCursor(at_entry, self._at.index, start)
        base, derefs = self._read_body(inner, name[len(_AT_ENTRY) : -1])
        if base.source in (Source.COMM, Source.TEXT):
            raise self._at.fail("COMM_CANT_DEREF")
        if inner.missing:
            self._at.missing = inner.missing
        if base.source is Source.REGISTER and not base.register:
            base = replace(base, source=Source.IMMEDIATE)
        return Base(Source.AT_ENTRY, fetch=(base, derefs))

    def indexed(self, text: str) -> Base:
        """`%REG+%REG*SCALE`, `%REG*SCALE`: an element's place in an array; no kernel knows it."""
        found, names = _INDEXED.fullmatch(text), self._at.context.arch.probes.fetch_registers
        if found is None or not {found["base"] or found["index"], found["index"]} <= names.keys():
            raise self._at.fail("BAD_REG_NAME")
        base = names[found["base"]] if found["base"] else ""
        index = names[found["index"]].encode()
        return Base(Source.INDEXED, register=base, value=int(found["scale"] or 1), text=index)

    def memory(self, text: str) -> Base:
        """`@ADDR`, `@SYM[+|-OFF]` or `@+OFF`."""
        context = self._at.context
        bits = context.arch.bits
        self._at.ops += 1
        if text[:1] in DIGITS:
            address = unsigned(text, bits)
            if address is None:
                errno = wrong_number(text, bits, is_signed=False)
                raise self._at.fail("BAD_MEM_ADDR", errno=errno)
            return Base(Source.ADDRESS, value=address)
        if text.startswith("+"):
            if not context.uprobe:
                raise self._at.fail("FILE_ON_KPROBE")
            offset = signed(text[1:], bits)
            if offset is None:
                errno = wrong_number(text[1:], bits, is_signed=True)
                raise self._at.fail("BAD_FILE_OFFS", errno=errno)
            return Base(Source.IMAGE, value=offset)
        if context.uprobe:
            raise self._at.fail("SYM_ON_UPROBE")
        self._at.ops += 1  # the symbol's name takes one
        place = split_offset(text, bits)
        found = context.symbol(place[0]) if place else None
        if place is None or found is None:
            self._at.missing = "BAD_PROBE_ADDR" if place else "FAIL_REG_PROBE"
            return Base(Source.ADDRESS)
        value = found.value + place[1]
        return replace(found, value=value % (1 << bits) if value >= 1 << bits else value)

    def immediate(self, text: str) -> Base:
        r"""`\IMM`."""
        bits = self._at.context.arch.bits
        if text.startswith('"'):
            if len(text) < 2 or not text.endswith('"'):
                raise self._at.fail("IMMSTR_NO_CLOSE", len(text) + 1)
            return Base(Source.TEXT, text=text[1:-1].encode(errors="surrogateescape"))
        if text[:1] in DIGITS:
            value = unsigned(text, bits)
        elif text.startswith("-"):
            value = signed(text, bits)
        else:
            value = signed(text[1:], bits) if text.startswith("+") else None
        if value is None:
            raise self._at.fail("BAD_IMM", 1, _wrong_immediate(text, bits))
        return Base(Source.IMMEDIATE, value=value % (1 << bits))
