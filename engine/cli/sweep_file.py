"""The file of a sweep: TOML, with the line and the key of whatever is wrong in it."""

import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

from engine.errors import CommandError


class SweepFileError(CommandError):
    """A file of a sweep that means nothing, with the place."""

    hint = 'nothing has run; "Many runs" in the README lists the keys'


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
            self.data = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise SweepFileError(f"{path}: not TOML: {error}") from error
        except RecursionError as error:
            raise SweepFileError(f"{path}: nested too deeply to be read") from error

    def error(self, key: str, text: str) -> SweepFileError:
        """The error at a key, with its line if that can be told."""
        line = self._line(key.split(".")) if key else None
        place = self.path if line is None else f"{self.path}:{line}"
        return SweepFileError(f"{place}: {key}: {text}" if key else f"{place}: {text}")

    def _line(self, keys: Sequence[str]) -> int | None:
        """The line on which a value begins: behind the front of the file that has it not."""
        lines = self._text.split("\n")
        last = 0
        for end in range(1, len(lines) + 1):
            try:
                found: Any = tomllib.loads("\n".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue
            for key in keys:
                found = found.get(key) if isinstance(found, dict) else None
            if found is not None:
                while lines[last].strip() == "" or lines[last].lstrip().startswith("#"):
                    last += 1
                return last + 1
            last = end
        return None

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
