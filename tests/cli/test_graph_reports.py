"""`graph --report`, `--callers`, `--callees`, filters and profiles, against what uftrace says.

The programs and uftrace's answers are in tests/data/uftrace.
"""

import gzip
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from guestrun import Outcome, run
from protowire import fields
from sessionkit import SAMPLES
from sysroot import CHECKOUT

DATA = CHECKOUT / "tests" / "data" / "uftrace"
GOLDEN = json.loads((DATA / "uftrace.json").read_text())
FLAGS = ("-g", "-O1", "-fno-optimize-sibling-calls")
MANGLED = {
    "Noise::Noise": "_ZN5NoiseC2Ev",
    "Noise::~Noise": "_ZN5NoiseD2Ev",
    "leaf": "_Z4leafi",
    "mid": "_Z3midi",
    "guard": "_Z5guardi",
    "rethrow": "_Z7rethrowi",
    "twice": "_Z5twice*",
}
RECURSION = str(SAMPLES / "x86_64" / "recursion")


def built(folder: Path, name: str, arch: str = "x86_64", *flags: str) -> Path:
    """A program of the data, linked statically unless flags are given."""
    source = next(DATA.glob(f"{name}.c*"))
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    if arch != "x86_64":
        compiler = f"{arch}-linux-gnu-{compiler}"
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    program = folder / f"{name}.{arch}"
    more = flags or ("-static",)
    subprocess.run(
        [compiler, *FLAGS, *more, "-o", str(program), str(source), "-lpthread"], check=True
    )
    return program


def globs(program: str, functions: set[str]) -> list[str]:
    names = [MANGLED.get(name, name) if program == "throws" else name for name in functions]
    return [word for name in sorted(names) for word in ("-f", name)]


def plain(name: str) -> str:
    """The name of a function as uftrace has it; constructors have several."""
    name = re.sub(r"^(_ZN5Noise[CD])1Ev$", r"\g<1>2Ev", name)
    for short, mangled in MANGLED.items():
        if name == mangled or (short == "twice" and name.startswith("_Z5twice")):
            return short
    return name


def ways(folded: str) -> Counter[str]:
    """The calls on each way of functions, from folded stacks."""
    found: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        found[";".join(map(plain, stack.split(";")[1:]))] += int(count)
    return found


def graph(*words: str, cwd: Path) -> Outcome:
    done = run("graph", *words, cwd=cwd)
    assert done.code in (0, 1), done.err
    return done


def functions(program: str) -> set[str]:
    return {name for way in GOLDEN["calls"][program] for name in way.split(";")}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
@pytest.mark.parametrize("program", ["recursion", "threads", "jumps", "forks", "throws"])
def test_calls_are_those_that_uftrace_counts(program: str, arch: str, tmp_path: Path) -> None:
    guest = built(tmp_path, program, arch)
    wanted = Counter(GOLDEN["calls"][program])
    traced = globs(program, functions(program))
    out = tmp_path / "out"
    graph(
        *traced, "--format", "folded", "--weigh", "calls", "-o", str(out), str(guest), cwd=tmp_path
    )
    found = ways(out.read_text())
    if program != "forks":  # uftrace's child goes on in its parent's calls
        assert found == wanted
    graph(*traced, "--report", "--json", "-o", str(out), str(guest), cwd=tmp_path)
    calls: Counter[str] = Counter()
    for one in json.loads(out.read_text())["functions"]:
        calls[one["name"]] += one["calls"]
    sums: Counter[str] = Counter()
    for way, count in wanted.items():
        sums[way.rpartition(";")[2]] += count
    assert calls == sums


@pytest.mark.slow
def test_calls_in_a_library_that_is_opened_later(tmp_path: Path) -> None:
    guest = built(tmp_path, "opens", "x86_64", "-no-pie")
    library = built(tmp_path, "plug", "x86_64", "-shared", "-fPIC")
    out = tmp_path / "out"
    names = functions("opens")
    own = [word for name in ("main", "drive", "back", "cmp") for word in ("-f", name)]
    more = ("-f", f"{library}:*", "--format", "folded", "--weigh", "calls", "-o", str(out))
    graph(*own, *more, str(guest), str(library), cwd=tmp_path)
    every = ways(out.read_text())
    found = {way: count for way, count in every.items() if way.rpartition(";")[2] in names}
    assert found == GOLDEN["calls"]["opens"]


@pytest.mark.slow
def test_filters_leave_what_uftrace_s_leave(tmp_path: Path) -> None:
    guest = built(tmp_path, "filters")
    own = ("main", "foo", "bar", "fib", "work", "even", "odd", "deep")
    traced = [word for name in own for word in ("-f", name)]
    out = tmp_path / "out"
    for options, wanted in GOLDEN["filters"].items():
        words = ("--format", "folded", "--weigh", "calls", "-o", str(out), *options.split())
        graph(*traced, *words, str(guest), cwd=tmp_path)
        assert ways(out.read_text()) == wanted, options


def test_only_calls_that_last(tmp_path: Path) -> None:
    every = graph("--report", RECURSION, cwd=tmp_path).err
    done = graph("--report", "-t", "30", RECURSION, cwd=tmp_path).err
    assert re.search(r"^ +2726 +2726 +987  fibonacci$", every, re.M)
    assert re.search(r"^ +2726 +2726 +89  fibonacci$", done, re.M)  # theirs is their callers' own
    assert "factorial" not in done
    lines = graph("-t", "1000", RECURSION, cwd=tmp_path).err.splitlines()[4:]
    assert all(int(line[5:].split()[0]) >= 1000 for line in lines if line[5] != " ")
    assert sum("fibonacci() {" in line or "fibonacci();" in line for line in lines) == 3


@pytest.mark.slow
def test_names_of_cpp(tmp_path: Path) -> None:
    guest = built(tmp_path, "throws")
    words = ("--report", "-f", "_Z5twice*", "-f", "_Z5guardi", str(guest))
    texts = {}
    for style in ("simple", "full", "no"):
        lines = graph("--demangle", style, *words, cwd=tmp_path).err.splitlines()[3:]
        texts[style] = {line[38:] for line in lines}
    assert texts["simple"] == {"twice", "guard"}
    assert "guard(int)" in texts["full"]
    assert "int twice<int>(int)" in texts["full"]
    assert len(texts["no"]) == 3
    assert "_Z5guardi" in texts["no"]
    way = graph("--callers", "twice", *words[1:], cwd=tmp_path).err
    assert "hit 2" in way


def test_one_size(tmp_path: Path) -> None:
    done = graph("--report", "--fields", "size", "-Z", "80", RECURSION, cwd=tmp_path).err
    sizes = [int(line.split()[0]) for line in done.splitlines()[3:]]
    assert sizes
    assert min(sizes) >= 80


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_the_report_of_a_sample(arch: str, tmp_path: Path) -> None:
    done = graph("--report", str(SAMPLES / arch / "recursion"), cwd=tmp_path)
    calls = {line.split()[3]: line.split()[:3] for line in done.err.splitlines()[3:]}
    assert calls["fibonacci"][2] == "987"
    assert calls["ackermann"][2] == "20"
    assert calls["fibonacci"][0] == calls["fibonacci"][1]
    own = sum(int(one[1]) for one in calls.values())
    assert own == int(calls["_start"][0])


def test_a_report_is_compared_with_another_and_with_a_recording(tmp_path: Path) -> None:
    other = str(SAMPLES / "aarch64" / "recursion")
    graph("--report", "--json", "-o", "old.json", other, cwd=tmp_path)
    recorded = run("record", "-o", "old.rec", other, cwd=tmp_path)
    assert recorded.code == 0
    words = ("--report", "--diff-policy", "full", "-s", "func", "--diff")
    texts = [graph(*words, old, RECURSION, cwd=tmp_path).err for old in ("old.json", "old.rec")]
    assert texts[0].replace("old.json", "old.rec") == texts[1]
    assert "#  [0] base: this run\n#  [1] diff: old.json\n" in texts[0]
    row = next(line.split() for line in texts[0].splitlines() if line.endswith("  fibonacci"))
    assert row[6:9] == ["987", "987", "+0"]


def test_a_recording_is_a_guest(tmp_path: Path) -> None:
    run("record", "-o", "run.rec", RECURSION, cwd=tmp_path)
    live, again = (graph("--report", one, cwd=tmp_path) for one in (RECURSION, "run.rec"))
    assert (again.out, again.err) == (live.out, live.err)
    texts = [graph("-f", "main", one, cwd=tmp_path).err for one in (RECURSION, "run.rec")]
    assert texts[0] == texts[1]


def test_callers_and_callees(tmp_path: Path) -> None:
    words = ("--callers", "sys_write", "--callees", "ackermann")
    text = graph(*words, RECURSION, cwd=tmp_path).err
    assert " backtrace #0: hit 3, time 3\n   [0] _start\n" in text
    assert "\n         81 : (1) ackermann\n         73 : (2) ackermann\n" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sort", "self"), "--sort needs --report"),
        (("--report", "--sort", "x"), "--sort x: no such key; there is total"),
        (("--report", "--fields", "x"), "--fields x: no such field"),
        (("--report", "--format", "pprof"), "--format pprof is for the calls themselves"),
        (("--report", "--option", "sym-offset"), "--option sym-offset is for the text"),
        (("--report", "--tracer", "function"), "nobody knows how long a call takes"),
        (("-t", "5", "--tracer", "function"), "nobody knows how long a call takes"),
        (("--report", "--callers", "main"), "--report and --callers, --callees: one of them"),
        (("--callers", "main", "--task"), "--task is for --report"),
        (("--report", "--task", "--avg-total"), "--avg-total is for functions, not for --task"),
        (("--report", "--avg-self", "--avg-total"), "--avg-total and --avg-self: one of them"),
        (("--report", "--diff-policy", "abs"), "--diff-policy needs --diff FILE"),
        (("--report", "--diff", "x", "--diff-policy", "y"), "--diff-policy y: there is abs"),
        (("--report", "--diff", "/nowhere"), "--diff /nowhere: No such file"),
        (("--report", "--diff", RECURSION), "no report of graph --report --json, and no rec"),
        (("--weigh", "calls"), "--weigh calls is for --format folded and pprof"),
        (("-C", "nothing"), "nothing"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = run("graph", *words, RECURSION, cwd=tmp_path)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_recording_has_its_own_options(tmp_path: Path) -> None:
    run("record", "-o", "run.rec", RECURSION, cwd=tmp_path)
    done = run("graph", "--seed", "3", "run.rec", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "--seed: GUEST is a recording, which has its own" in done.err


@pytest.mark.parametrize("weigh", ["time", "calls"])
def test_profiles_have_what_the_report_has(weigh: str, tmp_path: Path) -> None:
    """Read by flamegraph.pl's pattern, and by profile.proto's fields."""
    words = ("--weigh", weigh, "-o", "out", RECURSION)
    graph("--report", "--json", "-o", "report", RECURSION, cwd=tmp_path)
    report = json.loads((tmp_path / "report").read_text())["functions"]
    wanted = {one["name"]: one["calls" if weigh == "calls" else "self"] for one in report}

    graph("--format", "folded", *words, cwd=tmp_path)
    lines = (tmp_path / "out").read_text().splitlines()
    matches = [re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line) for line in lines]
    found: Counter[str] = Counter()
    for match in matches:
        assert match is not None
        found[match[1].rpartition(";")[2]] += int(match[2])
    assert found == wanted

    graph("--format", "pprof", *words, cwd=tmp_path)
    profile: dict[int, list[Any]] = {}
    for number, value in fields(gzip.decompress((tmp_path / "out").read_bytes())):
        profile.setdefault(number, []).append(value)
    strings = [text.decode() for text in profile[6]]
    types = [tuple(strings[at] for _, at in fields(one)) for one in profile[1]]
    assert types == [("events", "count"), ("time", "ticks")]
    assert strings[profile[14][0]] == ("time" if weigh == "time" else "events")
    names = {at[1]: strings[at[2]] for at in map(dict, map(fields, profile[5]))}
    places = {}
    for location in map(dict, map(fields, profile[4])):
        places[location[1]] = names[dict(fields(location[4]))[1]]
    shown: Counter[str] = Counter()
    for sample in map(dict, map(fields, profile[2])):
        first = next(iter(packed(sample[1])))
        shown[places[first]] += list(packed(sample[2]))[weigh == "time"]
    assert shown == wanted


def packed(data: bytes) -> list[int]:
    """The numbers of a packed field (protobuf.dev, "Encoding")."""
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(value)
            value = shift = 0
    return found


FORMATS = ("ftrace", "jsonl", "perfetto", "folded", "trace.dat", "perf.data", "ctf", "pprof")


@pytest.mark.parametrize("tracer", ["function_graph", "function"])
@pytest.mark.parametrize("form", FORMATS)
def test_no_format_writes_nothing(form: str, tracer: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    graph("--tracer", tracer, "--format", form, "-o", str(out), RECURSION, cwd=tmp_path)
    files = list(out.iterdir()) if out.is_dir() else [out]
    assert sum(each.stat().st_size for each in files) > 200


TYPED = """
__attribute__((noinline)) int known(int a) { return a + 1; }
int main(void) { return known(3) == 4 ? 0 : 1; }
"""
UNKNOWN = "__attribute__((noinline)) int unknown(int a) { volatile int b = a; return b + 1; }"


def test_arguments_where_types_are_known(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (tmp_path / "known.c").write_text(
        TYPED.replace("int main", "int unknown(int);\nint main").replace(
            "known(3) ", "known(unknown(2)) "
        )
    )
    (tmp_path / "unknown.c").write_text(UNKNOWN)
    subprocess.run(["gcc", "-O1", "-c", "unknown.c"], cwd=tmp_path, check=True)
    subprocess.run(
        ["gcc", "-g", "-O1", "-static", "-o", "guest", "known.c", "unknown.o"],
        cwd=tmp_path,
        check=True,
    )
    words = ("-f", "known", "-f", "unknown", "-f", "main", "--auto-args", "./guest")
    text = graph(*words, cwd=tmp_path).err
    assert "known(a=3); /* ret=4 */" in text
    assert "unknown();\n" in text
    assert "/* main ret=0 */" in text
    every = graph(*words[:6], "--args", "--retval", "./guest", cwd=tmp_path).err
    assert "unknown(); /* ret=0x3 */" in every
