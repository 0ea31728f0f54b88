"""The function graph of a booted kernel: depth, options, and calls that are left."""

import struct
from types import SimpleNamespace
from typing import cast

import pytest

from engine.arch.program import RecordLayout
from engine.machine.probing import ReturnProbe
from engine.session.booted import graph as boot_graph
from engine.session.booted.graph import BootGraph
from engine.session.booted.probes import BootProbe
from engine.session.booted.tracing import BootTracing
from engine.session.protocol.requests import GraphOptions
from engine.trace.graph import is_entry
from engine.trace.rows import EventInfo, decode

STACK, OTHER = 0xFFFF_C900_0001_0000, 0xFFFF_C900_0002_0000
NAMES = {"outer": 0x1000, "inner": 0x2000, "leaf": 0x3000}


class Kernel:
    """Functions that are called and return, and the rows that come of it."""

    def __init__(self, **options: object) -> None:
        self.probes: dict[int, ReturnProbe] = {}
        self.events: dict[int, EventInfo] = {}
        self.pid, self.task, self.time, self.sp = 7, 0x100, 0, STACK + 0x3000
        self.sink = SimpleNamespace(position=0, limit=1 << 16, buffer=bytearray(1 << 16))
        entries: list[ReturnProbe] = []

        def entry_of(probe: ReturnProbe) -> int:
            entries.append(probe)
            return len(entries) - 1

        machine = SimpleNamespace(
            entry_of=entry_of,
            add=lambda place, entry, begins: self.probes.__setitem__(place, entries[entry]),
        )
        tracing = SimpleNamespace(
            probes=machine,
            sink=self.sink,
            add_event=self._add_event,
            functions=lambda globs, option: [_probe(NAMES[name]) for name in globs],
            running=lambda: self.pid,
            task=lambda: self.task,
            now=lambda: self.time,
            frame=lambda: (self.sp, 0x9000),
            result=lambda: 42,
            is_chosen=lambda pid: pid != 99,
            placing=None,
            taking_out=None,
            waiting=(),
            place_late=lambda waiting: None,
        )
        graph = BootGraph(cast(BootTracing, tracing), GraphOptions(**options))  # type: ignore[arg-type]
        graph.add(tuple(NAMES))

    def _add_event(self, make: object) -> EventInfo:
        info: EventInfo = make(len(self.events) + 1)  # type: ignore[operator]
        self.events[info.id] = info
        return info

    def call(self, name: str, down: int = 16) -> tuple[str, object]:
        self.sp -= down
        self.time += 10
        probe = self.probes[NAMES[name]]
        assert probe.capture is not None
        return name, probe.capture()

    def leave(self, call: tuple[str, object], up: int = 16) -> None:
        self.time += 10
        self.probes[NAMES[call[0]]].returned(0x9000, call[1])
        self.sp += up

    def rows(self) -> list[str]:
        """The rows as "NAME DEPTH", and "/NAME DEPTH DURATION" with "left" for ends."""
        found, at = [], 0
        data = bytes(self.sink.buffer[: self.sink.position])
        while at < len(data):
            event = decode(self.events, data, at)
            name = next(name for name, address in NAMES.items() if address == event.address)
            if is_entry(self.events[event.id]):
                found.append(f"{name} {event.values[0]!r}")
            else:
                depth, began, left, value = event.values
                assert isinstance(began, int)
                end = " left" if left else f" {value!r}" if value else ""
                found.append(f"/{name} {depth!r} {event.time - began}{end}")
            at += struct.unpack_from("<2xH", data, at)[0] * 8
        return found


def _probe(address: int) -> BootProbe:
    layout = RecordLayout.of((), False)
    return BootProbe("g", "e", address, address, layout, False, 0, "ftrace")


def test_calls_are_as_deep_as_the_calls_around_them() -> None:
    kernel = Kernel(retval=True)
    outer = kernel.call("outer")
    inner = kernel.call("inner")
    kernel.leave(inner)
    leaf = kernel.call("leaf")
    kernel.leave(leaf)
    kernel.leave(outer)
    assert kernel.rows() == [
        *("outer 0", "inner 1", "/inner 1 10 42", "leaf 1", "/leaf 1 10 42", "/outer 0 50 42")
    ]


def test_each_task_has_calls_of_its_own() -> None:
    kernel = Kernel()
    first = kernel.call("outer")
    kernel.pid, kernel.task, kernel.sp = 8, 0x200, OTHER + 0x3000
    second = kernel.call("inner")
    kernel.pid, kernel.task, kernel.sp = 7, 0x100, STACK + 0x2FF0
    kernel.leave(first)
    kernel.pid, kernel.task, kernel.sp = 8, 0x200, OTHER + 0x2FF0
    kernel.leave(second)
    assert kernel.rows() == ["outer 0", "inner 0", "/outer 0 20", "/inner 0 20"]


def test_calls_that_are_left_are_seen_by_the_stack() -> None:
    """A call further up on the same stack shows them, one on an interrupt's stack does not."""
    kernel = Kernel()
    kernel.call("outer")
    kernel.call("inner")
    kernel.sp = OTHER + 0x3000
    kernel.leave(kernel.call("leaf"))
    kernel.sp = STACK + 0x3000
    kernel.leave(kernel.call("leaf", 0))
    assert kernel.rows() == [
        *("outer 0", "inner 1", "leaf 2", "/leaf 2 10"),
        *("/inner 1 30 left", "/outer 0 40 left", "leaf 0", "/leaf 0 10"),
    ]


def test_the_calls_of_a_task_that_is_gone_are_left() -> None:
    kernel = Kernel()
    kernel.call("outer")
    kernel.pid, kernel.sp = 8, OTHER + 0x3000
    kernel.leave(kernel.call("inner"))
    assert kernel.rows() == ["outer 0", "/outer 0 10 left", "inner 0", "/inner 0 10"]


def test_calls_that_share_a_frame_return_the_newest_first() -> None:
    kernel = Kernel()
    outer = kernel.call("outer")
    tail = kernel.call("leaf", 0)
    kernel.leave(tail, 0)
    kernel.leave(outer)
    assert kernel.rows() == ["outer 0", "leaf 1", "/leaf 1 10", "/outer 0 30"]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"depth_max": 1}, ["outer 0", "/outer 0 50"]),
        ({"under": ("inner",)}, ["inner 0", "leaf 1", "/leaf 1 10", "/inner 0 30"]),
        ({"without": ("inner",)}, ["outer 0", "/outer 0 50"]),
        ({"under": ("outer",), "without": ("leaf",)}, None),
    ],
    ids=["depth", "under", "not", "both"],
)
def test_options_choose_calls(options: dict[str, object], rows: list[str] | None) -> None:
    kernel = Kernel(**options)
    outer = kernel.call("outer")
    inner = kernel.call("inner")
    leaf = kernel.call("leaf")
    for call in (leaf, inner, outer):
        kernel.leave(call)
    assert kernel.rows() == (rows or ["outer 0", "inner 1", "/inner 1 30", "/outer 0 50"])


def test_calls_and_tasks_without_end_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no longer followed has been left."""
    monkeypatch.setattr(boot_graph, "_DEEPEST", 3)
    monkeypatch.setattr(boot_graph, "_TASKS", 2)
    kernel = Kernel()
    for _ in range(4):
        kernel.call("leaf")
    rows = kernel.rows()
    assert [row for row in rows if row.startswith("leaf")] == [f"leaf {n}" for n in (0, 1, 2, 0)]
    assert sum("left" in row for row in rows) == 3
    for number in (8, 9, 10):
        kernel.pid, kernel.task, kernel.sp = number, number << 8, OTHER + 0x3000
        kernel.call("outer")
    rows = kernel.rows()
    assert sum("left" in row for row in rows) == 3 + 1 + 1
    assert rows[-1] == "outer 0"


def test_other_tasks_are_not_recorded() -> None:
    kernel = Kernel()
    kernel.pid = 99
    kernel.leave(kernel.call("outer"))
    assert kernel.rows() == []
