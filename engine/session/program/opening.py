"""A program opened: its own file found, read and matched with an architecture; nothing runs.

A guest that runs and a browser beside it may share what was opened here, each in a thread of its
own: images of the program and of its libraries are only read, and their symbols and source lines
are indexed once. Variables are everybody's own.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from engine import arch as architectures
from engine.arch.base import Arch
from engine.errors import CommandError, ImageError, KprobeTuiError
from engine.image import ElfImage
from engine.image.elf import disk_state
from engine.linux import vdso
from engine.linux.clock import GuestClock
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.view import View
from engine.linux.images import ProgramImages
from engine.linux.procview import ProcView
from engine.session.program.libraries import (
    CarriedFiles,
    GuestTree,
    Program,
    ProgramFile,
    ProgramTree,
)
from engine.session.protocol.config import USUAL_CPU, GuestConfig
from engine.session.protocol.kernels import KernelChoice
from engine.session.protocol.report import Report

if TYPE_CHECKING:
    from engine.session.kernel.opened import OpenedKernel
    from engine.session.program.implementations import ResolverCalls
    from engine.session.program.initramfs import InitramfsFiles

_MAX_LINKS: Final = 40
_KERNEL_BIT: Final = 63
_SHOWN: Final = 10
_KEPT: Final = 8
"""Programs whose files stay open."""
_OWN: Final = ("/proc", "/sys")
_INITRAMFS: Final = "initrd="
"""Begins the word that names a kernel its initramfs."""


class ProgramPaths(Struct, frozen=True):
    """One program by its three names.

    Attributes:
        host: the file to open on the host; symlinks inside a root stay inside it.
        guest: the absolute path the guest knows it by.
        real: the same with symlinks resolved (/proc/self/exe).
        typed: the guest path as the user wrote it, relative perhaps (AT_EXECFN and argv[0]).
    """

    host: str
    guest: str
    real: str
    typed: str


class OpenedProgram(Struct, frozen=True, eq=False):
    """The guest's own file.

    Attributes:
        config: how the guest is to be started.
        paths: the names of the file.
        image: the file as an ELF image.
        arch: its architecture.
        kernel: it as a kernel image; None for a program.
        images: the ELF files that were read for it.
    """

    config: GuestConfig
    paths: ProgramPaths
    image: ElfImage
    arch: Arch
    kernel: "OpenedKernel | None" = None
    images: ProgramImages = field(default_factory=ProgramImages)

    @classmethod
    def open(cls, config: GuestConfig, files: "OpenedFiles | None" = None) -> "OpenedProgram":
        """Open the guest of a configuration.

        Args:
            config: how the guest is to be started.
            files: those that were opened before; none if not given.

        Raises:
            ImageError: it is no ELF file, or for a machine that is not supported.
            CommandError: the recording that it is in cannot be read.
        """
        if config.recording is not None:
            from engine.session.program.recorded import recorded_guest  # few guests are

            return recorded_guest(config)
        paths = locate(config.guest, config.root)
        if config.boot is not None and config.boots_again:
            return cls._of_boot(config, paths)
        root = os.path.abspath(config.root) if config.root is not None else ""
        kernel, images = None, ProgramImages()
        try:
            if files is None:
                image = ElfImage.open(paths.host, root=root)
            else:
                image, images = files.opened(paths.host, root)
        except ImageError:
            kernel = _kernel(paths.host, config.kernel)
            if kernel is None:
                raise
        else:
            if image.high >> _KERNEL_BIT or config.called:
                kernel = _kernel(paths.host, config.kernel)
        if kernel is not None:
            return cls(config, paths, kernel.live_image, kernel.guest_arch, kernel)
        arch = architectures.for_elf(image.machine, image.bits, image.byteorder)
        if arch is None:
            known = ", ".join(architectures.names())
            raise ImageError(
                f"{config.guest}: machine {image.machine_name} ({image.bits} bits, "
                f"{image.byteorder}-endian) is not supported; supported are {known}"
            )
        return cls(config, paths, image, _of_cpu(arch, config), images=images)

    @classmethod
    def _of_boot(cls, config: GuestConfig, paths: ProgramPaths) -> "OpenedProgram":
        """Open the kernel of a recorded boot."""
        from engine.history.bootrecord import read_boot  # few guests are one
        from engine.session.kernel.opened import OpenedKernel

        kernel = OpenedKernel(read_boot(paths.host).image(paths.host), config.kernel)
        return cls(config, paths, kernel.live_image, kernel.guest_arch, kernel)

    def damage(self) -> tuple[Report, ...]:
        """The remark about what is damaged in its files and was not told yet, if there is any."""
        lines = self.image.damage.untold()
        if not lines:
            return ()
        more = len(lines) - _SHOWN
        tail = (f"and {more} more",) if more > 0 else ()
        return (Report(("damaged, and left out:", *lines[:_SHOWN], *tail)),)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Give an error the damage that it may come of.

        Raises:
            KprobeTuiError: those that come.
        """
        try:
            yield
        except KprobeTuiError as error:
            for remark in self.damage():
                error.before = remark.lines
            raise

    @property
    def directory(self) -> str:
        """Guest path of the directory that it begins in."""
        config = self.config
        return config.cwd or ("/" if config.isolated else os.getcwd())

    def initramfs(self) -> "InitramfsFiles | None":
        """The files that it gives its programs, where it is a kernel that runs as a program.

        They are read beside the guest, whose files have numbers in the order of their use.
        """
        if self.kernel is not None or not any(
            word.startswith(_INITRAMFS) for word in self.config.args
        ):
            return None
        from engine.image.kernel.recognition import is_kernel  # few guests are kernels

        if not is_kernel(self.image):
            return None
        from engine.session.program.initramfs import initramfs_of

        return initramfs_of(self.config.args, self.inspected_tree(), self.directory)

    def program(self, tree: ProgramTree, carried: CarriedFiles | None = None) -> Program:
        """The file with its libraries, which are found in a tree.

        Args:
            tree: that; the guest's, as a rule.
            carried: the files of its own programs, where those are known already.
        """
        config, paths = self.config, self.paths
        # A path in a definition may name the guest as it was typed on the command line.
        known = frozenset((paths.guest, paths.real, paths.typed, paths.host, config.guest))
        return Program(
            ProgramFile(paths.guest, self.image, known, tree.inode(paths.guest)),
            self.arch,
            tree.open,
            environment=dict(entry.partition("=")[::2] for entry in config.env),
            cwd=self.directory,
            cache=lambda: tree.cached_libraries,
            problem=tree.problem,
            carried=carried or self.initramfs(),
            vdso=self._vdso(),
            entries=tree.entries,
        )

    def choice(self, program: Program) -> "ResolverCalls | None":
        """Who calls the resolvers of the program's indirect functions; None: a guest does.

        Args:
            program: the files.
        """
        return None

    def _vdso(self) -> ProgramFile | None:
        """The vDSO that the guest's kernel gives programs of the architecture."""
        abi = self.arch.linux.vdso if self.kernel is None else None
        if abi is None:
            return None
        return ProgramFile(vdso.NAME, vdso.image_of(abi), frozenset((vdso.NAME,)))

    def inspected(self) -> Program:
        """The same without a guest.

        Raises:
            CommandError: an option cannot be carried out.
        """
        return self.program(self.inspected_tree())

    def inspected_tree(self) -> GuestTree:
        """The files that the guest would see, without a guest.

        Raises:
            CommandError: an option cannot be carried out.
        """
        return GuestTree(*self.bare())

    def bare(self) -> tuple[FileSystem, ProgramImages]:
        """The parts of a tree of files where no guest runs.

        Raises:
            CommandError: an option cannot be carried out.
        """
        clock = GuestClock(start=self.config.start)
        fs = FileSystem(view_of(self.config), ProcView(), clock=clock, random_bytes=os.urandom)
        self.images.damage = self.image.damage
        return fs, self.images


class OpenedFiles:
    """The files of programs that were opened last, for those who open the same ones again.

    Symbols, source lines and debug information hang on a file's image, and with them the choice
    of its separate debug files. A file that has changed on disk is read again, and so is one in
    which damage was found: a report tells damage where it is found.
    """

    def __init__(self) -> None:
        """None is open yet."""
        self._kept: OrderedDict[tuple[str, str, str], tuple[ElfImage, ProgramImages]]
        self._kept = OrderedDict()

    def opened(self, path: str, root: str) -> tuple[ElfImage, ProgramImages]:
        """The image of a program's own file, and those of its libraries.

        Args:
            path: of the file on the host.
            root: the host's directory that is "/" to it; "" for the host's own.

        Raises:
            ImageError: it cannot be read, or is no ELF file that can be loaded.
        """
        key = os.path.abspath(path), path, root
        found = self._kept.pop(key, None)
        if found is None or not _is_current(found[0]):
            found = ElfImage.open(path, root=root), ProgramImages()
        self._kept[key] = found
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


def _is_current(image: ElfImage) -> bool:
    """True for the image of a whole file that is on disk as it was read."""
    if not image.state or image.damage.found():
        return False
    try:
        return image.state == disk_state(os.stat(image.path or ""))
    except OSError:
        return False


def _of_cpu(arch: Arch, config: GuestConfig) -> Arch:
    """The record of the processor that a configuration asks for.

    Raises:
        CommandError: there is none, or this machine cannot lend what it has.
    """
    wanted = config.guest_cpu
    if wanted == USUAL_CPU:
        return arch
    if wanted not in arch.models:
        raise CommandError(f"--guest-cpu {wanted}: {arch.name} has the usual processor only")
    require_lender(architectures.of_model(arch, wanted), f"--guest-cpu {wanted}")
    return architectures.of_model(arch, wanted)


def require_lender(arch: Arch, what: str) -> None:
    """See that this machine lends the vectors that a later processor has.

    Raises:
        CommandError: it does not, and the program would be told of what it cannot have.
    """
    if not arch.model:
        return
    from engine.cpu import native  # few guests have another processor than the usual one

    if not native.lends():
        raise CommandError(
            f"{what}: this machine lends no AVX2, FMA, BMI and F16C; "
            "it has none, or KPROBE_TUI_PORTABLE is set"
        )


def _kernel(path: str, choice: KernelChoice) -> "OpenedKernel | None":
    """A file as a kernel image; None where it is none.

    Raises:
        ImageError: it is one that is damaged.
        CommandError: a choice is none.
    """
    from engine.image.kernel.recognition import is_kernel_image  # few guests are kernels

    if not is_kernel_image(path):
        return None
    from engine.session.kernel.opened import OpenedKernel

    return OpenedKernel.open(path, choice)


def view_of(config: GuestConfig) -> View:
    """The part of the host's file system that the guest sees.

    Raises:
        CommandError: a path of an option is not there.
    """
    if config.root is not None and not os.path.isdir(config.root):
        raise CommandError(f"--root {config.root}: not a directory")
    for path, _ in config.shares:
        if not os.path.exists(path):
            raise CommandError(f"--share {path}: no such file or directory")
        place = os.path.abspath(path)
        own = next((top for top in _OWN if place == top or place.startswith(f"{top}/")), "")
        if own or place == "/dev":
            raise CommandError(f"--share {path}: the guest's {own or place} is the engine's own")
    return View.make(
        config.guest,
        cwd=None if config.isolated else os.getcwd(),
        root=config.root,
        shares=config.shares,
        programs=not config.isolated,
        host_order=config.host_order,
        home=next((each[5:] for each in reversed(config.env) if each.startswith("HOME=")), None),
    )


def locate(guest: str, root: str | None) -> ProgramPaths:
    """Find a program given by a host path, in or outside the guest's root.

    Raises:
        ImageError: symlinks inside the root go round in circles.
    """
    path = os.path.abspath(guest)
    if root is not None:
        base = os.path.abspath(root).rstrip("/")
        if path.startswith(base + "/"):
            inside = path[len(base) :]
            real = resolve_inside(base, inside)
            return ProgramPaths(base + real, inside, real, inside if base else guest)
    return ProgramPaths(guest, path, os.path.realpath(path), guest)


def resolve_inside(root: str, path: str) -> str:
    """Follow symlinks as a process whose root directory is `root` would.

    Raises:
        ImageError: they go round in circles.
    """
    todo = path.split("/")[::-1]
    done: list[str] = []
    links = 0
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if done:
                done.pop()
            continue
        here = "/".join((root, *done, name))
        if not os.path.islink(here):
            done.append(name)
            continue
        links += 1
        if links > _MAX_LINKS:
            raise ImageError(f"{root}{path}: too many symbolic links")
        target = os.readlink(here)
        if target.startswith("/"):
            done = []
        todo.extend(target.split("/")[::-1])
    return "/" + "/".join(done)
