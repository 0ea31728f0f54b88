"""What probes cost: a hit with breakpoints of all kinds, arming and disarming many.

`python tests/benchmarks/probes.py [--arch A] [--runs N] [--quick] [--json]`. A hit is the CPU time
of a probed run minus that of the unprobed run of the same guest, each the minimum of N runs.
"""

import argparse
import gc
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.probes.kprobe import Kprobe
from engine.session import GuestConfig, Session
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing
from tests.benchmarks import measuring

_COMPILERS: Final = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}
_SOURCE: Final = Path(__file__).parent / "src" / "probes.c"
_REGISTERS: Final = {
    "x86_64": ("%di", "%si", "%cx", "%dx"),
    "aarch64": ("%x0", "%x1", "%x3", "%x2"),
}
_HIT: Final = (1500.0, 700.0)  # nanoseconds: reach, aim
_STRING: Final = (1.5, 1.3)  # times the hit with registers alone: reach, aim
_ARM: Final = (1.0, 0.3)  # seconds: reach, aim
_MANY: Final = 10_000
_HITS: Final = 300_000

Prepare = Callable[[Session], Callable[[], int]]
"""Plants probes; the hits afterwards."""


def build(arch: str, folder: Path) -> tuple[Path, Path]:
    """The guest for hits, and the one with many functions.

    Raises:
        subprocess.CalledProcessError: the compiler failed.
    """
    hits, many = folder / f"probes-{arch}", folder / f"many-{arch}"
    source = folder / "many.c"
    body = "".join(f"int function{n}(int x) {{ return x * {n + 3}; }}\n" for n in range(_MANY))
    source.write_text(body + "void _start(void) { for (;;) { } }\n")
    compiler = _COMPILERS[arch]
    subprocess.run([compiler, "-O2", "-static", "-o", hits, _SOURCE], check=True)
    subprocess.run(
        [compiler, "-O1", "-static", "-nostdlib", "-no-pie", "-o", many, source], check=True
    )
    return hits, many


def opened(program: Path, *args: str) -> Session:
    """A guest that is loaded; its probes stay breakpoints."""
    sink = SinkStream(lambda data: None)
    config = GuestConfig(str(program), args, isolated=True, technique="breakpoint")
    return Session(config, (FeedStream(ended=True), sink, sink))


def _hits(session: Session) -> int:
    points = session.probes().manager.points.values()
    return sum(probe.hits for point in points for probe in point.probes)


def traced(definition: str) -> Prepare:
    """A trace to nowhere, with one definition."""

    def prepare(session: Session) -> Callable[[], int]:
        tracing = Tracing(session, TraceOptions(output="/dev/null"))
        tracing.definitions.define(definition)
        tracing.start()
        session.at_end.append(tracing.finish)
        return lambda: _hits(session)

    return prepare


def _handled(session: Session) -> Callable[[], int]:
    seen = [0]

    def handler(probe: Kprobe, regs: object) -> None:
        seen[0] += 1

    manager = session.probes().manager
    manager.register(Kprobe(symbol_name="boosted", pre_handler=handler))
    return lambda: seen[0]


def _unprobed(session: Session) -> Callable[[], int]:
    return lambda: 0


def technique(program: Path, name: str) -> str:
    """How a kprobe's hit on a function goes on."""
    session = opened(program, name, "0")
    try:
        manager = session.probes().manager
        manager.register(Kprobe(symbol_name=name))
        (point,) = manager.points.values()
        if point.plan.operation is not None:
            return "emulated"
        return "boosted" if point.boosted else "trapped"
    finally:
        session.close()


def once(program: Path, name: str, count: int, prepare: Prepare, expected: int) -> float:
    """CPU seconds of a run.

    Raises:
        RuntimeError: the probe was not hit at every call.
    """
    session = opened(program, name, str(count))
    try:
        hits = prepare(session)
        start = time.process_time()
        session.run()
        spent = time.process_time() - start
        if hits() != expected:
            raise RuntimeError(f"{name}: {hits()} hits of {expected}")
        return spent
    finally:
        session.close()
        gc.collect()


def _offset(program: Path) -> int:
    """File offset of the function that is probed."""
    session = opened(program, "boosted", "0")
    try:
        place = session.probes().verdicts.places.resolve("boosted")[0]
        assert place.file_offset is not None, "a function has bytes in its file"
        return place.file_offset
    finally:
        session.close()


def measure_hits(arch: str, program: Path, count: int, runs: int) -> dict[str, float]:
    """Nanoseconds of a hit, by kind of probe.

    Raises:
        RuntimeError: a first instruction is not what its function's name says.
    """
    for name in ("boosted", "emulated", "trapped"):
        if technique(program, name) != name:
            raise RuntimeError(f"{arch} {name}: it is {technique(program, name)}")
    one, two, _, third = _REGISTERS[arch]
    three = f"a={one} b={two} c={third}"
    offset = _offset(program)
    cases: dict[str, tuple[str, Prepare]] = {
        "boosted, 3 registers": ("boosted", traced(f"p boosted {three}")),
        "emulated, 3 registers": ("emulated", traced(f"p emulated {three}")),
        "not boosted, 3 registers": ("trapped", traced(f"p trapped {three}")),
        "boosted, 3 registers + string": (
            "boosted",
            traced(f"p boosted {three} s=+0({third}):string"),
        ),
        "boosted, 3 registers + 2 strings": (
            "boosted",
            traced(f"p boosted {three} s=+0({third}):string t=+4({third}):string"),
        ),
        "boosted, 3 registers + number in memory": (
            "boosted",
            traced(f"p boosted {three} m=+0({third}):u32"),
        ),
        "uprobe, 3 registers": ("boosted", traced(f"p {program}:{offset:#x} {three}")),
        "Python pre_handler": ("boosted", _handled),
    }
    found: dict[str, float] = {}
    for title, (name, prepare) in cases.items():
        plain = probed = math.inf
        for _ in range(runs):
            plain = min(plain, once(program, name, count, _unprobed, 0))
            probed = min(probed, once(program, name, count, prepare, count))
        found[title] = (probed - plain) / count * 1e9
    return found


def measure_arming(program: Path, runs: int) -> tuple[float, float]:
    """CPU seconds to arm and to disarm an event on each of many functions.

    Raises:
        RuntimeError: not all functions took a probe.
    """
    arm = disarm = math.inf
    for _ in range(runs):
        session = opened(program)
        try:
            tracing = Tracing(session, TraceOptions(output="/dev/null"))
            manager = session.probes().manager
            start = time.process_time()
            tracing.definitions.on_entries("function*")
            armed = time.process_time()
            probes = [probe for point in manager.points.values() for probe in point.probes]
            if len(probes) != _MANY:
                raise RuntimeError(f"{len(probes)} of {_MANY} functions took a probe")
            before = time.process_time()
            manager.unregister_all(probes)
            disarm = min(disarm, time.process_time() - before)
            arm = min(arm, armed - start)
        finally:
            session.close()
            gc.collect()
    return arm, disarm


def portable(arch: str, program: Path, count: int, runs: int) -> dict[str, float]:
    """`measure_hits` in a process that uses the Python twins of the host code.

    The emulator's registers are read in place there too.
    """
    words = [sys.executable, __file__, "--hits", arch, str(program), str(count), str(runs)]
    env = {**os.environ, "KPROBE_TUI_PORTABLE": "1"}
    done = subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(description="CPU time of probe hits and of arming.")
    parser.add_argument("--arch", choices=tuple(_COMPILERS), action="append")
    parser.add_argument("--runs", type=int, default=5, help="minimum of N runs (default 5)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the hits, 2 runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hits", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hits:
        arch, program, number, times = options.hits
        print(json.dumps(measure_hits(arch, Path(program), int(number), int(times))))
        return 0
    runs = 2 if options.quick else options.runs
    count = _HITS // 5 if options.quick else _HITS
    facts = measuring.machine()
    rows: list[list[str]] = []
    figures: dict[str, object] = {"facts": facts}
    with tempfile.TemporaryDirectory() as folder:
        for arch in options.arch or _COMPILERS:
            if shutil.which(_COMPILERS[arch]) is None:
                print(f"{arch} left out: no {_COMPILERS[arch]}", file=sys.stderr)
                continue
            hits, many = build(arch, Path(folder))
            ours = measure_hits(arch, hits, count, runs)
            other = portable(arch, hits, count, runs)
            for title, value in ours.items():
                judged = title.endswith("3 registers")
                text = measuring.verdict(value, *_HIT) if judged else ""
                if title.endswith("+ string"):
                    ratio = value / ours["boosted, 3 registers"]
                    text = f"{ratio:.2f}x: {measuring.verdict(ratio, *_STRING)}"
                rows.append([f"{arch} {title}, ns", f"{value:.0f}", f"{other[title]:.0f}", text])
            arm, disarm = measure_arming(many, min(runs, 3))
            text = measuring.verdict(arm, *_ARM)
            rows.append([f"{arch} arm {_MANY:,}, s", f"{arm:.3f}", "", text])
            rows.append([f"{arch} disarm {_MANY:,}, s", f"{disarm:.3f}", "", ""])
            figures[arch] = {"hit_ns": ours, "portable_ns": other, "arm_s": [arm, disarm]}
    facts["calibration_after_s"] = round(measuring.calibration(), 4)
    if options.json:
        print(json.dumps(figures, indent=1))
        return 0
    print(measuring.heading(facts), end="\n\n")
    print(measuring.table(["", "ours", "portable", "reach 1,500 / 1, aim 700 / 0.3"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
