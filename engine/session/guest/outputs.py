"""Files of the host's that a run writes: looked at when it is set up, touched when it begins.

A command line can be refused until the first instruction: for a definition, a filter, a file of
handlers, or another file that cannot be written. Up to there nothing that the user has is lost.
"""

import errno
import os
import re
import stat
from collections.abc import Callable
from io import FileIO
from typing import Final

from engine.errors import CommandError

_NUMBERS: Final = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR: Final = re.compile(r"/dev/std(?:out|err)|/(?:dev|proc/self)/fd/(\d{1,9})", re.ASCII)


class OutputFile:
    """A file that a run writes.

    Attributes:
        name: option and path, for messages.
        is_own: a file of nobody else's: it is emptied, and what was written can be taken back.
            Not so a pipe, a device, or a descriptor that others have, too.
    """

    def __init__(self, option: str, path: str) -> None:
        """Look at it; nothing is created or changed.

        Args:
            option: that names it.
            path: of the file.

        Raises:
            CommandError: it cannot be written.
        """
        self.name = f"{option} {path}"
        self._path = path
        self._file: FileIO | None = None
        given = _DESCRIPTOR.fullmatch(path)
        try:
            if given is not None:  # opened anew it would have a position of its own
                self._opened(os.dup(_NUMBERS.get(path) or int(given[1] or 0)))
                self.is_own = False
                return
            try:
                mode = self._opened(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
            except FileNotFoundError:
                _check_creatable(path)
                mode = stat.S_IFREG
            self.is_own = stat.S_ISREG(mode)
        except OSError as error:
            raise self._refused(error) from error

    def is_same(self, path: str) -> bool:
        """True if another path, which may be none, leads to the same file, and it is `is_own`."""
        if not self.is_own:
            return False
        try:
            return os.path.samefile(self._path, path)
        except OSError:
            return os.path.realpath(self._path) == os.path.realpath(path)

    @property
    def path(self) -> str:
        """The path as it was given."""
        return self._path

    def create(self) -> None:
        """Have it, with what it holds.

        Raises:
            CommandError: it cannot be created.
        """
        if self._file is not None:
            return
        try:
            self._opened(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
        except OSError as error:
            raise self._refused(error) from error

    def begin(self) -> FileIO:
        """The file, unbuffered and empty if it `is_own`; still closed by `close`.

        Raises:
            CommandError: it cannot be created or emptied.
        """
        self.create()
        assert self._file is not None
        if self.is_own:
            try:
                self._file.truncate(0)
            except OSError as error:
                raise self._refused(error) from error
        return self._file

    def close(self) -> None:
        """Close it; one that was never created stays so."""
        if self._file is not None:
            self._file.close()

    def _opened(self, descriptor: int) -> int:
        """Keep an open file; its mode."""
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        return os.fstat(descriptor).st_mode

    def _refused(self, error: OSError) -> CommandError:
        return CommandError(f"{self.name}: {error.strerror}")


class OutputTree:
    """A file, or a directory of files, that a format has for itself.

    Attributes:
        name: option and path, for messages.
        is_own: always, as it is written in any order.
    """

    is_own: Final = True

    def __init__(
        self,
        option: str,
        path: str,
        is_directory: Callable[[], bool],
        owns: Callable[[str], bool],
    ) -> None:
        """Look at it; nothing is created or changed.

        Args:
            option: that names it.
            path: of it.
            is_directory: whether it is to be one; asked when the run begins.
            owns: whether a name in the directory is one that the format writes.

        Raises:
            CommandError: it cannot be written, or is neither of both.
        """
        self.name = f"{option} {path}"
        self._path = path
        self._is_directory = is_directory
        self._owns = owns
        self._files: dict[str, FileIO] = {}
        self._made = False
        if not os.path.isdir(path):
            file = OutputFile(option, path.rstrip("/"))
            file.close()
            if not file.is_own:
                raise CommandError(f"{self.name}: this format needs a file of its own")
            return
        try:
            self._strangers()
            if not os.access(path, os.W_OK | os.X_OK, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise CommandError(f"{self.name}: {error.strerror}") from error

    @property
    def path(self) -> str:
        """The path as it was given, without slashes behind it."""
        return self._path.rstrip("/") or self._path

    def is_same(self, path: str) -> bool:
        """True if another path, which may be none, leads to the same."""
        return os.path.realpath(self._path) == os.path.realpath(path)

    def create(self) -> None:
        """Have it, with what it holds.

        Raises:
            CommandError: it cannot be created.
        """
        if self._made:
            return
        directory = self._is_directory()
        try:
            if directory:
                os.makedirs(self._path, exist_ok=True)
            elif os.path.isdir(self._path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            else:
                self.file("")
        except OSError as error:
            raise CommandError(f"{self.name}: {error.strerror}") from error
        self._made = True

    def begin(self) -> None:
        """Make it empty; `create` comes first.

        Raises:
            CommandError: it cannot be emptied.
        """
        self.create()
        try:
            if self._is_directory():
                self._strangers()
                for name in os.listdir(self._path):
                    os.unlink(os.path.join(self._path, name))
            else:
                self.file("").truncate(0)
        except OSError as error:
            raise CommandError(f"{self.name}: {error.strerror}") from error

    def file(self, name: str) -> FileIO:
        """The file of a name in the directory, "" for the file itself; opened once.

        Raises:
            OSError: it cannot be created.
        """
        found = self._files.get(name)
        if found is None:
            where = self.path_of(name)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW * bool(name)
            found = self._files[name] = os.fdopen(os.open(where, flags, 0o666), "r+b", buffering=0)
            found.seek(0, os.SEEK_END)
        return found

    def path_of(self, name: str) -> str:
        """The path of the file of a name."""
        return os.path.join(self._path, name) if name else self._path

    @property
    def files(self) -> dict[str, FileIO]:
        """The open files, by name."""
        return self._files

    def close(self) -> None:
        """Close all."""
        for file in self._files.values():
            file.close()

    def _strangers(self) -> None:
        """Refuse a directory with files that no trace has written; CommandError."""
        others = [name for name in sorted(os.listdir(self._path)) if not self._owns(name)]
        if others:
            raise CommandError(f"{self.name}: the directory has other files: {others[0]}")


class OutputFiles:
    """All files that one run writes."""

    def __init__(self, *inputs: str) -> None:
        """`inputs` are paths of files that the run reads as it goes."""
        self._inputs = inputs
        self._files: list[OutputFile | OutputTree] = []

    def add(self, option: str, path: str) -> OutputFile:
        """One more of them, untouched; see `OutputFile`.

        Raises:
            CommandError: it cannot be written, or another one, or what is read, is the same file.
        """
        file = OutputFile(option, path)
        self._take(file, path)
        return file

    def add_tree(
        self,
        option: str,
        path: str,
        is_directory: Callable[[], bool],
        owns: Callable[[str], bool],
    ) -> OutputTree:
        """The same for what a format has for itself; see `OutputTree`."""
        tree = OutputTree(option, path, is_directory, owns)
        self._take(tree, path)
        return tree

    def _take(self, file: OutputFile | OutputTree, path: str) -> None:
        same = [f"the run reads it, as {each}" for each in self._inputs if file.is_same(each)]
        same += [f"{each.name} writes it, too" for each in self._files if each.is_same(path)]
        if same:
            file.close()
            raise CommandError(f"{file.name}: {same[0]}")
        self._files.append(file)

    def close(self) -> None:
        """Close all of them."""
        for file in self._files:
            file.close()

    def create(self) -> None:
        """The run begins: have all of them, before the first one is emptied.

        Raises:
            CommandError: one of them cannot be created.
        """
        for file in self._files:
            file.create()


def _check_creatable(path: str) -> None:
    """Look at the directory that a new file comes into.

    Raises:
        OSError: there is none, or nothing can be created there.
    """
    real = os.path.realpath(path)
    folder = os.path.dirname(real)
    os.stat(os.path.join(folder, "."))
    if path.endswith("/"):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
