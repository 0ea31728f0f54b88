"""`kprobe-tui learn`: the list, and lessons that cannot be opened."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sysroot import CHECKOUT

import tui.lessons.opening
from engine.errors import CommandError
from tui.lessons import LESSONS, load_lesson
from tui.lessons.opening import lesson_config


def learn(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui", "learn", *words],
        cwd=CHECKOUT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_the_list() -> None:
    done = learn()
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1:2]] == [
        [str(number), name] for number, name in enumerate(LESSONS, 1)
    ]
    assert lines[-1] == "'kprobe-tui learn N' opens one."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("backtrce",), "backtrce: no such lesson of 1 to 12; is it backtraces?"),
        (("r",), "r: no such lesson of 1 to 12; is it return-probe or red-zone or race?"),
        (("13",), "13: no such lesson of 1 to 12; learn lists them"),
        (("1",), "the interface needs a terminal"),
        (("1", "--kernel", "x"), "lesson 1 is about x86_64/recursion; it takes no --kernel"),
        (("kernel", "--kernel", "/no/vmlinuz"), "/no/vmlinuz"),
    ],
)
def test_a_lesson_that_cannot_be_opened(words: tuple[str, ...], said: str) -> None:
    done = learn(*words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_the_kernel_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest image is taken; without one the hint says how to get one."""
    lesson = load_lesson("kernel")
    monkeypatch.setattr(tui.lessons.opening, "IMAGES", (f"{tmp_path}/vmlinuz-*",))
    with pytest.raises(CommandError, match="has no kernel image") as raised:
        lesson_config(lesson)
    assert "samples/boot.sh" in raised.value.hint
    for time, name in ((200, "vmlinuz-2"), (100, "vmlinuz-1")):
        path = tmp_path / name
        path.touch()

        os.utime(path, (time, time))
    assert lesson_config(lesson).guest == f"{tmp_path}/vmlinuz-2"
    assert lesson_config(lesson, "mine").guest == "mine"
