"""What recording, keeping and printing events costs, without an emulator underneath.

Run it as a script: `python tests/benchmarks/events.py [EVENTS]`. The reader of registers, the
clock and the memory are stand-ins that do the least, so the figures are of the recording alone.
"""

import os
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import structs

from engine.arch import by_name
from engine.arch.program import Base, FetchArg, FieldType, RecordLayout, Source, ValueKind
from engine.fetch.evaluate import FetchContext, FetchSite, Recorder, recorder
from engine.session.tracing.armed import ControlHooks
from engine.session.tracing.triggers import EventControls
from engine.trace.filter import FilterMachine
from engine.trace.formats import Names, format_named
from engine.trace.ring import Ring
from engine.trace.rows import EventInfo
from engine.trace.staging import Staging

TEXT = b"sixteen bytes.."
NUMBER = FieldType(ValueKind.HEX, 8)


class Processor:
    """Registers that never change."""

    def reader(self, names: tuple[str, ...]) -> Callable[[], tuple[int, ...]]:
        """A function that returns a tuple made beforehand."""
        values = tuple(0x401000 + index for index in range(len(names)))
        return lambda: values

    def now(self) -> int:
        """A constant."""
        return 123456


class Memory:
    """Memory that holds the same everywhere."""

    def reader(self, layout: struct.Struct) -> Callable[[int], tuple[Any, ...]]:
        """Zeros."""
        values = layout.unpack(bytes(layout.size))
        return lambda address: values

    def text_reader(self, limit: int) -> Callable[[int], bytes]:
        """Always the same string."""
        return lambda address: TEXT


def register(name: str) -> FetchArg:
    """An argument that is a register."""
    return FetchArg(name, "%" + name, Base(Source.REGISTER, name), (), NUMBER)


def deref(name: str) -> FetchArg:
    """An argument that is loaded from where a register points."""
    return structs.replace(register(name), derefs=(8,))


def string(name: str) -> FetchArg:
    """An argument that is the string a register points to."""
    return structs.replace(register(name), derefs=(0,), type=FieldType(ValueKind.STRING, 0))


def best(run: Callable[[], None], count: int, repeat: int = 5) -> float:
    """CPU nanoseconds for one of `count`, the best of some runs."""
    times: list[int] = []
    for _ in range(repeat):
        before = time.process_time_ns()
        run()
        times.append(time.process_time_ns() - before)
    return min(times) / count


CASES = {
    "no arguments": [],
    "3 registers": [register(name) for name in ("rdi", "rsi", "rdx")],
    "6 registers": [register(name) for name in ("rdi", "rsi", "rdx", "rcx", "r8", "r9")],
    "3 loads": [deref(name) for name in ("rdi", "rsi", "rdx")],
    "3 registers and a 16-byte string": [
        *(register(name) for name in ("rdi", "rsi", "rdx")),
        string("rcx"),
    ],
}


WRITTEN = ("ftrace", "jsonl", "perfetto")
"""Formats whose writing is measured."""


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    formats = "".join(f" {name:>9}" for name in WRITTEN)
    print(f"{'case':34} {'record':>9} {'keep':>9} {'memory':>9}{formats}")
    units = f" {'ns/event':>9}" * len(WRITTEN)
    print(f"{'':34} {'ns/event':>9} {'ns/event':>9} {'B/event':>9}{units}")
    for name, args in CASES.items():
        print(f"{name:34} " + measure(tuple(args), count))
    print(f"\n{'3 registers and':34} {'ns/hit':>9}")
    for name, (filters, triggers) in CONTROLS.items():
        print(f"{name:34} {measure_controls(filters, triggers, count // 4):9.0f}")


def measure_controls(filters: str, triggers: str, count: int) -> float:
    """Nanoseconds of a hit with 3 registers recorded, a filter and a trigger."""
    args = tuple(register(name) for name in ("rdi", "rsi", "rdx"))
    layout = RecordLayout.of(args)
    info = EventInfo.of(1, "bench", "event", layout)
    staging = Staging(lambda data: None)
    context = FetchContext(
        by_name("x86_64"), Processor(), Memory(), staging, lambda thread: b"bench", hex
    )
    hooks = ControlHooks(
        stack=lambda thread, place: None,
        stack_now=tuple,
        snapshot=None,
        symbol=hex,
        comm=lambda thread: b"bench",
        syscall=lambda number: None,
        read_cstring=lambda address, limit: TEXT,
        here=int,
        changed=lambda info: None,
    )
    controls = EventControls(
        {("bench", "event"): info}, context, hooks, lambda info: FilterMachine()
    )
    if filters:
        controls.set_filter(info, filters)
    if triggers:
        controls.add_trigger(info, triggers)

    def make(where: FetchContext) -> Recorder:
        return recorder(1, layout, FetchSite(0x401156), where)

    record = controls.recorder(info, make, 0x401156)

    def hits() -> None:
        for _ in range(count):
            record(77)

    return best(hits, count)


CONTROLS = {
    "no filter": ("", ""),
    "a filter that passes": ("rdi != 5", ""),
    "a filter that rejects": ("rdi == 5", ""),
    "two terms, rejected": ("rdi != 5 && rsi < 3", ""),
    "a histogram of one key": ("", "hist:keys=rdi"),
    "a histogram, event rejected": ("rdi == 5", "hist:keys=rdi:vals=rsi"),
}


def measure(args: tuple[FetchArg, ...], count: int) -> str:
    """One line of the table."""
    layout = RecordLayout.of(args)
    info = EventInfo.of(1, "bench", "event", layout)
    drained: list[bytes] = []
    staging = Staging(drained.append)
    context = FetchContext(
        by_name("x86_64"), Processor(), Memory(), staging, lambda thread: b"bench", hex
    )
    record = recorder(1, layout, FetchSite(0x401156), context)

    def hits() -> None:
        drained.clear()
        for _ in range(count):
            record(77)

    def nothing() -> None:
        for _ in range(count):
            pass

    recording = best(hits, count) - best(nothing, count)
    staging.drain()
    tracemalloc.start()
    ring = Ring()
    for data in drained:
        ring.append(data)
    kept = tracemalloc.get_traced_memory()[0] / len(ring)
    tracemalloc.stop()

    def keep() -> None:
        again = Ring()
        for data in drained:
            again.append(data)

    keeping = best(keep, count, 3)
    sink = os.open("/dev/null", os.O_WRONLY)

    names = Names(symbol=lambda address: "bench+0x0/0x10", comm=lambda thread: b"bench")

    def write(name: str) -> None:
        text = format_named(name)({1: info}, names)
        for data in ring.stretches():
            os.write(sink, text.rows(data))

    written = "".join(f" {best(partial(write, name), count, 3):9.0f}" for name in WRITTEN)
    os.close(sink)
    return f"{recording:9.0f} {keeping:9.0f} {kept:9.1f}{written}"


if __name__ == "__main__":
    main()
