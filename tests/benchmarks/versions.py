"""The costs that matter, of one version beside another and beside other tools, in one run.

`python tests/benchmarks/versions.py [--old COMMAND] [--runs N] [--group G]... [--json]`. A
version is the command line of its `kprobe-tui`: that beside this Python, and `--old`. All are run
in turn, N times, and the least CPU time counts, so that figures which are compared were measured
at the same time. What an event or a call costs is a slope between two runs, minus the slope of
the same runs without what is measured. What a version cannot do, or not within two minutes, has
no figure. Costs of hits come from each version's own `bench`, which with `--peers` measures gdb,
uftrace, Frida and a uprobe of the running kernel (root) as well.
"""

import argparse
import json
import math
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from goldenruns import GUESTS, build_bench
from sysroot import SysrootUnavailable, sysroot

from tests.benchmarks import measuring
from tests.benchmarks.run_speed import ROUNDS

Words = tuple[str, ...]

_OWN: Final = "this"
_SOURCES: Final = Path(__file__).parent / "src"
_SAMPLES: Final = Path(__file__).resolve().parents[2] / "samples" / "bin" / "x86_64"
_LIMIT: Final = 120.0
"""Seconds of wall clock after which a command is given up."""
_MANY: Final = (10_000, 40_000)
"""Functions of large programs."""
_LIBRARIES: Final = Path("/usr/lib/x86_64-linux-gnu")
_ARCHES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_ROUNDS: Final = 2_000_000
_PYTHON: Final = ("python3.11", "-S", "-E", "-c")
_PROGRAMS: Final = {
    "python, sums": (*_PYTHON, "print(sum(i * i for i in range({n})))"),
    "python, dicts": (
        *_PYTHON,
        "d = {{}}\nfor i in range({n} // 5): d[i % 1000] = str(i)\nprint(len(d))",
    ),
    "perl": ("perl", "-e", "$s = ($s + $_ * 7) % 1009 for 1 .. {n}; print $s"),
    "awk": ("gawk", "BEGIN {{ for (i = 0; i < {n}; i++) s += i % 7; print s }}"),
    "lua": ("lua5.4", "-e", "local s = 0 for i = 1, {n} do s = s + i % 7 end print(s)"),
    "shell": (
        *("busybox", "sh", "-c"),
        "i=0; while [ $i -lt $(({n} / 10)) ]; do i=$((i+1)); done; echo $i",
    ),
}
"""Debian's programs, with a place for the rounds of a loop."""
_HITS: Final = {
    "jump 3": (math.inf, 40),
    "breakpoint 3": (300, 150),
    "breakpoint 3, filter 0 %": (200, 120),
    "return breakpoint": (900, 400),
    "graph breakpoint": (1_200, 600),
    "return jump": (100, 90),
    "graph jump": (150, 110),
    "handler breakpoint": (4_000, 2_500),
}
"""Reach and aim of rows of `bench`."""


class Slope(NamedTuple):
    """What more work costs.

    Attributes:
        many: a command.
        few: with less to do; nothing if empty.
    """

    many: Words
    few: Words = ()


@dataclass(frozen=True)
class Cost:
    """What something costs, as CPU time of whole commands.

    Attributes:
        name: of it.
        unit: of the figure.
        reach: the figure to be reached; 0 for none.
        aim: the figure that is aimed at.
        of: what is measured: words behind `kprobe-tui`.
        scale: makes a figure of its seconds.
        minus: the same without what is measured.
        over: the figure is the ratio to this.
        peer: another tool's whole commands, to which the figure is the ratio.
        expected: exit code.
    """

    name: str
    unit: str
    reach: float
    aim: float
    of: Slope
    scale: float = 1
    minus: Slope | None = None
    over: Slope | None = None
    peer: Slope | None = None
    expected: int = 0


@dataclass
class Figures:
    """Figures of one row by version, or by tool."""

    name: str
    unit: str
    reach: float
    aim: float
    found: dict[str, float] = field(default_factory=dict)

    def cells(self, versions: Sequence[str]) -> list[str]:
        """As a line of the table."""
        values = [self.found.get(version, math.nan) for version in versions]
        goals = [self.reach, self.aim]
        return [
            f"{self.name}, {self.unit}",
            *("-" if math.isnan(value) else f"{value:.3g}" for value in values),
            *(f"{goal:g}" if 0 < goal < math.inf else "-" for goal in goals),
            measuring.verdict(values[0], *goals) if self.reach else "",
        ]


class Spending:
    """Runs commands in turn, and keeps the least that each has taken."""

    def __init__(self, runs: int) -> None:
        """Each is run so often."""
        self._runs = runs
        self._cpu: dict[Words, float] = {}
        self._peak: dict[Words, float] = {}

    def run(self, commands: dict[Words, int]) -> None:
        """Run commands, which end with these exit codes, if they have not been run yet."""
        new = {words: code for words, code in commands.items() if words not in self._cpu}
        for _ in range(self._runs):
            for words, code in new.items():
                if math.isnan(self._cpu.get(words, 0)):
                    continue
                try:
                    spent = measuring.run_process(words, {"LC_ALL": "C"}, code, _LIMIT)
                except RuntimeError as error:
                    print(f"left out: {str(error)[-200:]}", file=sys.stderr)
                    self._cpu[words] = self._peak[words] = math.nan
                    continue
                self._cpu[words] = min(self._cpu.get(words, math.inf), spent.cpu)
                self._peak[words] = spent.peak / 1024

    def of(self, slope: Slope) -> float:
        """CPU seconds that more work has taken."""
        return self._cpu[slope.many] - (self._cpu[slope.few] if slope.few else 0)

    def peak(self, words: Words) -> float:
        """MiB that the last run of a command has taken."""
        return self._peak[words]


def measured(cost: Cost, versions: dict[str, Words], spending: Spending) -> Figures:
    """Measure one row."""
    parts = [each for each in (cost.of, cost.minus, cost.over) if each is not None]
    commands: dict[Words, int] = {}
    for version in versions.values():
        for words in (each for part in parts for each in part if each):
            commands[version + words] = cost.expected
    commands.update({words: cost.expected for words in cost.peer or () if words})
    spending.run(commands)
    figures = Figures(cost.name, cost.unit, cost.reach, cost.aim)
    for name, version in versions.items():
        of, minus, over = (
            Slope(version + part.many, version + part.few if part.few else ()) if part else None
            for part in (cost.of, cost.minus, cost.over)
        )
        assert of is not None
        if cost.unit == "MiB":
            figures.found[name] = spending.peak(of.many)
            continue
        value = spending.of(of) - (spending.of(minus) if minus else 0)
        divisor = over or cost.peer
        figures.found[name] = cost.scale * value / (spending.of(divisor) if divisor else 1)
    return figures


# -- rows -------------------------------------------------------------------------------------


def built(folder: Path, name: str, source: Path | None = None) -> str:
    """A static program of the benchmarks' sources."""
    path = folder / name
    words = ["gcc", "-O1", "-static", "-o", str(path), str(source or _SOURCES / f"{name}.c")]
    subprocess.run(words, check=True)
    return str(path)


def many_functions(folder: Path, count: int) -> str:
    """A program of so many functions, of which it calls ten thousand."""
    source = folder / f"many{count}.c"
    with source.open("w") as file:
        print("volatile long sum;", file=file)
        for number in range(count):
            print(
                f"__attribute__((noinline)) long f{number}(long a)",
                f"{{ sum += a; return sum ^ {number}; }}",
                file=file,
            )
        calls = "".join(f"f{number}({number});" for number in range(10_000))
        print(f"int main(void) {{ {calls} return 0; }}", file=file)
    return built(folder, f"many{count}", source)


def of_events(folder: Path) -> Iterator[Cost]:
    """Events to files, without and with stacks."""
    deep, out = built(folder, "deep"), str(folder / "out")
    for name, words, counts, reach, aim in (
        ("ftrace", (), (50_000, 250_000), 1, 0.8),
        ("jsonl", ("--format", "jsonl"), (50_000, 250_000), 2, 1.5),
        ("perfetto", ("--format", "perfetto"), (50_000, 250_000), 2.5, 1.5),
        ("ftrace, with 20 frames", ("--stack",), (5_000, 25_000), 4, 2),
        ("folded", ("--stack", "--format", "folded"), (5_000, 25_000), 4, 2),
    ):
        few, many = (str(each) for each in counts)
        command = ("trace", "-e", "p leaf n=%di", *words, "-o", out, deep)
        yield Cost(
            f"an event to a file, {name}",
            "us",
            reach,
            aim,
            Slope((*command, many), (*command, few)),
            1e6 / (counts[1] - counts[0]),
            minus=Slope(("run", deep, many), ("run", deep, few)),
        )


def of_calls(folder: Path) -> Iterator[Cost]:
    """System calls of a plain run."""
    program = built(folder, "syscalls")
    for what, reach, aim in (
        *(("getpid", 5, 3), ("read", 7, 5), ("write", 7, 5), ("brk", 15, 10)),
        *(("mmap", 40, 25), ("signal", 40, 25)),
    ):
        many, few = (("run", program, what, count) for count in ("60000", "10000"))
        yield Cost(f"a system call, {what}", "us", reach, aim, Slope(many, few), 1e6 / 50_000)


def of_many(folder: Path) -> Iterator[Cost]:
    """Probes on all functions of large programs."""
    out = str(folder / "out")
    for count in _MANY:
        program = many_functions(folder, count)
        largest = count == max(_MANY)
        for name, words, reach, aim in (
            ("graph", ("graph", "-f", "f*"), 40, 15),
            ("returns", ("trace", "-r", "f*"), 40, 15),
            ("entries by jump", ("trace", "-f", "f*", "--technique", "jump"), math.inf, 10),
        ):
            goals = (reach, aim) if largest else (0, 0)
            yield Cost(f"{name} on {count:,}", "s", *goals, Slope((*words, "-o", out, program)))


def of_starts(folder: Path) -> Iterator[Cost]:
    """Tiny runs, the first symbol of many, verdicts on all places."""
    tiny = ("run", "--clean-env", str(GUESTS / "amd64" / "tiny"))
    yield Cost("a tiny run", "s", 0.14, 0.11, Slope(tiny), expected=33)
    yield Cost("a tiny run", "MiB", 34, 30, Slope(tiny), expected=33)
    libraries = sorted(_LIBRARIES.glob("libLLVM*"), key=lambda path: path.stat().st_size)
    if libraries:
        symbol = ("disasm", str(libraries[-1]), "LLVMContextCreate")
        yield Cost("one function of libLLVM", "s", 0, 0, Slope(symbol))
        yield Cost("one function of libLLVM", "MiB", 0, 0, Slope(symbol))
    shell = "/usr/bin/dash"
    checked = ("check", "--all", shell)
    done = subprocess.run(
        [sys.executable, "-m", "tui", *checked],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,  # there are places that cannot be probed
    )
    slope = Slope(checked, ("check", "-f", "main", str(GUESTS / "amd64" / "guests-static")))
    places = done.stdout.count(b"\n")
    yield Cost(
        "verdicts on 100,000 places", "s", 4, 2, slope, 1e5 / places, expected=done.returncode
    )


def of_sweeps(folder: Path) -> Iterator[Cost]:
    """Cells of a small program that fails, so that each time all are run again."""
    guest, counts = _SAMPLES / "crash", (120, 20)
    files = [folder / f"cells{count}.toml" for count in counts]
    for count, file in zip(counts, files, strict=True):
        file.write_text(
            f'mode = ["trace"]\n[matrix]\nguest = "{guest}"\nseed = "0-{count - 1}"\n'
            '[matrix.definitions]\nstart = "p:sweep/start main"\n'
        )
    words = (("sweep", "--jobs", "1", "--retry", "failed", str(file)) for file in files)
    yield Cost("a cell of a sweep", "ms", 8, 5, Slope(*words), 1e3 / 100, expected=1)


def of_programs(folder: Path) -> Iterator[Cost]:
    """Real programs against qemu-user; with the block clock against themselves."""
    for debian, arch in _ARCHES.items():
        qemu = shutil.which(f"qemu-{arch}")
        try:
            root = sysroot(arch)
        except SysrootUnavailable as error:
            print(f"{arch} programs left out: {error}", file=sys.stderr)
            continue
        for name, words in _PROGRAMS.items():
            program = root / "usr" / "bin" / words[0]
            many, few = (
                (str(program), *(word.format(n=count) for word in words[1:]))
                for count in (_ROUNDS, _ROUNDS // 8)
            )
            runs = Slope(
                *(("run", "--clean-env", "--root", str(root), *each) for each in (many, few))
            )
            if qemu is not None:
                others = Slope(*((qemu, "-L", str(root), *each) for each in (many, few)))
                yield Cost(f"{debian} {name} / qemu", "ratio", 1.6, 1.2, runs, peer=others)
            yield _clocked(f"{debian} {name}", runs)
    qemu, encoder = shutil.which("qemu-x86_64"), shutil.which("ffmpeg")
    if qemu is not None and encoder is not None:
        clip = ("-f", "lavfi", "-i", "testsrc=size=160x120:rate=5:duration=1")
        encode = (encoder, "-v", "error", "-threads", "1", *clip, "-c:v", "mpeg4", "-f", "null")
        runs = Slope(("run", "--guest-cpu", "v3", *encode, "-"))
        others = Slope((qemu, "-cpu", "max", *encode, "-"))
        yield Cost("ffmpeg encodes a clip / qemu", "ratio", 3, 1.5, runs, peer=others)
    bench = str(build_bench("x86_64"))
    for kernel, rounds in ROUNDS.items():
        many, few = (("run", bench, kernel, str(count)) for count in (2 * rounds, 0))
        yield _clocked(f"kernel {kernel}", Slope(many, few))


def _clocked(name: str, runs: Slope) -> Cost:
    """Runs with the clock, which a limit in blocks needs, over those without."""
    clocked = Slope(*((each[0], "--max-blocks", str(1 << 50), *each[1:]) for each in runs))
    return Cost(f"{name}, clock on / off", "ratio", 1.15, 1.1, clocked, over=runs)


GROUPS: Final = {
    "starts": of_starts,
    "events": of_events,
    "calls": of_calls,
    "many": of_many,
    "sweeps": of_sweeps,
    "programs": of_programs,
}


def hit_name(row: dict[str, object]) -> str:
    """What a row of `bench` measures."""
    technique, passes = row["technique"], row.get("filter_pass")
    entry = row.get("entry", technique)  # other tools have none
    text = str(technique) if technique == entry else f"{technique} {row.get('format') or entry}"
    text += f" {row['args']}" if row["args"] else ""
    text += " + string" if row.get("string") else ""
    return text if passes is None else f"{text}, filter {passes} %"


def of_hits(versions: dict[str, Words], runs: int, *, peers: bool) -> list[Figures]:
    """What each version's own `bench` says, and what the first one's says of other tools."""
    rows: dict[str, Figures] = {}
    for turn, (name, command) in enumerate(versions.items()):
        words = [*command, "bench", "--arch", "x86_64", "--runs", str(runs), "--json"]
        words += ["--live-kernel"] if peers and not turn else ["--no-peers"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"left out: {done.stderr[-200:]}", file=sys.stderr)
            continue
        for one in json.loads(done.stdout):
            name_of = hit_name(one)
            goals = _HITS.get(name_of, (0, 0))
            row = rows.setdefault(name_of, Figures(f"a hit, {name_of}", "ns", *goals))
            row.found[name] = float(one.get("ns_per_hit") or math.nan)
    return list(rows.values())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", help="command line of another version")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--group",
        action="append",
        choices=(*GROUPS, "hits"),
        help="these rows alone; again and again",
    )
    parser.add_argument("--peers", action="store_true", help="other tools in `bench`, too (root)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    own = str(Path(sys.executable).with_name("kprobe-tui"))
    versions: dict[str, Words] = {_OWN: (own,)}
    if options.old:
        versions["old"] = tuple(shlex.split(options.old))
    chosen = options.group or (*GROUPS, "hits")
    facts, figures, spending = measuring.machine(), [], Spending(options.runs)
    with tempfile.TemporaryDirectory() as folder:
        for name in (each for each in GROUPS if each in chosen):
            figures += [measured(each, versions, spending) for each in GROUPS[name](Path(folder))]
    for arch in (*_ARCHES, "kernel"):
        for text in (" / qemu", ", clock on / off"):
            rows = [
                each for each in figures if each.name.startswith(f"{arch} ") and text in each.name
            ]
            if rows:
                mean = Figures(f"{arch}, all{text}", "mean", rows[0].reach, rows[0].aim)
                for version in versions:
                    values = [each.found[version] for each in rows]
                    mean.found[version] = measuring.geometric_mean(values)
                figures.append(mean)
    if "hits" in chosen:
        figures += of_hits(versions, options.runs, peers=options.peers)
    if options.json:
        found = [{"name": each.name, "unit": each.unit, **each.found} for each in figures]
        print(json.dumps({"machine": facts, "figures": found}, indent=1))
        return
    print(measuring.heading(facts))
    head = ["what", *versions, "reach", "aim", ""]
    print(measuring.table(head, [each.cells(list(versions)) for each in figures]))


if __name__ == "__main__":
    main()
