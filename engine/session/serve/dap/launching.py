"""The guest that `launch` asks for, as words of the command line, whose meaning is known there."""

import os
from collections.abc import Callable, Sequence

from engine.errors import CommandError
from engine.session.protocol.config import GuestConfig, Mode
from engine.session.serve.dap.requests import LaunchArguments

Configure = Callable[[Sequence[str]], tuple[GuestConfig, Mode]]
"""The guest that words of the command line stand for; it raises what is wrong with them."""


def words_of(wanted: LaunchArguments, options: Sequence[str], guest: Sequence[str]) -> list[str]:
    """The words for a guest.

    Args:
        wanted: the editor's launch arguments.
        options: of the command line.
        guest: GUEST ARGS of the command line, if they are there.

    Raises:
        CommandError: nobody has named any.
    """
    words = [*options, *wanted.options]
    if wanted.record:
        words.append("--record")
    for name, value in wanted.env.items():
        words += ["--env", f"{name}={value}"]
    if wanted.cwd:
        words += ["--cwd", wanted.cwd]
        rooted = any(word.partition("=")[0] in ("--root", "--isolated") for word in words)
        if not rooted and os.path.isdir(wanted.cwd):
            words += ["--share", wanted.cwd]
    program = wanted.program or (guest[0] if guest else "")
    if not program:
        raise CommandError("launch: program: the ELF file to run is missing")
    args = wanted.args or ([] if wanted.program else guest[1:])
    return [*words, program, *([wanted.core] if wanted.core else args)]
