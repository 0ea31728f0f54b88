"""Probes do not change programs: golden guests and Debian's programs, run plain and probed."""

import hashlib
import re
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_COMPILED, HOSTILE
from cguest import compiled
from goldenruns import golden_lines
from guestrun import Outcome, run
from sysroot import CHECKOUT, SysrootUnavailable, sysroot

from engine.probes.techniques import technique_names

GUESTS = CHECKOUT / "tests" / "data" / "guests"
SAMPLES = CHECKOUT / "samples" / "bin"
KNOWN = {(line.arch, line.id): line for line in golden_lines()}

served = pytest.mark.parametrize("served", [(), ("--served",)], ids=["recorded", "served"])
each_arch = pytest.mark.parametrize("arch", HOSTILE)


def hits(done: Outcome) -> int:
    """Hits of a comparison without an effect."""
    assert done.code == 0, done.err
    assert done.err.endswith("kprobe-tui: no effect\n"), done.err
    found = re.search(r"(\d+) probed places, (\d+) hits", done.err)
    assert found is not None
    return int(found[2])


@pytest.mark.slow
@served
@each_arch
@pytest.mark.parametrize("what", ["signals", "segv", "setjmp", "strings", "smc"])
def test_entries_of_all_functions(
    arch: str, what: str, served: tuple[str, ...], tmp_path: Path
) -> None:
    guest = str(GUESTS / archkit.debian(arch) / "guests-static")
    probes = ["-f", "*", *(("-r", "*") if served else ())]
    done = run("diff", "--clean-env", *served, *probes, guest, what, cwd=tmp_path)

    assert hits(done) > 200
    known = KNOWN[archkit.debian(arch), f"guests-static:{what}"]
    assert hashlib.sha256(done.out.encode()).hexdigest() == known.stdout_sha256


@pytest.mark.slow
@served
@each_arch
@pytest.mark.parametrize(
    ("sample", "functions"),
    [
        ("sort", ["quicksort", "by_weight", "swap", "by_label", "print*", "flush"]),
        ("jumps", ["*"]),
        ("crash", ["*"]),
        ("recursion", ["fibonacci", "ackermann", "factorial", "print*"]),
    ],
)
def test_every_instruction(
    arch: str, sample: str, functions: list[str], served: tuple[str, ...], tmp_path: Path
) -> None:
    words = [word for name in functions for word in ("--every-insn", name)]
    done = run("diff", *served, *words, str(SAMPLES / arch / sample), cwd=tmp_path)

    assert hits(done) > 100


@pytest.mark.slow
@pytest.mark.parametrize("returns", ["watched", "mainline"])
@pytest.mark.parametrize("technique", technique_names())
@each_arch
@pytest.mark.parametrize("sample", ["recursion", "pipeline"])
def test_techniques_and_ways_of_returns(
    arch: str, sample: str, technique: str, returns: str, tmp_path: Path
) -> None:
    """A technique leaves every register as it was, also those that no call has to keep."""
    ways = ["--technique", technique, "--returns", returns]
    probes = (
        [["-f", "*", "-r", "*"], ["--every-insn", "*"]] if sample == "recursion" else [["-r", "*"]]
    )
    for each in probes:
        done = run("diff", *ways, *each, str(SAMPLES / arch / sample), cwd=tmp_path)
        assert hits(done) > 100


@pytest.mark.slow
@served
@pytest.mark.parametrize(
    "kind",
    [("p", "350"), ("a", "2000"), ("r", "3000"), ("v", "1000")],
    ids=lambda kind: kind[0],
)
@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_moments_of_timers(
    arch: str, kind: tuple[str, str], served: tuple[str, ...], tmp_path: Path
) -> None:
    """Also in the middle of a string instruction, and in the handler of the signal before."""
    names = ("outer", "inner", "copies", "main", "caught")
    words = [word for name in names for word in ("--every-insn", name)]
    returns = ("-r", "inner", "-r", "outer", "-r", "caught")
    guest = str(compiled("moments", arch))
    done = run("diff", "--clean-env", *served, *words, *returns, guest, *kind, cwd=tmp_path)

    assert hits(done) > 3000
    assert done.out == run("run", "--clean-env", guest, *kind, cwd=tmp_path).out


@pytest.mark.slow
@served
@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_every_instruction_of_string_functions(
    arch: str, served: tuple[str, ...], tmp_path: Path
) -> None:
    guest = str(GUESTS / archkit.debian(arch) / "guests-static")
    words = [w for name in ("*memcpy*", "*strlen*", "t_*") for w in ("--every-insn", name)]
    done = run("diff", "--clean-env", *served, *words, guest, "strings", cwd=tmp_path)

    assert hits(done) > 300


@pytest.mark.sysroot
@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize(
    ("program", "words", "stdin", "out"),
    [
        ("bin/busybox", ("sort", "-n"), b"3\n1\n20\n", "1\n3\n20\n"),
        pytest.param(
            *("usr/bin/lua5.4", ("-e", "print(2^10, ('x'):rep(9))"), b"", "1024.0\txxxxxxxxx\n"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("usr/bin/sqlite3", (":memory:",), b"select 6*7, upper('a');\n", "42|A\n"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_debian_programs(
    arch: str, program: str, words: tuple[str, ...], stdin: bytes, out: str, tmp_path: Path
) -> None:
    try:
        root = sysroot(arch)
    except SysrootUnavailable as reason:
        pytest.skip(str(reason))
    probes = ["-f", "*"]
    if "busybox" not in program:  # which is static
        probes += ["-f", "libc:*"]
    guest = str(root / program)
    options = ["--root", str(root), "--clean-env"]
    done = run("diff", *options, *probes, guest, *words, cwd=tmp_path, stdin=stdin)

    assert hits(done) > 300
    assert done.out == out
