"""The file of a sweep: TOML, with the line and the key of whatever is wrong in it."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from engine.errors import CommandError
from engine.tomltext import TomlError, read_toml

_KEY: Final = r"\s*(?:[\w-]+|\"[^\"]*\"|'[^']*')\s*"
_BEGINS: Final = re.compile(
    rf"{_KEY}(?:\.{_KEY})*=|\s*\[{_KEY}(?:\.{_KEY})*\]\s*(?:#.*)?$"
    rf"|\s*\[\[{_KEY}(?:\.{_KEY})*\]\]\s*(?:#.*)?$"
)
"""A line that begins something, if it is none of a text of several lines."""
_PARSED_MOST: Final = 100
"""Fronts of a file that are read for the line of an error."""


class SweepFileError(CommandError):
    """A file of a sweep that means nothing, with the place."""

    hint = "nothing has run; 'kprobe-tui help sweeps' lists the keys"


class SweepFile:
    """A file's data, and errors about it.

    Attributes:
        path: of the file.
        data: the table at its top.
    """

    def __init__(self, path: str) -> None:
        """Read it.

        Raises:
            CommandError: it cannot be read.
            SweepFileError: it is no TOML.
        """
        self.path = path
        try:
            with open(path, "rb") as file:
                self._text = file.read().decode()
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SweepFileError(f"{path}: not UTF-8, at byte {error.start}") from error
        try:
            self.data = read_toml(self._text)
        except TomlError as error:
            raise SweepFileError(f"{path}: {error}") from error

    def error(self, key: str, text: str, number: int | None = None) -> SweepFileError:
        """The error at a key, with its line if that can be told.

        Args:
            key: of the file.
            text: what is wrong.
            number: of the table, from 0, where the key is one of several tables.
        """
        keys: list[str | int] = [*key.split(".")] if key else []
        line = self._line([*keys, *([] if number is None else [number])]) if keys else None
        place = self.path if line is None else f"{self.path}:{line}"
        return SweepFileError(f"{place}: {key}: {text}" if key else f"{place}: {text}")

    def _line(self, keys: Sequence[str | int]) -> int | None:
        """The line on which a value begins: behind the longest front of the file without it."""
        lines = self._text.split("\n")
        ends = [0, *(n for n, line in enumerate(lines) if n and _BEGINS.match(line)), len(lines)]
        low, high = 0, len(ends) - 1
        left = _PARSED_MOST
        there = _value(self.data, keys) is not None
        while there and high - low > 1:
            at = middle = (low + high) // 2
            found = None
            while found is None and at < high:  # in a text of several lines nothing ends
                if not left:
                    return None
                left -= 1
                try:
                    found = read_toml("\n".join(lines[: ends[at]]))
                except TomlError:
                    at += 1
            if found is None or _value(found, keys) is not None:
                high = middle
            else:
                low = at
        first = ends[low]
        while there and (not lines[first].strip() or lines[first].lstrip().startswith("#")):
            first += 1
        return first + 1 if there else None

    def beside(self, path: str) -> str:
        """A path of the file's, from the current directory."""
        return os.path.join(os.path.dirname(self.path), path)

    def known(self, where: str, table: dict[str, Any], names: Iterable[str]) -> None:
        """Refuse keys of a table that are none of some names."""
        listed = tuple(names)
        for key in table:
            if key not in listed:
                place = f"{where}.{key}" if where else key
                raise self.error(place, f"no such key; there is {', '.join(listed)}")

    def table(self, name: str) -> dict[str, Any]:
        """A table at the top; an empty one where there is none."""
        found = self.data.get(name, {})
        if not isinstance(found, dict):
            raise self.error(name, f"a table is wanted: [{name}]")
        return found

    def names(self, key: str, value: object, names: Sequence[str]) -> list[str]:
        """Some of these names, one or a list."""
        found = self.values(key, value)
        for each in found:
            if each not in names:
                raise self.error(key, f"{each!r} is none of {', '.join(names)}")
        return [str(each) for each in found]

    def values(self, key: str, value: object) -> list[Any]:
        """A list, or a value alone as one."""
        found = value if isinstance(value, list) else [value]
        if not found:
            raise self.error(key, "an empty list leaves no cells; leave the key out, or fill it")
        return found

    def strings(self, key: str, value: object) -> list[str]:
        """Texts, one or a list."""
        found = self.values(key, value)
        for each in found:
            if not isinstance(each, str) or not each or "\0" in each:
                raise self.error(key, f"{each!r} is no text")
        return found


def spelled(value: object) -> str:
    """A value of the file as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(data: Any, keys: Sequence[str | int]) -> Any:
    """The value at a key; of several tables, that of any of them. None for nothing."""
    for key in keys:
        if isinstance(data, list):
            if isinstance(key, int):
                data = data[key] if key < len(data) else None
            else:
                several = (each.get(key) for each in data if isinstance(each, dict))
                data = next((each for each in several if each is not None), None)
        else:
            data = data.get(key) if isinstance(data, dict) else None
    return data
