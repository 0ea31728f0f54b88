"""Recordings: a log made of one is that of a run with the probes from the start."""

import random
import subprocess
from pathlib import Path

import pytest
from guestrun import run
from sessionkit import SAMPLES

TRACES: tuple[tuple[str, ...], ...] = (
    ("-f", "*"),
    ("-r", "*", "--technique", "breakpoint", "--stack"),
    ("-e", "syscalls/*", "-e", "sched:*", "--profile"),
    ("-f", "*", "-r", "*", "--format", "jsonl"),
    ("-r", "*", "--returns", "mainline"),
    ("-f", "*", "--mode", "kernel", "--buffer", "20"),
)
GUESTS = (
    "x86_64/forkserver",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("aarch64/race", "riscv64/pipeline", "ia64/recursion", "x86_64/crash")
    ),
)


@pytest.fixture(scope="module", params=GUESTS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recording")
    guest = SAMPLES / request.param
    done = run("record", "-o", "run.rec", "--turns", "100-300", str(guest), cwd=folder)
    plain = run("run", "--turns", "100-300", str(guest), cwd=folder)
    assert (done.code, done.out, done.err) == (plain.code, plain.out, plain.err)
    (folder / "guest").write_text(str(guest))
    return folder


@pytest.mark.parametrize("trace", TRACES, ids=" ".join)
def test_the_log_is_that_of_a_run(recording: Path, trace: tuple[str, ...]) -> None:
    guest = (recording / "guest").read_text()
    wanted = run("trace", *trace, "--turns", "100-300", guest, cwd=recording)
    got = run("replay", *trace, "run.rec", cwd=recording)
    assert (got.code, got.out, got.err) == (wanted.code, wanted.out, wanted.err)


def test_without_events_it_is_the_run(recording: Path) -> None:
    guest = (recording / "guest").read_text()
    wanted = run("run", "--turns", "100-300", guest, cwd=recording)
    got = run("replay", "run.rec", cwd=recording)
    assert (got.code, got.out, got.err) == (wanted.code, wanted.out, wanted.err)
    assert run("replay", "--quiet", "run.rec", cwd=recording).out == ""


FIELDS = ("%di", "+0(%di):u8", "$stack0", "$comm", "%sp", "+8(%sp):x64", "%ip:x64", "$stack")


@pytest.mark.slow
def test_random_definitions(tmp_path: Path) -> None:
    """100 definitions of places and values, with filters: the same bytes."""
    choose = random.Random(24)
    guest = str(SAMPLES / "x86_64" / "sort")
    assert run("record", "-o", "run.rec", guest, cwd=tmp_path).code == 0
    names = subprocess.run(["nm", guest], capture_output=True, text=True, check=True)
    functions = [line.split()[2] for line in names.stdout.splitlines() if line.split()[1] in "tT"]
    for _ in range(20):
        words = []
        for number in range(5):
            kind = choose.choice(("p", "r"))
            fetches = " ".join(
                f"a{index}={field}" for index, field in enumerate(choose.sample(FIELDS, 3))
            )
            name = choose.choice(functions)
            words += ["-e", f"{kind}:g/e{number} {name} {fetches}"]
        if choose.random() < 0.5:
            words += ["--filter", "g/e0:common_pid == 1000"]
        wanted = run("trace", *words, guest, cwd=tmp_path)
        got = run("replay", *words, "run.rec", cwd=tmp_path)
        assert (got.code, got.out, got.err) == (wanted.code, wanted.out, wanted.err), words


def test_the_program_is_not_needed(tmp_path: Path) -> None:
    guest = tmp_path / "words"
    guest.write_bytes((SAMPLES / "x86_64" / "words").read_bytes())
    guest.chmod(0o755)
    before = run("trace", "-e", "p main", "--stack", "./words", cwd=tmp_path)
    run("record", "-o", "run.rec", "./words", cwd=tmp_path)
    guest.unlink()
    after = run("replay", "-e", "p main", "--stack", "run.rec", cwd=tmp_path)
    assert (after.code, after.out, after.err) == (before.code, before.out, before.err)


def test_a_kill_cuts_it_off(tmp_path: Path) -> None:
    """What a killed recording has can be lived through, and it says how far it goes."""
    guest = str(SAMPLES / "x86_64" / "words")
    run("record", "-o", "run.rec", guest, cwd=tmp_path)
    data = (tmp_path / "run.rec").read_bytes()
    for part in (0.95, 0.5):
        (tmp_path / "cut.rec").write_bytes(data[: int(len(data) * part)])
        done = run("replay", "-f", "*", "cut.rec", cwd=tmp_path)
        assert done.code in (124, 2)
        assert "cut.rec: cut off at byte" in done.err
    done = run("replay", "-f", "*", "--list", "run.rec", cwd=tmp_path)
    assert done.code == 0
    assert "p:kprobes/" in done.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("replay", "nothing.rec"), "nothing.rec: No such file"),
        (("replay", "."), "Is a directory"),
        (("replay", "text"), "text: not a recording"),
        (("replay", "empty"), "empty: not a recording"),
        (("record", "-o", "nowhere/run.rec", "GUEST"), "-o nowhere/run.rec"),
        (("record", "-o", "GUEST", "GUEST"), "the run reads it"),
        (("record", "-o", "run.rec", "nothing"), "nothing"),
    ],
)
def test_bad_input(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    guest = str(SAMPLES / "x86_64" / "words")
    (tmp_path / "text").write_text("hello\n" * 100)
    (tmp_path / "empty").touch()
    done = run(*(guest if word == "GUEST" else word for word in words), cwd=tmp_path)
    assert done.code == 2
    assert why in done.err


def test_inputs_are_in_it(tmp_path: Path) -> None:
    """Standard input and the host's clock are the recording's."""
    guest = str(SAMPLES / "x86_64" / "lines")
    text = b"".join(b"line %d foo\n" % number for number in range(500))
    done = run("record", "-o", "run.rec", guest, "foo", cwd=tmp_path, stdin=text)
    again = run("replay", "run.rec", cwd=tmp_path)
    assert (again.code, again.out) == (done.code, done.out)
    assert "500 of 500 lines" in again.out
