"""Text to bytes, by Keystone: what a user types over an instruction.

Keystone has been seen to read "10" as sixteen, once in thousands of times: numbers are given to it
in hexadecimal. It never comes back from some texts ("~x", "rep ,"), takes all memory for others
(".space 99999999999"), and reads files of the host's (".incbin"). So it works in a process of its
own, with a limit of time and of memory, and is given no directive that names a file.
"""

import atexit
import os
import re
import select
import subprocess
import sys
from contextlib import suppress
from typing import Final

from msgspec import DecodeError, json

from engine.arch.base import Arch
from engine.errors import CommandError

_DECIMAL: Final = re.compile(r"(?<![\w.])(?<!\bst\()([1-9]\d+)(?![\w.])")
"""A number whose digits mean another one in hexadecimal; st(1) and the like have one digit."""
_READING: Final = re.compile(r"\.inc(?:lude|bin)\b", re.IGNORECASE)
"""Directives that read a file."""

NO_KEYSTONE: Final = (
    "assembling needs the package keystone-engine: pip install 'kprobe-tui[assembler]'"
)
"""The message where Keystone is not installed: it has no wheels for some machines."""
_SECONDS: Final = 2.0
"""Time for one text; the longest that a user types takes a hundredth of a second."""
_START_SECONDS: Final = 20.0
"""Time for Python and Keystone to begin, on a busy machine."""
_MEMORY: Final = 1 << 30
"""Bytes of memory that the process may have."""
_MOST: Final = 1 << 16
"""Characters of a text, and bytes that come of one."""
_PROGRAM: Final = os.path.join(os.path.dirname(__file__), "keystone_process.py")


class _Assembler:
    """A process with Keystone, begun at the first text and again when one was too much for it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._of = 0

    def ask(self, question: tuple[str, tuple[str, ...], int, str]) -> dict[str, str]:
        """Assemble a text; an empty answer means that the process did not come back from it.

        Raises:
            CommandError: Keystone is not installed.
        """
        process = self._begun()
        assert process.stdin is not None, "it is a pipe"
        try:
            process.stdin.write(json.encode(question) + b"\n")
            process.stdin.flush()
        except OSError:
            return {}
        return self._answer(process, _SECONDS)

    def _begun(self) -> "subprocess.Popen[bytes]":
        if self._of != os.getpid():  # a process that was forked has one of its own
            self._process, self._of = None, os.getpid()
        if self._process is None:
            self._process = process = subprocess.Popen(
                [sys.executable, "-P", _PROGRAM, str(_MEMORY)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the program that is looked at
            )
            if "missing" in self._answer(process, _START_SECONDS):
                self.close()
                raise CommandError(NO_KEYSTONE)
        return self._process

    def _answer(self, process: "subprocess.Popen[bytes]", seconds: float) -> dict[str, str]:
        """The next line that a process says; an empty one where it has to be ended."""
        assert process.stdout is not None, "it is a pipe"
        line = b""
        while not line.endswith(b"\n") and len(line) <= 4 * _MOST:
            if not select.select([process.stdout], [], [], seconds)[0]:
                break
            more = os.read(process.stdout.fileno(), _MOST)
            if not more:
                break
            line += more
        with suppress(DecodeError):
            if line.endswith(b"\n"):
                return {key: str(value) for key, value in json.decode(line, type=dict).items()}
        self.close()
        return {}

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or self._of != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None, "both are pipes"
                pipe.close()


_assembler: Final = _Assembler()
atexit.register(_assembler.close)


def in_hexadecimal(text: str) -> str:
    """Instructions with their decimal numbers spelled so that Keystone cannot mistake them."""
    return _DECIMAL.sub(lambda number: hex(int(number[1])), text)


def assemble(arch: Arch, address: int, text: str) -> bytes:
    """Bytes of instructions, separated by ";", that stand at an address.

    Raises:
        CommandError: they do not assemble, nobody assembles for this architecture, or Keystone is
            not installed.
    """
    names = arch.engines.keystone
    if names is None:
        raise CommandError(f"no assembler for {arch.name}")
    if not text.isascii() or len(text) > _MOST:
        raise CommandError(f"{text[:40]}: instructions are some ASCII characters")
    if _READING.search(text):
        raise CommandError(f"{text}: files are not read")
    answer = _assembler.ask((names.arch, names.modes, address, in_hexadecimal(text)))
    if "error" in answer:
        raise CommandError(f"{text}: {answer['error']}")
    if not answer:
        raise CommandError(f"{text}: Keystone does not come to an end with that")
    if not answer["code"]:
        raise CommandError(f"{text}: no instruction")
    return bytes.fromhex(answer["code"])
