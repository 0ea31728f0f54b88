"""The trace events that a kernel image has itself: groups and names.

Source: include/linux/trace_events.h (struct trace_event_call), whose layout is the image's own
BTF's. The array of pointers to the events has symbols around it where kallsyms has data.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.arch.kernel import KernelView

_FIRST, _BEHIND = "__start_ftrace_events", "__stop_ftrace_events"
_MOST: Final = 1 << 20
_NAME_MAX: Final = 128
_TRACEPOINT_BITS: Final = (3, 4)  # TRACE_EVENT_FL_TRACEPOINT_BIT: 4 until Linux 6.11
_FUNCTIONS: Final = ("__probestub_", "__bpf_trace_")


class OwnEvents:
    """The events of one image."""

    def __init__(
        self,
        view: KernelView,
        find: Callable[[], tuple[int, int] | None] = lambda: None,
        known: str = "",
    ) -> None:
        """Read them.

        Args:
            view: the image.
            find: finds the array of pointers to them where it has no symbols.
            known: what `listing` gave of the same image; then nothing is read.
        """
        self._view = view
        self._groups: dict[str, set[str]] = {}
        if known:
            for line in known.splitlines():
                group_name, _, event_name = line.partition(":")
                self._groups.setdefault(group_name, set()).add(event_name)
            return
        for call in event_calls(view, find):
            self._groups.setdefault(call.group, set()).add(call.name)

    @property
    def listing(self) -> str:
        """All of them, a line GROUP:NAME each, as available_events has them."""
        return "".join(
            f"{group}:{name}\n" for group, names in self._groups.items() for name in sorted(names)
        )

    def has(self, group: str, name: str) -> bool:
        """True if there is an event of that group and name."""
        return name in self._groups.get(group, ())

    @property
    def groups(self) -> dict[str, set[str]]:
        """Names of all events by group; empty where the image does not tell."""
        return self._groups

    def tracepoint(self, name: str) -> str | None:
        """The function whose BTF has a tracepoint's arguments; None if there is no such one."""
        view = self._view
        if view.symbol(f"__tracepoint_{name}") is None and (
            view.symbol(f"__traceiter_{name}") is None
        ):
            return None
        found = (f"{prefix}{name}" for prefix in _FUNCTIONS)
        return next(
            (each for each in found if view.symbol(each) is not None), f"__traceiter_{name}"
        )


class EventCall(Struct, frozen=True):
    """An event as the image has it.

    Attributes:
        group: of it.
        name: of it.
        address: of its `struct trace_event_call`.
        described: of its `struct trace_event_class`.
    """

    group: str
    name: str
    address: int
    described: int


def event_calls(
    view: KernelView, find: Callable[[], tuple[int, int] | None] = lambda: None
) -> Iterator[EventCall]:
    """All events of an image; none where it does not tell.

    Args:
        view: the image.
        find: finds the array of pointers to them where it has no symbols.
    """
    low, high = view.symbol(_FIRST), view.symbol(_BEHIND)
    if low is None or high is None:
        low, high = find() or (None, None)
    call, group = view.layout("trace_event_call"), view.layout("trace_event_class")
    tracepoint = view.layout("tracepoint")
    if None in (low, high, call, group, tracepoint):
        return
    assert low is not None
    assert high is not None
    assert call is not None
    assert group is not None
    assert tracepoint is not None
    if not 0 < high - low <= _MOST:
        return
    members = "class" in call and "flags" in call and "system" in group
    if not members or "name" not in tracepoint:
        return
    reader = ImageReader(view)
    calls = [at for (at,) in struct.iter_unpack("<Q", view.read(low, (high - low) // 8 * 8))]
    # `name` and `tp` share a place, in a union without a name.
    named = call["name"][0] if "name" in call else call["class"][0] + 8
    tried = []
    for bit in _TRACEPOINT_BITS:
        names = []
        for at in calls:
            name = reader.pointer(at + named)
            if reader.number(at + call["flags"][0], 4) >> bit & 1:
                name = reader.pointer(name + tracepoint["name"][0])
            names.append(reader.text(name))
        tried.append((sum(map(str.isidentifier, names)), names))
    for at, title in zip(calls, max(tried)[1], strict=True):
        described = reader.pointer(at + call["class"][0])
        system = reader.text(reader.pointer(described + group["system"][0]))
        yield EventCall(system, title, at, described)


class ImageReader:
    """Numbers and texts of an image."""

    def __init__(self, view: KernelView) -> None:
        """Read an image."""
        self._view = view

    def number(self, address: int, size: int) -> int:
        """A number of so many bytes."""
        return int.from_bytes(self._view.read(address, size), "little")

    def pointer(self, address: int) -> int:
        """An address."""
        return self.number(address, 8)

    def text(self, address: int, most: int = _NAME_MAX) -> str:
        """A text of at most so many bytes, which ends with NUL."""
        return self._view.read(address, most).split(b"\0")[0].decode("utf-8", "replace")
