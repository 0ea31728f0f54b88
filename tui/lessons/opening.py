"""The guest of a lesson: a shipped sample, or a kernel image of the learner's."""

import os
from glob import glob
from typing import Final

from engine.errors import CommandError
from engine.session import GuestConfig
from engine.session.protocol.config import PLAIN, recorded_turns
from tui.lessons import FOLDER, Lesson
from tui.samples import find_sample

IMAGES: Final = ("/boot/vmlinuz-*", "/lib/modules/*/vmlinuz", "boot/vmlinuz")
"""Places of kernel images: those of distributions, and of `samples/boot.sh` in this directory."""


class NoKernelImageError(CommandError):
    """A lesson about a kernel has none to open."""

    hint = (
        "learn kernel --kernel FILE names a vmlinuz or vmlinux; 'sh samples/boot.sh' fetches"
        " Debian's into ./boot, where the lesson finds it"
    )


def lesson_config(lesson: Lesson, kernel: str = "") -> GuestConfig:
    """The guest of a lesson, and how it is started.

    Args:
        lesson: the lesson.
        kernel: the kernel image for a lesson about one, "" for one of this machine.

    Raises:
        CommandError: it is not there.
    """
    guest = lesson.guest
    if not guest.sample:
        return GuestConfig(kernel or _kernel_image())
    if kernel:
        raise CommandError(f"lesson {lesson.number} is about {guest.sample}; it takes no --kernel")
    path = find_sample(guest.sample)
    return GuestConfig(
        str(path),
        guest.args,
        cwd=str(path.parent) if guest.in_its_folder else None,
        seed=guest.seed,
        random_seed=0 if guest.schedule else None,
        turns=recorded_turns(str(FOLDER / guest.schedule)) if guest.schedule else PLAIN,
        technique=guest.technique,
        returns=guest.returns,
        history=True,
    )


def _kernel_image() -> str:
    """The newest kernel image of this machine that may be read.

    Raises:
        CommandError: there is none; the hint says how to get one.
    """
    found = [path for pattern in IMAGES for path in glob(pattern) if os.access(path, os.R_OK)]
    if found:
        return max(found, key=os.path.getmtime)
    hidden = [path for pattern in IMAGES for path in glob(pattern)]
    raise NoKernelImageError(
        f"{hidden[0]} may not be read" if hidden else "this machine has no kernel image in /boot"
    )
