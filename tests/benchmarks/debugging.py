"""What the debugger's first words cost in programs of C++ and Rust, beside gdb.

Run: python tests/benchmarks/debugging.py [--old COMMAND] [--runs N] [--json]. CPU seconds of whole
commands, the least of N, those of one row in turn, with what former sessions found about names and
without it, and the most memory; and the units of the program and of its libraries that a first
break walks, which are the same on each machine.
"""

import argparse
import json
import math
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from engine.image.elf import ElfImage
from engine.image.functions import NamedFunctions
from engine.image.variables import Variables
from tests.benchmarks import measuring

_SOURCES: Final = Path(__file__).resolve().parent / "src"
_PROGRAMS: Final = {
    "C++": ("shop.cpp", ("g++", "-g", "-O0"), "Shop::put"),
    "Rust": ("shop.rs", ("rustc", "-g"), "shop::put"),
}
_LIBC: Final = Path("/lib/x86_64-linux-gnu/libc.so.6")
_KEPT: Final = "KPROBE_TUI_NAME_CACHE"
_NOWHERE: Final = "/dev/null/none"
_CHECKOUT: Final = str(Path(__file__).resolve().parents[2])
# As if installed: modules are compiled once.
_ENVIRONMENT: Final = {"PYTHONPATH": _CHECKOUT, "PYTHONDONTWRITEBYTECODE": "", "LC_ALL": "C"}


def main() -> None:
    """Measure and print."""
    options = _options()
    ours = [sys.executable, "-P", "-m", "tui", "--batch"]
    commands = {"now": ours, "first": ours}
    if options.old:
        commands["old"] = [*shlex.split(options.old), "--batch"]
    if shutil.which("gdb"):
        commands["gdb"] = ["gdb", "-q", "-nx", "-batch"]
    rows: dict[str, dict[str, float]] = {}
    facts = measuring.machine()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**_ENVIRONMENT, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}
        known = {"first": _NOWHERE}  # the others find what their first run has kept
        for language, (source, compiler, function) in _PROGRAMS.items():
            if shutil.which(compiler[0]) is None:
                continue
            program = f"{folder}/{source.partition('.')[0]}-{language}"
            subprocess.run([*compiler, "-o", program, str(_SOURCES / source)], check=True)
            words = ("-ex", f"break {function}", "-ex", "run", "-ex", "bt", program)
            found = dict.fromkeys(commands, math.inf)
            for _ in range(options.runs + 1):  # the first one compiles modules
                for name, command in commands.items():
                    kept = {_KEPT: known.get(name, f"{folder}/{name}")}
                    spent = measuring.run_process([*command, *words], environment | kept)
                    found[name] = min(found[name], spent.cpu)
                    found[f"{name} MiB"] = spent.peak / (1 << 10)
            rows[language] = found
            rows[language] |= _walked(program, function) | _walked(str(_LIBC), function)
    if options.json:
        print(json.dumps({"machine": facts, "rows": rows}))
        return
    print(measuring.heading(facts))
    head = ("break, run, bt", *(f"{name} (CPU s, MiB)" for name in commands), "units walked")
    lines = []
    for language, row in rows.items():
        walked = ", ".join(f"{name} {row[name]:.0f}" for name in row if "of" in name.split())
        figures = (f"{row[name]:.2f}, {row[f'{name} MiB']:.0f}" for name in commands)
        lines.append([language, *figures, walked])
    print(measuring.table(head, lines))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", help="another version's kprobe-tui: a command line")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _walked(path: str, function: str) -> dict[str, float]:
    """How many units of a file a look for a function walks, and how many there are."""
    info = Variables(ElfImage.open(path)).info if Path(path).is_file() else None
    if info is None or info.holder is None:
        return {}
    info.holder.state = ""  # nothing is known of it
    NamedFunctions(info).find(function)
    units = list(info.units())
    name = Path(path).name
    walked = sum("shape" in vars(unit) for unit in units)
    return {f"{name}, of {len(units)},": walked}


if __name__ == "__main__":
    main()
