"""A program looked at without running it: what `check` and `disasm` need of a session."""

import os
from dataclasses import dataclass

from engine import arch as architectures
from engine.arch.base import Arch
from engine.errors import CommandError, ImageError
from engine.image import ElfImage
from engine.linux.clock import GuestClock
from engine.linux.fs.filesystem import FileSystem
from engine.linux.fs.view import View
from engine.linux.procview import ProcView
from engine.session.program.libraries import GuestTree, Program, ProgramFile
from engine.session.program.paths import ProgramPaths, locate
from engine.session.protocol.config import GuestConfig


@dataclass(frozen=True, slots=True)
class Inspection:
    """A program, its libraries and its architecture.

    Attributes:
        arch: its architecture.
        program: its files.
    """

    arch: Arch
    program: Program

    @classmethod
    def open(cls, config: GuestConfig) -> "Inspection":
        """Open the guest of a configuration; nothing of it runs.

        Raises:
            ImageError: it is no ELF file, or for a machine that is not supported.
            CommandError: an option cannot be carried out.
        """
        paths = locate(config.guest, config.root)
        image = ElfImage.open(paths.host)
        arch = architectures.for_elf(image.machine, image.bits, image.byteorder)
        if arch is None:
            known = ", ".join(architectures.names())
            raise ImageError(
                f"{config.guest}: machine {image.machine_name} ({image.bits} bits, "
                f"{image.byteorder}-endian) is not supported; supported are {known}"
            )
        return cls(arch, program_of(config, paths, image, arch, _tree(config)))


def program_of(
    config: GuestConfig, paths: ProgramPaths, image: ElfImage, arch: Arch, tree: GuestTree
) -> Program:
    """The files of a guest whose own file is open.

    Args:
        config: how the guest is started: environment and working directory.
        paths: the names of its own file.
        image: that file.
        arch: its architecture.
        tree: where its libraries are.
    """
    # A path in a definition may name the guest as it was typed on the command line.
    known = frozenset((paths.guest, paths.real, paths.typed, paths.host, config.guest))
    environment = dict(entry.partition("=")[::2] for entry in config.env)
    return Program(
        ProgramFile(paths.guest, image, known),
        arch,
        tree.open,
        environment=environment,
        cwd=config.cwd or ("/" if config.isolated else os.getcwd()),
        cache=lambda: tree.cached_libraries,
        problem=tree.problem,
    )


def _tree(config: GuestConfig) -> GuestTree:
    if config.root is not None and not os.path.isdir(config.root):
        raise CommandError(f"--root {config.root}: not a directory")
    for path, _ in config.shares:
        if not os.path.exists(path):
            raise CommandError(f"--share {path}: no such file or directory")
    view = View.make(
        config.guest,
        cwd=None if config.isolated else os.getcwd(),
        root=config.root,
        shares=config.shares,
    )
    clock = GuestClock()
    return GuestTree(FileSystem(view, ProcView(), clock=clock, random_bytes=os.urandom))
