"""Kernel images: whose rules hold and which live text is assumed, and what a boot is made of."""

from enum import Enum
from typing import Final

from msgspec import Struct

MACHINE_MEMORY: Final = 256 << 20
"""Bytes of memory that a machine has."""
DEFAULT_DISK_CHANGES: Final = 512 << 20
"""Bytes of changed blocks of disks that are kept."""


class Patched(Enum):
    """The text of an image that is judged and shown."""

    BOOT = "boot"
    FILE = "file"


class KernelChoice(Struct, frozen=True):
    """Choices for a kernel image.

    Attributes:
        patched: the text as the kernel patches itself at boot, or as the file has it.
        cpu: that it boots on: "golden", "host", or the path of a /proc/cpuinfo.
        era: version whose rules hold; None = the image's own.
        sequence: definitions build on each other, as if written one after the other.
        dynamic_events: definitions are lines of dynamic_events, which has `f:` and `t:` lines too;
            else of kprobe_events, which refuses those.
        together: all places of a function are probed at once: neighbours take jumps away.
        kernel: path of the image that a module is for; None = found beside it or in /boot.
        debug_file: path of the kernel's vmlinux with debug information; None = found by its
            build-id, or where distributions have it.
        modules: paths of modules that count as loaded, in that order.
        system_map: path of the kernel's System.map; None = without.
    """

    patched: Patched = Patched.BOOT
    cpu: str = "golden"
    era: str | None = None
    sequence: bool = False
    dynamic_events: bool = False
    together: bool = False
    kernel: str | None = None
    debug_file: str | None = None
    system_map: str | None = None
    modules: tuple[str, ...] = ()


class BootRequest(Struct, frozen=True):
    """A kernel to be booted.

    Attributes:
        kernel: path of the image, or of a recorded boot, which has all else with it.
        initrd: path of the initial ramdisk, "" for none.
        append: more words of the command line, which win over the usual ones.
        memory: bytes.
        init: path of the first program, or of a folder that becomes the root; "" for none.
        modules: path of a folder of modules, "" for none.
        chosen: names of modules; none for all of the folder.
        seed: what the kernel's random numbers follow from.
        disks: paths of raw images.
        disk_memory: bytes of changed blocks that are kept at the most.
    """

    kernel: str
    initrd: str = ""
    append: str = ""
    memory: int = MACHINE_MEMORY
    init: str = ""
    modules: str = ""
    chosen: tuple[str, ...] = ()
    seed: int = 0
    disks: tuple[str, ...] = ()
    disk_memory: int = DEFAULT_DISK_CHANGES
