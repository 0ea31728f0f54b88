"""The events that a kernel has itself: which there are, and how a trace records them."""

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from engine.arch.program import ROW_HEAD, FieldType, ValueKind
from engine.errors import ImageError, ProbeError
from engine.image.kernel.btftypes import BtfTypes
from engine.image.kernel.eventarray import find_event_array
from engine.image.kernel.eventfields import EventField, EventFields
from engine.image.kernel.events import EventCall
from engine.session.kernel.opened import OpenedKernel
from engine.trace import syscalls
from engine.trace.bpftrace.attach_points import has_glob
from engine.trace.rows import Column, EventInfo, EventSource, KernelRecord

RAW: Final = "raw_syscalls"
LOCATIONS: Final = ("__data_loc", "__rel_loc")
"""Words of fields that say where in the record something of any length is."""
ENABLES: Final = "trace_event="
"""The word of the command line that has a kernel enable events."""
WORDS_MOST: Final = 1500
"""Letters of the command line that events may take: a kernel's has 2048."""
_SELECTION: Final = re.compile(r"(?P<group>[\w*?\[\]!-]+)[:/](?P<name>[^\s:/]+)", re.ASCII)
_DEFINITION: Final = re.compile(r"[prfte-]\d*:")
"""The head of a line that defines an event, or deletes one."""
_PROBED: Final = re.compile(r"e\d*(?::\S*)?\s+(?P<group>\w+)[./](?P<name>\w+)(?:\s|$)", re.ASCII)
"""A line of an event probe, up to the event that it stands on."""
_NUMBERS: Final = (1, 2, 4, 8)
_TEXT: Final = "__data_loc char[]"
_LOCATION: Final = re.compile(r"__(?:data|rel)_loc\s+(?P<element>[^\[]*?)\s*(?:\[.*)?")
_NAMES: Final = re.compile(r"\"(?:\\.|[^\"\\])*\"|(?:->|\.)\s*\w+|[A-Za-z_]\w*")
_SHOWN: Final = 8
_TRACERS: Final = "ftrace"
"""The group of what the kernel's tracers record, which cannot be enabled."""
_PAGES: Final = "((struct page *)vmemmap_base) + "


def selected(text: str) -> tuple[str, str] | None:
    """Group and name, both may be patterns, of a word `GROUP:NAME` or `GROUP/NAME`; else None."""
    match = _SELECTION.fullmatch(text.strip())
    if match is None or _DEFINITION.match(text.strip()) is not None:
        return None
    return match["group"], match["name"]


def is_from_kernel(group: str) -> bool:
    """True for events that only the kernel itself can tell, and so has to enable."""
    return group not in (syscalls.GROUP, RAW)


def enabling_words(
    events: Iterable[tuple[str, str]], given: str, groups: Callable[[], dict[str, set[str]]]
) -> str:
    """The words of a kernel's command line with what enables events.

    Args:
        events: (group, name) of those that only the kernel itself can tell.
        given: the words of the user, whose own events stay enabled.
        groups: gives the names of all events, by group.

    Raises:
        ProbeError: there are too many.
    """
    chosen: dict[str, list[str]] = {}
    for group, name in dict.fromkeys(events):
        if is_from_kernel(group):
            chosen.setdefault(group, []).append(name)
    wanted = []
    for group, names in chosen.items():
        every = len(names) > 1 and set(names) == groups().get(group)
        wanted += [f"{group}:*"] if every else [f"{group}:{name}" for name in names]
    others = [word for word in given.split() if not word.startswith(ENABLES)]
    own = [word.removeprefix(ENABLES) for word in given.split() if word.startswith(ENABLES)]
    text = ENABLES + ",".join((*wanted, *own[-1:])) if wanted else ""
    if len(text) > WORDS_MOST:
        raise ProbeError(
            f"{sum(map(len, chosen.values()))} events do not fit into the kernel's command line"
        )
    return f"{' '.join(others)} {text}".strip() if wanted else given


class EventCatalog:
    """The events of one kernel that can be enabled, with their fields.

    Attributes:
        fields: reads them.
    """

    def __init__(self, opened: OpenedKernel) -> None:
        """Set up; files are read when somebody asks.

        Args:
            opened: the kernel.
        """
        self._opened = opened
        image = opened.image
        self.fields = EventFields(image, lambda: find_event_array(image))

    # -- names ----------------------------------------------------------------------------

    @cached_property
    def known(self) -> dict[tuple[str, str], None]:
        """(group, name) of all; those of system calls that have no number are left out."""
        calls = {syscalls.event_name(call) for call in self._opened.arch.linux.syscalls.values()}
        known = {prefix + call for call in calls for prefix in (syscalls.ENTER, syscalls.EXIT)}
        return {
            (group, name): None
            for (group, name), call in self.fields.events.items()
            if (group != syscalls.GROUP or name in known)
            and group != _TRACERS
            and self.fields.is_enabled(call)
        }

    @cached_property
    def groups(self) -> dict[str, set[str]]:
        """The names of all events by group."""
        found: dict[str, set[str]] = {}
        for group, name in self.known:
            found.setdefault(group, set()).add(name)
        return found

    def like(self, group: str = "*", name: str = "*") -> Iterator[tuple[str, str]]:
        """(group, name) of the events that match, in the order of the names."""
        if not has_glob(group) and not has_glob(name):
            yield from ((group, name),) if (group, name) in self.known else ()
            return
        for each in sorted(self.known):
            if fnmatch.fnmatchcase(each[0], group) and fnmatch.fnmatchcase(each[1], name):
                yield each

    def chosen(self, group: str, name: str) -> list[tuple[str, str]]:
        """The events that a selection means; a system call's own name means both its events.

        Raises:
            ProbeError: there is none.
        """
        found = list(self.like(group, name))
        if not found and group == syscalls.GROUP:
            calls = dict.fromkeys(self._opened.arch.linux.syscalls.values())
            meant = [call for call in calls if fnmatch.fnmatchcase(call, name)]
            both = (
                (group, prefix + syscalls.event_name(call))
                for call in meant
                for prefix in (syscalls.ENTER, syscalls.EXIT)
            )
            found = [each for each in both if each in self.known]
        if found:
            return found
        told = f"{group}:{name}: this kernel has no such event"
        if not has_glob(group) and group not in self.groups:
            told = f"{group}:{name}: this kernel has no group of events {group}"
            near = [each for each in sorted(self.groups) if each.startswith(group[:3])]
            raise ProbeError(_with(told, near, "groups with names like it"))
        names = self.groups.get(group, set())
        raise ProbeError(_with(told, sorted(names), f"{group} has"))

    def of_lines(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """(group, name) of the events that those of some lines mean that select any.

        Raises:
            ProbeError: one of them means none.
        """
        for line in lines:
            wanted = selected(line)
            if wanted is not None:
                yield from self.chosen(*wanted)

    def probed(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """(group, name) of the kernel's own events that lines of event probes stand on."""
        for line in lines:
            match = _PROBED.match(line.strip())
            if match is not None and (match["group"], match["name"]) in self.known:
                yield match["group"], match["name"]

    # -- records --------------------------------------------------------------------------

    def info(self, number: int, group: str, name: str, *, strings: bool) -> EventInfo:
        """Describe an event.

        Args:
            number: of it in the trace.
            group: of it.
            name: of it.
            strings: what a system call's arguments point to is recorded, too, which only newer
                kernels do themselves.
        """
        call = self.fields.events[group, name]
        if group == syscalls.GROUP:
            if name.startswith(syscalls.EXIT):
                return syscalls.exit_info(number, name.removeprefix(syscalls.EXIT))
            return self._enter(number, name.removeprefix(syscalls.ENTER), call, strings=strings)
        return self._of_tracepoint(number, group, name, call)

    def arguments(self, info: EventInfo) -> tuple[syscalls.Argument, ...]:
        """The arguments of a system call's event, as far as it records them."""
        name = info.name.removeprefix(syscalls.ENTER)
        call = self.fields.events[info.group, info.name]
        found = syscalls.described(name, self.fields.arguments(call))
        return found if info.record is None else syscalls.without_texts(found)

    def call_number(self, name: str) -> int:
        """The number of the system call that an event is of.

        Raises:
            ProbeError: there is none.
        """
        call = name.removeprefix(syscalls.ENTER).removeprefix(syscalls.EXIT)
        for number, each in self._opened.arch.linux.syscalls.items():
            if syscalls.event_name(each) == call:
                return number
        raise ProbeError(f"{syscalls.GROUP}:{name}: no call of that name is known here")

    def _enter(self, number: int, name: str, call: EventCall, *, strings: bool) -> EventInfo:
        given = syscalls.described(name, self.fields.arguments(call))
        if strings or self.fields.records_texts:
            return syscalls.enter_info(number, name, given)
        plain = syscalls.enter_info(number, name, syscalls.without_texts(given))
        offsets = (8, *(16 + 8 * at for at in range(len(given))))
        sizes = (4, *(8 for _ in given))
        signed = (True, *(False for _ in given))
        return replace(plain, record=KernelRecord(offsets, sizes, signed))

    def _of_tracepoint(self, number: int, group: str, name: str, call: EventCall) -> EventInfo:
        columns, offsets, sizes, signed = list[Column](), list[int](), list[int](), list[bool]()
        word, expression = ROW_HEAD, self.fields.print_format(call)
        for field in self.fields.fields(call):
            kind, ctype, size = _typed(field)
            if ctype == _TEXT and size != field.size:  # a pointer to a text
                expression = re.sub(
                    rf"REC->{field.name}\b", f"__get_str({field.name})", expression
                )
            column = Column(field.name, kind, word, ctype)
            columns.append(column)
            offsets.append(field.offset)
            sizes.append(size)
            signed.append(field.signed)
            word += column.words
        expression = self._numbered(expression.replace("__get_rel_", "__get_"))
        if _PAGES in expression:
            expression = self._with_pages(expression)
        record = KernelRecord(tuple(offsets), tuple(sizes), tuple(signed), expression)
        return EventInfo(
            number,
            group,
            name,
            tuple(columns),
            word,
            source=EventSource.KERNEL,
            record=record,
        )

    def _numbered(self, expression: str) -> str:
        """A `print fmt` with numbers in place of the names of enumerations, as Linux has it."""

        def number(match: re.Match[str]) -> str:
            word = match[0]
            if not (word[0].isalpha() or word[0] == "_"):
                return word
            found = self._enumerators.get(word)
            return word if found is None else str(found)

        return _NAMES.sub(number, expression)

    def _with_pages(self, expression: str) -> str:
        """The same with numbers in place of the array of pages, which stays where it is linked."""
        image = self._opened.image
        at, page = image.names.find("vmemmap_base"), image.layout("page")
        if at is None or page is None:
            return expression
        base = int.from_bytes(image.read(at, 8), "little")
        return expression.replace(_PAGES, f"({base:#x}UL) + {page[''][1]} * ")

    @cached_property
    def _enumerators(self) -> "_Enumerators":
        return _Enumerators([BtfTypes(btf) for btf in self._opened.types])


class _Enumerators:
    """Values of constants by name, each looked up once."""

    def __init__(self, types: Sequence[BtfTypes]) -> None:
        self._types = types
        self._found: dict[str, int | None] = {}

    def get(self, name: str) -> int | None:
        """The value of a constant; None where there is none of that name."""
        if name not in self._found:
            self._found[name] = self._looked_up(name)
        return self._found[name]

    def _looked_up(self, name: str) -> int | None:
        for types in self._types:
            try:
                found = types.enumerator(name)
            except ImageError:
                continue
            if found is not None:
                return found[1]
        return None


def _with(told: str, names: Sequence[str], what: str) -> str:
    if not names:
        return told
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{told}; {what}: {', '.join(names[:_SHOWN])}{more}"


def _typed(field: EventField) -> tuple[FieldType, str, int]:
    """Type, the kernel's words for it, and the size in a record, of a field as it is recorded."""
    text, size = field.ctype.strip(), field.size
    if text in ("const char *", "char *"):
        return FieldType(ValueKind.STRING, 0), _TEXT, 4
    if text.startswith(LOCATIONS):
        match = _LOCATION.fullmatch(text)
        element = match["element"] if match is not None else "u8"
        return FieldType(ValueKind.STRING, 0), f"__data_loc {element}[]", size
    element, bracket, _ = text.partition("[")
    element = element.strip()
    if bracket and element == "char":
        return FieldType(ValueKind.STRING, 0), f"char[{size}]", size
    kind = ValueKind.SIGNED if field.signed else ValueKind.UNSIGNED
    if not bracket and size in _NUMBERS:
        return FieldType(ValueKind.HEX if text.endswith("*") else kind, size), text, size
    width = _WIDTHS.get(element, 1) if bracket else 1
    width = 1 if size % width else width
    shown = element if bracket and width == _WIDTHS.get(element) else "u8"
    return FieldType(kind, width, size // width), f"{shown}[{size // width}]", size


_WIDTHS: Final = {
    **{f"{under}{letter}{8 * size}": size for size in _NUMBERS
       for letter in "us" for under in ("", "__")},
    "int": 4, "unsigned int": 4, "long": 8, "unsigned long": 8, "unsigned char": 1, "short": 2,
    "unsigned short": 2, "unsigned": 4,
}  # fmt: skip
