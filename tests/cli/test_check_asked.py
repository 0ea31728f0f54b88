"""`kprobe-tui check --ask-kernel`: the kernel's answers beside ours, and what is refused."""

import json
import re
import shlex
from pathlib import Path

import pytest
from controlkit import sample
from guestrun import Outcome, run
from kernelimages import AMD64_61, UML_61, image_path, module_path

from engine.chapters import load_chapter
from engine.cli import kernel_verdicts
from engine.cpu import native
from engine.session.headless.kernel_answers import AskedAnswer, AskedRow
from engine.session.kernel.verdict_rows import KernelRow

boots = pytest.mark.skipif(not native.possible(), reason="boots on x86-64 hosts only")


def check(folder: Path, *words: str, env: dict[str, str] | None = None) -> Outcome:
    return run("check", *words, cwd=folder, env=env, deadline=600)


@boots
@pytest.mark.slow
def test_the_chapter_shows_what_the_kernel_answers(tmp_path: Path) -> None:
    chapter = load_chapter("kernels").text
    example = re.search(
        r"(?s)```console\n\$ kprobe-tui (check --ask-kernel.*?)\n(.*?)```", chapter
    )
    assert example is not None
    words = [
        str(image_path(word)) if word == AMD64_61 else word for word in shlex.split(example[1])
    ]
    done = check(tmp_path, *words[1:])
    assert (done.out, done.err, done.code) == (example[2], "", 1)


@boots
@pytest.mark.slow
def test_rows_of_json_have_both_answers(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    lines = ("-e", "p:a/b vfs_write", "-e", "p vfs_read foo=%axx", "-e", "# nothing")
    done = check(tmp_path, "--ask-kernel", "--json", image, *lines)
    assert done.code == 1
    taken, refused, nothing = json.loads(done.out)
    assert taken["kernel"] == {
        "accepted": True,
        "errno": None,
        "error": None,
        "command": None,
        "column": None,
        "address": "0xffffffff81367160",
        "flags": ["FTRACE"],
        "optimized": False,
        "ftrace": True,
        "shown": "p:a/b vfs_write\n",
        "format": taken["format"],
    }
    known = {"errno": "EINVAL", "error": "Invalid register name", "column": 15}
    assert known.items() <= refused.items()
    assert known.items() <= refused["kernel"].items()
    assert nothing["kernel"]["accepted"]
    assert [(row["agrees"], row["differences"]) for row in (taken, refused, nothing)] == [
        (True, [])
    ] * 3


@boots
@pytest.mark.slow
def test_functions_are_asked_about_and_counted(tmp_path: Path) -> None:
    image = str(image_path(AMD64_61))
    done = check(tmp_path, "--ask-kernel", "--summary", image, "-f", "vfs_re*")
    assert done.out == "5 definitions: the kernel accepts 5, and differs in 0\n"
    done = check(tmp_path, "--ask-kernel", "--summary", "--json", image, "-f", "vfs_re*")
    assert json.loads(done.out) == {
        "definitions": 5,
        "accepted": 5,
        "differing": 0,
        "differences": {},
    }


@boots
@pytest.mark.slow
def test_what_differs_is_marked_and_counted(tmp_path: Path) -> None:
    """The rules of another version are not those of the kernel."""
    image = str(image_path(AMD64_61))
    words = ("--dynamic-events", "--era", "6.12", "-e", "f:a/b vfs_read", "-e", "p:a/b vfs_read")
    done = check(tmp_path, "--ask-kernel", image, *words)
    assert "\n    kernel DIFFERS: rejected (EINVAL)\n" in done.out
    assert done.out.endswith("\n    kernel: accepted [FTRACE]\n")
    assert done.err == "kprobe-tui: 1 of 2 definitions: the kernel's answer differs\n"
    assert done.code == 0


def test_the_lines_of_a_difference_name_both_values() -> None:
    row = KernelRow(
        *(0xFFFFFFFF81000000, "f", 0, "6.1.0", "jump", "", "", ""),
        line="p f",
        shown="p:a/b f\n",
        format="name: b\nfield:u64 a;\n",
    )
    answer = AskedAnswer(
        *("", "", "", None, "p:a/b f\n", 0xFFFFFFFF81000004, ()), format="name: b\nfield:u8 a;\n"
    )
    asked = AskedRow(row, answer, ("address", "optimized", "format"))
    assert list(kernel_verdicts._answer_lines(asked)) == [
        "    kernel DIFFERS: accepted",
        "      address: 0xffffffff81000004; ours: 0xffffffff81000000",
        "      optimized: False; ours: True",
        "      format: field:u8 a;; ours: field:u64 a;",
    ]
    refused = AskedAnswer("EINVAL", "Bad", "p f", 2)
    assert list(kernel_verdicts._answer_lines(AskedRow(row, refused, ("accepted",)))) == [
        "    kernel DIFFERS: rejected (EINVAL): Bad",
        "      Command: p f",
        "                 ^",
    ]


def test_what_is_no_kernel_for_a_machine_is_refused(tmp_path: Path) -> None:
    done = check(tmp_path, "--ask-kernel", str(sample("x86_64", "recursion")), "-e", "p main")
    assert done.code == 2
    assert done.err.endswith("recursion: no kernel image, which --ask-kernel boots\n")
    done = check(tmp_path, "--ask-kernel", str(module_path("crc7")), "-e", "p crc7_be")
    assert done.code == 2
    assert "a module boots no machine: --ask-kernel asks a kernel image" in done.err


def test_a_kernel_that_is_a_program_is_refused(tmp_path: Path) -> None:
    done = check(tmp_path, "--ask-kernel", str(image_path(UML_61)), "-e", "p vfs_read")
    assert done.code == 2
    assert "no kernel for a machine: it has no startup_64" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--ask-kernel: which definitions? -e DEF names one, -f GLOB functions"),
        (("--all",), "--all, --together and --module do not go with it"),
        (("--together", "-f", "vfs_*"), "--all, --together and --module do not go with it"),
        (("-e", "p vfs_read", "--list-as", "perf"), "--list-as asks no kernel"),
        (("-e", "p vfs_read", "--as", "uprobe"), "--as uprobe: no uprobe is in a kernel"),
    ],
)
def test_choices_that_ask_nothing_are_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = check(tmp_path, "--ask-kernel", str(image_path(AMD64_61)), *words)
    assert done.code == 2
    assert said in done.err


def test_other_hosts_boot_none(tmp_path: Path) -> None:
    words = ("--ask-kernel", str(image_path(AMD64_61)), "-e", "p vfs_read")
    done = check(tmp_path, *words, env={"KPROBE_TUI_PORTABLE": "1"})
    assert done.code == 2
    assert done.err.startswith("kprobe-tui: this host boots no machine: only hosts of x86-64 do")


def test_words_for_the_kernel_are_for_one_that_boots(tmp_path: Path) -> None:
    words = ("--append", "quiet", str(image_path(AMD64_61)), "-e", "p vfs_read")
    done = check(tmp_path, *words)
    assert done.code == 2
    assert "--append: words for the kernel that --ask-kernel boots" in done.err


@boots
@pytest.mark.slow
def test_a_boot_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    words = ("--ask-kernel", str(image_path(AMD64_61)), "-e", "p vfs_read", "--timeout", "0.5")
    done = check(tmp_path, *words, env={"KPROBE_TUI_KERNEL_CACHE": str(tmp_path / "cache")})
    assert done.code == 124
    assert done.err == "kprobe-tui: stopped: the time limit (--timeout) ran out\n"
