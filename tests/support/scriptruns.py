"""Compiled scripts that run over hits made by a test, without a guest."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from scriptkit import checked

from engine.trace.bpftrace.captures import Capture, RowReads
from engine.trace.bpftrace.compiling import CompiledProbe, compile_script
from engine.trace.bpftrace.layouts import value_of
from engine.trace.bpftrace.printing import TextOutput
from engine.trace.bpftrace.state import ScriptState
from engine.trace.bpftrace.text import ScriptText
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.types import TextType
from engine.trace.bpftrace.value_names import ValueNames


class LeftError(Exception):
    """exit() was called."""


class PlainRun:
    """What actions ask of a run, answered from tables.

    Attributes:
        bytes: the memory, by address.
        code: of exit(), None if it was not called.
    """

    started = 100

    def __init__(self, memory: Mapping[int, bytes]) -> None:
        self.bytes = memory
        self.code: int | None = None
        self.signals: list[tuple[int, int]] = []

    def memory(self, address: int, size: int) -> bytes | None:
        for start, data in self.bytes.items():
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        return None

    def string(self, address: int, size: int) -> bytes:
        for start, data in self.bytes.items():
            if start <= address < start + len(data):
                return data[address - start :].split(b"\0", 1)[0][: size - 1]
        return b""

    def register(self, name: str) -> int:
        return len(name)

    def process(self, thread: int) -> int:
        return thread // 10 * 10

    def parent(self, thread: int) -> int:
        return 1

    def comm(self, thread: int) -> bytes:
        return b"task%d" % thread

    def user(self, thread: int) -> int:
        return 1000

    def group(self, thread: int) -> int:
        return 2000

    def stack(self, space: Literal["user", "kernel"], limit: int) -> tuple[int, ...]:
        return (0x1000, 0x2000, 0x3000)[:limit]

    def build_ids(self, frames: tuple[int, ...], process: int) -> tuple[tuple[bytes, int], ...]:
        return tuple((b"\xab" * (frame == 0x1000), frame) for frame in frames)

    def function(self, address: int) -> bytes:
        return b"f%x" % address

    def symbol_address(self, name: str, target: str) -> int:
        return 0x500

    def processors(self) -> int:
        return 3

    def wall(self) -> int:
        return 1_700_000_000_000_000_000

    def random(self) -> int:
        return 4

    def exit(self, code: int) -> None:
        self.code = code
        raise LeftError

    def signal(self, number: int, thread: int) -> None:
        self.signals.append((number, thread))

    def file(self, path: bytes) -> bytes | None:
        return b"content of " + path

    def cgroup(self, thread: int) -> int:
        return 1

    def main_process(self) -> int:
        return 10

    def task(self) -> int:
        return 0x9000

    def user_mode(self) -> bool:
        """True: actions run where a program does."""
        return True

    def path(self, where: int | bytes, size: int) -> bytes:
        return b"/a/path"[:size]

    def syscall_name(self, number: int) -> bytes:
        return b"call%d" % number

    def unwatch(self, address: int) -> None:
        pass


class ScriptRunner:
    """A compiled script with its output.

    Attributes:
        printed: all that it has printed.
        said: its warnings.
        run: what it asks of its run.
        probes: as they were compiled.
        state: its maps.
    """

    def __init__(self, text: str, memory: Mapping[int, bytes] | None = None) -> None:
        self.printed = b""
        self.said = b""
        names, script = ValueNames(), checked(text)
        source = ScriptText("stdin", text)
        output = TextOutput(self._print, self._say, names)
        self.state = ScriptState(script, source, output, names)
        self.run = PlainRun(memory or {})
        self.probes = compile_script(script, source, self.state)

    def _print(self, data: bytes) -> None:
        self.printed += data

    def _say(self, data: bytes) -> None:
        self.said += data

    def hit(self, number: int = 0, thread: int = 11, now: int = 1000, **values: Any) -> None:
        """Run the action of a probe: `arg0`, `retval` and the like by their names."""
        probe = self.probes[number]
        row = (now, 0x4000, *[self._captured(each, values) for each in probe.captures])
        reads = RowReads(
            lambda data, position: row,
            "w[0]",
            tuple([f"w[{index + 2}]" for index in range(len(probe.captures))]),
            {},
            b"the:probe",
        )
        probe.make(reads, self.run)(b"", 0, thread)

    def _captured(self, capture: Capture, values: Mapping[str, Any]) -> Any:
        names = {"argument": f"arg{capture.name}", "marker": f"arg{capture.name}"}
        base = {**names, "return": "retval"}.get(capture.base, capture.name)
        value = values[base]
        *inner, last = capture.offsets or (None,)
        if last is None:
            return value
        for offset in inner:
            raw = self.run.memory((value + offset) & (1 << 64) - 1, 8)
            value = int.from_bytes(raw or b"", "little")
        if isinstance(capture.type, TextType):
            return self.run.string(value + last, capture.type.size)
        data = self.run.memory(value + last, type_size(capture.type)) or b""
        return value_of(capture.type, data.ljust(type_size(capture.type), b"\0"))


def outputs(text: str, hits: Sequence[Mapping[str, Any]] = ({},), **more: Any) -> list[str]:
    """The lines that the first probe of a script prints over some hits."""
    runner = ScriptRunner(text, **more)
    for values in hits:
        runner.hit(**values)
    return runner.printed.decode().splitlines()


def needs(probe: CompiledProbe) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """What a probe has recorded: bases, names and offsets."""
    return tuple([(each.base, each.name, each.offsets) for each in probe.captures])
