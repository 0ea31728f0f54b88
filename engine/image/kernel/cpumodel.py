"""Which CPU a kernel image is said to run on: from the text of a /proc/cpuinfo."""

from pathlib import Path
from pkgutil import get_data
from typing import Final

from engine.arch.kernelcpu import CpuModel
from engine.errors import CommandError

GOLDEN: Final = "golden"
HOST: Final = "host"
_COMMAND_LINE: Final = "command line"
_FIRST: Final = "processor"
_HOST_FILE: Final = "/proc/cpuinfo"
_MOST: Final = 1 << 24
_COMMON: Final = 2
"""Fields that all /proc/cpuinfo of an architecture have in common, at least."""


def cpu_named(name: str, architecture: str) -> CpuModel:
    """The CPU of an option: `golden`, `host`, or the path of a /proc/cpuinfo.

    `golden` is the machine on which the kernels were recorded that this program is compared
    with: QEMU's `max` or `cortex-a57`, with the command line they were started with and, on
    AArch64, its memory and the number that KVM drew at that boot.

    Raises:
        CommandError: the file cannot be read, or is no cpuinfo of that architecture.
    """
    if name == GOLDEN:
        return cpu_of(_golden(architecture))
    path = Path(_HOST_FILE if name == HOST else name)
    try:
        with path.open("rb") as file:
            text = file.read(_MOST).decode("utf-8", "replace")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    cpu = cpu_of(text)
    if not cpu.count:
        raise CommandError(f"{path}: no text of a /proc/cpuinfo: it has no line `processor`")
    known = cpu_of(_golden(architecture)).fields.keys() - {_FIRST}
    if len(known & cpu.fields.keys()) < _COMMON:
        raise CommandError(f"{path}: a /proc/cpuinfo of another architecture than {architecture}")
    return cpu


def _golden(architecture: str) -> str:
    """The text that comes with an architecture."""
    # importlib.resources would cost 25 ms.
    found = get_data(f"engine.arch.{architecture}", "golden_cpu.txt")
    assert found is not None, "it is installed with the architecture"
    return found.decode("utf-8")


def cpu_of(text: str, command_line: str = "") -> CpuModel:
    """The CPU that a text describes.

    Args:
        text: of /proc/cpuinfo. A line `command line` in it, which the kernel does not
            write, is that of the kernel.
        command_line: of the kernel, where the text has none.
    """
    fields: dict[str, str] = {}
    count = 0
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            continue
        name = name.strip()
        count += name == _FIRST and value.strip().isdecimal()
        fields.setdefault(name, value.strip())
    words = fields.pop(_COMMAND_LINE, command_line).split()
    return CpuModel(fields, count, tuple(words))
