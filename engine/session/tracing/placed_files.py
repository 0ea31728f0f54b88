"""The files of a format that has them for itself: written behind, and in places, as a whole."""

import os
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO

from engine.session.guest.outputs import OutputTree
from engine.trace.formats.base import PlacedFormat, Write


class PlacedFiles:
    """The writer of a format's `OutputTree`."""

    def __init__(self, form: PlacedFormat | None, tree: OutputTree) -> None:
        """`form` writes `tree`."""
        assert form is not None, "only such a format has a tree"
        self.batch = form.batch
        self._form = form
        self._tree = tree

    def write(self, data: bytes) -> None:
        """Write bytes of the format's and what it has beside them, or nothing.

        Raises:
            OSError: nothing of it was written.
        """
        main = self._form.main if self._form.is_directory else ""
        writes = [Write(data, main)] if data else []
        writes += self._form.aside()
        sizes = self.sizes()
        try:
            # What may find no room comes before what only takes the place of something.
            for one in sorted(writes, key=lambda each: each.at is not None):
                _put(self._tree.file(one.name), one)
        except BaseException:
            with suppress(OSError):
                self.cut(sizes)
            raise

    def resume(self) -> None:
        """Have the format look at the files, behind its `restore`.

        Raises:
            CommandError: they are not what they were.
        """
        self._form.resume(self._tree.path_of)

    def sizes(self) -> dict[str, int]:
        """Bytes of each file."""
        return {name: os.fstat(file.fileno()).st_size for name, file in self._tree.files.items()}

    def cut(self, sizes: Mapping[str, int]) -> None:
        """Take back what is behind some sizes; a file that has none is emptied.

        Raises:
            OSError: a file cannot be cut.
        """
        for name in sizes:
            self._tree.file(name)
        for name, file in self._tree.files.items():
            os.ftruncate(file.fileno(), sizes.get(name, 0))


def _put(file: FileIO, one: Write) -> None:
    at = os.fstat(file.fileno()).st_size if one.at is None else one.at
    rest = memoryview(one.data)
    while rest:
        done = os.pwrite(file.fileno(), rest, at)
        rest, at = rest[done:], at + done
