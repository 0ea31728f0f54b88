"""Requests to the program in a machine, its answers, its archive, and the ports between."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from engine.machine.agent import (
    DATA_MOST,
    PATH_MOST,
    FileAnswer,
    When,
    answers,
    archive,
    pack_archive,
    reading,
    sleeping,
    writing,
)
from engine.machine.mailbox import CONTROL, DATA, Mailbox

FOLDER = Path(__file__).parents[3] / "engine" / "machine"


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def test_requests_are_whole_words() -> None:
    made = writing("/a/bc", b"line\n", when=When.TAKEN).packed
    assert made == words(1 | 1 << 8, 0o2001, 5, 5) + b"/a/bc\0\0\0" + b"line\n\0\0\0"
    assert reading("/abc").packed == words(2, 0, 4, 0) + b"/abc"
    assert sleeping(500).packed == words(3, 500, 0, 0)


def test_a_request_that_is_too_long_is_none() -> None:
    writing("/x", bytes(DATA_MOST))
    with pytest.raises(ValueError, match="too long"):
        writing("/x", bytes(DATA_MOST + 1))
    reading("x" * PATH_MOST)
    with pytest.raises(ValueError, match="too long"):
        reading("x" * PATH_MOST + "x")


def test_answers_are_read_in_order() -> None:
    asked = (writing("/w", b"x"), reading("/r", When.TAKEN), reading("/r"), sleeping(1))
    raw = words(-22) + words(-10000) + words(5) + b"hello\0\0\0" + words(1) + b"!\0\0\0"
    raw += words(0) + words(0)
    assert answers(asked, raw) == [
        FileAnswer(-22),
        FileAnswer(None),
        FileAnswer(0, b"hello!"),
        FileAnswer(0),
    ]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(words(5) + b"hell", id="cut short"),
        pytest.param(words(1 << 20) + bytes(1 << 20) + words(0), id="a vast piece"),
        pytest.param(words(0, 0), id="too many"),
    ],
)
def test_what_is_no_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        answers((reading("/r"),), raw)


def test_words_go_both_ways_through_the_ports() -> None:
    pauses: list[int] = []
    mailbox = Mailbox(lambda: pauses.append(1))
    assert mailbox.read(DATA) == 0
    mailbox.put(words(7, 8, 9))
    assert [mailbox.read(DATA), mailbox.left] == [7, 2]
    mailbox.write(DATA, 1 << 40 | 5)
    copy = Mailbox(lambda: None)
    copy.restore(mailbox.state())
    for each in (mailbox, copy):
        assert [each.read(DATA) for _ in range(3)] == [8, 9, 0]
        assert each.take() == words(5)
        assert each.take() == b""
    mailbox.write(CONTROL, 0)
    assert pauses == [1]


def test_the_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    cpio = ["cpio"] if shutil.which("cpio") else ["busybox", "cpio"]
    if shutil.which(cpio[0]) is None:
        pytest.skip("there is no cpio")
    raw = pack_archive({"init": b"one", "bin/deep/tool": b"four!"})
    done = subprocess.run([*cpio, "-id"], input=raw, cwd=tmp_path, capture_output=True, check=True)
    assert b"error" not in done.stderr
    assert (tmp_path / "init").read_bytes() == b"one"
    assert (tmp_path / "bin/deep/tool").read_bytes() == b"four!"
    assert (tmp_path / "init").stat().st_mode & 0o777 == 0o755


def test_the_program_in_the_package_is_what_its_source_builds(tmp_path: Path) -> None:
    """By the compiler of Debian 12; another one makes other code of it."""
    if not shutil.which("gcc") or not shutil.which("make"):
        pytest.skip("no gcc or no make")
    subprocess.run(["make", "-s", "-C", FOLDER, f"OUT={tmp_path}"], check=True)
    built = (tmp_path / "agent.elf").read_bytes()
    assert built[:4] == b"\x7fELF"
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, check=True).stdout
    if version.split(b".")[0].strip() == b"12":
        assert built in archive()
