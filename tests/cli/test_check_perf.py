"""`check` with --definition, --vars, --lines, --funcs, and `trace --perf`: perf probe's words.

The texts themselves are in tests/engine/trace/perfprobe.
"""

import json
import shutil
from pathlib import Path

import pytest
from controlkit import held
from guestrun import Outcome, run
from perfprobekit import DATA, HOME

from engine.session.protocol import commands as cmd


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with programs, and their sources where they were compiled."""
    (tmp_path / HOME[1:]).mkdir()
    for name in ("program.c", "c0", "c2", "a2", "r1"):
        shutil.copy(DATA / name, tmp_path / HOME[1:] if "." in name else tmp_path)
    return tmp_path


def check(home: Path, *words: str) -> Outcome:
    return run("check", *words, cwd=home)


def test_listings(home: Path) -> None:
    done = check(home, "-D", "area:3 width", "-V", "area,square", "--filter", "l*|v", "c2")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"p:probe_c2/area_L3 {home}/c2:0x1282 width=%ax:s32\n"
        "Available variables at area\n"
        "\t@<area+0>\n"
        "\t\tchar*\tlabel\n"
        "Available variables at square\n"
        "\t@<main+242>\n"
        "\t\tint\tv\n"
        "\t@<walk+50>\n"
        "\t\t(No matched variables)\n"
        "\t@<area+2>\n"
        "\t\tint\tv\n"
    )
    done = check(home, "-F", "--filter", "a* | sw*", "c2")
    assert (done.code, done.out, done.err) == (0, "area\nswap\n", "")
    done = check(home, "-L", "area:3+2", "--root", str(home), "c2")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1:] == [
        "      3  \tint height = p->y;",
        "      4  \tfor (int i = 0; i < 2; i++) {",
    ]


def test_perf_s_warnings_go_to_stderr(home: Path) -> None:
    done = check(home, "-D", "area width", "c0")
    assert done.code == 0
    assert done.out == f"p:probe_c0/area {home}/c0:0x1169 width=-12(%bp):s32\n"
    assert "compiled without optimization. Skipping prologue." in done.err
    done = check(home, "-D", "bits f->a", "c2")
    assert "perf probe 6.1 fails at this bit field" in done.err


def test_listings_as_json(home: Path) -> None:
    root = ("--root", str(home))
    words = (*root, "-D", "area:3 width", "-D", "bits f->a", "-V", "area", "-L", "area:3+2", "-F")
    text = check(home, *words, "c2").out
    done = check(home, *words, "--json", "c2")
    found = json.loads(done.out)
    assert list(found) == ["kind", "listings", "remarks"]
    assert [(each["listing"], each["of"]) for each in found["listings"]] == [
        ("definition", "area:3 width"), ("definition", "bits f->a"), ("vars", "area"),
        ("lines", "area:3+2"), ("funcs", ""),
    ]  # fmt: skip
    assert [line for each in found["listings"] for line in each["lines"]] == text.splitlines()
    assert any("fails at this bit field" in line for lines in found["remarks"] for line in lines)
    assert done.err == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-D", "nosuch"), "Probe point 'nosuch' not found"),
        (("-D", "aera%return"), "similar: area"),
        (("-D", "area zz"), "Failed to find the location of the 'zz' variable"),
        (("-D", "area%back"), "%back is not supported"),
        (("-V", "nosuch"), "Failed to find the address of nosuch"),
        (("-V", "area p"), "'--vars' doesn't accept arguments"),
        (("-V", ","), "--vars needs a place"),
        (("-L", "area:x"), "'start line' is not a valid number"),
        (("-L", "area"), "is not there"),
        (("-F", "--filter", "a &"), "Filter parse error"),
        (("-F", "--filter", "zz*"), "Failed to find symbols matched"),
        (("-F", "--all"), "--all does not go with"),
        (("-D", "nosuch", "--json"), "Probe point 'nosuch' not found"),
        (("--externs",), "--externs goes with --vars"),
        (("--no-inlines", "-F"), "--no-inlines goes with"),
    ],
)
def test_one_error_and_code_2(home: Path, words: tuple[str, ...], told: str) -> None:
    done = check(home, *words, "c2")
    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err


def test_verdicts_on_the_places_of_a_command(home: Path) -> None:
    done = check(home, "-e", "perf: square v", "c2")
    assert (done.code, done.err) == (0, "")
    places = [line.split()[:2] for line in done.out.splitlines() if line.startswith("0x")]
    assert places == [["0x1142", "main+0xf2"], ["0x1302", "walk+0x32"], ["0x1282", "area+0x2"]]


def test_kernel_mode_keeps_tracefs_answer(home: Path) -> None:
    done = check(home, "--mode", "kernel", "-e", "perf: area", "c2")
    assert done.code == 2
    assert "trace_kprobe: error: Event name is not specified" in done.err


def test_values_at_places_of_perf(home: Path) -> None:
    words = ["--perf", "area p->x p->y c label:string counter hidden title:string"]
    words += ["--perf", "walk n->name:string n->values[2] depth s", "--perf", "square v"]
    words += ["--perf", "bits f->a f->b f->c ok seven", "-e", "perf: ret=area%return $retval:s32"]
    done = run("trace", *words, "./c0", cwd=home)
    assert done.code == 0
    rows = [line.partition(": ")[2].partition(": ")[2] for line in done.err.splitlines()]
    values = [row.partition(") ")[2] for row in rows if row.startswith("(")]
    assert values == [
        'x=1 y=3 c=0x6 label_string="title" counter=3 hidden=7 title_string="title"',
        "v=1",
        "v=2",
        "arg1=20",
        'name="first" values=3 depth=0x1 s=3',
        "v=6",
        "v=3",
        "a=1 b=29 c=77 ok=0x1 seven=0x7",  # b is -3: the kernel's bit fields have no sign
    ]


@pytest.mark.parametrize(("name", "register"), [("a2", "%x0"), ("r1", "%a0")])
def test_registers_of_other_architectures(home: Path, name: str, register: str) -> None:
    done = check(home, "-D", "area p->y", name)
    assert done.code == 0
    assert done.out.startswith(f"p:probe_{name}/area {home}/{name}:0x")
    assert done.out.endswith(f" y=+4({register}):s32\n")


def test_computed_values_are_refused(home: Path) -> None:
    """`r` of square is a product: perf would read memory at the register that holds a factor."""
    done = run("trace", "--perf", "square r", "./c2", cwd=home)
    assert done.code == 2
    assert "perf probe would read r=+0(%ax):s32" in done.err
    done = run("trace", "--mode", "kernel", "--perf", "square r", "./c2", cwd=home)
    assert done.code == 0


def test_lines_of_perf_are_undone_together(home: Path) -> None:
    done = run("trace", "--perf", "area nosuch", "./c2", cwd=home)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_the_interface_takes_commands_as_lines_of_uprobes(home: Path) -> None:
    with held(str(home / "c2")) as guest:
        guest.do(cmd.Define("perf: area:3 width height"))
        assert guest.probe(1).row.line.startswith("p:probe_c2/area_L3 ")
        guest.do(cmd.Define("perf: square v"))
        lines = [guest.probe(number).row.line.split()[0] for number in (2, 3, 4)]
        assert lines == ["p:probe_c2/square"] * 3  # one event of the three inlined copies
