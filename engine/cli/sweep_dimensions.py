"""Dimensions of a sweep: the guests, inputs, seeds and definitions that a file names."""

import glob
import os
import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from engine.cli.sweep_cells import Label
from engine.cli.sweep_file import SweepFile, spelled
from engine.session.headless.sweep.guests import architecture, content_digest
from engine.session.protocol.config import architectures

MOST: Final = 1_000_000
"""Cells, and seeds of a range."""
_DIMENSIONS: Final = ("guest", "arch", "args", "input", "seed", "definitions")
_SEEDS: Final = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
_ARCH: Final = "{arch}"
_NO_GUEST: Final = 'there is no guest; [matrix] has guest = "PATH", or a list of paths or patterns'


class SweepGuest(Struct, frozen=True):
    """A program.

    Attributes:
        path: from the current directory.
        arch: name of its architecture; None for what is no ELF program.
    """

    path: str
    arch: str | None


def column(name: str) -> str:
    """The column for a dimension."""
    return name.replace("-", "_")


class SweepDimensions:
    """Reads the dimensions of a file.

    Attributes:
        others: names of the dimensions that are options.
        skipped: files that patterns for guests match, and that are no programs.
    """

    def __init__(self, file: SweepFile) -> None:
        """For those of a file."""
        self._file = file
        self._folder = os.path.dirname(file.path)
        self._digests: dict[str, str] = {}
        self.others = [name for name in file.table("matrix") if name not in _DIMENSIONS]
        self.skipped: set[str] = set()

    def beside(self, path: str) -> str:
        """A path of the file's, from the current directory."""
        return self._file.beside(path)

    def paths(self, key: str, patterns: list[str]) -> list[str]:
        """Files that patterns stand for, in order."""
        found: list[str] = []
        for pattern in patterns:
            path = self.beside(pattern)
            if os.path.exists(path) or not glob.has_magic(pattern):
                found.append(path)
                continue
            names = glob.glob(pattern, root_dir=self._folder or None, recursive=True)
            matching = sorted(filter(os.path.isfile, map(self.beside, names)))
            if not matching:
                raise self._file.error(key, f"no file matches {pattern!r}")
            found += matching
        return list(dict.fromkeys(found))

    def digest(self, key: str, path: str) -> str:
        """SHA-256 of a file, which is read once."""
        found = self._digests.get(path)
        if found is None:
            try:
                found = self._digests[path] = content_digest(path)
            except OSError as error:
                raise self._file.error(key, f"{path}: {error.strerror}") from error
        return found

    # -- dimensions --------------------------------------------------------------------

    def guests(self, matrix: dict[str, Any], where: str = "matrix") -> list[SweepGuest]:
        """Guests with their architectures."""
        if "guest" not in matrix:
            raise self._file.error(
                "matrix.guest" if "matrix" in self._file.data else "", _NO_GUEST
            )
        key = f"{where}.guest"
        patterns = self._file.strings(key, matrix["guest"])
        arches: list[str] | None = None
        if "arch" in matrix:
            arches = self._file.names("matrix.arch", matrix["arch"], architectures())
        found: list[SweepGuest] = []
        for pattern in patterns:
            if _ARCH not in pattern:
                found += self._kept(key, pattern, arches)
                continue
            if arches is None:
                raise self._file.error(
                    key, f"{pattern!r}: matrix.arch says what {_ARCH} stands for"
                )
            for arch in arches:
                found += self._kept(key, pattern.replace(_ARCH, arch), [arch])
        if not found:
            raise self._file.error(key, "no guest is left of those that match")
        return list(dict.fromkeys(found))

    def _kept(self, key: str, pattern: str, arches: list[str] | None) -> Iterator[SweepGuest]:
        paths = self.paths(key, [pattern])
        several = paths != [self.beside(pattern)]
        for path in paths:
            self.digest(key, path)
            try:
                arch = architecture(path)
            except OSError as error:
                raise self._file.error(key, f"{path}: {error.strerror}") from error
            if several and arch is None:
                self.skipped.add(path)
            elif arches is None or arch in arches:
                yield SweepGuest(path if path[:1] != "-" else f"./{path}", arch)

    def arguments(self, matrix: dict[str, Any], where: str = "matrix") -> list[tuple[str, ...]]:
        """Lists of arguments."""
        if "args" not in matrix:
            return [()]
        key, found = f"{where}.args", []
        for each in self._file.values(key, matrix["args"]):
            if isinstance(each, str):
                try:
                    words = shlex.split(each)
                except ValueError as error:
                    raise self._file.error(key, f"{each!r}: {error}") from error
            else:
                words = [] if each == [] else self._file.strings(key, each)
            if any("\0" in word for word in words):
                raise self._file.error(key, "an argument has no zero byte")
            found.append(tuple(words))
        return found

    def inputs(self, matrix: dict[str, Any], where: str = "matrix") -> list[str | None]:
        """Paths of inputs."""
        if "input" not in matrix:
            return [None]
        key = f"{where}.input"
        paths = self.paths(key, self._file.strings(key, matrix["input"]))
        for path in paths:
            self.digest(key, path)
        return [*paths]

    def seeds(self, matrix: dict[str, Any], where: str = "matrix") -> list[int | None]:
        """Seeds."""
        if "seed" not in matrix:
            return [None]
        key = f"{where}.seed"
        found: list[int | None] = []
        for each in self._file.values(key, matrix["seed"]):
            match = _SEEDS.fullmatch(each) if isinstance(each, str) else None
            if match is not None and int(match[1]) <= int(match[2]):
                if int(match[2]) - int(match[1]) >= MOST:
                    raise self._file.error(key, f"{each!r} is more than {MOST} seeds")
                found += range(int(match[1]), int(match[2]) + 1)
            elif isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 1 << 63:
                found.append(each)
            else:
                raise self._file.error(
                    key, f'{each!r} is neither a seed nor a range such as "0-99"'
                )
        return list(dict.fromkeys(found))

    def definitions(self, matrix: dict[str, Any]) -> list[tuple[str | None, tuple[str, ...]]]:
        """Sets of definitions with their names."""
        if "definitions" not in matrix:
            return [(None, ())]
        key, given = "matrix.definitions", matrix["definitions"]
        found: list[tuple[str | None, tuple[str, ...]]] = []
        if isinstance(given, dict):
            for name, lines in given.items():
                texts = [] if lines == [] else self._file.strings(f"{key}.{name}", lines)
                found.append((name, self._with_files(f"{key}.{name}", texts)))
        else:
            for each in self._file.values(key, given):
                texts = self._file.strings(key, each)
                found.append(("; ".join(texts), self._with_files(key, texts)))
        if not found:
            raise self._file.error(
                key, "an empty table leaves no cells; leave the key out, or fill it"
            )
        return found

    def _with_files(self, key: str, lines: list[str]) -> tuple[str, ...]:
        """Definitions, with the paths of @FILE from the current directory."""
        found = []
        for line in lines:
            if line.startswith("@"):
                path = self.beside(line[1:])
                self.digest(key, path)
                line = f"@{path}"
            found.append(line)
        return tuple(found)

    def exclusions(self) -> list[dict[str, set[Label]]]:
        """Labels of dimensions whose cells are left out, read as those of the matrix are."""
        given = self._file.data.get("exclude", [])
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            raise self._file.error("exclude", "tables are wanted: [[exclude]]")
        known = ("mode", *_DIMENSIONS, *self.others)
        skipped = set(self.skipped)
        found = []
        for number, table in enumerate(given):
            self._file.known("exclude", table, known)
            if not table:
                raise self._file.error("exclude", "an empty one would leave no cells", number)
            found.append({column(key): self._excluded(key, table[key]) for key in table})
        self.skipped = skipped  # a pattern of an exclusion is none of the matrix
        return found

    def _excluded(self, key: str, value: Any) -> set[Label]:
        """The labels that values of an exclusion stand for."""
        table, where = {key: value}, "exclude"
        match key:
            case "guest":
                if "arch" in self._file.table("matrix"):
                    table["arch"] = self._file.table("matrix")["arch"]
                return {guest.path for guest in self.guests(table, where)}
            case "args":
                return set(self.arguments(table, where))
            case "input":
                return set(self.inputs(table, where))
            case "seed":
                return set(self.seeds(table, where))
        joint = "; " if key == "definitions" else ", "
        return {
            joint.join(map(spelled, each)) if isinstance(each, list) else spelled(each)
            for each in (value if isinstance(value, list) else [value])
        }
