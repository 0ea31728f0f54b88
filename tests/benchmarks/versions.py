"""The costs that matter, of one version beside another and beside other tools, in one run.

`python tests/benchmarks/versions.py [--old COMMAND] [--old-checkout DIRECTORY] [--runs N]
[--group G]... [--beside FILE] [--json]`. A version is the command line of its `kprobe-tui`: that
beside this Python, and `--old`. All are run in turn, N times, and the least CPU time counts, so
that figures which are compared were measured at the same time. What an event or a call costs is a
slope between two runs, minus the slope of the same runs without what is measured. What a version
cannot do, or not within two minutes, has no figure.

Costs of hits come from each version's own `bench`, which with `--peers` measures gdb, uftrace,
Frida and a uprobe of the running kernel (root) as well; those of history, of IA-64's core and of a
million events from the programs beside this one, for the other version from those of
`--old-checkout`. `history` and `armed` take many minutes: both are measured where they are
named. `--beside FILE` puts the figures of an earlier run's `--json` beside these; they compare
where the machine and the time of the fixed loop (`calibration_s`) are alike.
"""

import argparse
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from goldenruns import GUESTS, build_bench
from kernelimages import AMD64_61, UML_61, fetched
from sysroot import SysrootUnavailable, sysroot

from tests.benchmarks import measuring
from tests.benchmarks.costs import Cost, Figures, Slope, Spending, Words, measured
from tests.benchmarks.run_speed import ROUNDS

_OWN, _OLD, _EARLIER = "this", "old", "earlier"
_SOURCES: Final = Path(__file__).parent / "src"
_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_SAMPLES: Final = _CHECKOUT / "samples" / "bin" / "x86_64"
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
_VECTORS: Final = {"search": 2, "product": 2, "bits": 3}
"""Kernels of instructions with a VEX prefix, and how many of these a round has."""
_BOTH: Final = 1 / 1.8
"""Wall over CPU time where two processors do 1.8 times the work of one."""
_UML: Final = ("mem=64M", "con=null", "con0=fd:0,fd:1", "pty.legacy_count=0")
_HALTS: Final = "#!/bin/sh\necho up\nbusybox halt -f\n"
_LONG: Final = "d = {}\nfor i in range(1200000): d[i % 1000] = str(i)\nprint(len(d))"
"""A program of Python that takes a guest some ten seconds."""
_HITS: Final = {
    "jump 3": (math.inf, 40),
    "breakpoint 3": (300, 150),
    "breakpoint 3, filter 0 %": (200, 120),
    "return breakpoint": (900, 400),
    "graph breakpoint": (1_200, 600),
    "return jump": (100, 90),
    "graph jump": (150, 110),
    "handler breakpoint": (900, 600),
}
"""Reach and aim of rows of `bench`."""


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
        *(("getpid", 2, 1), ("read", 7, 5), ("write", 7, 5), ("brk", 15, 10)),
        *(("mmap", 40, 25), ("signal", 15, 8)),
    ):
        many, few = (("run", program, what, count) for count in ("60000", "10000"))
        yield Cost(f"a system call, {what}", "us", reach, aim, Slope(many, few), 1e6 / 50_000)
    shell = shutil.which("dash")
    if shell is not None:
        loop = "i=0; while [ $i -lt {} ]; do /bin/true; i=$((i+1)); done"
        many, few = (("run", shell, "-c", loop.format(count)) for count in (80, 10))
        yield Cost(
            "fork, exec and wait of a small program", "ms", 0, 0, Slope(many, few), 1e3 / 70
        )


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
    yield Cost("a tiny run", "s", 0.1, 0.09, Slope(tiny), expected=33)
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
    yield Cost("check --all", "wall / CPU", _BOTH, 0.5, Slope(checked), expected=done.returncode)
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
    shared = Slope(("sweep", "--jobs", "2", "--retry", "failed", str(files[0])))
    yield Cost("a sweep, two workers", "wall / CPU", _BOTH, 0.5, shared, expected=1)


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
                yield Cost(f"{debian} {name} / qemu", "ratio", 1.15, 1.0, runs, peer=others)
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
    return Cost(f"{name}, clock on / off", "ratio", 1.08, 1.05, clocked, over=runs)


def of_vectors(folder: Path) -> Iterator[Cost]:
    """Instructions with a VEX prefix, alone and against qemu-user."""
    program, qemu = built(folder, "vectors"), shutil.which("qemu-x86_64")
    many, few = 10_000_000, 100
    for kernel, insns in _VECTORS.items():
        runs = Slope(*(("run", program, kernel, str(rounds)) for rounds in (many, few)))
        scale = 1e9 / (many - few) / insns
        yield Cost(f"an instruction of AVX2, FMA or BMI, {kernel}", "ns", 10, 5, runs, scale)
        if qemu is not None:
            others = Slope(
                *((qemu, "-cpu", "max", program, kernel, str(rounds)) for rounds in (many, few))
            )
            yield Cost(f"the same / qemu, {kernel}", "ratio", 3, 1, runs, peer=others)


def of_kernels(folder: Path) -> Iterator[Cost]:
    """Verdicts on a distribution's kernel; user-mode Linux from boot to power-off."""
    try:
        image = str(fetched(AMD64_61))
        summed = ("check", image, "--all", "--summary")
        yield Cost("check --summary of a kernel", "s", 0, 0, Slope(summed))
        yield Cost("check --summary of a kernel", "s, wall", 4, 2, Slope(summed))
        yield Cost("check --summary of a kernel", "wall / CPU", _BOTH, 0.5, Slope(summed))
        kernel = folder / "linux.uml"
        shutil.copy(fetched(UML_61), kernel)
    except SysrootUnavailable as error:
        print(f"kernels left out: {error}", file=sys.stderr)
        return
    (folder / "halts").write_text(_HALTS)
    disk, environment = folder / "initrd.gz", {**os.environ, "INIT": str(folder / "halts")}
    script = _CHECKOUT / "samples" / "initrd.sh"
    if subprocess.run(["sh", script, disk], env=environment, check=False).returncode:
        print("user-mode Linux left out: no initial ramdisk", file=sys.stderr)
        return
    native = (str(kernel), *_UML, f"initrd={disk}")
    shown = ("--root", "/", "--share", str(folder), "--env", "TMPDIR=/dev/shm")
    ours = ("run", *shown, *native)
    goals = 8, 5
    yield Cost("user-mode Linux / native", "ratio", *goals, Slope(ours), peer=Slope(native))


def of_debugger(folder: Path) -> Iterator[Cost]:
    """The debugger's first words in a program of C++, and beside gdb."""
    program = str(folder / "shop")
    words = ["g++", "-g", "-O0", "-o", program, str(_SOURCES / "shop.cpp")]
    subprocess.run(words, check=True)
    asked = ("-ex", "break Shop::put", "-ex", "run", "-ex", "bt", program)
    ours = Slope(("--batch", *asked))
    yield Cost("break, run, bt in C++", "s", 0.8, 0.4, ours)
    gdb = shutil.which("gdb")
    if gdb is not None:
        theirs = Slope((gdb, "-q", "-nx", "-batch", *asked))
        yield Cost("break, run, bt in C++ / gdb", "ratio", 0, 0, ours, peer=theirs)


GROUPS: Final = {
    "starts": of_starts,
    "events": of_events,
    "calls": of_calls,
    "many": of_many,
    "sweeps": of_sweeps,
    "programs": of_programs,
    "vectors": of_vectors,
    "kernels": of_kernels,
    "debugger": of_debugger,
}


class Found(NamedTuple):
    """A figure of one version.

    Attributes:
        name: what is measured.
        unit: of the figure.
        reach: the figure to be reached; 0 for none.
        aim: the figure that is aimed at; 0 for none.
        value: the figure.
    """

    name: str
    unit: str
    reach: float
    aim: float
    value: float


def _of_history(run: Callable[..., Any]) -> Iterator[Found]:
    """What a program of a minute has for its history, and what recording costs."""
    found = run("long_history.py", "python")["figures"]["python"]
    yield Found("first way back in a minute of Python", "s", 0.3, 0, found["first way back, s"])
    worst = found["step back over calls, worst, ms"] / 1e3
    yield Found("step back over a call, the worst", "s", 1, 0, worst)
    late = run("history.py", "--runs", "1", "/usr/bin/python3", "-c", _LONG)["figures"]
    ratio = late["late probe, stretches / run"]
    yield Found("a late probe over 10 s / the run, CPU", "ratio", 0, 0, ratio)
    ratio = late["its wall time / run"]
    yield Found("a late probe over 10 s / the run, wall", "ratio", 0.4, 0, ratio)
    means = run("recording.py")["means"]
    ratio = means["recorded / with the clock"]
    yield Found("recording on / off", "mean", 1.05, 1.03, ratio)


def _of_ia64(run: Callable[..., Any]) -> Iterator[Found]:
    """The core of IA-64 without machine code."""
    plain = next(row for row in run("ia64_core.py") if row["way"] == "plain")
    yield Found("a slot of IA-64 without LLVM", "ns", 40, 0, 1e3 / plain["mslots"])


def _of_armed(run: Callable[..., Any]) -> Iterator[Found]:
    """A million events in the machine's biggest LLVM."""
    found = run("armed.py")
    yield Found("a million events armed", "s", 40, 0, found["cpu_s"])
    yield Found("a million events armed", "MiB", 800, 0, found["peak_mib"])


SCRIPTS: Final = {"history": _of_history, "ia64": _of_ia64, "armed": _of_armed}
"""Groups that programs beside this one measure."""


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


def of_scripts(group: str, checkouts: dict[str, Path]) -> list[Figures]:
    """The rows of a group that a program of each version's checkout measures."""
    rows: dict[str, Figures] = {}
    for name, checkout in checkouts.items():

        def run(script: str, *words: str, checkout: Path = checkout) -> Any:
            path = checkout / "tests" / "benchmarks" / script
            done = subprocess.run(
                [sys.executable, str(path), "--json", *words], capture_output=True, check=False
            )
            if done.returncode:
                why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                raise RuntimeError(f"{path}: {why}")
            return json.loads(done.stdout)

        try:
            for one in SCRIPTS[group](run):
                key = f"{one.name}, {one.unit}"
                row = rows.setdefault(key, Figures(one.name, one.unit, one.reach, one.aim))
                row.found[name] = one.value
        except (RuntimeError, LookupError, ValueError) as error:
            print(f"left out: {name}, {group}: {error}", file=sys.stderr)
    return list(rows.values())


def means(figures: list[Figures], versions: dict[str, Words]) -> Iterator[Figures]:
    """The geometric means of ratios of the same kind, and the worst of each kind."""
    for arch in (*_ARCHES, "kernel"):
        for text in (" / qemu", ", clock on / off"):
            rows = [
                each for each in figures if each.name.startswith(f"{arch} ") and text in each.name
            ]
            if not rows:
                continue
            mean = Figures(f"{arch}, all{text}", "mean", rows[0].reach, rows[0].aim)
            worst = Figures(f"{arch}, all{text}", "worst", 1.3 if "qemu" in text else 0, 0)
            for version in versions:
                values = [each.found[version] for each in rows]
                mean.found[version] = measuring.geometric_mean(values)
                worst.found[version] = max(values)
            yield from (mean, worst)


def beside(figures: list[Figures], file: Path) -> str:
    """Add the figures of an earlier run as those of a version; the machine's facts then."""
    earlier = json.loads(file.read_text())
    known = {(one["name"], one["unit"]): one for one in earlier["figures"]}
    for row in figures:
        found = known.get((row.name, row.unit))
        if found is not None and _OWN in found:
            row.found[_EARLIER] = found[_OWN]
    return measuring.heading(earlier["machine"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", help="command line of another version")
    parser.add_argument("--old-checkout", type=Path, help="folder of the other version's source")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--group",
        action="append",
        choices=(*GROUPS, "hits", *SCRIPTS),
        help="these rows alone; again and again",
    )
    parser.add_argument("--peers", action="store_true", help="other tools in `bench`, too (root)")
    parser.add_argument("--beside", type=Path, help="an earlier run's --json")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    own = str(Path(sys.executable).with_name("kprobe-tui"))
    versions: dict[str, Words] = {_OWN: (own,)}
    checkouts = {_OWN: _CHECKOUT}
    if options.old:
        versions[_OLD] = tuple(shlex.split(options.old))
    if options.old_checkout:
        checkouts[_OLD] = options.old_checkout.resolve()
    chosen = options.group or (*GROUPS, "hits", "ia64")
    facts, figures = measuring.machine(), []
    with tempfile.TemporaryDirectory() as folder:
        # As if installed: modules are compiled once.
        environment = {"LC_ALL": "C", "HOME": folder, "PYTHONDONTWRITEBYTECODE": ""}
        spending = Spending(options.runs, environment)
        for name in (each for each in GROUPS if each in chosen):
            figures += [measured(each, versions, spending) for each in GROUPS[name](Path(folder))]
    figures += list(means(figures, versions))
    if "hits" in chosen:
        figures += of_hits(versions, options.runs, peers=options.peers)
    for name in (each for each in SCRIPTS if each in chosen):
        figures += of_scripts(name, checkouts)
    columns, then = list(dict.fromkeys((*versions, *checkouts))), ""
    if options.beside:
        then = beside(figures, options.beside)
        columns.append(_EARLIER)
    if options.json:
        found = [{"name": each.name, "unit": each.unit, **each.found} for each in figures]
        print(json.dumps({"machine": facts, "figures": found}, indent=1))
        return
    print(measuring.heading(facts))
    if then:
        print(f"{_EARLIER}: {then}")
    head = ["what", *columns, "reach", "aim", ""]
    print(measuring.table(head, [each.cells(columns) for each in figures]))


if __name__ == "__main__":
    main()
