"""The vDSO: a shared object of the kernel's in every program, whose functions read clocks.

Its code takes the time from the processor's counter, as on Linux (lib/vdso/gettimeofday.c), and
not from a system call: strace shows none, and a program that seccomp leaves only read, write and
exit may look at the clock. The guest's counters count nanoseconds of CLOCK_MONOTONIC, so that a
constant makes any clock of it: both are one look at `clock.GuestClock`, through the vDSO or by a
system call, and history keeps what a counter gave as it keeps any such value. Other clocks, as of
processor time, and the number of the processor take the system call.

The image comes with the package, built beforehand, as no compiler is needed to start a guest.
"""

import struct
from functools import cache
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch, VdsoAbi
from engine.cpu.ram import EXECUTE, PAGE, READ
from engine.guest.backing import ImageBacking
from engine.guest.mapping import page_up
from engine.guest.memory import Memory
from engine.guest.modules import Module, Modules
from engine.image import ElfImage
from engine.linux.clock import COARSE_TICK

NAME: Final = "[vdso]"
"""The vDSO's name in /proc/PID/maps."""
_DATA: Final = struct.Struct("<qQ")
"""Lead of CLOCK_REALTIME over CLOCK_MONOTONIC; a tick of the coarse clocks; in nanoseconds."""


class Vdso(Struct, frozen=True):
    """The vDSO in an address space.

    Attributes:
        base: address of its ELF header (AT_SYSINFO_EHDR).
        returns: address of the code that signal handlers return to; 0 where programs bring it.
    """

    base: int
    returns: int


@cache
def image_of(abi: VdsoAbi) -> ElfImage:
    """The image of an architecture, read at first use; whole pages, as Linux keeps it."""
    data = abi.file.read_bytes()
    return ElfImage.from_bytes(data.ljust(page_up(len(data)), b"\0"), NAME)


def map_vdso(arch: Arch, memory: Memory, modules: Modules, ahead: int) -> Vdso | None:
    """Map the vDSO into a new program, with its data in front of it; None where there is none.

    Args:
        arch: of the program.
        memory: its memory.
        modules: its files.
        ahead: nanoseconds that CLOCK_REALTIME is ahead of CLOCK_MONOTONIC.
    """
    abi, base = arch.linux.vdso, arch.plan.vdso
    if abi is None:
        return None
    data = _DATA.pack(ahead, COARSE_TICK)
    for name, pages in abi.data:
        memory.map(base, pages * PAGE, READ, name=name)
        if data:
            memory.poke(base, data)
        base, data = base + pages * PAGE, b""
    image = image_of(abi)
    memory.map(
        *(base, image.file_size, READ | EXECUTE),
        name=NAME,
        backing=ImageBacking(image),
    )
    modules.add(Module(NAME, image, base))
    code = arch.linux.signals.return_code
    return Vdso(base, base + image.read_vaddr(0, image.high).index(code) if abi.returns else 0)
