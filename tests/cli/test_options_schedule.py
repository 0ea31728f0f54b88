"""Schedules on the command line: written by one command, followed by all that run a guest."""

from pathlib import Path

import pytest
from guestrun import run
from sysroot import CHECKOUT

SAMPLES = CHECKOUT / "samples" / "bin"
RACE = str(SAMPLES / "x86_64" / "race")
SHORT = ("--turns", "1-20", "--seed", "1")


def recorded(home: Path, *words: str) -> list[str]:
    done = run(*words, cwd=home)
    assert done.code == 1, done.err  # updates are lost
    return (home / "s").read_text().splitlines()


@pytest.mark.slow
def test_every_command_follows_a_schedule(tmp_path: Path) -> None:
    guest = RACE
    lines = recorded(tmp_path, "run", *SHORT, "--record-schedule", "s", guest)
    assert lines[:5] == [
        "# kprobe-tui schedule",
        f"# guest: {guest}",
        "# seed: 1",
        "# turns: 1-20",
        "# tick thread why",
    ]
    assert len(lines) > 50
    plain = run("run", "--schedule", "s", "--record-schedule", "again", guest, cwd=tmp_path)
    assert plain.code == 1
    assert (tmp_path / "again").read_text().splitlines()[5:] == lines[5:]

    for words in (
        ("trace", "-f", "*", "-o", "/dev/null", "--record-schedule", "again"),
        ("graph", "-o", "/dev/null", "--record-schedule", "again"),
    ):
        (tmp_path / "again").unlink(missing_ok=True)
        done = run(*words, "--schedule", "s", guest, cwd=tmp_path)
        assert (done.code, done.out) == (1, plain.out), done.err
        if "again" in words:
            assert (tmp_path / "again").read_text().splitlines()[5:] == lines[5:]
    done = run("diff", "-f", "*", "--served", "--schedule", "s", guest, cwd=tmp_path)
    assert (done.code, done.out) == (0, plain.out), done.err
    done = run("bt", "--at", "think", "--hit", "150", "--schedule", "s", guest, cwd=tmp_path)
    assert done.code == 0
    assert "add_one" in done.out


def test_the_seed_of_random_numbers_is_the_schedules(tmp_path: Path) -> None:
    recorded(tmp_path, "run", *SHORT, "--random-seed", "5", "--record-schedule", "s", RACE)
    assert "# random seed: 5\n" in (tmp_path / "s").read_text()
    for words, seed in (((), "5"), (("--seed", "8"), "8")):
        done = run(
            *("run", "--schedule", "s", *words, "--record-schedule", "again", RACE), cwd=tmp_path
        )
        assert done.code == 1
        assert f"# seed: {seed}\n" in (tmp_path / "again").read_text()


def test_a_schedule_that_does_not_fit_ends_the_run_and_names_the_line(tmp_path: Path) -> None:
    lines = recorded(tmp_path, "run", *SHORT, "--record-schedule", "s", RACE)
    at = next(at for at, line in enumerate(lines) if line.endswith("preempted"))
    tick = lines[at].split()[0]
    (tmp_path / "s").write_text(
        "\n".join([*lines[:at], f"{tick} 1007 preempted", *lines[at + 1 :]])
    )
    for words in (("run",), ("trace", "-f", "think", "-o", "/dev/null")):
        done = run(*words, "--schedule", "s", RACE, cwd=tmp_path)
        assert done.code == 2
        assert done.err.startswith(
            f"kprobe-tui: s: line {at + 1}: '{tick} 1007 preempted' does not fit: "
            "thread 1007 cannot run then\n"
        )
    (tmp_path / "s").write_text("\n".join([*lines, "999999 1000 waits"]))
    done = run("run", "--schedule", "s", RACE, cwd=tmp_path)
    assert done.code == 1
    assert f"s: line {len(lines) + 1}: the guest ended before '999999 1000 waits'" in done.err


def test_usage(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("one two\n")
    for words, text in (
        (("--schedule", "nosuch"), "--schedule nosuch: No such file or directory"),
        (("--schedule", "bad"), "bad: line 1: 'one two' is not TICK THREAD WHY"),
        (("--schedule", "bad", "--turns", "1-2"), "one of them"),
        (("--turns", "fast"), "'fast' is neither LOW-HIGH"),
        (("--record-schedule", "no/s"), "--record-schedule no/s: No such file or directory"),
    ):
        done = run("run", *words, RACE, cwd=tmp_path)
        assert done.code == 2, words
        assert text in done.err
