"""Where a fetch begins: `$VAR`, `@ADDR`, an immediate; the kernel's errors and caret columns."""

import re
from dataclasses import replace
from typing import Final

from engine.arch.base import Arch
from engine.arch.program import Base, Source
from engine.errors import ProbeSyntaxError
from engine.fetch.numbers import decimal, signed, unsigned
from engine.fetch.variables import VariableError
from engine.fetch.words import ArgContext, explained

_MAX_PARAMETER: Final = 2048  # THREAD_SIZE / sizeof(long)
_AT_ENTRY: Final = "entry("
_SIGN: Final = re.compile(r"[+-]")
DIGITS: Final = frozenset("0123456789")


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


class BaseReader:
    """Reads what an argument begins with.

    Attributes:
        offset: what the kernel's messages count from, in the word.
        ops: index of the fetch instruction that the kernel would have reached.
        missing: error of a symbol that is not there.
    """

    __slots__ = ("_context", "_index", "missing", "offset", "ops")

    def __init__(self, context: ArgContext, index: int, offset: int) -> None:
        self._context = context
        self._index = index
        self.offset = offset
        self.ops = 0
        self.missing = ""

    def _fail(self, code: str, further: int = 0) -> ProbeSyntaxError:
        return self._context.fail(code, self._index, self.offset + further)

    def _inner(self, context: ArgContext, start: int) -> "BaseReader":
        """A reader of a body within this one."""
        raise NotImplementedError

    def _value(self, text: str) -> tuple[Base, tuple[int, ...], bool]:
        """Base, dereferences and whether the last of them names user memory."""
        raise NotImplementedError

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
        if name.startswith("stack") and name[5] in DIGITS:
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
        inner = self._inner(at_entry, start)
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
        if text[:1] in DIGITS:
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
        if text[:1] in DIGITS:
            value = unsigned(text, bits)
        elif text.startswith("-"):
            value = signed(text, bits)
        else:
            value = signed(text[1:], bits) if text.startswith("+") else None
        if value is None:
            raise self._fail("BAD_IMM", 1)
        return Base(Source.IMMEDIATE, value=value % (1 << bits))
