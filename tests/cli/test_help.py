"""`kprobe-tui help`: lists, the help of a subcommand, chapters, and unknown topics."""

from pathlib import Path

from guestrun import run

from engine.cli import COMMANDS


def test_without_a_topic_subcommands_and_chapters_are_listed(tmp_path: Path) -> None:
    done = run("help", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    words = {line.split()[0] for line in done.out.splitlines() if line.startswith("  ")}
    assert {*COMMANDS, "config", "world"} <= words
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_help_of_a_subcommand_is_its_own(tmp_path: Path) -> None:
    for words in (("trace",), ("config", "show"), ("help",)):
        shown, own = run("help", *words, cwd=tmp_path), run(*words, "--help", cwd=tmp_path)
        assert (shown.code, shown.out, shown.err) == (0, own.out, "")
        assert own.out.startswith(f"Usage: kprobe-tui {' '.join(words)} ")


def test_an_unknown_topic_is_one_clear_error(tmp_path: Path) -> None:
    for words in (("nosuch",), ("world", "trace"), ("trace", "world"), ("\x1b[1m",)):
        done = run("help", *words, cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        text = " ".join(words).replace("\x1b", "\\33")
        assert done.err.splitlines() == [
            f"kprobe-tui: help: {text}: neither a subcommand nor a chapter; "
            "'kprobe-tui help' lists both"
        ]


def test_the_world_in_80_columns(tmp_path: Path) -> None:
    done = run("help", "world", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("  EPERM: PR_CAPBSET_DROP PR_SET_SECUREBITS") for line in lines)
    assert "System calls that are missing (ENOSYS)" in lines


def test_a_program_called_help_is_run_by_its_path(tmp_path: Path) -> None:
    done = run("./help", "world", cwd=tmp_path)
    assert done.code == 2
    assert "No such file" in done.err
