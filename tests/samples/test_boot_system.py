"""A whole system on a disk: Debian to its login, with systemd, and to its power-off.

`KPROBE_TUI_DEBIAN_DISK=1` lets it fetch 100 MB and run for two or three minutes.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from debiandisk import debian_disk

SCRIPT = Path(__file__).parents[2] / "samples" / "boot.sh"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "KPROBE_TUI_DEBIAN_DISK" not in os.environ,
        reason="KPROBE_TUI_DEBIAN_DISK is not set: a system of Debian's takes minutes",
    ),
]


class Terminal:
    """A process that is talked to as at a terminal.

    Attributes:
        said: all that it has written.
    """

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._at = 0
        self.said = b""

    def until(self, words: bytes) -> bytes:
        """Read until these words come."""
        assert self._process.stdout is not None
        while (at := self.said.find(words, self._at)) < 0:
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            assert piece, self.said.decode("utf-8", "replace")
            self.said += piece
        found, self._at = self.said[self._at : at], at + len(words)
        return found

    def type(self, line: str) -> None:
        """Type a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()


def test_debian_comes_to_its_login_and_goes_off(tmp_path: Path) -> None:
    disk = debian_disk()
    before = disk.stat().st_mtime_ns
    done = subprocess.run(
        ["sh", SCRIPT, "made"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    _, *words = shlex.split(done.stdout.replace("\\\n", ""))
    words += ["--disk", str(disk), "--append", "quiet root=/dev/vda rw", "--timeout", "1200"]
    with subprocess.Popen(
        [sys.executable, "-m", "tui", *words],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        terminal = Terminal(process)
        terminal.until(b"login: ")
        terminal.type("root")
        terminal.until(b"# ")
        for command, answer in (
            ("systemctl is-active systemd-journald", r"\bactive\s"),
            ("systemctl --failed --no-pager --plain", r"\b0 loaded units listed"),
            ("findmnt -no SOURCE /", r"/dev/vda\s"),
            ("touch /var/lib/new && echo wrote $?", r"wrote 0\s"),
        ):
            terminal.type(command)
            assert re.search(answer, terminal.until(b"# ").decode("utf-8", "replace"))
        terminal.type("systemctl poweroff")
        terminal.until(b"reboot: ")
        assert process.wait(300) == 0
    assert disk.stat().st_mtime_ns == before
