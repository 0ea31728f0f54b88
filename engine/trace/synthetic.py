"""Synthetic events: those that the triggers of others make, as in tracefs' `synthetic_events`.

Read and refused as kernel/trace/trace_events_synth.c does, with its texts and carets. Here a line
of `dynamic_events` defines one: `s:[synthetic/]NAME TYPE FIELD[; TYPE FIELD...]`.
"""

import re
from typing import Final

from msgspec import Struct

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.errors import ProbeSyntaxError
from engine.fetch.compile import is_identifier
from engine.fetch.numbers import unsigned
from engine.trace.rows import Column, EventInfo, EventSource

GROUP: Final = "synthetic"
LETTER: Final = "s:"
MOST_FIELDS: Final = 64
"""Fields of one event, and parameters of one action (SYNTH_FIELDS_MAX)."""
STRING_SIZE: Final = 256
"""Bytes of a string with a length in the kernel's record, and of one that a variable keeps."""
SUBSYSTEM: Final = "synthetic_events"
TEXTS: Final[dict[str, str]] = {
    "BAD_NAME": "Illegal name",
    "INVALID_CMD": "Command must be of the form: <name> field[;field] ...",
    "INVALID_DYN_CMD": "Command must be of the form: s or -:[synthetic/]<name> field[;field] ...",
    "EVENT_EXISTS": "Event already exists",
    "TOO_MANY_FIELDS": "Too many fields",
    "INCOMPLETE_TYPE": "Incomplete type",
    "INVALID_TYPE": "Invalid type",
    "INVALID_FIELD": "Invalid field",
    "INVALID_ARRAY_SPEC": "Invalid array specification",
}
_SIZES: Final = {
    **{f"{sign}{bits}": bits // 8 for sign in "su" for bits in (8, 16, 32, 64)},
    "char": 1,
    "unsigned char": 1,
    "int": 4,
    "unsigned int": 4,
    "long": 8,
    "unsigned long": 8,
    "bool": 1,
    "pid_t": 4,
    "gfp_t": 4,
}
_REMOVAL: Final = re.compile(r"!([A-Za-z_]\w*)(?=\s|$)", re.ASCII)
_OTHER_REMOVAL: Final = re.compile(r"\s*![se][^\s:]*:(.+)", re.DOTALL)
_OVERRIDE: Final = re.compile(r"[pr]\d*")
_BLANK: Final = re.compile(r"[ \t]")


class SyntheticField(Struct, frozen=True):
    """One field.

    Attributes:
        name: of it.
        ctype: its type in the kernel's words.
        size: bytes in the kernel's words; 8 for what has no fixed size.
        signed: whether it is a number with a sign.
        dynamic: a string or a stack without a length.
    """

    name: str
    ctype: str
    size: int
    signed: bool
    dynamic: bool = False

    @property
    def is_string(self) -> bool:
        """True for a string."""
        return "char[" in self.ctype

    @property
    def is_stack(self) -> bool:
        """True for a call stack."""
        return "long[" in self.ctype

    def listing(self) -> str:
        """As `synthetic_events` lists it (synth_event_show)."""
        return f"{self.ctype.removeprefix('__data_loc ')} {self.name}"


class SyntheticEvent(Struct, frozen=True):
    """A synthetic event.

    Attributes:
        name: of it; its group is "synthetic".
        fields: what it has.
    """

    name: str
    fields: tuple[SyntheticField, ...]

    def info(self, number: int) -> EventInfo:
        """The event in a trace."""
        columns = tuple(
            Column(field.name, _column_type(field), ROW_HEAD + at, field.ctype)
            for at, field in enumerate(self.fields)
        )
        words, source = ROW_HEAD + len(columns), EventSource.SYNTHETIC
        return EventInfo(number, GROUP, self.name, columns, words, source=source)

    def listing(self) -> str:
        """The line of it."""
        return f"{self.name}\t{'; '.join(field.listing() for field in self.fields)}"


def is_definition(line: str) -> bool:
    """True for a line that defines one."""
    return line.lstrip().startswith(LETTER)


def removed(line: str) -> str:
    """The event that a line takes away: `!NAME ...` of `synthetic_events`; "" for other lines.

    What stands behind the name does not matter. `!p ...` and `!r ...` place a probe in spite of
    everything.
    """
    found = _REMOVAL.match(line.lstrip())
    return "" if found is None or _OVERRIDE.fullmatch(found[1]) else found[1]


def other_removal(line: str) -> str:
    """A line `-:NAME ...` that means what `!s:NAME ...` and `!e:NAME ...` do; "" for others."""
    found = _OTHER_REMOVAL.match(line)
    return "" if found is None else f"-:{found[1]}"


def parse_definition(line: str) -> SyntheticEvent:
    """Understand a line of `dynamic_events` that begins with `s:`.

    Raises:
        ProbeSyntaxError: the kernel would refuse it.
    """
    line = line.strip()
    command = line.removeprefix(LETTER)
    if _BLANK.search(line) is None:
        raise _error("INVALID_CMD", line)
    group, slash, rest = command.partition("/")
    if "/" in command:
        if group != GROUP or not slash:
            raise _error("INVALID_DYN_CMD", line)
        command = rest
    return _parsed(command, line)


def parse_command(command: str) -> SyntheticEvent:
    """Understand a line of `synthetic_events`.

    Raises:
        ProbeSyntaxError: the kernel would refuse it.
    """
    return _parsed(command.lstrip(), command.lstrip())


def _parsed(command: str, line: str) -> SyntheticEvent:
    if len(command.partition(";")[0].split()) < 3:
        raise _error("INVALID_CMD", line)
    name, rest = _BLANK.split(command, 1)
    if not is_identifier(name):
        raise _error("BAD_NAME" if name else "INVALID_CMD", line, name)
    fields: list[SyntheticField] = []
    for part in rest.split(";"):
        words = part.split()
        while words:
            taken, field = _field(words, line)
            if len(fields) == MOST_FIELDS:
                raise _error("TOO_MANY_FIELDS", line)
            fields.append(field)
            words = words[taken:]
    return SyntheticEvent(name, tuple(fields))


def _field(words: list[str], line: str) -> tuple[int, SyntheticField]:
    prefix, kind, taken = "", words[0], 2
    if kind == "unsigned":
        if len(words) < 3:
            raise _error("INCOMPLETE_TYPE", line, kind)
        prefix, kind, taken = "unsigned ", words[1], 3
    if len(words) < taken:
        raise _error("INVALID_FIELD", line, kind)
    declared = words[taken - 1]
    name, bracket, rest = declared.partition("[")
    if not is_identifier(name):
        raise _error("BAD_NAME", line, declared)
    ctype = f"{prefix}{kind}{bracket}{rest}"
    size = _size(ctype)
    if size is None:
        code, part = ("INVALID_ARRAY_SPEC", declared) if bracket else ("INVALID_TYPE", kind)
        raise _error(code, line, part)
    dynamic = not size
    if dynamic:
        if "char[" not in ctype and "long[" not in ctype:
            raise _error("INVALID_TYPE", line, kind)
        ctype, size = f"__data_loc {ctype}", 8
    signed = not ctype.startswith("u") and ctype != "gfp_t"
    return taken, SyntheticField(name, ctype, size, signed, dynamic)


def _size(ctype: str) -> int | None:
    """Bytes of a type, 0 for one without a fixed size or that is none; None for a bad string."""
    if ctype in _SIZES:
        return _SIZES[ctype]
    _, found, rest = ctype.partition("char[")
    if not found:
        return 0
    count, bracket, behind = rest.partition("]")
    if not bracket or behind or len(count) > 3:
        return None
    size = unsigned(count, 32) if count else 0
    return size if size is not None and size <= STRING_SIZE else None


def _column_type(field: SyntheticField) -> FieldType:
    if field.is_string or field.is_stack:
        return FieldType(ValueKind.STRING, 0)
    if field.ctype == "gfp_t":
        return FieldType(ValueKind.HEX, field.size)
    return FieldType(ValueKind.SIGNED if field.signed else ValueKind.UNSIGNED, field.size)


def exists_error(event: SyntheticEvent, line: str) -> ProbeSyntaxError:
    """The error of a second event of one name."""
    error = _error("EVENT_EXISTS", line.strip(), event.name)
    error.errno = "EEXIST"
    return error


def _error(code: str, line: str, part: str = "") -> ProbeSyntaxError:
    at = line.find(part) if part else 0
    return ProbeSyntaxError(code, TEXTS[code], line, max(at, 0), SUBSYSTEM)


def print_format(info: EventInfo, *, narrow: bool = False) -> str:
    """The text behind `print fmt:` of the event's `format` file.

    Args:
        info: the event.
        narrow: its call stacks are texts: libtraceevent knows none in an event.
    """
    text = " ".join(f"{column.name}={_conversion(column)}" for column in info.columns)
    values = "".join(f", {_value(column, narrow)}" for column in info.columns)
    return f'"{text}"{values}'


def _conversion(column: Column) -> str:
    if column.type.is_string:
        return "%s"
    if column.ctype == "gfp_t":
        return "%x"
    long = {"s64": "ll", "u64": "ll", "long": "l", "unsigned long": "l"}.get(column.ctype, "")
    return f"%{long}{'d' if column.type.kind is ValueKind.SIGNED else 'u'}"


def _value(column: Column, narrow: bool) -> str:
    if narrow and column.type.is_string and column.ctype.startswith("__data_loc"):
        return f"__get_str({column.name})"
    if "long[" in column.ctype:
        return f"__get_stacktrace({column.name})"
    if column.ctype.startswith("__data_loc"):
        return f"__get_str({column.name})"
    return f"REC->{column.name}"
