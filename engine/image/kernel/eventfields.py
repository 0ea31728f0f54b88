"""The fields of a kernel's own trace events, and the arguments of its system calls.

Source: `event_define_fields` of kernel/trace/trace_events.c, which lays the fields of `struct
trace_event_fields` out behind a `struct trace_entry`; `struct syscall_metadata` for the events of
system calls. What is read are the tables that the image itself has.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct

from engine.image.kernel.events import EventCall, ImageReader, event_calls
from engine.image.kernel.kernelimage import KernelImage

_FIELDS_MOST: Final = 256
_LARGEST: Final = 1 << 16
_BY_FUNCTION: Final = (1 << 64) - 1
"""TRACE_FUNCTION_TYPE: code lays the fields out."""
_ARGUMENTS_MOST: Final = 6
_FORMAT_MOST: Final = 1 << 16
_SYSCALLS: Final = "syscalls"


class EventField(Struct, frozen=True):
    """A field of an event.

    Attributes:
        name: of it.
        ctype: its type in the kernel's words.
        offset: bytes from the start of the record.
        size: bytes.
        signed: numbers in it are.
    """

    name: str
    ctype: str
    offset: int
    size: int
    signed: bool


class EventFields:
    """The events of one image with their fields."""

    def __init__(
        self, image: KernelImage, find: Callable[[], tuple[int, int] | None] = lambda: None
    ) -> None:
        """Nothing is read yet.

        Args:
            image: a kernel.
            find: finds the array of pointers to its events where it has no symbols.
        """
        self._image, self._find = image, find
        self._reader = ImageReader(image)
        self._layouts: dict[str, Mapping[str, tuple[int, int]]] = {}

    def _layout(self, record: str) -> Mapping[str, tuple[int, int]]:
        """Members of a structure; none where the image does not tell."""
        if record not in self._layouts:
            self._layouts[record] = self._image.layout(record) or {}
        return self._layouts[record]

    @cached_property
    def events(self) -> Mapping[tuple[str, str], EventCall]:
        """The events by group and name."""
        found = event_calls(self._image, self._find)
        return {(each.group, each.name): each for each in found}

    def recorder(self, call: EventCall) -> int:
        """The function that the tracepoint calls; 0 where the image does not tell."""
        described = self._layout("trace_event_class")
        if "probe" not in described:
            return 0
        return self._reader.pointer(call.described + described["probe"][0])

    def is_enabled(self, call: EventCall) -> bool:
        """True for an event that can be enabled: the kernel's tracers have others."""
        described = self._layout("trace_event_class")
        if "reg" not in described:
            return False
        return bool(self._reader.pointer(call.described + described["reg"][0]))

    @property
    def records_texts(self) -> bool:
        """True for a kernel that records what arguments of system calls point to."""
        return "user_arg_is_str" in self._layout("syscall_metadata")

    def print_format(self, call: EventCall) -> str:
        """The `print fmt` of an event, which makes its text; "" where the image does not tell.

        Names of enumerations in it are as the kernel was compiled; it replaces them as it boots.
        """
        event = self._layout("trace_event_call")
        at = (
            self._reader.pointer(call.address + event["print_fmt"][0])
            if "print_fmt" in event
            else 0
        )
        return self._reader.text(at, _FORMAT_MOST) if at else ""

    def fields(self, call: EventCall) -> tuple[EventField, ...]:
        """The fields of an event in order, without those that all events have."""
        if call.group == _SYSCALLS:
            return ()
        described = self._layout("trace_event_class")
        row = self._layout("trace_event_fields")
        entry = self._layout("trace_entry")
        if (
            "fields_array" not in described
            or not {"type", "name", "size", "align", "is_signed"} <= row.keys()
        ):
            return ()
        reader, found = self._reader, list[EventField]()
        at = reader.pointer(call.described + described["fields_array"][0])
        offset = entry[""][0] or entry[""][1]
        for _ in range(_FIELDS_MOST):
            kind = reader.pointer(at + row["type"][0])
            if kind in (0, _BY_FUNCTION):
                break
            size = reader.number(at + row["size"][0], 4)
            align = reader.number(at + row["align"][0], 4) or 1
            if size > _LARGEST or align > _LARGEST:
                break
            offset = -(-offset // align) * align
            signed = bool(reader.number(at + row["is_signed"][0], 1) & 1)
            name = reader.text(reader.pointer(at + row["name"][0]))
            found.append(EventField(name, reader.text(kind), offset, size, signed))
            offset += size
            at += row[""][1]
        return tuple(found)

    def arguments(self, call: EventCall) -> tuple[tuple[str, str], ...]:
        """(type, name) of the arguments of a system call, of either of its events."""
        event, row = self._layout("trace_event_call"), self._layout("syscall_metadata")
        if "data" not in event or not {"nb_args", "types", "args"} <= row.keys():
            return ()
        reader = self._reader
        at = reader.pointer(call.address + event["data"][0])
        count = reader.number(at + row["nb_args"][0], 4)
        types, names = (reader.pointer(at + row[each][0]) for each in ("types", "args"))
        return tuple(
            (
                reader.text(reader.pointer(types + 8 * one)),
                reader.text(reader.pointer(names + 8 * one)),
            )
            for one in range(min(count, _ARGUMENTS_MOST))
        )
