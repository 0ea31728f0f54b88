"""Lines to standard output and remarks to standard error, with text of guests escaped.

Either may be closed, full, or have nobody who reads it: then results end the command, and a
remark that nobody heard changes the exit code of success.
"""

import io
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final

from engine.errors import CommandError, CutOff
from engine.escaping import escaped

if TYPE_CHECKING:  # --help needs no engine
    from engine.session.protocol.report import Report

UNHEARD: Final = 1
"""Exit code in place of 0 where a remark could not be written."""
_SIGPIPE: Final = 13
_STDERR: Final = 2
_unheard = [False]


def prepare() -> None:
    """Make standard streams fit for what comes, at the start of the process.

    Descriptors that are closed are occupied, so that no file gets their number and with it what
    the guest writes. What the terminal's encoding lacks is written as escapes.
    """
    _unheard[0] = False
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_PATH)  # neither read nor written: as if it were closed
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # it asks for the position first
                stream.reconfigure(errors="backslashreplace")


def put(line: str, *, keep: str = "") -> None:
    """Write a line to standard output; a newline within it is escaped.

    Args:
        line: of text.
        keep: control characters that belong to the line's format, such as the tabs of a file
            that other programs parse.

    Raises:
        CommandError, CutOff: as `write`.
    """
    write(escaped(line, keep=keep) + "\n")


def write_guest(descriptor: int, data: bytes) -> None:
    """Write what a guest that is no longer there wrote; a terminal of its own is stdout."""
    if descriptor == _STDERR:
        errors().write(data)
    else:
        write_bytes(data)


def put_lines(lines: Sequence[str]) -> None:
    """The same for many at once.

    Raises:
        CommandError, CutOff: as `write`.
    """
    if lines:
        plain = "".join(lines).isprintable()
        write("\n".join(lines if plain else map(escaped, lines)) + "\n")


def write(text: str) -> None:
    """Write text of our own to standard output.

    Raises:
        CommandError: it is full, or closed.
        CutOff: nobody reads it.
    """
    stream = sys.stdout
    if stream is None:
        raise CommandError("standard output is closed")
    try:
        stream.write(text)
    except OSError as error:
        _fail(error)


def write_bytes(data: bytes) -> None:
    """Write a trace's text to standard output; on a terminal it is escaped, too.

    Raises:
        CommandError, CutOff: as `write`.
    """
    stream = sys.stdout
    if stream is None:
        raise CommandError("standard output is closed")
    try:
        stream.buffer.write(escaped(data, keep="\n").encode() if stream.isatty() else data)
        stream.buffer.flush()
    except OSError as error:
        _fail(error)


def write_raw(data: bytes) -> None:
    """Write a guest's own bytes to standard output at once.

    Raises:
        CommandError, CutOff: as `write`.
    """
    if sys.stdout is None:
        raise CommandError("standard output is closed")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError as error:
        _fail(error)


def flush() -> None:
    """Write what is buffered.

    Raises:
        CommandError, CutOff: as `write`.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _fail(error)


def remark(*lines: str, color: str = "never") -> None:
    """Write a remark to standard error.

    Args:
        lines: the first one says it, the others explain; none say nothing.
        color: of the words in front, "auto", "always" or "never".
    """
    wanted = color == "auto" and not os.environ.get("NO_COLOR") and errors().isatty()
    colored = color == "always" or wanted
    prefix = "\033[1mkprobe-tui:\033[0m" if colored else "kprobe-tui:"
    for index, line in enumerate(lines):
        _say(f"{prefix} {'  ' if index else ''}{escaped(line)}\n")


def remarks(found: "Iterable[Report]", color: str) -> None:
    """Write remarks, with the name of the tool in front of each."""
    for each in found:
        remark(*each.lines, color=color)


def text(several: str) -> None:
    """Write text with lines of its own to standard error."""
    _say(escaped(several, keep="\n") + "\n")


def errors() -> BinaryIO:
    """Standard error for bytes; one that takes none where it is closed."""
    return sys.stderr.buffer if sys.stderr is not None else open(2, "wb", 0, closefd=False)


def heard(code: int) -> int:
    """The exit code of a command that has come to its end.

    What standard error has not taken by then is dropped: Python would try again as it ends, and
    give the code 120.
    """
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        _unheard[0] = True
        _give_up(2)
    return UNHEARD if _unheard[0] and not code else code


def _say(said: str) -> None:
    try:
        if sys.stderr is None:
            raise OSError
        sys.stderr.write(said)
        sys.stderr.flush()
    except OSError:
        _unheard[0] = True
        if sys.stderr is not None:
            _give_up(2)


def _give_up(descriptor: int) -> None:
    """Have nothing come of a stream again when Python ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)


def _fail(error: OSError) -> None:
    """Give standard output up."""
    _give_up(1)
    if isinstance(error, BrokenPipeError):
        raise CutOff(128 + _SIGPIPE) from error
    raise CommandError(f"standard output: {error.strerror}") from error
