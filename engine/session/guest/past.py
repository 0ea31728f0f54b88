"""A guest of the past: a recorded run that is lived through again."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from engine.cpu.ram import Ram
from engine.errors import ImageError
from engine.history.journal import Journal
from engine.history.recording import RunRecorder
from engine.history.replaying import DivergenceError, ReplayKernel
from engine.image import ElfImage
from engine.linux.fs.filesystem import FileSystem
from engine.linux.images import ProgramImages
from engine.linux.kernel import Kernel
from engine.session.guest.loading import Value
from engine.session.guest.session import Session
from engine.session.program.libraries import CACHE, GuestTree, ProgramFile, parse_cache
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig

_OWN: Final = 1 << 30
"""Bytes of the arena for what the machinery of today needs."""


def record(session: Session, budget: int | None = None) -> RunRecorder:
    """Record a session, whose configuration has `history`, from its first instruction on.

    Args:
        session: it.
        budget: bytes that the journal may take; None for any number.
    """
    return RunRecorder(session.machine, session.noted, Journal(), budget)


class RecordedFiles:
    """The files that a recording holds.

    Attributes:
        cache: that of the guest's dynamic loader, b"" for none.
    """

    def __init__(self, files: Iterable[tuple[tuple[str, ...], bytes]]) -> None:
        """Files by all the guest paths that each is known by."""
        self._of: dict[str, tuple[tuple[str, ...], bytes]] = {}
        self._images: dict[tuple[str, ...], ElfImage] = {}
        for paths, data in files:
            self._of.update((path, (paths, data)) for path in paths)
        self.cache = self._of.pop(CACHE, ((), b""))[1]

    def image(self, path: str) -> ElfImage | None:
        """The ELF file of a guest path, None where none is known.

        Raises:
            ImageError: it is no ELF file.
        """
        paths, data = self._of.get(path, ((), b""))
        if paths and paths not in self._images:
            self._images[paths] = ElfImage.from_bytes(data, path)
        return self._images.get(paths)

    def paths(self, path: str) -> frozenset[str]:
        """All the paths that a file is known by."""
        return frozenset(self._of.get(path, ((), b""))[0])


class _RecordedTree(GuestTree):
    """The files of a recording as a guest's tree."""

    def __init__(self, files: RecordedFiles, fs: FileSystem, images: ProgramImages) -> None:
        super().__init__(fs, images)
        self._files = files

    def open(self, path: str) -> ProgramFile | None:
        image = self._files.image(path)
        return None if image is None else ProgramFile(path, image, self._files.paths(path))

    def problem(self, path: str) -> str:
        return "" if self._files.paths(path) else "FILE_NOT_FOUND"

    @cached_property
    def cached_libraries(self) -> Mapping[str, tuple[str, ...]]:
        return parse_cache(self._files.cache)


class PastSession(Session):
    """A recorded run, from its start on."""

    kernel: ReplayKernel

    def __init__(
        self,
        config: GuestConfig,
        journal: Journal,
        arena: int,
        opened: OpenedProgram | None = None,
        files: RecordedFiles | None = None,
    ) -> None:
        """Stand before the first instruction.

        Args:
            config: of the guest.
            journal: what is to happen.
            arena: bytes of the recorded guest's physical memory.
            opened: the program, if it is open already.
            files: the guest's; those of its own tree if None.

        Raises:
            ImageError: the file cannot be run.
        """
        self._journal = journal
        self._arena = arena
        self._files = files
        super().__init__(config, (None, None, None), opened)

    def tree(self) -> GuestTree:
        """The files of the guest's tree that are known."""
        if self._files is None:
            return super().tree()
        return _RecordedTree(self._files, self.fs, self.machine.images)

    def _make_ram(self) -> Ram:
        # What the recorded guest was allowed to touch was seen to then.
        ram = Ram(self._arena + _OWN, budget=self._arena + _OWN)
        ram.allocate_at(0, self._arena)
        return ram

    def _make_kernel(self) -> Kernel:
        return ReplayKernel(
            self.machine, self.turns, self._journal, self._open_guest_image, self._arena
        )

    def _open_guest_image(self, path: str) -> ElfImage | None:
        if self._files is None:
            return super()._open_guest_image(path)
        try:
            return self._files.image(path)
        except ImageError:
            return None

    def _given(self, value: Value) -> Value:
        found = self.kernel.input()
        if not isinstance(found, type(value)):
            raise DivergenceError(f"the recording has {found!r} as an instruction's input")
        return found

    def _load(self) -> None:
        self.kernel.load()
        self.memory.sync()
