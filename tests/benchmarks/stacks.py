"""The cost of an event with its call stack, twenty frames deep, written to a file.

`python tests/benchmarks/stacks.py [--events N] [--runs N]`. An event is the CPU time of a run with
3 N of them minus that of one with N, over 2 N, each the minimum of the runs. The guest is
`src/deep.c`; beside each format stands the same without stacks.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.session import GuestConfig, Session
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing
from tests.benchmarks import measuring

_SOURCE: Final = Path(__file__).parent / "src" / "deep.c"
_FORMATS: Final = ("ftrace", "jsonl", "perfetto", "folded")


def spent(program: Path, events: int, form: str, *, stack: bool) -> float:
    """CPU seconds of one run."""
    session = Session(GuestConfig(str(program), (str(events),)))
    file = program.with_name("events")
    try:
        tracing = Tracing(session, TraceOptions(form, str(file), stack=stack))
        tracing.definitions.define("p leaf n=%di")
        tracing.start()
        session.at_end.append(tracing.finish)
        started = time.process_time()
        session.run()
        return time.process_time() - started
    finally:
        session.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in measuring.machine().items()), "\n")
    print(f"{'an event to a file, us':<24}{'alone':>8}{'with 20 frames':>16}")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "deep"
        subprocess.run(["gcc", "-O1", "-static", "-o", program, _SOURCE], check=True)
        for form in _FORMATS:
            row = f"{form:<24}"
            for stack in (False, True):
                few, many = (
                    min(
                        spent(program, times * options.events, form, stack=stack)
                        for _ in range(options.runs)
                    )
                    for times in (1, 3)
                )
                cost = (many - few) / (2 * options.events) * 1e6
                row += f"{cost:>{16 if stack else 8}.2f}" if stack or form != "folded" else " " * 8
            print(row)


if __name__ == "__main__":
    main()
