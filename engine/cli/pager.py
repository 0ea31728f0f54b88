"""Shows a long text in the user's pager, as git and man do.

The pager is $PAGER, run by the shell, else less. Where standard output is no terminal, or the
pager is empty, `cat` or not there, the text is written as it is.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from shutil import which
from typing import Final

from engine.chapters.layout import Line, TextLook, plain_text
from engine.cli import console
from engine.escaping import escaped

_WIDEST: Final = 100
"""Columns of a line at the most, as longer ones are hard to read."""
_USUAL: Final = 80
"""Columns where standard output is no terminal."""
_NOT_FOUND: Final = (126, 127)
"""Exit codes of a shell that could not start a program."""
_SGR: Final = {TextLook.HEADING: "1", TextLook.BOLD: "1", TextLook.CODE: "36", TextLook.LINK: "4"}
"""Parameters of the terminal's sequence for each look (ECMA-48, section 8.3.117)."""


def columns() -> int:
    """Columns that a text may take on standard output."""
    if not _is_terminal():
        return _USUAL
    try:
        return max(min(os.get_terminal_size(1).columns, _WIDEST), 20)
    except OSError:
        return _USUAL


def page(lines: Iterable[Line]) -> None:
    """Show lines in the pager, or write them to standard output where there is none.

    Raises:
        CommandError, CutOff: as `console.write`.
    """
    shown = list(lines)
    command = _pager()
    if not command or not _paged(command, shown):
        console.put_lines([plain_text(line) for line in shown])


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _pager() -> str:
    """The command of the pager, "" if there is none."""
    if not _is_terminal():
        return ""
    given = os.environ.get("PAGER")
    if given is None:
        given = "less" if which("less") else ""
    return "" if given.strip() == "cat" else given.strip()


def _paged(command: str, lines: list[Line]) -> bool:
    """Run a pager to its end; False if it could not be started."""
    less = os.path.basename(command.split()[0]) == "less"
    colored = less and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    text = "\n".join(map(_styled if colored else _safe, lines)) + "\n"
    environment = dict(os.environ)
    if less:  # git's choice, unless the user has made one; looks are passed on in any case
        environment["LESS"] = f"{environment.get('LESS', '-FX')} -R"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        done = subprocess.run(
            command,
            shell=True,
            input=text.encode(errors="backslashreplace"),
            env=environment,
            check=False,
            # A child inherits that a signal is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, before),
        )
    finally:
        signal.signal(signal.SIGINT, before)
    return done.returncode not in _NOT_FOUND


def _safe(line: Line) -> str:
    return escaped(plain_text(line))


def _styled(line: Line) -> str:
    """A line with its looks as sequences for the terminal."""
    return "".join(
        f"\033[{_SGR[look]}m{escaped(text)}\033[m" if look in _SGR else escaped(text)
        for text, look in line
    )
