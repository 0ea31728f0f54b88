"""Lines to standard output and remarks to standard error, with text of guests escaped."""

import io
import os
import sys
from contextlib import suppress

from engine.escaping import escaped


def prepare() -> None:
    """Have what the terminal's encoding lacks written as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # it asks for the position first
                stream.reconfigure(errors="backslashreplace")


def put(line: str) -> None:
    """Write a line to standard output; a newline within it is escaped."""
    sys.stdout.write(escaped(line) + "\n")


def remark(*lines: str, color: str = "never") -> None:
    """Write a remark to standard error.

    Args:
        lines: the first one says it, the others explain.
        color: of the words in front, "auto", "always" or "never".
    """
    wanted = color == "auto" and not os.environ.get("NO_COLOR") and sys.stderr.isatty()
    colored = color == "always" or wanted
    prefix = "\033[1mkprobe-tui:\033[0m" if colored else "kprobe-tui:"
    for index, line in enumerate(lines):
        print(prefix, escaped(line) if not index else "  " + escaped(line), file=sys.stderr)


def text(several: str) -> None:
    """Write text with lines of its own to standard error."""
    print(escaped(several, keep="\n"), file=sys.stderr)
