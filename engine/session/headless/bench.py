"""Measures the cost of a hit: a guest made for it, run with and without probes in this process.

The guest calls one function again and again; a hit is the CPU time of a probed run minus that of
the unprobed run with the clock on, over the calls, each the minimum of some runs. What is
subtracted is told beside it. On a host of its
architecture the guest is also an ordinary program, on which `bench_peers` measures others.
"""

import gc
import platform
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine import arch as architectures
from engine.arch.base import Arch
from engine.arch.bench import BenchGuest
from engine.errors import CommandError, EngineError
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.probes.kprobe import Kprobe
from engine.session.guest.session import Session
from engine.session.headless import bench_peers
from engine.session.headless.bench_peers import Command, Native
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import BenchRequest, GraphOptions, TraceOptions
from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing

_BASE: Final = 0x40_0000
_CODE: Final = 0x1000
_TEXT: Final = b"a string of thirty-one bytes ..\0"
_EVENT: Final = "bench"
_FUNCTION: Final = "work"
_WORK: Final = 0x100
"""Offset of the function in the code."""
_TRACERS: Final = {"graph": "function_graph", "function": "function"}


class Case(Struct, frozen=True):
    """A case that is measured.

    Attributes:
        technique: "breakpoint", "jump" or "nop5", recording; "handler" (an empty one in Python),
            "return" (a return probe), "graph" or "function" (the tracers), "file" (recording, and
            writing what was recorded).
        args: registers recorded.
        string: whether a string of 32 bytes is recorded too.
        filter_pass: percentage of hits that a filter lets pass; None without one.
        entry: what stands at the function: "breakpoint", "jump", or "nop5" in front of it.
        format: of the file that events are written to, "" where nothing is written.
    """

    technique: str
    args: int
    string: bool = False
    filter_pass: int | None = None
    entry: str = "breakpoint"
    format: str = ""


def _recorded(technique: str) -> Iterator[Case]:
    for args in (0, 1, 3, 8):
        yield Case(technique, args, entry=technique)
    yield Case(technique, 3, string=True, entry=technique)
    for share in (0, 10, 100):
        yield Case(technique, 3, filter_pass=share, entry=technique)


_WRITTEN: Final = ("ftrace", "jsonl", "perfetto", "trace.dat", "perf.data", "ctf")
"""Formats whose cost does not depend on call stacks."""
CASES: Final = (
    *_recorded("jump"),
    *_recorded("breakpoint"),
    *_recorded("nop5"),
    *(
        Case(technique, 0, entry=entry)
        for technique in ("handler", "return", "graph", "function")
        for entry in ("jump", "breakpoint")
    ),
    *(Case("file", 3, format=form) for form in _WRITTEN),
)
"""The cases measured; results leave out cases that a jump at the entry cannot serve."""


class Cost(Struct, frozen=True):
    """The outcome of a case.

    Attributes:
        arch: name of the guest's architecture.
        case: the case that was measured.
        ns_per_hit: CPU nanoseconds over the unprobed run.
        loop_ns: CPU nanoseconds of a call in the unprobed run, which have been subtracted.
        slot_bytes: of the guest's memory for the displaced instruction's copy.
        detour_bytes: of the code that records in the guest; 0 without any.
    """

    arch: str
    case: Case
    ns_per_hit: float
    loop_ns: float
    slot_bytes: int
    detour_bytes: int


def can_measure(arch: Arch) -> bool:
    """Tell whether there is a guest for an architecture."""
    return arch.bench is not None


def _guest(arch: Arch) -> BenchGuest:
    assert arch.bench is not None, f"nothing is measured on {arch.name}"
    return arch.bench


def is_measured(name: str) -> bool:
    """Tell whether there is a guest for the architecture of a name."""
    return can_measure(architectures.by_name(name))


class PeerCost(Struct, frozen=True):
    """A figure of another tool.

    Attributes:
        name: of the tool.
        args: registers recorded.
        ns_per_hit: None if it could not be measured.
        why: it could not, in words.
    """

    name: str
    args: int
    ns_per_hit: float | None
    why: str = ""


def own_costs(request: BenchRequest) -> Iterator[list[Cost]]:
    """Measure all cases on each architecture of a request.

    Raises:
        EngineError: see `measure`.
    """
    for arch in architectures.records():
        if can_measure(arch) and (not request.arches or arch.name in request.arches):
            yield list(measure(arch, request.calls, request.runs))


def peer_costs(request: BenchRequest) -> Iterator[PeerCost]:
    """Measure the same elsewhere, as far as it can be measured here.

    Raises:
        CommandError: the running kernel takes no uprobe.
    """
    with tempfile.TemporaryDirectory() as folder:
        native_program = native(Path(folder))
        if request.live_kernel and native_program is not None:
            spent = bench_peers.kernel_uprobe(native_program, request.runs)
            yield PeerCost("kernel uprobe", 3, spent)
            on_nop = native(Path(folder), nop=True)
            if on_nop is not None:
                spent = bench_peers.kernel_uprobe(on_nop, request.runs)
                yield PeerCost("kernel uprobe, five-byte nop", 3, spent)
        if not request.peers:
            return
        tools: list[tuple[str, int, Callable[[], float | None]]] = [
            ("uftrace -pg", 0, lambda: bench_peers.uftrace(request.runs)),
            ("Frida, C", 3, lambda: bench_peers.frida(request.runs)),
        ]
        if native_program is not None:
            tools.insert(0, ("gdb", 3, lambda: bench_peers.gdb(native_program, request.runs)))
        for name, args, measured in tools:
            try:
                found = measured()
            except CommandError as error:
                yield PeerCost(name, args, None, str(error))
                continue
            if found is not None:
                yield PeerCost(name, args, found)


def program(arch: Arch, calls: int, *, nop: bool = False) -> bytes:
    """An ELF file that calls its function `work` so often; with a no-operation in front of it."""
    start = _BASE + _CODE
    place = start + _WORK
    guest = _guest(arch)
    code, function = guest.main(start, calls, start + 0x200, place), guest.work
    if nop:
        function = guest.nop + function
    body = code.ljust(_WORK, b"\0") + function.ljust(0x100, b"\0") + _TEXT
    return _elf(arch, body, [("_start", start, len(code)), (_FUNCTION, place, len(function))])


def _elf(arch: Arch, body: bytes, functions: list[tuple[str, int, int]]) -> bytes:
    """A static program of one segment, with a symbol table."""
    names, symbols = b"\0", bytes(24)
    for name, address, size in functions:
        symbols += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, address, size)
        names += name.encode() + b"\0"
    titles = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    end = _CODE + len(body)
    at = (end, end + len(symbols), end + len(symbols) + len(names))
    table = at[2] + len(titles)
    head = b"\x7fELF\2\1\1" + bytes(9)
    head += struct.pack("<HHIQQQI", 2, arch.elf_machine, 1, _BASE + _CODE, 64, table, 0)
    head += struct.pack("<6H", 64, 56, 1, 64, 5, 4)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, end, end, 0x1000)
    sections = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 1, 6, _BASE + _CODE, _CODE, len(body), 0, 0, 16, 0),
        (7, 2, 0, 0, at[0], len(symbols), 3, 1, 8, 24),
        (15, 3, 0, 0, at[1], len(names), 0, 0, 1, 0),
        (23, 3, 0, 0, at[2], len(titles), 0, 0, 1, 0),
    ]
    rows = b"".join(struct.pack("<IIQQQQIIQQ", *section) for section in sections)
    return head.ljust(_CODE, b"\0") + body + symbols + names + titles + rows


def native(folder: Path, *, nop: bool = False) -> Native | None:
    """The same as a program of the host, in a folder; None where the host is another machine.

    With `nop`, which not all have, a no-operation stands in front of the function.
    """
    if platform.machine() not in architectures.names() or sys.platform != "linux":
        return None
    arch = architectures.by_name(platform.machine())
    if not can_measure(arch) or (nop and not _guest(arch).nop):
        return None

    def command(calls: int) -> Command:
        path = folder / f"bench-{'nop-' * nop}{calls}"
        if not path.exists():
            path.write_bytes(program(arch, calls, nop=nop))
            path.chmod(0o755)
        return [path]

    fetches, names = _guest(arch).fetches[:3], arch.probes.arguments[:3]
    return Native(command, _BASE + _CODE + _WORK, _CODE + _WORK, fetches, names)


def measure(arch: Arch, calls: int, runs: int) -> Iterator[Cost]:
    """Measure all cases, one after the other.

    Args:
        arch: of the guest.
        calls: hits of probes that are recorded in code; the others get a tenth of them.
        runs: of each, of which the quickest counts.

    Raises:
        EngineError: a probe was not hit at each call, or is not what it should be.
    """
    plain: dict[tuple[int, bool], float] = {}
    for case in CASES:
        nop = case.entry == "nop5"
        if (case.entry == "jump" and arch.jumps is None) or (nop and not _guest(arch).nop):
            continue
        in_code = arch.jumps is not None and case.technique not in ("handler", "file")
        count = calls if in_code else max(calls // 10, 1)
        if (count, nop) not in plain:
            bare = Case("", 0, entry=case.entry)
            plain[count, nop] = min(_run(arch, count, bare)[0] for _ in range(runs))
        found = [_run(arch, count, case) for _ in range(runs)]
        point = found[0][1]
        if point is None or point.entry != case.entry:
            continue
        quickest = min(spent for spent, _ in found)
        unprobed = plain[count, nop]
        spent = (quickest - unprobed) / count * 1e9
        loop = unprobed / count * 1e9
        yield Cost(arch.name, case, spent, loop, point.slot_bytes, point.detour_bytes)


def _definition(arch: Arch, case: Case, program: Path) -> str:
    registers = _guest(arch).fetches
    kind = "r" if case.technique == "return" else "p"
    place = f"{program}:{_CODE + _WORK:#x}" if case.entry == "nop5" else _FUNCTION
    words = [f"{kind}:kprobes/{_EVENT} {place}"]
    words += [f"a{number}={name}" for number, name in enumerate(registers[: case.args])]
    if case.string:
        words.append(f"s=+0({registers[2]}):string")
    return " ".join(words)


class _Point(Struct, frozen=True):
    """The probe at the function when a run was over."""

    entry: str
    slot_bytes: int
    detour_bytes: int


def _run(arch: Arch, calls: int, case: Case) -> tuple[float, _Point | None]:
    """CPU seconds of a run, and what stood at the function; a case of no technique is unprobed."""
    sink = SinkStream(lambda data: None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench"
        path.write_bytes(program(arch, calls, nop=case.entry == "nop5"))
        path.chmod(0o755)
        config = GuestConfig(str(path), isolated=True, technique=case.entry, count_blocks=True)
        session = Session(config, (FeedStream(ended=True), sink, sink))
        try:
            if case.technique:
                _prepare(session, arch, case, calls, path)
            started = time.process_time()
            session.run()
            spent = time.process_time() - started
            return spent, _checked(session, arch, case, calls) if case.technique else None
        finally:
            session.close()
            gc.collect()


def _prepare(session: Session, arch: Arch, case: Case, calls: int, program: Path) -> None:
    """Plant what is measured."""
    options = TraceOptions(output="/dev/null")
    if case.format:
        options = TraceOptions(case.format, str(program.with_name("events")))
    tracing = Tracing(session, options)
    if case.technique in _TRACERS:
        Graphing(tracing, GraphOptions(_TRACERS[case.technique])).add(_FUNCTION)
    elif case.technique == "handler":
        probe = Kprobe(symbol_name=_FUNCTION, pre_handler=lambda probe, regs: None)
        tracing.start()
        session.probes().manager.register(probe)
    else:
        tracing.definitions.define(_definition(arch, case, program))
    if case.filter_pass is not None:
        tracing.set_filter("kprobes", _EVENT, f"a0 <= {calls * case.filter_pass // 100}")
    if case.technique != "handler":
        tracing.start()
    session.at_end.append(tracing.finish)


def _checked(session: Session, arch: Arch, case: Case, calls: int) -> _Point:
    assert session.probing is not None, "a trace has been set up"
    points = session.probing.manager.placed()
    point = next(point for point in points if point.address == _BASE + _CODE + _WORK)
    hits = sum(probe.hits for probe in point.probes)
    if hits != calls:
        raise EngineError(f"{hits} hits of {calls}")
    if point.technique != case.entry == case.technique:
        why = point.why.detail if point.why else "?"
        raise EngineError(f"the probe is a {point.technique}, no {case.entry}: {why}")
    slot = arch.probes.kprobe_slot if point.slot is not None else 0
    recorded = session.probing.manager.recorded
    led = recorded.code_of(point) if recorded is not None else None
    codes = [one.code for one in (point.replacement, led) if one is not None]
    return _Point(point.technique, slot, sum(map(len, codes)))
