"""Choices for kernel images: whose rules hold, and which live text is assumed."""

from enum import Enum

from msgspec import Struct


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
