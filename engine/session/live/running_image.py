"""The images of the kernel that runs here, told from those of others.

Places are checked against an image before the kernel is asked: that of another kernel has its
functions and instructions elsewhere, and the same name may be another function.
"""

import os
from pathlib import Path
from typing import Final

from engine.errors import CommandError
from engine.image import headers
from engine.session.kernel.opened import OpenedKernel

_NOTES: Final = Path("/sys/kernel/notes")


def check_running(opened: OpenedKernel, notes: Path = _NOTES) -> None:
    """Refuse an image of another kernel than the one that runs, by their build-ids.

    Args:
        opened: the image; of a module, its kernel's counts.
        notes: where the running kernel has its own.

    Raises:
        CommandError: it is one.
    """
    base = opened.base
    image = (opened if base is None else base).image
    ours = None if image.is_module else image.elf.build_id
    theirs = _build_id(notes, image.elf.layout.order)
    if None not in (ours, theirs) and ours != theirs:
        raise CommandError(
            f"{image.elf.name} is not the kernel that runs: its build-id is {ours}, and the"
            f" running {os.uname().release} is {theirs}"
        )


def _build_id(path: Path, order: str) -> str | None:
    """The build-id in a file of notes; None if there is none."""
    try:
        return headers.gnu_build_id(path.read_bytes(), order)
    except OSError:
        return None
