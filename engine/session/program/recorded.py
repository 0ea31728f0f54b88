"""Programs that are in recordings of their runs: the file of one is all that is needed."""

from collections import ChainMap
from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec.structs import asdict, replace

from engine import arch as architectures
from engine.history import recordfile
from engine.history.hostfiles import RecordedHost
from engine.history.inputs import HostInputs
from engine.history.journal import Journal, digest_of
from engine.history.recordbounds import RecordingError
from engine.history.recordedstreams import StreamShape
from engine.history.recordfile import ReadRecording, RecordedProgram
from engine.image import ElfImage
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.view import View
from engine.linux.images import ProgramImages
from engine.linux.schedule import Choice, Schedule, Why
from engine.linux.turns import Recorded, TurnKind, turns_of
from engine.session.program.libraries import CACHE, GuestTree, ProgramFile, parse_cache
from engine.session.program.opening import OpenedProgram, ProgramPaths, require_lender
from engine.session.protocol.config import GuestConfig


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

    def add(self, path: str, image: ElfImage) -> None:
        """Add a file that a branch of the recorded run has come to."""
        paths = (path,)
        self._of[path] = paths, b""
        self._images[paths] = image

    def entries(self, folder: str) -> list[str]:
        """The names in a folder: of files that are known, and of folders on the way to them."""
        front = f"{folder.rstrip('/')}/"
        below = (path[len(front) :] for path in self._of if path.startswith(front))
        return sorted({rest.partition("/")[0] for rest in below})

    def paths(self, path: str) -> frozenset[str]:
        """All the paths that a file is known by."""
        return frozenset(self._of.get(path, ((), b""))[0])


class RecordedTree(GuestTree):
    """The files of a recording as a guest's tree."""

    def __init__(self, files: RecordedFiles, fs: FileSystem, images: ProgramImages) -> None:
        super().__init__(fs, images)
        self._files = files

    def inode(self, path: str) -> None:
        """None: files are known by their paths."""

    def open(self, path: str) -> ProgramFile | None:
        """The ELF file of a path, None where the recording has none."""
        image = self._files.image(path)
        return None if image is None else ProgramFile(path, image, self._files.paths(path))

    def content(self, path: str) -> bytes | None:
        """None: a recording has no files but programs and libraries."""
        return None

    def problem(self, path: str) -> str:
        """The word for why a path cannot be opened, "" where it can be."""
        return "" if self._files.paths(path) else "FILE_NOT_FOUND"

    def entries(self, path: str) -> list[str]:
        """The names in a folder of the files that the recording has, and of their folders."""
        return self._files.entries(path)

    @cached_property
    def cached_libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Libraries of the loader's cache by their names."""
        return parse_cache(self._files.cache)


class RecordedOutside:
    """All that came to a recorded guest from its host, for a live one that is to be brought on.

    Attributes:
        inputs: what came beside files.
        streams: its standard streams.
    """

    def __init__(self, recorded: ReadRecording) -> None:
        """Take it from a recording."""
        self.inputs: HostInputs = recorded.inputs
        self.streams: tuple[StreamShape | None, ...] = recorded.streams or ()
        self._program: RecordedProgram = recorded.program
        self._facts = recorded.facts
        self._files = recorded.files
        self._contents = recorded.journal.contents

    @cached_property
    def contents(self) -> Mapping[bytes, bytes]:
        """Bytes of files by digest."""
        return ChainMap(self._contents, {digest_of(data): data for _, data in self._files})

    def host(self) -> RecordedHost:
        """The host, as a guest that begins sees it.

        Raises:
            RecordingError: the recording makes no sense.
        """
        try:
            return RecordedHost(self._facts, self.contents)
        except (TypeError, ValueError) as error:
            raise RecordingError(f"the recording makes no sense: {error}") from error

    def view(self) -> View:
        """The part of it that the guest sees; what it changes stays in memory."""
        return View(**asdict(self._program.options.view), copied=True)

    def config(self, config: GuestConfig) -> GuestConfig:
        """The configuration of a live guest.

        Args:
            config: of one that is lived through again.

        Raises:
            RecordingError: the recording makes no sense.
        """
        options = self._program.options
        return replace(
            config,
            argv0=options.argv0,
            cwd=self._program.cwd,
            random_seed=options.random_seed,
            turns=self._turns(),
            max_blocks=options.max_blocks,
            memory=options.memory,
            history=True,
            count_blocks=True,
            recording=None,
        )

    def _turns(self) -> TurnKind:
        options = self._program.options
        if options.turns:
            found = turns_of(options.turns)
            if found is None:
                raise RecordingError(f"turns {options.turns!r} of the recorded threads: unknown")
            return found
        try:
            choices = (Choice(tick, thread, Why(why)) for tick, thread, why in options.schedule)
            return Recorded(Schedule(tuple(choices), options.schedule_name))
        except ValueError as error:
            raise RecordingError(f"the recorded schedule: {error}") from error

    @property
    def has_cwd(self) -> bool:
        """True if the working directory was asked for."""
        return self._program.options.cwd

    @property
    def clock(self) -> str:
        """The clock whose time it saw."""
        return self._program.clock


class RecordedGuest(OpenedProgram, frozen=True, eq=False, kw_only=True):
    """The program of a recording.

    Attributes:
        files: those of the guest that the recording holds.
        journal: what has happened.
        reached: the tick that the recording goes up to if it was cut off.
        arena: bytes of the recorded guest's physical memory.
        damage_text: why the recording is not whole, "" if it is.
        outside: what came to the guest from its host.
    """

    files: RecordedFiles
    journal: Journal
    reached: int
    arena: int
    damage_text: str = ""
    outside: RecordedOutside

    def inspected_tree(self) -> GuestTree:
        """The files of the guest, as far as the recording holds them."""
        fs, images = self.bare()
        return RecordedTree(self.files, fs, images)


class OpenedRecording:
    """A recording that was opened.

    Attributes:
        program: the guest.
        damage: why the recording is not whole, "" if it is.
    """

    def __init__(self, path: str) -> None:
        """Read it.

        Raises:
            CommandError: the file cannot be read.
            RecordingError: it is no recording, or one that cannot be used.
        """
        self._name = path
        self._recorded = recordfile.read_file(path)
        self._files = RecordedFiles(self._recorded.files)
        self.program = self._recorded.program
        self.damage = self._recorded.damage
        try:
            self._arch = architectures.by_name(self.program.arch)
        except KeyError:
            raise RecordingError(
                f"{path}: of architecture {self.program.arch!r}, unknown here"
            ) from None

    def config(
        self,
        technique: str,
        returns: str,
        *,
        follow: bool,
        root: str | None = None,
        shares: tuple[tuple[str, bool], ...] = (),
    ) -> GuestConfig:
        """The configuration of a run of it.

        Args:
            technique: of probes.
            returns: how returns are caught.
            follow: probes are in new processes and programs, too.
            root: what branches see of this host beside the recording: see `GuestConfig`.
            shares: likewise.
        """
        program = self.program
        return GuestConfig(
            guest=program.guest,
            args=program.args,
            root=root,
            shares=shares,
            isolated=True,
            env=program.env,
            cwd=program.cwd,
            seed=program.seed,
            cpus=program.cpus,
            start=program.start,
            technique=technique,
            returns=returns,
            follow=follow,
        )

    def opened(self, config: GuestConfig) -> RecordedGuest:
        """The program.

        Raises:
            RecordingError: the recording makes no sense.
            ImageError: the program's file in it is none.
        """
        program = self.program
        image = self._files.image(program.path)
        if image is None:
            raise RecordingError(f"{self._name}: the program is not in it")
        found = architectures.for_elf(image.machine, image.bits, image.byteorder)
        if found is None or found.name != self._arch.name:
            raise RecordingError(f"{self._name}: the program is not for {program.arch}")
        require_lender(self._arch, f"{self._name}: recorded with --guest-cpu {self._arch.model}")
        recorded = self._recorded
        return RecordedGuest(
            config,
            ProgramPaths(program.guest, program.path, program.real, program.typed),
            image,
            self._arch,
            files=self._files,
            journal=recorded.journal,
            reached=recorded.reached,
            arena=program.arena,
            damage_text=self.damage,
            outside=RecordedOutside(recorded),
        )


def recorded_guest(config: GuestConfig) -> RecordedGuest:
    """The program of the recording that a configuration names.

    Raises:
        CommandError: the file cannot be read.
        RecordingError: it is no recording, or one that cannot be used.
    """
    assert config.recording is not None, "a recording is to be opened"
    recording = OpenedRecording(config.recording)
    return recording.opened(
        recording.config(
            *(config.technique, config.returns),
            follow=config.follow,
            root=config.root,
            shares=config.shares,
        )
    )
