"""Signals end the interface and leave the terminal as it was."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from guestrun import guest

SCREEN_ON, SCREEN_OFF = b"\x1b[?1049h", b"\x1b[?1049l"


class Opened:
    """The interface on a terminal of its own, which it has for its controlling one."""

    def __init__(self, home: Path, *words: str) -> None:
        self.master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (40, 120))
        self.before = termios.tcgetattr(self.slave)
        self.text = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tui", *words],
            env={**os.environ, "TERM": "xterm-256color", "KPROBE_TUI_STATE": str(home / "state")},
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def read_until(self, wanted: bytes) -> None:
        """Read what it draws."""
        while wanted not in self.text and self.process.poll() is None:
            self._read(1)

    def end(self) -> int:
        """Read on to its end; the exit code."""
        while self.process.poll() is None:
            self._read(0.1)
        while self._read(0):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if select.select([self.master], [], [], seconds)[0]:
            self.text += os.read(self.master, 1 << 16)
            return True
        return False


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGQUIT, marks=pytest.mark.slow)]
)
def test_the_terminal_is_as_it_was(tmp_path: Path, number: int) -> None:
    opened = Opened(tmp_path, guest("x86_64", "process"), "ignore")
    opened.read_until(SCREEN_ON)
    opened.process.send_signal(number)

    assert opened.end() == 128 + number
    assert SCREEN_OFF in opened.text
    assert termios.tcgetattr(opened.slave) == opened.before
    os.close(opened.master)
    os.close(opened.slave)


@pytest.mark.slow
def test_the_list_of_samples_ends_likewise(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    opened.read_until(SCREEN_ON)
    opened.process.send_signal(signal.SIGTERM)

    assert opened.end() == 143
    assert SCREEN_OFF in opened.text
    os.close(opened.master)
    os.close(opened.slave)


@pytest.mark.slow
def test_a_closed_terminal_leaves_nobody_behind(tmp_path: Path) -> None:
    opened = Opened(tmp_path, guest("x86_64", "process"), "spin")
    opened.read_until(SCREEN_ON)
    os.close(opened.slave)
    os.close(opened.master)

    assert opened.process.wait(60) == 129
