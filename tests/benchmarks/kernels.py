"""What kernel images cost: opened the first time and again, and verdicts on all of one.

`python tests/benchmarks/kernels.py [--runs N] [--json] [--all] IMAGE...`. Each figure is the least
CPU time of N fresh processes, the whole process counted, and the most memory of any.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks import measuring

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_COLD, _WARM, _RATE, _SUMMARY = 4.0, 0.3, 4.0, 8.0
"""CPU seconds to reach: opened first, again, for 100,000 places, and for all places counted, which
two processors share."""
_PLACES: Final = 100_000


def spent(folder: str, *words: str) -> measuring.Spent:
    """One process of the command line with a cache of its own."""
    environment = {
        "PYTHONPATH": str(_CHECKOUT),
        "PYTHONDONTWRITEBYTECODE": "",
        "KPROBE_TUI_KERNEL_CACHE": folder,
    }
    return measuring.run_process((sys.executable, "-m", "tui", *words), environment)


def measured(image: str, runs: int, *, everything: bool) -> dict[str, float]:
    """The figures of one image."""
    words = ("check", image, "-f", "vfs_read")
    typed = ("check", image, "-e", "p vfs_read")
    cold, warm = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(spent(folder, *words))
            spent(folder, *typed)
            warm.append(spent(folder, *words))
            kept = spent(folder, *typed)
    found = {
        "cold_s": min(each.cpu for each in cold),
        "cold_mb": max(each.peak for each in cold) / 1024,
        "warm_s": min(each.cpu for each in warm),
        "warm_mb": max(each.peak for each in warm) / 1024,
        "definition_s": kept.cpu,
    }
    if everything:
        with tempfile.TemporaryDirectory() as folder:
            spent(folder, *words)
            for name, option in (("text", ()), ("json", ("--json",))):
                run = spent(folder, "check", image, "--all", *option)
                lines = run.output.count(b"\n")
                found[f"all_{name}_s_per_100000"] = run.cpu / lines * _PLACES
            found["summary_s"] = spent(folder, "check", image, "--all", "--summary").cpu
    return found


def main() -> int:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(description="Kernel images.")
    parser.add_argument("--runs", type=int, default=3, help="of each command (default 3)")
    parser.add_argument("--all", action="store_true", help="verdicts on all places, too")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("images", nargs="+")
    options = parser.parse_args()
    start = min(spent("", "--version").cpu for _ in range(options.runs))
    found = {
        Path(image).name: measured(image, options.runs, everything=options.all)
        for image in options.images
    }
    figures = {"calibration_s": measuring.calibration(), "version_s": start, "images": found}
    if options.json:
        print(json.dumps(figures, indent=1))
        return 0
    print(f"calibration {figures['calibration_s']:.3f} s, load {os.getloadavg()[0]:.1f}")
    print(f"{start:.3f} s for --version")
    for name, values in found.items():
        print(name)
        for title, value in values.items():
            print(f"    {value:8.3f} {title}")
        reached = values["cold_s"] <= _COLD and values["warm_s"] <= _WARM
        reached &= all(v <= _RATE for k, v in values.items() if k.startswith("all_"))
        reached &= values.get("summary_s", 0) <= _SUMMARY
        goals = f"{_COLD} cold, {_WARM} warm, {_RATE} all, {_SUMMARY} summary"
        print(f"    {'reached' if reached else 'MISSED'}: {goals}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
