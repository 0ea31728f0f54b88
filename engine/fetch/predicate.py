"""The host evaluator of filters: predicate ops compiled to a function of a recorded row.

The same ops are what code generated into the guest starts from.
"""

import operator
import re
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import THREAD_MOST, Compare, Match, Operand, PredicateOp
from engine.errors import GuestFaultError

Row: TypeAlias = "bytes | bytearray | memoryview"
RowTest: TypeAlias = Callable[[Any, int], bool]
"""True if the row at a position of a buffer passes."""

POINTER_MAX: Final = 1023
"""Most bytes looked at behind a pointer (USTRING_BUF_SIZE of trace_events_filter.c)."""
COMM_SIZE: Final = 16
"""Bytes of a thread's name, its NULs included (TASK_COMM_LEN)."""

_CHAIN_MAX: Final = 16
"""Functions that may be nested."""

_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_THREAD: Final = struct.Struct("<4xI")
_STRING: Final = struct.Struct("<II")
_WORDS: Final = struct.Struct("<2xH")
"""Words of a row, in its head."""
_NUMBERS: Final[dict[Compare, Callable[[int, int], bool]]] = {
    Compare.EQ: operator.eq,
    Compare.NE: operator.ne,
    Compare.LT: operator.lt,
    Compare.LE: operator.le,
    Compare.GT: operator.gt,
    Compare.GE: operator.ge,
}


def _no_comm(thread_id: int) -> bytes:
    return b""


def own_process(thread_id: int) -> int:
    """The process of a thread of which no more is known: its own."""
    return thread_id


def _unreadable(address: int, limit: int) -> bytes:
    raise GuestFaultError(address, "read")


class PredicateContext(Struct, frozen=True):
    """The surroundings of a predicate besides the row.

    Attributes:
        comm: a thread's name by its id.
        read_cstring: (address, limit) to bytes up to a NUL; raises `GuestFaultError`.
        process: the process of a thread, by their ids.
    """

    comm: Callable[[int], bytes | None] = _no_comm
    read_cstring: Callable[[int, int], bytes] = _unreadable
    process: Callable[[int], int] = own_process


def compile_predicate(
    ops: Sequence[PredicateOp], context: PredicateContext | None = None
) -> RowTest:
    """The function that says whether a row passes; without ops all do."""
    environment = context or PredicateContext()
    tests = [_test(op, environment) for op in ops]
    passed, failed = len(ops), len(ops) + 1
    if not ops:
        return lambda data, position: True
    if len(ops) == 1:
        (op,), (test,) = ops, tests
        if not op.when and op.target == failed:
            return test
        if op.when and op.target == failed:
            return lambda data, position: not test(data, position)
    if all(op.target == failed for op in ops) and len(ops) <= _CHAIN_MAX:
        return _chain([(test, not op.when) for op, test in zip(ops, tests, strict=True)])
    program = [(test, op.when, op.target) for op, test in zip(ops, tests, strict=True)]

    def run(data: Any, position: int) -> bool:
        at = 0
        while at < passed:
            test, when, target = program[at]
            at = target if test(data, position) is when else at + 1
        return at == passed

    return run


def _chain(steps: list[tuple[RowTest, bool]]) -> RowTest:
    """Test that all of these come out as wanted; nested functions are faster than a loop."""
    (test, wanted), *others = steps
    if not others:
        return lambda data, position: test(data, position) is wanted
    rest = _chain(others)
    return lambda data, position: test(data, position) is wanted and rest(data, position)


def _test(op: PredicateOp, context: PredicateContext) -> RowTest:
    if op.operand is Operand.FIXED:
        fixed = bool(op.value) is not op.negate
        return lambda data, position: fixed
    if op.operand is Operand.NUMBER:
        return _number_test(op)
    if op.operand is Operand.PROCESS:
        return _process_test(op, context.process)
    if op.operand is Operand.RANGE:
        number, start, end, negate = _number(op), op.value, op.end, op.negate
        return lambda data, position: (start <= number(data, position) < end) is not negate
    if op.operand is Operand.CPU_SET:
        number, cpus, compare = _number(op), op.value, op.compare
        limit = op.end

        def in_set(data: Any, position: int) -> bool:
            # The kernel reads the number as an unsigned int; one that is no CPU never matches.
            cpu = number(data, position) & 0xFFFFFFFF
            if cpu >= limit or compare is Compare.EQ:
                return False
            return compare is Compare.NE or bool(cpus >> cpu & 1)

        return in_set
    if op.operand is Operand.STRING:
        return _string_test(op)
    text, match, negate = _text(op, context), _matcher(op), op.negate

    def string(data: Any, position: int) -> bool:
        value = text(data, position)
        return False if value is None else match(value) is not negate

    return string


def row_thread(data: Any, position: int) -> int:
    """The thread's id of the row at a position."""
    thread: int = _THREAD.unpack_from(data, position)[0] & THREAD_MOST
    return thread


def _number(op: PredicateOp) -> Callable[[Any, int], int]:
    offset = op.offset
    if (offset, op.size) == (_THREAD.size - 4, 4):
        return row_thread
    code = _CODES[op.size]
    if op.signed:
        code = code.lower()
    if op.count == 1:
        unpack = struct.Struct("<" + code).unpack_from
        return lambda data, position: unpack(data, position + offset)[0]
    every = struct.Struct("<" + f"{_CODES[op.size]}{8 - op.size}x" * op.count).unpack_from
    size, signed = op.size, op.signed

    def joined(data: Any, position: int) -> int:
        pieces = every(data, position + offset)
        whole = b"".join(piece.to_bytes(size, "little") for piece in pieces)
        return int.from_bytes(whole, "little", signed=signed)

    return joined


def _number_test(op: PredicateOp) -> RowTest:
    bits = 8 * op.size * op.count
    value = op.value & (1 << bits) - 1
    if op.compare in (Compare.EQ, Compare.NE, Compare.AND):
        # Equality and bits are those of unsigned numbers.
        number = _number(replace(op, signed=False))
    else:
        number = _number(op)
        if op.signed and value >> bits - 1:
            value -= 1 << bits
    if op.compare is Compare.AND:
        return lambda data, position: bool(number(data, position) & value)
    compare = _NUMBERS[op.compare]
    return lambda data, position: compare(number(data, position), value)


def _process_test(op: PredicateOp, process: Callable[[int], int]) -> RowTest:
    value, thread = op.value, row_thread
    if op.compare is Compare.AND:
        return lambda data, position: bool(process(thread(data, position)) & value)
    compare = _NUMBERS[op.compare]
    return lambda data, position: compare(process(thread(data, position)), value)


def _text(op: PredicateOp, context: PredicateContext) -> Callable[[Any, int], bytes | None]:
    """The thread's name, or the string behind a pointer, with its NUL; None: there is none."""
    if op.operand is Operand.COMM:
        comm = context.comm

        def name(data: Any, position: int) -> bytes:
            found = comm(row_thread(data, position)) or b""
            return found[: COMM_SIZE - 1].ljust(COMM_SIZE, b"\0")

        return name
    assert op.operand is Operand.POINTER, "other strings are in the row"
    read, address = context.read_cstring, _number(op)

    def pointed(data: Any, position: int) -> bytes | None:
        try:
            return read(address(data, position), POINTER_MAX) + b"\0"
        except GuestFaultError:
            return None

    return pointed


def _string_test(op: PredicateOp) -> RowTest:
    """The test of a string of the row.

    One that could not be read has no byte there. The kernel compares what stands in its place:
    the next string that could be read. Where there is none it is what an older record has left,
    which here is like nothing.
    """
    offset, negate, unpack = op.offset, op.negate, _STRING.unpack_from
    match, lacking = _matcher(op), _lacking(op)

    def string(data: Any, position: int) -> bool:
        where, size = unpack(data, position + offset)
        if size:
            return match(bytes(data[position + where : position + where + size])) is not negate
        end = position + 8 * _WORDS.unpack_from(data, position)[0]
        there = bytes(data[position + where : end]).partition(b"\0")[0]
        return lacking(there) is not negate

    return string


def _lacking(op: PredicateOp) -> Callable[[bytes], bool]:
    """The same of a string that is not there, given what stands in its place.

    Of the kernel's ways to compare those that go by the size see nothing (regex_match_end,
    regex_match_glob), and those that take a size of 0 for an unknown one go up to a NUL.
    """
    pattern = op.pattern
    if op.match is Match.MIDDLE:
        return lambda there: pattern in there
    if op.match is Match.FULL:
        return lambda there: bool(there) and there == pattern
    if op.match is Match.FRONT:
        return lambda there: bool(there) and there.startswith(pattern)
    return lambda there: False


def matches(op: PredicateOp, value: bytes) -> bool:
    """True if a string, its NUL included, meets a term about strings."""
    return _matcher(op)(value) is not op.negate


def _matcher(op: PredicateOp) -> Callable[[bytes], bool]:
    """The kernel's five ways, on bytes that end with their NULs."""
    pattern = op.pattern
    if op.match is Match.FULL:
        return lambda value: value.partition(b"\0")[0] == pattern
    if op.match is Match.FRONT:
        return partial(_begins, pattern)
    if op.match is Match.MIDDLE:
        return lambda value: pattern in value
    if op.match is Match.END:
        # Before the last byte, whatever stands there: COMM has 16 of them.
        return lambda value: value[:-1].endswith(pattern)
    glob = re.compile(glob_regex(pattern), re.DOTALL).fullmatch
    return lambda value: glob(value.partition(b"\0")[0]) is not None


def _begins(pattern: bytes, value: bytes) -> bool:
    return value.startswith(pattern)


def glob_regex(pattern: bytes) -> bytes:
    """The regular expression of a glob as lib/glob.c reads it, backslashes included."""
    out: list[bytes] = []
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        at += 1
        if char == b"*":
            out.append(b".*")
        elif char == b"?":
            out.append(b".")
        elif char == b"[" and (found := _char_class(pattern, at)) is not None:
            text, at = found
            out.append(text)
        elif char == b"\\":
            # A backslash at the end stands for the end of the string.
            out.append(re.escape(pattern[at : at + 1]))
            at += 1
        else:
            out.append(re.escape(char))
    return b"".join(out)


def _char_class(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """The class that begins behind a bracket, and where it ends; None for one that does not."""
    inverted = pattern[at : at + 1] == b"!"
    at += inverted
    members = bytearray()
    first = True
    while True:
        if at >= len(pattern):
            return None
        low = pattern[at]
        at += 1
        if low == 0x5D and not first:  # a bracket that comes first is a member
            break
        first = False
        high = low
        if pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] != b"]":
            if at + 1 >= len(pattern):
                return None
            high = pattern[at + 1]
            at += 2
        members += bytes(range(low, high + 1))
    if not members:
        return (b"." if inverted else b"(?!)"), at
    inside = b"".join(b"\\x%02x" % member for member in sorted(set(members)))
    return b"[" + (b"^" if inverted else b"") + inside + b"]", at
