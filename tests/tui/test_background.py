"""The terminal is asked whether it is light; whatever it answers, nothing of that is a key."""

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep

import pyte
import pytest
from controlkit import sample
from hypothesis import given
from hypothesis import strategies as st
from sysroot import CHECKOUT
from warmed import SAME_CODE

import tui.background
from tui.background import Answers, is_light, may_ask

ATTRIBUTES = b"\x1b[?62;22c"
WHITE = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"
BLACK = b"\x1b]11;rgb:0000/0000/0000\x1b\\"


@pytest.mark.parametrize(
    ("color", "light"),
    [
        ("rgb:ffff/ffff/ffff", True),
        ("rgb:ff/ff/ff", True),
        ("rgb:f/f/f", True),
        ("rgba:ffff/ffff/ffff/8000", True),
        ("rgb:fdf6/e3e3/0000", True),
        ("rgb:0000/0000/0000", False),
        ("rgb:0000/2b2b/3636", False),
        ("RGB:FFF/FFF/FFF", True),
        ("rgba:00/00/00/ff", False),
        ("rgb:ffff/ffff", None),
        ("rgb:fffff/ffff/ffff", None),
        ("rgb:ffff/ffff/ffff/ffff", None),
        ("rgba:ffff/ffff/ffff", None),
        ("rgb:\u0661/\u0661/\u0661", None),
        ("white", None),
        ("", None),
    ],
)
def test_colors(color: str, light: bool | None) -> None:
    assert is_light(color) is light


@pytest.mark.parametrize(
    ("came", "light", "typed"),
    [
        (b"p" + WHITE + b"fib" + ATTRIBUTES + b"\r", True, b"pfib\r"),
        (b"\x1b]11;rgb:ff/ff/ff\x07" + ATTRIBUTES, True, b""),
        (b"\x1b]11;nonsense:q\x07" + ATTRIBUTES + b"c", None, b"c"),
        (b"\x1b]11;rgb:ffff/ff\x1b[A" + ATTRIBUTES, None, b"\x1b[A"),
        (BLACK + WHITE + ATTRIBUTES, False, b""),
        (ATTRIBUTES + b"\x1b[<0;3;4M", None, b"\x1b[<0;3;4M"),
        (b"\x1b[A\x1bOP\x1b[?2026;2$y\x1b" + ATTRIBUTES, None, b"\x1b[A\x1bOP\x1b[?2026;2$y\x1b"),
        (b"\x1b]11;" + b"x" * 5_000 + b"\x07" + ATTRIBUTES + b"j", None, b"j"),
        ("\u00e4".encode() + WHITE + ATTRIBUTES, True, "\u00e4".encode()),
    ],
)
def test_answers_are_taken_out_however_they_are_cut(
    came: bytes, light: bool | None, typed: bytes
) -> None:
    for size in (len(came), 1, 2, 3, 7):
        answers = Answers()
        pieces = [came[at : at + size] for at in range(0, len(came), size)]
        assert b"".join(answers.feed(piece) for piece in pieces) == typed, size
        assert answers.light is light
        assert not answers.due


@given(st.lists(st.sampled_from([*b"\x1b]1;rgb:f/?[c\x07\\q"]), max_size=40), st.integers(1, 5))
def test_nothing_is_made_up_and_pieces_do_not_matter(bytes_: list[int], size: int) -> None:
    came = bytes(bytes_)
    whole, cut = Answers(), Answers()
    typed = whole.feed(came)
    assert typed == b"".join(cut.feed(came[n : n + size]) for n in range(0, len(came), size))
    assert (whole.light, whole.due) == (cut.light, cut.due)
    rest = iter(came)
    assert all(byte in rest for byte in typed)


def test_escape_is_a_key_after_a_moment_and_half_an_answer_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(tui.background, "monotonic", lambda: now)
    answers = Answers()
    assert answers.feed(b"\x1b") == answers.pause() == b""
    now += 0.06
    assert answers.pause() == b"\x1b"
    assert answers.feed(b"\x1b]11;rgb:ff") == b""
    now += 1.0
    assert answers.pause() == b""
    assert answers.feed(b"ff/ffff/ffff\x07") == b""
    assert answers.light
    assert answers.feed(b"\x1b[?6") == b""
    now += 2.1
    assert answers.pause() == b""
    assert answers.feed(b"c") == b"c"
    assert answers.due
    now += 30.0
    assert answers.feed(b"\x1b") == b"\x1b"


def test_who_is_not_asked() -> None:
    assert not any(may_ask({"TERM": term}) for term in ("dumb", "linux", "vt100", "", "unknown"))
    assert not may_ask({})


class Asked:
    """The command in a pseudo-terminal that answers the query."""

    def __init__(self, folder: Path, guest: str, surroundings: Mapping[str, str]) -> None:
        self._screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self._screen)
        self.line, self.end = os.openpty()
        fcntl.ioctl(self.line, termios.TIOCSWINSZ, struct.pack("=4H", 30, 100, 0, 0))
        self.before = termios.tcgetattr(self.end)
        here = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
        own = {"KPROBE_TUI_CONFIG": f"{folder}/config", "KPROBE_TUI_STATE": f"{folder}/state"}
        looks = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **surroundings}
        self.seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tui", *([guest] if guest else [])],
            cwd=CHECKOUT,
            env={**here, **own, **looks, **SAME_CODE},
            stdin=self.end,
            stdout=self.end,
            stderr=self.end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(self.end, termios.TIOCSCTTY, 0),
        )

    def until(self, wanted: bytes, text: str = "", seconds: float = 60) -> None:
        """Read until something was sent, or a text stands there.

        Raises:
            AssertionError: that does not come.
        """
        end = monotonic() + seconds
        while wanted not in self.seen or text not in self.text:
            assert monotonic() < end, f"no {wanted!r} {text!r} in:\n{self.text}"
            if select.select([self.line], [], [], 0.1)[0]:
                data = os.read(self.line, 1 << 16)
                self.seen += data
                self._stream.feed(data)

    def exit_code(self, seconds: float = 60) -> int:
        """Read until the command has ended: it waits where nobody takes what it paints."""
        end = monotonic() + seconds
        while self.process.poll() is None:
            assert monotonic() < end, f"no end of:\n{self.text}"
            if select.select([self.line], [], [], 0.1)[0]:
                self.seen += os.read(self.line, 1 << 16)
        assert self.process.returncode is not None
        return self.process.returncode

    def type(self, data: bytes) -> None:
        """Send something, as keys and answers come."""
        os.write(self.line, data)

    @property
    def text(self) -> str:
        """What stands there."""
        return "\n".join(self._screen.display)

    @property
    def background(self) -> str:
        """The color behind most of what stands there."""
        rows = (self._screen.buffer[y] for y in range(30))
        return Counter(row[x].bg for row in rows for x in range(100)).most_common(1)[0][0]

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self.line)
        os.close(self.end)


def _is_light(color: str) -> bool:
    return color != "default" and int(color[:2], 16) > 127


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pieces", "surroundings", "light"),
    [
        ((WHITE, ATTRIBUTES), {}, True),
        ((WHITE[:9], WHITE[9:20], WHITE[20:] + ATTRIBUTES[:3], ATTRIBUTES[3:]), {}, True),
        ((BLACK + ATTRIBUTES,), {"COLORFGBG": "0;15"}, False),
        ((b"\x1b]11;rgb:q/:quit\x1b\\" + ATTRIBUTES,), {}, False),
        ((ATTRIBUTES,), {"COLORFGBG": "0;15"}, True),
        ((), {}, False),
    ],
)
def test_the_theme_follows_the_terminal(
    tmp_path: Path, pieces: tuple[bytes, ...], surroundings: dict[str, str], light: bool
) -> None:
    asked = Asked(tmp_path, sample("x86_64", "recursion"), surroundings)
    try:
        asked.until(b"\x1b]11;?")
        asked.type(b"b")
        for piece in pieces:
            asked.type(piece)
            sleep(0.01)
        asked.until(b"", "breakpoint at _start")
        assert _is_light(asked.background) is light
        asked.type(b"q")
        asked.until(b"\x1b[?1049l")
        assert asked.exit_code() == 0
        assert termios.tcgetattr(asked.end) == asked.before
    finally:
        asked.close()


@pytest.mark.slow
def test_a_late_answer_is_no_key(tmp_path: Path) -> None:
    asked = Asked(tmp_path, sample("x86_64", "recursion"), {})
    try:
        asked.until(b"\x1b]11;?", "ready: loaded")
        for piece in (WHITE[:7], WHITE[7:], ATTRIBUTES):
            asked.type(piece)
            sleep(0.2)
        asked.type(b"b")
        asked.until(b"", "breakpoint at _start")
        assert not _is_light(asked.background)
        assert "/ffff" not in asked.text
        asked.type(b"q")
        assert asked.exit_code() == 0
    finally:
        asked.close()


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["theme", "NO_COLOR", "TERM"])
def test_a_terminal_is_not_asked_where_that_decides_nothing(tmp_path: Path, chosen: str) -> None:
    surroundings = {"NO_COLOR": {"NO_COLOR": "1"}, "TERM": {"TERM": "linux"}}.get(chosen, {})
    if chosen == "theme":
        (tmp_path / "config").write_text('theme = "nord"\n')
    asked = Asked(tmp_path, sample("x86_64", "recursion"), surroundings)
    try:
        asked.until(b"", "ready: loaded")
        assert b"\x1b]11;" not in asked.seen
    finally:
        asked.close()


@pytest.mark.slow
def test_no_answer_is_left_to_the_shell_by_what_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "none").write_bytes(b"\x7fELF")
    asked = Asked(tmp_path, str(tmp_path / "none"), {})
    try:
        asked.until(b"\x1b]11;?")
        asked.type(WHITE + ATTRIBUTES)
        assert asked.exit_code() == 2
        assert termios.tcgetattr(asked.end) == asked.before
        assert not select.select([asked.end], [], [], 0)[0]
    finally:
        asked.close()


@pytest.mark.slow
@pytest.mark.parametrize("early", [True, False])
def test_the_picker_serves_what_is_typed_before_it_is_up_and_behind_its_enter(
    tmp_path: Path, early: bool
) -> None:
    asked = Asked(tmp_path, "", {})
    try:
        if not early:
            asked.until(b"\x1b]11;?")
            asked.type(ATTRIBUTES)
        asked.type(b"j\rb")  # a newline for Enter as long as the terminal is a shell's
        asked.until(b"", "breakpoint at _start")
        assert "recursion  aarch64" in asked.text
        asked.type(b"q")
        assert asked.exit_code() == 0
        assert termios.tcgetattr(asked.end) == asked.before
    finally:
        asked.close()
