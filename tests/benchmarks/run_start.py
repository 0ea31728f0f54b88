"""What starting costs: tiny guests, imports, dynamic programs, a large symbol table.

`python tests/benchmarks/run_start.py [--runs N] [--quick] [--json]`. Each row is the minimum and
the median of N fresh processes: wall clock, CPU time, and the peak resident set.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from goldenruns import GUESTS
from sysroot import CHECKOUT, SysrootUnavailable, sysroot

from engine.image import ElfImage
from engine.image.symbols import SymbolTable
from tests.benchmarks import measuring

_ARCHES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_START_TARGET: Final = (0.14, 0.11)  # CPU seconds of a tiny guest: reach, aim
_PEAK_TARGET: Final = (34.0, 30.0)  # MiB
_YARDSTICK: Final = "python, import unicorn"
_SAMPLE: Final = CHECKOUT / "samples" / "bin" / "x86_64" / "recursion"
_COMMANDS: Final = {
    "run": ("--clean-env", str(_SAMPLE)),
    "trace": ("-e", "p:x main", "-o", os.devnull, str(_SAMPLE)),
    "check": ("-f", "main", str(_SAMPLE)),
}
_OPEN_TARGET: Final = (0.3, 0.15)  # seconds for the symbols of a big library
_OPEN_SYMBOLS: Final = 258_000
_TINY_CODE: Final = 33  # the exit code of `tiny`: the bytes it has written
_SHELL: Final = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done; echo $i"
_CALLS: Final = "i=0; while [ $i -lt {} ]; do test -e /etc; i=$((i+1)); done; echo $i"
_PYTHON: Final = "x = sum(i * i for i in range({})); print(x)"
_BIG: Final = ("libLLVM*.so*", "rustlib/*/lib/libLLVM*", "*/libLLVM*.so*")
_LIBRARIES: Final = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib"))
# As if installed: with compiled modules, which are kept in a folder of the run's own.
_ENVIRONMENT = {
    "PYTHONPATH": str(CHECKOUT),
    "PYTHONDONTWRITEBYTECODE": "",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A command over several runs: seconds, and the peak in MiB."""

    name: str
    wall: list[float]
    cpu: list[float]
    peak: float

    def cells(self) -> list[str]:
        """As a line of the table."""
        cells = [self.name]
        for values in (self.wall, self.cpu):
            cells += [f"{min(values) * 1e3:.0f}", f"{statistics.median(values) * 1e3:.0f}"]
        return [*cells, f"{self.peak:.0f}"]

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {
            "name": self.name,
            "wall_s": [min(self.wall), statistics.median(self.wall)],
            "cpu_s": [min(self.cpu), statistics.median(self.cpu)],
            "peak_mib": self.peak,
        }


def repeat(name: str, words: list[str], runs: int, expected: int = 0) -> Row:
    """Run a command several times.

    Raises:
        RuntimeError: its exit code is another.
    """
    measuring.run_process(words, _ENVIRONMENT, expected)  # files and bytecode get warm
    spent = [measuring.run_process(words, _ENVIRONMENT, expected) for _ in range(runs)]
    return Row(
        name,
        [item.wall for item in spent],
        [item.cpu for item in spent],
        max(item.peak for item in spent) / 1024,
    )


def command(*words: str) -> list[str]:
    """A command line of `kprobe-tui`."""
    return [sys.executable, "-m", "tui", *words]


def ours(*words: str) -> list[str]:
    """The command line of `kprobe-tui run`."""
    return command("run", "--clean-env", *words)


def small(runs: int) -> list[Row]:
    """The smallest programs, and Python doing nothing."""
    rows = [repeat("python, nothing", [sys.executable, "-c", "pass"], runs)]
    rows.append(repeat(_YARDSTICK, [sys.executable, "-c", "import unicorn"], runs))
    rows.append(repeat("kprobe-tui --help", command("--help"), runs))
    rows.extend(
        repeat(f"{name} recursion", command(name, *_COMMANDS[name]), runs)
        for name in ("trace", "check")
    )
    for folder in _ARCHES:
        for guest, args in (("tiny", ()), ("guests-static", ("hello",))):
            expected = _TINY_CODE if guest == "tiny" else 0
            path = GUESTS / folder / guest
            name = " ".join((folder, guest, *args))
            rows.append(repeat(name, ours(str(path), *args), runs, expected))
    return rows


def programs(runs: int, quick: bool) -> list[tuple[Row, Row | None]]:
    """Debian's programs below `kprobe-tui` and below qemu-user."""
    size = 10 if quick else 1
    pairs: list[tuple[Row, Row | None]] = []
    for folder, arch in _ARCHES.items():
        try:
            root = sysroot(arch)
        except SysrootUnavailable as error:
            print(f"{arch} programs left out: {error}", file=sys.stderr)
            continue
        shell = ("busybox", "sh", "-c")
        python = ("python3.11", "-S", "-E", "-c")
        for name, words in (
            ("/bin/true", ("true",)),
            ("busybox sh, 100k loops", (*shell, _SHELL.format(100_000 // size))),
            ("busybox sh, 5k test -e", (*shell, _CALLS.format(5_000 // size))),
            ("python, nothing", (*python, "pass")),
            ("python, 500k squares", (*python, _PYTHON.format(500_000 // size))),
        ):
            program = root / "usr" / "bin" / words[0]
            if not program.exists():
                continue
            guest = ours("--root", str(root), str(program), *words[1:])
            row = repeat(f"{folder} {name}", guest, runs)
            qemu = shutil.which(f"qemu-{arch}")
            other = None
            if qemu:
                line = [qemu, "-L", str(root), str(program), *words[1:]]
                other = repeat(row.name, line, runs)
            pairs.append((row, other))
    return pairs


def imports(*words: str) -> list[tuple[str, float, float]]:
    """Modules that a command loads, by the cost of their own code.

    Each is its name, own and cumulative milliseconds.
    """
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command(*words)[1:]],
        env={**os.environ, **_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,  # the guest's exit code
    )
    found = re.findall(r"import time:\s+(\d+) \|\s+(\d+) \|\s+(\S+)", done.stderr)
    rows = [(name, int(own) / 1e3, int(total) / 1e3) for own, total, name in found]
    return sorted(rows, key=lambda row: -row[1])


def summed(loaded: list[tuple[str, float, float]]) -> list[tuple[str, int, float]]:
    """Modules and their milliseconds by package: of ours by part, of others as a whole."""
    sums: dict[str, tuple[int, float]] = {}
    for name, own, _ in loaded:
        parts = name.split(".")
        package = ".".join(parts[:2]) if parts[0] == "engine" else parts[0]
        count, spent = sums.get(package, (0, 0.0))
        sums[package] = count + 1, spent + own
    rows = [(name, count, spent) for name, (count, spent) in sums.items()]
    return sorted(rows, key=lambda row: -row[2])


def in_process(runs: int) -> list[tuple[str, float]]:
    """Parts of a start inside one warm process: name and minimum in milliseconds."""
    code = f"""
import json, sys, time
from engine.session import GuestConfig, Session
from engine.linux.fs.stdio import FeedStream, SinkStream
best = {{}}
def take(name, spent):
    best[name] = min(best.get(name, 9e9), spent * 1e3)
for path in sys.argv[1:]:
    for _ in range({runs}):
        sink = SinkStream(lambda data: None)
        config = GuestConfig(guest=path, args=("hello",), isolated=True)
        start = time.process_time()
        session = Session(config, (FeedStream(ended=True), sink, sink))
        loaded = time.process_time()
        session.run()
        ran = time.process_time()
        session.close()
        name = "/".join(path.split("/")[-2:])
        take(name + ", Session()", loaded - start)
        take(name + ", Session.run()", ran - loaded)
        take(name + ", Session.close()", time.process_time() - ran)
print(json.dumps(list(best.items())))
"""
    guests = [str(GUESTS / f / g) for f in _ARCHES for g in ("tiny", "guests-static")]
    done = measuring.run_process([sys.executable, "-c", code, *guests], _ENVIRONMENT)
    rows: list[tuple[str, float]] = [(name, spent) for name, spent in json.loads(done.output)]
    return rows


def symbols(runs: int) -> dict[str, object] | None:
    """Open the machine's biggest LLVM library, find a name, look addresses up; None without it."""
    found = {
        path.resolve() for folder in _LIBRARIES for glob in _BIG for path in folder.glob(glob)
    }
    if not found:
        return None
    path = max(found, key=lambda item: item.stat().st_size)
    times = {"open_and_find": math.inf, "first_at": math.inf, "next_at": math.inf}
    count = 0
    for _ in range(runs):
        start = time.process_time()
        image = ElfImage.open(str(path))
        table = SymbolTable(image)
        symbol = table.find("LLVMContextCreate")
        moments = [start, time.process_time()]
        if symbol is None:
            raise RuntimeError(f"{path}: no LLVMContextCreate")
        table.at(symbol.address + 1)
        moments.append(time.process_time())
        for step in range(1000):
            table.at(symbol.address + 16 * step)
        moments.append(time.process_time())
        for name, before, after in zip(times, moments, moments[1:], strict=False):
            times[name] = min(times[name], after - before)
        count = len(table)
    total = times["open_and_find"] + times["first_at"]
    return {
        "library": str(path),
        "mb": path.stat().st_size // 1_000_000,
        "symbols": count,
        "cpu_ms": {name: round(value * 1e3, 3) for name, value in times.items()},
        # As many symbols as the target speaks of.
        "scaled_s": round(total * max(_OPEN_SYMBOLS / max(count, 1), 1.0), 3),
    }


def judge(rows: list[Row], big: dict[str, object] | None) -> list[str]:
    """Compare with the numbers to reach."""
    lines = []
    yardstick = next(statistics.median(row.cpu) for row in rows if row.name == _YARDSTICK)
    for row in rows:
        if row.name.endswith(("tiny", "hello")):
            spent = statistics.median(row.cpu)
            lines.append(
                f"{row.name}: {spent:.3f} s {measuring.verdict(spent, *_START_TARGET)} "
                f"(reach 0.14, aim 0.11), {spent / yardstick:.1f} times '{_YARDSTICK}'; "
                f"{row.peak:.0f} MiB {measuring.verdict(row.peak, *_PEAK_TARGET)} "
                "(reach 34, aim 30)"
            )
    if big:
        scaled = float(str(big["scaled_s"]))
        text = measuring.verdict(scaled, *_OPEN_TARGET)
        lines.append(f"258,000 symbols: {scaled:.3f} s {text} (reach 0.3, aim 0.15)")
    return lines


def show(
    rows: list[Row],
    pairs: list[tuple[Row, Row | None]],
    parts: list[tuple[str, float]],
    loaded: dict[str, list[tuple[str, float, float]]],
) -> None:
    """Print all but the symbols."""
    head = ["", "wall min", "median", "CPU min", "median", "MiB"]
    print(measuring.table(["ms", *head[1:]], [row.cells() for row in rows]), end="\n\n")
    print(measuring.table(["CPU ms", "min"], [[a, f"{b:.1f}"] for a, b in parts]), end="\n\n")
    for name, modules in loaded.items():
        whole = f"{name}: {len(modules)} modules, {sum(own for _, own, _ in modules):.0f} ms"
        cells = [[part, str(count), f"{spent:.1f}"] for part, count, spent in summed(modules)[:12]]
        print(measuring.table([whole, "modules", "ms"], cells), end="\n\n")
        cells = [[part, f"{own:.1f}", f"{total:.1f}"] for part, own, total in modules[:12]]
        print(measuring.table(["import, ms", "own", "with imports"], cells), end="\n\n")
    lines = []
    for row, other in pairs:
        more = ["", ""]
        if other:
            more = [f"{min(other.cpu) * 1e3:.0f}", f"{min(row.cpu) / min(other.cpu):.1f}"]
        lines.append([*row.cells(), *more])
    if lines:
        print(measuring.table(["ms", *head[1:], "qemu CPU", "ratio"], lines), end="\n\n")


def main() -> int:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(description="Start-up times and memory.")
    parser.add_argument("--runs", type=int, default=10, help="of each small command (default 10)")
    parser.add_argument("--quick", action="store_true", help="3 runs, short programs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = 3 if options.quick else options.runs
    facts = measuring.machine()
    if not options.json:
        print(measuring.heading(facts), end="\n\n", flush=True)
    with tempfile.TemporaryDirectory() as bytecode:
        _ENVIRONMENT["PYTHONPYCACHEPREFIX"] = bytecode
        rows = small(runs)
        pairs = programs(max(runs // 3, 2), options.quick)
        parts = in_process(runs)
        loaded = {name: imports(name, *words) for name, words in _COMMANDS.items()}
    big = symbols(3)
    judged = judge(rows, big)
    if options.json:
        answer = {
            "facts": facts,
            "start": [row.facts() for row in rows],
            "programs": [[row.facts(), other and other.facts()] for row, other in pairs],
            "parts_ms": parts,
            "imports_ms": loaded,
            "symbols": big,
            "verdicts": judged,
        }
        print(json.dumps(answer, indent=1))
        return 0
    show(rows, pairs, parts, loaded)
    if big:
        print(
            f"{big['library']}: {big['mb']} MB, {big['symbols']} symbols, CPU ms {big['cpu_ms']}"
        )
    print("\n".join(judged))
    return 0


if __name__ == "__main__":
    sys.exit(main())
