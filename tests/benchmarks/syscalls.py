"""What system calls and signals cost in a plain run, in microseconds of CPU time.

`python tests/benchmarks/syscalls.py [--arch A] [--runs N] [--what W]... [--quick] [--json]`. A
figure is the CPU time of a run with 3 N calls less that of one with N, over 2 N, each the minimum
of the runs. The guest is `src/syscalls.c`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from tests.benchmarks.measuring import heading, machine, table, verdict

_SOURCE: Final = Path(__file__).parent / "src" / "syscalls.c"
_COMPILERS: Final = {
    "x86_64": "gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
}
_ROWS: Final[dict[str, tuple[str, int, float, float]]] = {
    "getpid": ("getpid", 8000, 5, 3),
    "read": ("read of 64 bytes", 8000, 7, 5),
    "write": ("write of 64 bytes", 8000, 7, 5),
    "output": ("the same to standard output", 8000, 7, 5),
    "brk": ("brk, 16 KiB to and fro", 4000, 15, 10),
    "mmap": ("mmap and munmap of 16 KiB", 2000, 40, 25),
    "touched": ("the same, written to between", 2000, 40, 25),
    "signal": ("kill, handler, rt_sigreturn", 2000, 40, 25),
}
"""By the guest's word: what it is, calls at least, the figures to reach and to aim at."""


def spent(program: Path, what: str, count: int) -> float:
    """CPU seconds of one run, loading not included."""
    sink = SinkStream(lambda data: None)
    config = GuestConfig(str(program), (what, str(count)))
    session = Session(config, (FeedStream(b"", ended=True), sink, sink))
    try:
        began = time.process_time()
        session.run()
        took = time.process_time() - began
        end = session.machine.exit
    finally:
        session.close()
    if end is None or end.code:
        raise RuntimeError(f"{what}: {end}")
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", choices=sorted(_COMPILERS), default="x86_64")
    parser.add_argument("--what", action="append", choices=list(_ROWS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "syscalls"
        words = [_COMPILERS[options.arch], "-O1", "-static", "-w", "-o", str(program)]
        subprocess.run([*words, str(_SOURCE)], check=True)
        facts = machine()
        for what in options.what or _ROWS:
            count = _ROWS[what][1] // (4 if options.quick else 1)
            few, many = (
                min(
                    spent(program, what, times * count)
                    for _ in range(1 if options.quick else options.runs)
                )
                for times in (1, 3)
            )
            found[what] = (many - few) / (2 * count) * 1e6
    if options.json:
        print(json.dumps({**facts, **found}))
        return
    print(heading(facts))
    rows = []
    for what, value in found.items():
        name, _, reach, aim = _ROWS[what]
        rows.append((name, f"{value:.1f}", f"{reach:g}", f"{aim:g}", verdict(value, reach, aim)))
    print(table(("us of CPU", options.arch, "reach", "aim", ""), rows))


if __name__ == "__main__":
    main()
