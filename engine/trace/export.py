"""Definitions as text for tools of a real machine: tracefs, `perf probe`, bpftrace.

A probe that goes by name here is a uprobe there, at the file and offset that the name means;
variables become the registers and dereferences that they stand for. What a tool cannot express
is a line of comment that says so, never a silent change of meaning.

Sources: Documentation/trace/uprobetracer.rst; tools/perf/Documentation/perf-probe.txt; the
bpftrace language manual (probes, builtins, integer types).
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.program import Base, FetchArg, FieldType, Source, ValueKind
from engine.trace.definition import Definition
from engine.trace.kinds import bpftrace_conversion
from engine.trace.place_syntax import FileOffset

TRACEFS: Final = "/sys/kernel/tracing"

_MAX_BODY = 63
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:+\-]+")
_WIDTHS: Final = {1: 8, 2: 16, 4: 32, 8: 64}


class ExportPlace(Struct, frozen=True):
    """One instruction that a definition is about.

    Attributes:
        path: of the file.
        link: link address.
        file_offset: offset in the file.
        symbol: the symbol around it, "" for none.
        offset: distance from that symbol.
        fixed: the file is loaded at its link addresses (no PIE, no library).
        definition: the definition with the arguments that hold there.
        filter: of the event, "" for none.
        triggers: of the event; it has both at one of its places only.
    """

    path: str
    link: int
    file_offset: int
    symbol: str
    offset: int
    fixed: bool
    definition: Definition
    filter: str = ""
    triggers: tuple[str, ...] = ()


class CannotError(Exception):
    """A tool has no words for a part of a definition; the text says which and why."""


def render(form: str, places: Sequence[ExportPlace], arch: Arch) -> list[str]:
    """The lines for one definition.

    Args:
        form: one of `FORMS`.
        places: the instructions that it means.
        arch: of the program.
    """
    lines: list[str] = []
    for place in places:
        try:
            lines += FORMS[form].probe(place, arch)
        except CannotError as error:
            lines.append(f"# {place.definition.command}: not for {form}: {error}")
            continue
        definition = place.definition
        there = definition.group, definition.event
        lines += FORMS[form].enabled(*there, place.filter, place.triggers)
    return lines


def render_tracepoint(
    form: str, group: str, name: str, condition: str, triggers: Sequence[str]
) -> list[str]:
    """The lines for an event that the kernel has without a definition.

    Args:
        form: one of `FORMS`.
        group: of the event.
        name: of the event.
        condition: its filter, "" for none.
        triggers: of the event.
    """
    found = FORMS[form]
    return [*found.tracepoint(group, name), *found.enabled(group, name, condition, triggers)]


def render_dynamic(
    form: str, line: str, event: tuple[str, str], condition: str, triggers: Sequence[str]
) -> list[str]:
    """The lines for an event that a line of `dynamic_events` makes of other events.

    Args:
        form: one of `FORMS`; tracefs alone has words for it.
        line: that line.
        event: its group and name.
        condition: its filter, "" for none.
        triggers: of the event.
    """
    if form != "tracefs":
        return [f"# {line}: tracefs alone has such events"]
    defined = f"echo {quoted(line)} >> {TRACEFS}/dynamic_events"
    return [defined, *FORMS[form].enabled(*event, condition, triggers)]


# -- the kernel's words ------------------------------------------------------------------


def uprobe_line(place: ExportPlace, arch: Arch) -> str:
    """A definition as `uprobe_events` takes it, its names and variables resolved.

    Raises:
        CannotError: that language has no words for a part of it.
    """
    definition = place.definition
    head = f"{'r' if definition.is_return else 'p'}:{definition.group}/{definition.event}"
    target = definition.target
    counter = target.reference if isinstance(target, FileOffset) else 0
    where = f"{place.path}:{place.file_offset:#x}" + (f"({counter:#x})" if counter else "")
    if re.search(r"[\s#]", place.path):
        raise CannotError("the file's path has a blank or a '#'")
    return " ".join([head, where, *(_kernel_arg(arg, arch) for arg in definition.args)])


def _tracefs(place: ExportPlace, arch: Arch) -> list[str]:
    return [f"echo {quoted(uprobe_line(place, arch))} >> {TRACEFS}/uprobe_events"]


def _tracefs_enabled(
    group: str, name: str, condition: str, triggers: Sequence[str]
) -> Iterator[str]:
    folder = f"{TRACEFS}/events/{group}/{name}"
    if condition:
        yield f"echo {quoted(condition)} > {folder}/filter"
    for trigger in triggers:
        yield f"echo {quoted(trigger)} >> {folder}/trigger"
    yield f"echo 1 > {folder}/enable"


def kprobe_line(place: ExportPlace, arch: Arch) -> str:
    """A definition as the `kprobe_events` of any kernel takes it, its variables resolved.

    Raises:
        CannotError: that language has no words for an argument.
    """
    definition = place.definition
    most = str(definition.maxactive or "") if definition.is_return else ""
    head = f"{'r' if definition.is_return else 'p'}{most}"
    where = place.symbol + (f"+{place.offset:#x}" if place.offset else "")
    words = (_kernel_arg(arg, arch, symbols=True) for arg in definition.args)
    return " ".join((f"{head}:{definition.group}/{definition.event}", where, *words))


def _kernel_arg(arg: FetchArg, arch: Arch, *, symbols: bool = False) -> str:
    body = _kernel_body(arg, arch, symbols=symbols)
    if len(body) > _MAX_BODY:
        raise CannotError(f"{arg.name} becomes longer than {_MAX_BODY} characters: {body}")
    return f"{arg.name}={body}"


def _kernel_body(arg: FetchArg, arch: Arch, *, symbols: bool = False) -> str:
    text = _kernel_base(arg.base, arg.name, arch)
    derefs, kind = arg.derefs, arg.type
    if arg.base.source is Source.IMMEDIATE and kind.is_string:
        derefs = derefs[1:]
    for offset in derefs:
        text = f"{offset:+d}({text})"
    if arg.base.source in (Source.COMM, Source.TEXT):
        return text
    if kind.kind in (ValueKind.SYMBOL, ValueKind.SYMSTR) and not symbols:
        raise CannotError(f"{arg.name} is a symbol, which uprobes do not know")
    return f"{text}:{type_name(kind)}"


def _kernel_base(base: Base, name: str, arch: Arch) -> str:
    match base.source:
        case Source.REGISTER:
            return f"%{register_name(base.register, arch)}"
        case Source.IMMEDIATE:
            return f"\\{base.value}"
        case Source.TEXT:
            return '\\"' + base.text.decode(errors="surrogateescape") + '"'
        case Source.STACK_POINTER:
            return "$stack"
        case Source.STACK:
            return f"$stack{base.value}"
        case Source.RETVAL:
            return "$retval"
        case Source.COMM:
            return "$comm"
        case Source.ADDRESS:
            return f"@{base.value:#x}"
        case Source.IMAGE:
            return f"@+{base.value:#x}" if base.value >= 0 else f"@+-{-base.value:#x}"
        case Source.ENTRY:
            raise CannotError(f"{name} is an argument of the entry, which uprobes do not keep")
        case _:
            raise CannotError(f"{name} is recorded by this program only")


def register_name(name: str, arch: Arch) -> str:
    """The name of a register of ours in definitions; CannotError if it has none."""
    for short, full in arch.probes.fetch_registers.items():
        if full == name:
            return short
    raise CannotError(f"register {name} has no name there")


def type_name(kind: FieldType) -> str:
    """The type of an argument as definitions spell it."""
    match kind.kind:
        case (
            ValueKind.STRING
            | ValueKind.USTRING
            | ValueKind.CHAR
            | ValueKind.SYMBOL
            | ValueKind.SYMSTR
        ):
            text = kind.kind.value
        case ValueKind.FLOAT:
            raise CannotError("Linux has no type for numbers with a point")
        case _ if kind.width:  # the kernel has no signed one
            text = f"b{kind.width}@{kind.offset}/{_WIDTHS[kind.size]}"
        case _:
            text = f"{kind.kind.value}{_WIDTHS[kind.size]}"
    return f"{text}[{kind.count}]" if kind.count else text


def quoted(text: str) -> str:
    """One word of a shell's line."""
    return text if _PLAIN.fullmatch(text) else shlex.quote(text)


# -- perf probe --------------------------------------------------------------------------


def _perf(place: ExportPlace, arch: Arch) -> list[str]:
    definition = place.definition
    if isinstance(definition.target, FileOffset) and definition.target.reference:
        raise CannotError("a reference counter is found by perf itself, for %sdt events only")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", definition.group):
        raise CannotError(f"perf takes no group named {definition.group}")
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", place.symbol):
        where = place.symbol + (f"+{place.offset:#x}" if place.offset else "")
    else:
        where = f"{place.link:#x}"
    if definition.is_return:
        if place.offset or where.startswith("0x"):
            raise CannotError("%return takes a function's name")
        where += "%return"
    args = [_kernel_arg(arg, arch) for arg in definition.args]
    probe = " ".join([f"{definition.group}:{definition.event}={where}", *args])
    return [f"perf probe -x {quoted(place.path)} {quoted(probe)}"]


def _perf_enabled(group: str, name: str, condition: str, triggers: Sequence[str]) -> Iterator[str]:
    if condition:
        words = f"perf record -e {group}:{name} --filter {quoted(condition)}"
        yield f"# {group}/{name}: its filter is given to: {words}"
    for trigger in triggers:
        yield f"# {group}/{name}: perf has no trigger {trigger}"


# -- bpftrace ----------------------------------------------------------------------------


def _bpftrace(place: ExportPlace, arch: Arch) -> list[str]:
    definition = place.definition
    if re.search(r"[\s:,*{}\"]", place.path):
        raise CannotError("the file's path has characters that separate words there")
    if definition.is_return and (place.offset or not place.symbol):
        raise CannotError("uretprobe takes a function's name")
    where = place.symbol if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", place.symbol) else ""
    if where:
        where += f"+{place.offset}" if place.offset else ""
    else:
        where = f"{place.link:#x}"
    image = BpfImage(place.link - place.file_offset if place.fixed else None)
    formats, values = [], []
    for arg in definition.args:
        form, found = bpftrace_arg(arg, arch, image)
        formats.append(f"{arg.name}={form}")
        values += found
    text = " ".join([f"{definition.event}:", *formats])
    call = ", ".join([f'"{text}\\n"', *values])
    kind = "uretprobe" if definition.is_return else "uprobe"
    program = f"{kind}:{place.path}:{where} {{ printf({call}); }}"
    return [f"bpftrace -e {quoted(program)}"]


def _bpftrace_enabled(
    group: str, name: str, condition: str, triggers: Sequence[str]
) -> Iterator[str]:
    if condition:
        yield f"# {group}/{name}: its filter is not in the line above: {condition}"
    for trigger in triggers:
        yield f"# {group}/{name}: bpftrace has no trigger {trigger}"


def _bpftrace_tracepoint(group: str, name: str) -> list[str]:
    program = f'tracepoint:{group}:{name} {{ printf("{name}\\n"); }}'
    return [f"bpftrace -e {quoted(program)}"]


class BpfImage(Struct, frozen=True):
    """The image that a bpftrace program is about.

    Attributes:
        base: what offsets in the file are added to; None if that is not known before it runs.
        kernel: it is a kernel, whose symbols the program finds by name.
    """

    base: int | None = None
    kernel: bool = False


def bpftrace_arg(arg: FetchArg, arch: Arch, image: BpfImage) -> tuple[str, list[str]]:
    """The printf format and values of an argument; CannotError where it has none."""
    kind = arg.type
    source = arg.base.source
    if source is Source.COMM:
        return "%s", ["comm"]
    if source is Source.TEXT:
        text = arg.base.text.decode(errors="surrogateescape")
        if re.search(r'["\\%\']', text):
            raise CannotError(f"{arg.name}: the text would need escapes")
        return text, []
    if kind.kind in (ValueKind.SYMBOL, ValueKind.SYMSTR):
        name = "ksym" if image.kernel else "usym"
        return "%s", [f"{name}({_bpftrace_value(arg, arch, image)})"]
    if kind.is_string:
        if kind.count:
            raise CannotError(f"{arg.name} is an array of strings")
        return "%s", [f"str({_bpftrace_address(arg, arch, image)})"]
    if kind.kind is ValueKind.FLOAT:
        raise CannotError(f"{arg.name}: bpftrace has no numbers with a point")
    count = max(kind.count, 1)
    if kind.count or arg.derefs or source in (Source.ADDRESS, Source.IMAGE, Source.SYMBOL):
        address = _bpftrace_address(arg, arch, image)
        values = [
            f"*({_cast(kind)}*)({address}{f'+{index * kind.size}' if index else ''})"
            for index in range(count)
        ]
    else:
        values = [f"({_cast(kind)}){_bpftrace_value(arg, arch, image)}"]
    values = [_bits(value, kind) for value in values]
    form = bpftrace_conversion(kind)
    return ("{" + ",".join([form] * count) + "}" if kind.count else form), values


def _bpftrace_address(arg: FetchArg, arch: Arch, image: BpfImage) -> str:
    """The address that the last dereference reads."""
    if not arg.derefs:
        return _absolute(arg, image)
    text = _bpftrace_base(arg, arch, image)
    for offset in arg.derefs[:-1]:
        text = f"*(uint64*)({text}{offset:+d})"
    return f"{text}{arg.derefs[-1]:+d}" if arg.derefs[-1] else text


def _bpftrace_value(arg: FetchArg, arch: Arch, image: BpfImage) -> str:
    text = _bpftrace_base(arg, arch, image)
    for offset in arg.derefs:
        text = f"*(uint64*)({text}{offset:+d})"
    return text


def _absolute(arg: FetchArg, image: BpfImage) -> str:
    base = arg.base
    if base.source is Source.ADDRESS:
        return f"{base.value:#x}"
    if base.source is Source.SYMBOL:
        if not image.kernel:
            raise CannotError(f"{arg.name} is recorded by this program only")
        name = f'kaddr("{base.text.decode(errors="surrogateescape")}")'
        return f"{name}{base.value:+d}" if base.value else name
    if image.base is None:
        raise CannotError(f"{arg.name}: there is no address relative to a file that moves")
    return f"{base.value + image.base:#x}"


def _bpftrace_base(arg: FetchArg, arch: Arch, image: BpfImage) -> str:
    match arg.base.source:
        case Source.REGISTER:
            name = register_name(arg.base.register, arch)
            return f'reg("{arch.bpftrace.get(name, name)}")'
        case Source.IMMEDIATE:
            return str(arg.base.value)
        case Source.STACK_POINTER:
            return 'reg("sp")'
        case Source.STACK:
            return f'*(uint64*)(reg("sp")+{8 * arg.base.value})'
        case Source.RETVAL:
            return "retval"
        case Source.ADDRESS | Source.IMAGE | Source.SYMBOL:
            return f"*(uint64*)({_absolute(arg, image)})"
        case Source.ENTRY:
            raise CannotError(f"{arg.name} is an argument of the entry: it needs a map")
        case _:
            raise CannotError(f"{arg.name} is recorded by this program only")


def _cast(kind: FieldType) -> str:
    letter = "" if kind.kind is ValueKind.SIGNED else "u"
    return f"{letter}int{_WIDTHS[kind.size]}"


def _bits(value: str, kind: FieldType) -> str:
    if not kind.width:
        return value
    found = f"(({value} >> {kind.offset}) & {(1 << kind.width) - 1:#x})"
    sign = 1 << kind.width - 1
    return (
        f"(int64)(({found} ^ {sign:#x}) - {sign:#x})" if kind.kind is ValueKind.SIGNED else found
    )


class Conditions(Protocol):
    """The lines behind a probe: its event is enabled, with a filter and triggers."""

    def __call__(
        self, group: str, name: str, condition: str, triggers: Sequence[str]
    ) -> Iterator[str]:
        """Yield the lines; see `render_tracepoint`."""


class ToolForm(Struct, frozen=True):
    """The words of one tool.

    Attributes:
        probe: the lines that make a probe; `CannotError` if there are none.
        tracepoint: those for an event (group, name) that is there without a probe.
        enabled: those that follow either.
    """

    probe: Callable[[ExportPlace, Arch], list[str]]
    tracepoint: Callable[[str, str], list[str]]
    enabled: Conditions


FORMS: Final[dict[str, ToolForm]] = {
    "tracefs": ToolForm(_tracefs, lambda group, name: [], _tracefs_enabled),
    "perf": ToolForm(
        _perf,
        lambda group, name: [f"# {group}/{name} needs no probe: perf record -e {group}:{name}"],
        _perf_enabled,
    ),
    "bpftrace": ToolForm(_bpftrace, _bpftrace_tracepoint, _bpftrace_enabled),
}
"""The tools by name."""
