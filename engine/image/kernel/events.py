"""The trace events that a kernel image has itself: groups and names.

Source: include/linux/trace_events.h (struct trace_event_call), whose layout is the image's own
BTF's. The array of pointers to the events has symbols around it where kallsyms has data.
"""

import struct
from collections.abc import Callable
from typing import Final

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
        calls = [at for (at,) in struct.iter_unpack("<Q", view.read(low, (high - low) // 8 * 8))]
        # `name` and `tp` share a place, in a union without a name.
        named = call["name"][0] if "name" in call else call["class"][0] + 8
        tried = []
        for bit in _TRACEPOINT_BITS:
            names = []
            for at in calls:
                name = self._pointer(at + named)
                if self._number(at + call["flags"][0], 4) >> bit & 1:
                    name = self._pointer(name + tracepoint["name"][0])
                names.append(self._text(name))
            tried.append((sum(map(str.isidentifier, names)), names))
        for at, title in zip(calls, max(tried)[1], strict=True):
            system = self._pointer(self._pointer(at + call["class"][0]) + group["system"][0])
            self._groups.setdefault(self._text(system), set()).add(title)

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

    def _number(self, address: int, size: int) -> int:
        return int.from_bytes(self._view.read(address, size), "little")

    def _pointer(self, address: int) -> int:
        return self._number(address, 8)

    def _text(self, address: int) -> str:
        return self._view.read(address, _NAME_MAX).split(b"\0")[0].decode("utf-8", "replace")
