"""How many slots a second the IA-64 core executes, translation included.

`python tests/benchmarks/ia64_core.py [--runs N] [--json] [ELF SLOTS]...`. Without programs it
runs `bench_O2` of the test data (CRC, recursion, sorting, matrices). SLOTS is what one run
executes, as a simulator counts it: slots with no-operations and false predicates, a long
instruction as one. Figures are CPU time, the minimum of N runs; `nat` runs the version of the
code that keeps NaT bits.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from ia64kit import Guest, program, trace

_DEFAULT: Final = ("bench_O2", 51_788_382)
_WAYS: Final = ("plain", "nat")


def measure(elf: bytes, slots: int, way: str) -> float:
    """CPU seconds of one run."""
    start = next(trace("a_rp"))
    start["ip"] = f"{int.from_bytes(elf[24:32], 'little'):x}"
    guest = Guest(elf, start)
    if way == "nat":
        guest.cpu.write_register("nat127", 1)
        guest.cpu.state.ignore_nats = lambda: False  # type: ignore[method-assign]
    begin = time.process_time()
    stop = guest.run()
    spent = time.process_time() - begin
    assert stop is None, stop
    return spent


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
    for name, elf, slots in programs:
        for way in _WAYS:
            seconds = min(measure(elf, slots, way) for _ in range(options.runs))
            rows.append({"guest": name, "way": way, "mslots": round(slots / seconds / 1e6, 2)})
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['guest']:12} {row['way']:6} {row['mslots']:8.2f} million slots/s")


if __name__ == "__main__":
    main()
