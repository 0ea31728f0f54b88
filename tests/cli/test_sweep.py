"""The contract of `kprobe-tui sweep`: each cell once, what is kept of it, and how it repeats."""

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from duckquery import rows
from guestrun import run, start
from sysroot import CHECKOUT

from engine.cli import main
from engine.cli.sweep import _ended_by_signals, _EndedError

SAMPLES = CHECKOUT / "samples" / "bin"

SMALL = f"""
mode = ["trace", "diff"]
[limits]
seconds = 100
[matrix]
guest = ["{SAMPLES}/x86_64/words", "{SAMPLES}/aarch64/lines"]
input = "input*"
[matrix.definitions]
main = ["p:demo/main main", "r:demo/back main code=$retval:s32"]
"""


class Swept(NamedTuple):
    """A sweep that was carried out in this process: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def swept(*words: str, cwd: Path) -> Swept:
    """Carry out a sweep; its workers are processes as ever."""
    with contextlib.chdir(cwd):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["sweep", "--jobs", "1", *words], no_interface)
    return Swept(code, out.getvalue(), err.getvalue())


def no_interface(*words: Any, **options: Any) -> int:
    raise AssertionError("the interface is not asked for")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a small sweep that was carried out, and what it printed."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "s.toml").write_text(SMALL)
    (folder / "input0").write_text("")
    (folder / "input1").write_text("a\nbb\n")
    done = swept("s.toml", cwd=folder)
    assert done.code == 1, done.err
    return folder, done.out


def test_results_and_events_are_one_data_set(small: tuple[Path, str]) -> None:
    folder, _ = small
    results, events = folder / "s.sweep/results", folder / "s.sweep/events"
    found = rows(
        "select mode, arch, parse_filename(guest), input, exit_code, status, events, lost, runs "
        f"from '{results}/*/*.parquet' order by all"
    )
    assert found == [
        ("diff", "aarch64", "lines", "input0", 0, "passed", 2, 0, 2),
        ("diff", "aarch64", "lines", "input1", 0, "passed", 2, 0, 2),
        ("diff", "x86_64", "words", "input0", 0, "passed", 2, 0, 2),
        ("diff", "x86_64", "words", "input1", 0, "passed", 2, 0, 2),
        ("trace", "aarch64", "lines", "input0", 1, "failed", 2, 0, 1),
        ("trace", "aarch64", "lines", "input1", 0, "passed", 2, 0, 1),
        ("trace", "x86_64", "words", "input0", 21, "failed", 2, 0, 1),
        ("trace", "x86_64", "words", "input1", 21, "failed", 2, 0, 1),
    ]
    # What the traces recorded of the exit codes is what they were.
    codes = rows(
        f"select exit_code, code from '{events}/*/demo_back.parquet' "
        f"join '{results}/*/*.parquet' using (cell) order by all"
    )
    assert codes == [(0, 0), (1, 1), (21, 21), (21, 21)]
    (clocks,) = rows(
        f"select count(*), bool_and(time <= clock) from '{events}/*/*.parquet' "
        f"join '{results}/*/*.parquet' using (cell)"
    )
    assert clocks == (8, True)


def test_cells_that_failed_are_listed_with_a_line_that_repeats_them(
    small: tuple[Path, str],
) -> None:
    folder, out = small
    assert out.startswith(
        "8 cells: 5 passed, 3 failed\nfailed: exited with 21: total 21\n  kprobe"
    )
    lines = re.findall(r"^  kprobe-tui (.*)$", out, re.M)
    assert len(lines) == 3
    words, _, stdin = lines[2].partition(" < ")
    assert stdin == "input0"
    with open(folder / stdin) as file:
        process = start(*shlex.split(words), cwd=folder, stdin=file.fileno())
        out_again, trace = process.communicate()
    (row,) = rows(
        "select exit_code, stdout, clock, cell from "
        f"'{folder}/s.sweep/results/*/*.parquet' where repeat = $$kprobe-tui {lines[2]}$$"
    )
    assert (process.returncode, out_again.decode()) == row[:2]
    # The events stand at the same times in the text.
    times = rows(
        f"select time from '{folder}/s.sweep/events/cell={row[3]}/*.parquet' order by time"
    )
    shown = re.findall(rb" (\d+): (?:main|back): ", trace)
    assert [(int(number),) for number in shown] == times


def test_finished_cells_are_not_run_again(small: tuple[Path, str]) -> None:
    folder, out = small
    results = folder / "s.sweep/results"
    before = {cell.name: cell.stat().st_mtime_ns for cell in results.iterdir()}
    again = swept("s.toml", cwd=folder)
    assert (again.code, again.out) == (1, out)
    assert again.err == "kprobe-tui: 8 of 8 cells are finished already\n"
    assert {cell.name: cell.stat().st_mtime_ns for cell in results.iterdir()} == before
    # More of a matrix is what is missing of it; failed cells run again when that is asked for.
    (folder / "input2").write_text("ccc\n")
    more = swept("--retry", "failed", "--shown", "1", "s.toml", cwd=folder)
    assert more.code == 1
    assert more.err == "kprobe-tui: 5 of 12 cells are finished already\n"
    assert more.out.startswith("12 cells: 8 passed, 4 failed\n")
    assert "\nand 3 more: --shown 0 lists all" in more.out
    after = {cell.name: cell.stat().st_mtime_ns for cell in results.iterdir()}
    assert sum(after.get(name) == stamp for name, stamp in before.items()) == 5
    assert len(after) == 12
    (folder / "input2").unlink()
    fewer = swept("s.toml", cwd=folder)
    assert fewer.out == out
    assert "s.sweep has 4 cells, too, that the file does not stand for any more" in fewer.err


def test_cells_can_be_listed(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        f"[matrix]\nguest = '{SAMPLES}/x86_64/race'\nseed = '0-1'\n[options]\nf = ['add_one']\n"
    )
    done = swept("--list", "s.toml", cwd=tmp_path)
    guest = f"{SAMPLES}/x86_64/race < /dev/null\n"
    assert (done.code, done.err) == (0, "")
    assert done.out == "".join(f"kprobe-tui trace -f add_one --seed {n} {guest}" for n in (0, 1))
    assert os.listdir(tmp_path) == ["s.toml"]


@pytest.mark.slow
def test_every_function_of_a_directory_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("words", "race"):
        (folder / name).symlink_to(SAMPLES / "riscv64" / name)
    (folder / "README").touch()
    (tmp_path / "s.toml").write_text('mode = "check"\noutput = "all"\n[matrix]\nguest="bin/*"\n')
    done = swept("s.toml", cwd=tmp_path)
    assert (done.code, done.out) == (0, "2 cells: 2 passed\n")
    assert done.err == "kprobe-tui: left out, as they are no programs: bin/README\n"
    found = rows(
        "select r.guest, count(*), count(*) = any_value(r.places), "
        "count(*) filter (verdict = 'rejected') = any_value(r.refused), "
        "count(*) filter (symbol = 'main' and technique = 'breakpoint') "
        f"from '{tmp_path}/all/verdicts/*/*.parquet' v join "
        f"'{tmp_path}/all/results/*/*.parquet' r using (cell) group by r.guest order by r.guest"
    )
    for guest, row in zip(("race", "words"), found, strict=True):
        listed = run("check", f"bin/{guest}", cwd=tmp_path).out
        assert row == (f"bin/{guest}", len(re.findall("^0x", listed, re.M)), True, True, 1)


def test_bad_files_and_data_sets_are_one_message(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[matrix]\nguest = 'no'\n")
    bad = swept("s.toml", cwd=tmp_path)
    assert (bad.code, bad.out) == (2, "")
    assert bad.err == (
        "kprobe-tui: s.toml:2: matrix.guest: no: No such file or directory\n"
        "kprobe-tui: hint: nothing has run; 'kprobe-tui help sweeps' lists the keys\n"
    )
    guest = f"[matrix]\nguest = '{SAMPLES}/x86_64/words'\n[options]\nf = '*'\n"
    (tmp_path / "s.toml").write_text(guest)
    other = swept("-o", ".", "s.toml", cwd=tmp_path)
    assert (other.code, other.out) == (2, "")
    assert other.err.startswith("kprobe-tui: .: the directory has other files: s.toml; -o DIR")


@pytest.mark.slow
def test_a_signal_ends_it_and_the_same_line_goes_on(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        f"tables = false\n[matrix]\nguest = '{SAMPLES}/x86_64/loop'\n"
        "args = ['7', '4000000000']\n[options]\nf = 'main'\n"
    )
    process = start("sweep", "--jobs", "1", "s.toml", cwd=tmp_path)
    results = tmp_path / "s.sweep" / "results"
    while not (results.exists() and os.listdir(results)):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert err.decode() == (
        "kprobe-tui: ended by SIGINT: 1 of 2 cells are left, which the same line goes on with\n"
    )
    text = (tmp_path / "s.toml").read_text().replace(", '4000000000'", "")
    (tmp_path / "s.toml").write_text(text)
    done = swept("s.toml", cwd=tmp_path)
    assert (done.code, done.out) == (0, "1 cells: 1 passed\n")
    assert sorted(os.listdir(tmp_path / "s.sweep")) == [".lock", "results"]


def test_the_first_signal_alone_ends_it() -> None:
    with _ended_by_signals() as come:
        with pytest.raises(_EndedError):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
    assert come == [signal.SIGTERM, signal.SIGINT, signal.SIGTERM]


def killed_when(process: "subprocess.Popen[bytes]", results: Path, count: int) -> None:
    """Kill a sweep as soon as so many cells are finished."""
    while not results.exists() or len(os.listdir(results)) < count:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_two_thousand_cells_killed_twice_are_each_run_once(tmp_path: Path) -> None:
    guests = sorted(str(each) for each in (SAMPLES / "x86_64").iterdir())[:12]
    probes = [f"k{n} = 'p:t/e{n} main+{n}'" for n in range(165)]
    others = ", ".join(f"'k{n}'" for n in range(1, 165))
    (tmp_path / "s.toml").write_text(
        f"""
        mode = ["check", "trace"]
        [matrix]
        guest = {guests!r}
        seed = "0-19"
        args = "3"
        [matrix.definitions]
        {chr(10).join(probes)}
        [[exclude]]
        mode = "trace"
        definitions = [{others}]
        [[exclude]]
        mode = "trace"
        guest = {[each for each in guests if not each.endswith("/loop")]!r}
        """
    )
    results = tmp_path / "s.sweep" / "results"
    words = "sweep", "--jobs", "2", "--shown", "1", "s.toml"
    kept: dict[str, int] = {}
    for count in (500, 1400):
        killed_when(start(*words, cwd=tmp_path), results, count)
        stamps = {cell.name: cell.stat().st_mtime_ns for cell in results.iterdir()}
        assert count <= len(stamps) < 2000
        assert kept.items() <= stamps.items()  # nothing finished was touched
        kept = stamps
    done = run(*words, cwd=tmp_path, deadline=600)
    assert done.code == 1, done.err
    assert done.err == f"kprobe-tui: {len(kept)} of 2000 cells are finished already\n"
    assert done.out.startswith("2000 cells: ")
    stamps = {cell.name: cell.stat().st_mtime_ns for cell in results.iterdir()}
    assert kept.items() <= stamps.items()
    (found,) = rows(
        "select count(*), count(distinct cell), count(distinct repeat), "
        "count(*) filter (mode = 'trace' and events = 1), "
        "count(*) filter (status in ('crashed', 'engine', 'timeout')) "
        f"from '{results}/*/*.parquet'"
    )
    assert found == (2000, 2000, 2000, 20, 0)
    listed = run("sweep", "--list", "s.toml", cwd=tmp_path).out.splitlines()
    repeats = rows(f"select repeat from '{results}/*/*.parquet'")
    assert sorted(listed) == sorted(row[0] for row in repeats)
    left = [
        folder for folder in ("events", "verdicts") if (tmp_path / "s.sweep" / folder).exists()
    ]
    for folder in left:  # no tables of a cell that is not there
        names = {cell.name for cell in (tmp_path / "s.sweep" / folder).iterdir()}
        assert names <= set(stamps)
