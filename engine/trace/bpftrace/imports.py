"""Files that scripts import: other scripts, and headers with types (docs/language.md, "Imports").

Their texts go behind the script's own, and a place in them is an offset there: nobody else has
to know that a script has several files.
"""

import os
import stat
from pathlib import Path
from typing import Final

from engine.trace.bpftrace.parser import imports_of, is_library
from engine.trace.bpftrace.text import (
    MAX_SCRIPT,
    ImportedText,
    ScriptRemark,
    ScriptText,
    Span,
    WrongScriptError,
)
from engine.trace.bpftrace.tree import StringLiteral

MAX_FILES: Final = 64
"""Files that a script imports, directly or not."""
_READ: Final = (".bt", ".h")
_COMPILED: Final = (".bpf.c", ".bpf.o")


def with_imports(script: ScriptText, folder: Path) -> ScriptText:
    """A script with the texts of all files that it imports.

    Args:
        script: the script.
        folder: where its file is; imports are relative to it.

    Raises:
        WrongScriptError: a file cannot be read, or is none that can be imported.
    """
    files = ImportedFiles(script)
    if "import" in script.text:
        files.take(Span(0, len(script.text)), folder)
    return files.script


class ImportedFiles:
    """The files that were found so far.

    Attributes:
        script: with their texts.
    """

    def __init__(self, script: ScriptText) -> None:
        self.script = ScriptText(script.name, script.text, ())
        self._taken: set[Path] = set()

    def take(self, part: Span, folder: Path) -> None:
        """Take in what a part of the script imports, and what that does."""
        for one in imports_of(self.script, part):
            name = os.fsdecode(one.value)
            if not is_library(name):
                self._path(one, name, folder / name)

    def _failure(self, at: StringLiteral, text: str) -> WrongScriptError:
        return WrongScriptError(ScriptRemark("ERROR", text, at.span, self.script))

    def _path(self, at: StringLiteral, name: str, path: Path) -> None:
        """Take in a file, or all files of a folder that can be imported."""
        try:
            self._check_writers(at, path)
            if not path.is_dir():
                self._file(at, name, path)
                return
            for inner in sorted(path.iterdir()):
                if inner.name.endswith(_READ) and inner.is_file():
                    self._check_writers(at, inner)
                    self._file(at, f"{name}/{inner.name}", inner)
        except OSError as error:
            reason = error.strerror or str(error)
            raise self._failure(at, f"error reading import '{name}': {reason}") from error

    def _check_writers(self, at: StringLiteral, path: Path) -> None:
        """Refuse what everybody could have written, as bpftrace does."""
        for one in (path, path.parent):
            if one.stat().st_mode & stat.S_IWOTH:
                raise self._failure(
                    at,
                    "cowardly refusing to import from a directory with global write permissions:"
                    f' "{path}"',
                )

    def _file(self, at: StringLiteral, name: str, path: Path) -> None:
        if name.endswith(_COMPILED):
            raise self._failure(
                at, f"'{name}' is a program of BPF, which does not run here: write a macro instead"
            )
        if not name.endswith(_READ):
            raise self._failure(at, f'unknown import type: "{path.name}"')
        whole = path.resolve()
        if whole in self._taken:
            return
        self._taken.add(whole)
        if len(self._taken) > MAX_FILES:
            raise self._failure(at, f"more than {MAX_FILES} files are imported")
        text = self._text(at, name, path)
        start = len(self.script.text) + 1
        part = Span(start, start + len(text))
        self.script = ScriptText(
            self.script.name,
            f"{self.script.text}\n{text}",
            (*(self.script.imported or ()), ImportedText(name, part.start, part.end)),
        )
        if name.endswith(".bt"):
            self.take(part, path.parent)

    def _text(self, at: StringLiteral, name: str, path: Path) -> str:
        if not path.is_file():
            raise self._failure(at, f"error reading import '{name}': not a file")
        with path.open("rb") as file:
            data = file.read(MAX_SCRIPT + 1)
        if len(data) + len(self.script.text) > MAX_SCRIPT:
            raise self._failure(at, f"a script and its imports of more than {MAX_SCRIPT} bytes")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._failure(at, f"'{name}' is not UTF-8 at byte {error.start}") from error
