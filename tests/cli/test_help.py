"""`kprobe-tui help`: lists, the help of a subcommand, chapters, and unknown topics."""

import re
from pathlib import Path

import pytest
from guestrun import run

from engine.chapters import all_chapters
from engine.cli import COMMANDS
from engine.cli.help import TOPICS
from engine.cli.interface import interface
from engine.cli.main import INTERFACE_OPTIONS


def test_without_a_topic_subcommands_and_topics_are_listed(tmp_path: Path) -> None:
    done = run("help", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    words = {line.split()[0] for line in lines if line.startswith("  ")}
    assert {*COMMANDS, "config", *TOPICS} <= words
    assert max(map(len, lines)) <= 80
    for chapter in all_chapters():
        assert [line for line in lines if line.split() == [chapter.name, *chapter.about.split()]]


def test_topics_are_not_called_like_subcommands() -> None:
    assert not {*COMMANDS, "config"} & set(TOPICS)


@pytest.mark.parametrize("topic", TOPICS[:-1])
def test_a_chapter_is_plain_text_where_it_is_piped(topic: str, tmp_path: Path) -> None:
    done = run("help", topic, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    title, blank, about, *_ = done.out.splitlines()
    (chapter,) = (each for each in all_chapters() if each.name == topic)
    assert (title, blank, about) == (chapter.title, "", chapter.about)


def test_the_help_of_a_subcommand_is_its_own(tmp_path: Path) -> None:
    for words in (("trace",), ("config", "show"), ("help",)):
        shown, own = run("help", *words, cwd=tmp_path), run(*words, "--help", cwd=tmp_path)
        assert (shown.code, shown.out, shown.err) == (0, own.out, "")
        assert own.out.startswith(f"Usage: kprobe-tui {' '.join(words)} ")


def test_an_unknown_topic_is_one_clear_error(tmp_path: Path) -> None:
    for words, meant in (
        (("nosuch",), ""),
        (("filtres",), "did you mean filters? "),
        (("hist",), "did you mean history? "),
        (("world", "trace"), ""),
        (("trace", "world"), ""),
        (("\x1b[1m",), ""),
        (("",), ""),
    ):
        done = run("help", *words, cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        text = " ".join(words).replace("\x1b", "\\33")
        assert done.err.splitlines() == [
            f"kprobe-tui: help: {text}: neither a subcommand nor a topic; "
            f"{meant}'kprobe-tui help' lists both"
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


def test_the_help_of_the_command_lists_options_that_the_interface_has(tmp_path: Path) -> None:
    known = {name for each in interface.params for name in (*each.opts, *each.secondary_opts)}
    known |= {"-x", "--command", "-ex", "--eval-command"}  # in their order, beside click's
    text = run("--help", cwd=tmp_path).out
    for names, _ in INTERFACE_OPTIONS:
        assert set(re.findall(r"(?<!\w)--?[a-z][\w-]*", names)) <= known, names
        assert names.split(" ")[0].rstrip(",") in text
