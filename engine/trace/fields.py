"""The fields of an event as the kernel names them, in its `format` file and in filters.

Offsets and types are those of the kernel's own record (traceprobe_define_arg_fields in
kernel/trace/trace_probe.c, trace_define_common_fields in trace_events.c, trace_syscalls.c), so
that what was tried here works there; where a field stands in a row of ours is beside them.
"""

from enum import Enum
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import FieldType, ValueKind
from engine.trace import sched, synthetic
from engine.trace.kinds import printf_conversion
from engine.trace.rows import Column, EventInfo, EventSource, KernelRecord

_COMMON_SIZE: Final = 8
_LOCATION: Final = "__data_loc char[]"
_LONG: Final = 8


class FieldKind(Enum):
    """The uses of a field in filters and histograms."""

    NUMBER = "number"
    STRING = "string"
    POINTER = "pointer"
    """A pointer to a string."""
    CPU = "cpu"
    COMM = "comm"
    PROCESS = "process"
    """The process of the row's thread."""
    STACK = "stack"

    @property
    def is_string(self) -> bool:
        """True if it is compared with strings."""
        return self in (FieldKind.STRING, FieldKind.POINTER, FieldKind.COMM)


class Field(Struct, frozen=True):
    """One field.

    Attributes:
        name: as the kernel names it.
        ctype: its type in the kernel's words.
        offset: bytes from the start of the kernel's record.
        size: bytes there; 0 for a field that no record holds.
        signed: whether the number is.
        kind: what it is.
        row: bytes from the start of our row; -1 if it is not there.
        column: the argument it shows, if any.
    """

    name: str
    ctype: str
    offset: int
    size: int
    signed: bool
    kind: FieldKind = FieldKind.NUMBER
    row: int = -1
    column: Column | None = None

    @property
    def is_text(self) -> bool:
        """True for a string of the record: its row has a word for it and its bytes behind."""
        return self.column is not None and self.column.type.is_string

    @property
    def is_float(self) -> bool:
        """True for a number with a point."""
        return self.column is not None and self.column.type.kind is ValueKind.FLOAT

    def describe(self, *, counted: bool = False) -> str:
        """The line of a `format` file; `counted`: with the number of an array's elements."""
        declared, array, rest = self.ctype.partition("[")
        if declared == "char" and array:
            text = f"char {self.name}[{rest}"
        elif array and not self.ctype.startswith("__data_loc"):
            text = f"{declared} {self.name}[{rest if counted else ']'}"
        else:
            text = f"{self.ctype} {self.name}"
        signed = int(self.signed)
        return f"field:{text};\toffset:{self.offset};\tsize:{self.size};\tsigned:{signed};"


COMMON: Final = (
    Field("common_type", "unsigned short", 0, 2, False, row=0),
    Field("common_flags", "unsigned char", 2, 1, False),
    Field("common_preempt_count", "unsigned char", 3, 1, False),
    Field("common_pid", "int", 4, 4, True, row=4),
)
"""The fields of all events. A guest has no interrupt state: flags and count are 0."""

GENERIC: Final = (
    *(Field(name, "int", 0, 0, True, FieldKind.CPU) for name in ("CPU", "cpu", "common_cpu")),
    *(Field(name, "char *", 0, 0, True, FieldKind.COMM) for name in ("COMM", "comm")),
    *(Field(name, "char *", 0, 0, True, FieldKind.STACK) for name in ("stacktrace", "STACKTRACE")),
)
"""Fields that filters know besides (trace_define_generic_fields)."""


@lru_cache(maxsize=1024)
def own_fields(info: EventInfo) -> tuple[Field, ...]:
    """The fields of one event, without those of all."""
    if info.record is not None:
        return _recorded_fields(info, info.record)
    if info.source in (EventSource.SYSCALL_ENTER, EventSource.SYSCALL_EXIT):
        return _syscall_fields(info)
    if info.source is EventSource.SCHED:
        return _sched_fields(info)
    if info.source is EventSource.SYNTHETIC:
        return _synthetic_fields(info)
    names = ["__probe_func", "__probe_ret_ip"] if info.returns else ["__probe_ip"]
    if info.source is EventSource.EPROBE:
        names = []
    found: list[Field] = []
    offset = _COMMON_SIZE
    for name in names:
        # In a row they stand behind the time.
        found.append(Field(name, "unsigned long", offset, _LONG, False, row=offset + _LONG))
        offset += _LONG
    for column in info.columns:
        field = _argument(column, offset)
        found.append(field)
        offset += field.size
    return tuple(found)


def find(info: EventInfo, name: str) -> Field | None:
    """A field by its name: the event's own, then the generic ones, then the common ones."""
    for field in (*own_fields(info), *GENERIC, *COMMON):
        if field.name == name:
            return field
    return None


def element_type(kind: FieldType) -> str:
    """The kernel's type of one element of an argument."""
    if kind.is_string:
        return _LOCATION
    letter = {ValueKind.SIGNED: "s", ValueKind.FLOAT: "f"}.get(kind.kind, "u")
    return f"{letter}{8 * kind.size}"


def _argument(column: Column, offset: int) -> Field:
    kind = column.type
    string = kind.is_string
    size = (4 if string else kind.size) * max(kind.count, 1)
    ctype = element_type(kind) + (f"[{kind.count}]" if kind.count else "")
    signed = string or kind.kind is ValueKind.SIGNED
    what = FieldKind.STRING if string else FieldKind.NUMBER
    return Field(column.name, ctype, offset, size, signed, what, column.word * 8, column)


def _syscall_fields(info: EventInfo) -> tuple[Field, ...]:
    number, *rest = info.columns
    found = [Field(number.name, "int", 8, 4, True, row=number.word * 8, column=number)]
    offset = 16
    for column in rest:
        string = column.type.is_string
        if string:
            field = Field(
                column.name, _LOCATION, offset, 4, False, FieldKind.STRING, column.word * 8, column
            )
        else:
            pointer = "char" in column.ctype and " *" in column.ctype
            kind = FieldKind.POINTER if pointer else FieldKind.NUMBER
            signed = info.source is EventSource.SYSCALL_EXIT
            field = Field(
                column.name, column.ctype, offset, 8, signed, kind, column.word * 8, column
            )
        found.append(field)
        offset += field.size
    return tuple(found)


def _recorded_fields(info: EventInfo, record: KernelRecord) -> tuple[Field, ...]:
    """The fields of an event of a kernel that is the guest, as it has them itself."""
    found: list[Field] = []
    places = zip(info.columns, record.offsets, record.sizes, record.signed, strict=True)
    for column, offset, size, signed in places:
        kind = FieldKind.STRING if column.type.is_string else FieldKind.NUMBER
        if "char" in column.ctype and " *" in column.ctype:
            kind = FieldKind.POINTER
        row = column.word * 8
        found.append(Field(column.name, column.ctype, offset, size, signed, kind, row, column))
    return tuple(found)


def _sched_fields(info: EventInfo) -> tuple[Field, ...]:
    found: list[Field] = []
    for column, offset, size in sched.field_places(info):
        string = column.type.is_string
        kind = FieldKind.STRING if string else FieldKind.NUMBER
        signed = not string and size > 1
        field = Field(
            column.name, column.ctype, offset, size, signed, kind, column.word * 8, column
        )
        found.append(field)
    return tuple(found)


def _synthetic_fields(info: EventInfo) -> tuple[Field, ...]:
    """As synth_event_define_fields of kernel/trace/trace_events_synth.c has them."""
    found: list[Field] = []
    offset = _COMMON_SIZE
    for column in info.columns:
        dynamic = column.ctype.startswith("__data_loc")
        size, taken, kind = column.type.size, 8, FieldKind.NUMBER
        if "long[" in column.ctype:
            size, kind = 8, FieldKind.STACK
        elif column.type.is_string:
            kind, size = FieldKind.STRING, 8
            if not dynamic:
                size = int(column.ctype.partition("[")[2].rstrip("]"), 0)
                taken = synthetic.STRING_SIZE
        signed = not column.ctype.startswith("u") and column.ctype != "gfp_t"
        field = Field(
            column.name, column.ctype, offset, size, signed, kind, column.word * 8, column
        )
        found.append(field)
        offset += taken
    return tuple(found)


def format_text(info: EventInfo, number: str = "", *, narrow: bool = False) -> str:
    """The event's `format` file.

    Args:
        info: the event.
        number: another number than its own, if one is given.
        narrow: see `print_format`.
    """
    lines = [f"name: {info.name}", f"ID: {number or info.id}", "format:"]
    lines += [f"\t{field.describe()}" for field in COMMON]
    lines.append("")
    fields = own_fields(info)
    if narrow:
        fields = tuple(one for field in fields for one in _parted(field))
    lines += [f"\t{field.describe(counted=narrow)}" for field in fields]
    lines += ["", f"print fmt: {print_format(info, narrow=narrow)}", ""]
    return "\n".join(lines)


def _parted(field: Field) -> list[Field]:
    """An array of strings as a field for each, a call stack as the text that it is here."""
    column = field.column
    if field.kind is FieldKind.STACK and column is not None:
        return [replace(field, ctype=_LOCATION)]
    if column is None or not column.type.is_string or not column.type.count:
        return [field]
    return [
        replace(
            field, name=f"{field.name}_{n}", ctype=_LOCATION, offset=field.offset + 4 * n, size=4
        )
        for n in range(column.type.count)
    ]


def print_format(info: EventInfo, *, narrow: bool = False) -> str:
    """The text behind `print fmt:` of a `format` file.

    Args:
        info: the event.
        narrow: write what libtraceevent understands, for files of ours that it reads: it does
            not look at how narrow negative numbers are, wants to be told how long arrays are,
            and knows none of strings.
    """
    if info.record is not None and info.record.expression:
        return info.record.expression
    if info.source is EventSource.SCHED:
        return sched.BY_NAME[info.name].expression
    if info.source is EventSource.SYNTHETIC:
        return synthetic.print_format(info, narrow=narrow)
    if info.source is EventSource.SYSCALL_EXIT:
        return '"0x%lx", REC->ret'
    if info.source is EventSource.SYSCALL_ENTER:
        return _syscall_print_format(info)
    if info.source is EventSource.EPROBE:
        text, values = "", []
    elif info.returns:
        text, values = "(%lx <- %lx)", ["REC->__probe_func", "REC->__probe_ret_ip"]
    else:
        text, values = "(%lx)", ["REC->__probe_ip"]
    for column in info.columns:
        kind = column.type
        one = printf_conversion(kind)
        if narrow and kind.kind is ValueKind.SIGNED:
            one = one.replace("%d", {1: "%hhd", 2: "%hd"}.get(kind.size, "%d"))
        elif narrow and kind.kind is ValueKind.FLOAT:
            one = "0x%Lx"
        text += f" {column.name}="
        text += "{" + ",".join([one] * kind.count) + "}" if kind.count else one
        element = "{}_{}" if narrow and kind.is_string else "{}[{}]"
        names = [element.format(column.name, n) for n in range(kind.count)] or [column.name]
        values += [f"__get_str({name})" if kind.is_string else f"REC->{name}" for name in names]
    return ", ".join((f'"{text}"', *values))


def _syscall_print_format(info: EventInfo) -> str:
    columns = info.columns[1:]
    read = {column.name for column in columns if column.type.is_string}
    texts, values = [], ""
    for column in columns:
        if column.type.is_string:
            continue
        text = f"{column.name}: 0x%08lx"
        values += f", ((unsigned long)(REC->{column.name}))"
        value = f"__{column.name}_val"
        if value in read:
            text += ' \\"%s\\"'
            values += f", __get_str({value})"
        texts.append(text)
    return f'"{", ".join(texts)}"{values}'
