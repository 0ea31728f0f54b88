"""Words between memory and files of the host: dump, append, restore (gdb/cli/cli-dump.c)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger

_PIECE: Final = 1 << 20
_MOST: Final = 1 << 32
"""Bytes of memory in one file at the most."""
_FORMS: Final = ("srec", "ihex", "tekhex", "verilog")


class DumpWords:
    """Writes memory and values to files as raw bytes, and reads memory from such files."""

    def __init__(self, debugger: Debugger) -> None:
        """Dump a debugger's guest."""
        self._debugger = debugger

    def dump(self, rest: str) -> None:
        """Write to a file: dump [binary] memory FILE START STOP, dump value FILE EXPR."""
        self._write(rest, "dump", "wb")

    def append(self, rest: str) -> None:
        """Add to a file: append [binary] memory FILE START STOP, append value FILE EXPR."""
        self._write(rest, "append", "ab")

    def _write(self, rest: str, name: str, mode: str) -> None:
        word, behind = _first(rest)
        if word in _FORMS:
            raise CommandError(
                f'"{name} {word}" is not there: raw bytes are written ({name} binary).'
            )
        if word == "binary":
            word, behind = _first(behind)
        if word not in ("memory", "value"):
            raise CommandError(f'"{name}" must be followed by: memory, value, binary')
        path, behind = _first(behind)
        if not path:
            raise CommandError("Missing filename.")
        if word == "memory":
            pieces = self._memory(behind)
        elif behind:
            pieces = iter([self._debugger.value(behind).raw])
        else:
            raise CommandError("No value to dump.")
        first = next(pieces, b"")  # what cannot be read leaves the file as it was
        try:
            with Path(path).expanduser().open(mode) as file:
                file.write(first)
                for piece in pieces:
                    file.write(piece)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None

    def _memory(self, rest: str) -> Iterator[bytes]:
        low_text, high_text = _first(rest)
        if not low_text:
            raise CommandError("Missing start address.")
        if not high_text:
            raise CommandError("Missing stop address.")
        low, high = self._address(low_text), self._address(high_text)
        if high <= low:
            raise CommandError("Invalid memory address range: start >= end.")
        if high - low > _MOST:
            raise CommandError(f"{high - low} bytes are too many for a file.")
        read = self._debugger.scope.read
        return (read(at, min(_PIECE, high - at)) for at in range(low, high, _PIECE))

    def _address(self, text: str) -> int:
        return self._debugger.value(text).as_address

    def restore(self, rest: str) -> None:
        """Write a file of raw bytes to memory: restore FILE binary [OFFSET [START [END]]]."""
        path, behind = _first(rest)
        if not path:
            raise CommandError("Missing filename.")
        try:
            file = Path(path).expanduser().open("rb")
        except OSError as error:
            raise CommandError(f"Failed to open {path}: {error.strerror}.") from None
        with file:
            word, behind = _first(behind)
            if word != "binary":
                raise CommandError(f"Only raw bytes are read: restore {path} binary [OFFSET].")
            self._debugger.need_process()
            words = behind.split()
            offset = self._address(words[0]) if words else 0
            start = self._debugger.number(words[1]) if len(words) > 1 else 0
            end = self._debugger.number(words[2]) if len(words) > 2 else None
            size = file.seek(0, 2)
            if start < 0 or start >= max(size, 1):
                raise CommandError(f"Start address is greater than length of binary file {path}.")
            stop = size if end is None else min(end, size)
            if stop <= start:
                raise CommandError("Start must be less than end.")
            file.seek(start)
            low, high = offset + start, offset + stop
            self._debugger.put(f"Restoring binary file {path} into memory ({low:#x} to {high:#x})")
            for at in range(low, high, _PIECE):
                self._debugger.write_memory(at, file.read(min(_PIECE, high - at)))


def _first(text: str) -> tuple[str, str]:
    """The first word of a text, and what follows it."""
    match = re.match(r"\s*(\S*)\s*(.*)", text, re.DOTALL)
    return (match[1], match[2].strip()) if match is not None else ("", "")
