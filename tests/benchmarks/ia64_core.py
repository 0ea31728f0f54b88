"""How many slots a second the IA-64 core executes, translation included.

`python tests/benchmarks/ia64_core.py [--runs N] [--json] [ELF SLOTS]...`. Without programs it
runs `bench_O2` of the test data (CRC, recursion, sorting, matrices) in all ways, and with `jit`
the long ones: guests of the test data (hashes, integer divisions, speculation, calls) whose main
runs until there were 250 million slots (50 million of odd ones), and a loop that speculates on
data. All begin cold. SLOTS is what one run executes, as a simulator counts it: slots with
no-operations and false predicates, a long instruction as one. Figures are CPU time, the minimum
of N runs; `jit` makes machine code of what runs often; `nat` and `natjit` are the same while a
register is a NaT throughout. Time to compile is part of all figures; that of `jit` is shown.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import ia64kit
from ia64again import SPECULATING, again, speculating
from ia64kit import Guest, program, trace

from engine.cpu.ia64.jit import AFTER, available, compiler

_DEFAULT: Final = ("bench_O2", 51_788_382)
_LONG_SLOTS: Final = 250_000_000
_SHORTER_SLOTS: Final = 50_000_000
_LONG: Final = {
    "sha_O0": 632_347,
    "sha_O3": 223_806,
    "intdiv_O2": 26_641,
    "deep_O2": 7_644,
    "fptr_O3": 4_155,
    "tail_O0": 10_161,
}
"""Slots of one run of main."""
_SHORTER: Final = {"a_br": 1_169, "a_rot": 900, "a_rse": 2_334, "a_spec": 556}
"""The same of guests that do odd things: each run writes, one flushes its register stack."""
_SPECULATING: Final = "speculating"
_WAYS: Final = ("plain", "nat", "jit", "natjit")


def long_run(name: str) -> tuple[float, int]:
    """CPU seconds and slots of a long program, in machine code."""
    ia64kit.JIT_AFTER = AFTER
    if name == _SPECULATING:
        each = 3 * len(SPECULATING) + 3
        cpu = speculating(_LONG_SLOTS // each, AFTER)
        begin = time.process_time()
        cpu.run()
        return time.process_time() - begin, _LONG_SLOTS // each * each
    each = _LONG.get(name) or _SHORTER[name]
    slots = _LONG_SLOTS if name in _LONG else _SHORTER_SLOTS
    guest = again(program(name), slots // each)
    begin = time.process_time()
    stop = guest.run()
    spent = time.process_time() - begin
    assert stop is None, stop
    return spent, slots // each * each


def measure(elf: bytes, way: str) -> float:
    """CPU seconds of one run."""
    ia64kit.JIT_AFTER = AFTER if way.endswith("jit") else 0
    start = next(trace("a_rp"))
    start["ip"] = f"{int.from_bytes(elf[24:32], 'little'):x}"
    guest = Guest(elf, start)
    if way.startswith("nat"):
        guest.cpu.write_register("nat7", 1)
    begin = time.process_time()
    stop = guest.run()
    spent = time.process_time() - begin
    assert stop is None, stop
    return spent


class Compiling:
    """Adds up what the compiler takes.

    Attributes:
        modules: compiled since the last `reset`.
        seconds: CPU seconds that took.
    """

    def __init__(self) -> None:
        """Watch the compiler of this process."""
        self.modules, self.seconds = 0, 0.0
        made = compiler()
        assert made is not None
        self._compile = made.compile
        made.compile = self._timed  # type: ignore[method-assign]

    def _timed(self, text: str, *names: str) -> tuple[Any, tuple[int, ...]]:
        begin = time.process_time()
        made = self._compile(text, *names)
        self.seconds += time.process_time() - begin
        self.modules += 1
        return made

    def reset(self) -> None:
        """Begin at 0."""
        self.modules, self.seconds = 0, 0.0


def _long_row(name: str, compiling: Compiling, runs: int) -> dict[str, Any]:
    best: dict[str, Any] = {}
    for _ in range(runs):
        compiling.reset()
        seconds, slots = long_run(name)
        if not best or seconds < best["seconds"]:
            best = {"guest": name, "way": "jit", "seconds": round(seconds, 3)}
            best["mslots"] = round(slots / seconds / 1e6, 2)
            best["modules"] = compiling.modules
            best["compiling"] = round(compiling.seconds, 3)
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("programs", nargs="*", metavar="ELF SLOTS")
    options = parser.parse_args()
    given = options.programs
    programs = [
        (Path(path).stem, Path(path).read_bytes(), int(slots))
        for path, slots in zip(given[::2], given[1::2], strict=True)
    ] or [(_DEFAULT[0], program(_DEFAULT[0]), _DEFAULT[1])]
    rows: list[dict[str, Any]] = []
    ways = _WAYS if available() else _WAYS[:2]
    begin = time.process_time()
    compiling = Compiling() if available() else None
    start = time.process_time() - begin
    for name, elf, slots in programs:
        for way in ways:
            best: dict[str, Any] = {}
            for _ in range(options.runs):
                if compiling is not None:
                    compiling.reset()
                seconds = measure(elf, way)
                if not best or seconds < best["seconds"]:
                    best = {"guest": name, "way": way, "seconds": round(seconds, 3)}
                    best["mslots"] = round(slots / seconds / 1e6, 2)
                    if compiling is not None and way.endswith("jit"):
                        best["modules"] = compiling.modules
                        best["compiling"] = round(compiling.seconds, 3)
            rows.append(best)
    if compiling is not None and not given:
        rows += [
            _long_row(name, compiling, options.runs) for name in (*_LONG, *_SHORTER, _SPECULATING)
        ]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        line = f"{row['guest']:12} {row['way']:6} {row['mslots']:8.2f} million slots/s"
        if "modules" in row:
            line += f"  ({row['modules']} modules compiled in {row['compiling']} s)"
        print(line)
    if compiling is not None:
        print(f"the compiler's own start, once a process: {start:.2f} s")


if __name__ == "__main__":
    main()
