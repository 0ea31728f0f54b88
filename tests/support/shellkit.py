"""Real shells at a terminal of their own, in which a line is completed."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sysroot import CHECKOUT

SHELLS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        "args() { printf '<%s>' \"$@\"; echo '<end>'; }",
        'eval "$(kprobe-tui --completion bash)"',
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        "args() { printf '<%s>' \"$@\"; echo '<end>'; }; bindkey -e; unsetopt prompt_sp; "
        "autoload -U compinit; compinit -u -D",
        'eval "$(kprobe-tui --completion zsh)"',
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        "function args; printf '<%s>' $argv; echo '<end>'; end",
        "kprobe-tui --completion fish | source",
    ),
}
"""How a shell starts, what shows its words, and how it learns to complete."""
_PATIENCE = 60.0


class Shell:
    """A shell that has read our script; lines are typed and completed in it."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        command, *setup = SHELLS[name]
        for needed in (command[0], "setsid"):
            if shutil.which(needed) is None:
                pytest.skip(f"no {needed}")
        tools = folder / "tools"
        tools.mkdir()
        tool = tools / "kprobe-tui"
        tool.write_text(f'#!/bin/sh\nPYTHONPATH={CHECKOUT} exec {sys.executable} -P -m tui "$@"\n')
        tool.chmod(0o755)
        self._master, slave = pty.openpty()
        env = {
            "PATH": f"{tools}:/usr/bin:/bin",
            "TERM": "dumb",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "XDG_CONFIG_HOME": str(folder),
        }
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=env,
        )
        os.close(slave)
        self._seen = ""
        for line in setup:
            self._type(f"{line}\n")
        self._type("args ready\n")
        self._until("<ready><end>")

    def completed(self, line: str, back: str = "") -> list[str]:
        """The words of a line once Tab was pressed; `back` stands behind the cursor."""
        self._seen = ""
        left = "\x02" * len(back)
        self._type(f"{line}{back}{left}\t")
        # Typed ahead: the shell reads it once it has completed.
        self._type("\x01args \x05\n")
        text = self._until("<end>")
        found = re.findall(r"<([^<>]*)>", text[text.rindex("<kprobe-tui>") :])
        assert found[-1] == "end"
        return found[1:-1]

    def needs_what_is_behind(self) -> None:
        """Skip a test in which GUEST stands behind the cursor: fish tells nothing of that."""
        if self._name == "fish":
            pytest.skip("fish tells completions only what is in front of the cursor")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def _type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _until(self, wanted: str) -> str:
        end = time.monotonic() + _PATIENCE
        while not re.search(re.escape(wanted) + r"\s", self._seen):
            left = end - time.monotonic()
            assert left > 0, f"{wanted} did not come: {self._seen!r}"
            if select.select([self._master], [], [], min(left, 1))[0]:
                self._seen += os.read(self._master, 1 << 16).decode(errors="replace")
        return self._seen
