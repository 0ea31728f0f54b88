"""Records of events: fetch arguments as plain data, the layout of a record, and filters.

The kernel's fetch arguments (kernel/trace/trace_probe.c) reduced to what an evaluator needs.
The host evaluator and, later, code generated into the guest both start from these.

A record ("row") is a run of little-endian 64-bit words:

| word | content |
|---|---|
| 0 | the event id's low 16 bits, words of the row (16-31), thread id (32-55), rest of the id |
| 1 | time |
| 2 | address of the probe |
| 3... | the arguments' words as `RecordLayout` says, then the bytes of strings |

In a row of a return event word 2 is the function's address and word 3 the address it returns to;
the arguments follow. Of a number's word the lowest bytes count, as many as its type has: whoever
records need not clear the rest. A bitfield is recorded as extracted.

The lowest 16 bits of an id are never 0: a zeroed word ends a stretch of rows.
"""

from enum import Enum
from functools import lru_cache

from msgspec import Struct

ROW_HEAD = 3
"""Words before the arguments of an entry event's row."""

RETURN_HEAD = 4
"""The same of a return event's row."""

EVENT_LOW = 0xFFFF
"""The part of an event's id that stands at the front of its rows; Linux has ids up to here."""

EVENT_MOST = 0xFFFFFF
"""The highest id of an event."""

THREAD_MOST = 0xFFFFFF
"""The highest id of a thread in a row; Linux has none beyond 22 bits (PID_MAX_LIMIT)."""


def row_head(event: int, words: int) -> tuple[int, int]:
    """The first half of a row's first word, and what the thread's id is added to in the second."""
    return event & EVENT_LOW | words << 16, (event & ~EVENT_LOW) << 8


class Source(Enum):
    """Beginning of a fetch."""

    REGISTER = "register"
    INDEXED = "indexed"
    """A register plus another one times a scale."""
    IMMEDIATE = "immediate"
    TEXT = "text"
    """An immediate string."""
    VECTOR = "vector"
    """The lowest 64 bits of a vector or floating-point register."""
    STACK_POINTER = "stack-pointer"
    STACK = "stack"
    """The Nth word above the stack pointer."""
    RETVAL = "retval"
    COMM = "comm"
    ADDRESS = "address"
    """Memory at an absolute guest address."""
    IMAGE = "image"
    """Memory at an address relative to the probe's file in memory (`@+OFF`)."""
    SYMBOL = "symbol"
    """Memory at an offset from a symbol of another file, which is looked for at the hit."""
    ENTRY = "entry"
    """The Nth argument of the function (from 0) as it was at its entry, for its return."""
    AT_ENTRY = "at-entry"
    """Value of another fetch at the entry of the function, for its return."""
    DURATION = "duration"
    """Ticks of the clock from the entry of the function to its return."""
    CURRENT = "current"
    """Address of the running task, in a kernel; no program is carried out with it."""
    PER_CPU = "per-cpu"
    """Address of the running CPU's part of another fetch's value; likewise."""
    FIELD = "field"
    """A field of the event that an event probe stands on."""
    CALL = "call"
    """A word (`engine.arch.recording.CallWord`) of a pending call, for code in the guest."""


class Base(Struct, frozen=True):
    """The beginning of a fetch.

    Attributes:
        source: which kind.
        register: the architecture's own register name, for REGISTER and VECTOR; for INDEXED
            also "", for 0.
        value: immediate, stack index, address, offset, number of an argument, of a field or of a
            word; the scale, for INDEXED.
        text: for TEXT; the name, for SYMBOL; the register that is scaled, for INDEXED; for FIELD
            nothing where it is a number.
        fetch: base and dereferences of the other fetch, for AT_ENTRY and PER_CPU.
    """

    source: Source
    register: str = ""
    value: int = 0
    text: bytes = b""
    fetch: "tuple[Base, tuple[int, ...]] | None" = None


class ValueKind(Enum):
    """Meaning of a field's bytes."""

    UNSIGNED = "u"
    SIGNED = "s"
    HEX = "x"
    CHAR = "char"
    STRING = "string"
    USTRING = "ustring"
    SYMBOL = "symbol"
    SYMSTR = "symstr"
    BITFIELD = "b"
    FLOAT = "f"
    """A floating-point number (IEEE 754) of 4 or 8 bytes, which the kernel has no type for."""


class FieldType(Struct, frozen=True):
    """The type of an argument.

    Attributes:
        kind: what it is.
        size: bytes of one element (0 for strings; of the address for a symbol's name).
        count: elements of an array, 0 for a scalar.
        width: bits of a bitfield; one of kind SIGNED is recorded with its sign, which the kernel
            has no such type for.
        offset: its lowest bit, counted as the kernel counts.
    """

    kind: ValueKind
    size: int
    count: int = 0
    width: int = 0
    offset: int = 0

    @property
    def is_string(self) -> bool:
        """True if it is recorded as bytes behind the words."""
        return self.kind in (ValueKind.STRING, ValueKind.USTRING, ValueKind.SYMSTR)


class FetchArg(Struct, frozen=True, cache_hash=True):
    """One `NAME=BODY:TYPE`.

    The base is evaluated; each of `derefs` but the last reads a word at value plus offset; the
    last one (if any) and the memory sources say where the element of `type` is loaded from. A
    value without a deref is the element itself. Elements of an array of strings are pointers.

    Attributes:
        name: as shown.
        text: BODY with its type, as given.
        base: where it begins.
        derefs: offsets, innermost first.
        type: what is recorded.
    """

    name: str
    text: str
    base: Base
    derefs: tuple[int, ...]
    type: FieldType


class RecordField(Struct, frozen=True):
    """Place of an argument in a row.

    Attributes:
        arg: the argument.
        word: index of its first word.
        words: how many: one for each element. A string's word holds the offset of its bytes
            from the start of the row (bits 0-31) and their number including the NUL (32-63);
            0 bytes: it could not be read.
    """

    arg: FetchArg
    word: int
    words: int


class RecordLayout(Struct, frozen=True, cache_hash=True):
    """The rows of one event.

    Attributes:
        fields: of the arguments in order.
        words: of a row without strings' bytes.
        strings: whether any bytes may follow.
        head: words before the arguments: RETURN_HEAD for a return event.
    """

    fields: tuple[RecordField, ...] = ()
    words: int = ROW_HEAD
    strings: bool = False
    head: int = ROW_HEAD

    @classmethod
    def of(cls, args: tuple[FetchArg, ...], returns: bool = False) -> "RecordLayout":
        """The layout for some arguments of an entry event or of a return event."""
        return _layout(args, returns)


@lru_cache(maxsize=1024)
def _layout(args: tuple[FetchArg, ...], returns: bool) -> RecordLayout:
    fields: list[RecordField] = []
    head = word = RETURN_HEAD if returns else ROW_HEAD
    for arg in args:
        words = max(arg.type.count, 1)
        fields.append(RecordField(arg, word, words))
        word += words
    return RecordLayout(tuple(fields), word, any(arg.type.is_string for arg in args), head)


class Operand(Enum):
    """Object of a predicate."""

    FIXED = "fixed"
    """Nothing: the outcome is known beforehand."""
    NUMBER = "number"
    """A number in the row."""
    CPU_SET = "cpu-set"
    """A number in the row as a CPU, compared with a set of them."""
    RANGE = "range"
    """A number in the row, and whether it lies in a range."""
    STRING = "string"
    """A string of the row."""
    COMM = "comm"
    """The name of the thread."""
    PROCESS = "process"
    """The id of the thread's process."""
    POINTER = "pointer"
    """The string in the guest that a number of the row points to."""


class Compare(Enum):
    """Comparison of a number with the predicate's value."""

    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    AND = "&"


class Match(Enum):
    """Comparison of a string with the predicate's pattern."""

    FULL = "full"
    FRONT = "front"
    MIDDLE = "middle"
    END = "end"
    GLOB = "glob"


class PredicateOp(Struct, frozen=True):
    """One test of a filter, and where to go on (kernel/trace/trace_events_filter.c).

    A filter is a tuple of these, begun at index 0. If the outcome equals `when` the next one is
    `target`, else the one behind. Index len(filter) means the event passes, len(filter) + 1 that
    it does not. Targets only go forwards.

    Attributes:
        operand: what is looked at.
        compare: for numbers.
        offset: of the number's first byte in the row, or of the string's word.
        size: of one element in bytes.
        count: elements, each in a word of its own, read as one little-endian number.
        signed: whether the number is.
        value: compared with; the outcome of FIXED; the set of CPU_SET as bits; start of RANGE.
        end: behind the last number of RANGE; number of CPUs of CPU_SET.
        match: for strings.
        pattern: for strings.
        negate: the outcome is the other one.
        when: outcome that goes to `target`.
        target: index.
    """

    operand: Operand
    compare: Compare = Compare.EQ
    offset: int = 0
    size: int = 0
    count: int = 1
    signed: bool = False
    value: int = 0
    end: int = 0
    match: Match = Match.FULL
    pattern: bytes = b""
    negate: bool = False
    when: bool = False
    target: int = 0
