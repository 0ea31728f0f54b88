"""The state of the machine at the 64-bit entry of a Linux kernel.

Segments at their physical addresses, the initial ramdisk at the end of the memory, the command
line, and the zero page that names them. Source: Documentation/arch/x86/boot.rst and zero-page.rst,
arch/x86/include/uapi/asm/bootparam.h.
"""

import mmap
from hashlib import sha256
from struct import pack_into
from typing import Final

from msgspec import Struct

from engine.cpu.unicorn_system import PAGE, SystemCpu
from engine.errors import CommandError
from engine.image.elf import ElfImage

LEAST: Final = 64 << 20
MOST: Final = 3 << 30
"""Bytes of memory: a distribution's kernel unpacks into less than the first; at the second one the
room of devices begins."""
COMMAND_MOST: Final = 2047
"""Bytes of a command line."""

_GDT, _PARAMETERS, _STACK, _TABLES, _COMMAND = 0x6000, 0x7000, 0x8000, 0x9000, 0x20000
_SETUP: Final = 0x21000
_RNG_SEED: Final = 9  # SETUP_RNG_SEED, which kernels know from 6.0 on; older ones skip it
_CODE_AT, _DATA_AT = 0x10, 0x18
_CODE, _DATA = 0x00AF9B000000FFFF, 0x00CF93000000FFFF
_LOW_END, _HIGH_ROM, _HIGH = 0x9FC00, 0xF0000, 0x100000
_USABLE, _RESERVED = 1, 2
_LOADER_UNKNOWN: Final = 0xFF
_LOADED_HIGH: Final = 1
_VERSION: Final = 0x20F
_SPARE: Final = 1 << 20
_HUGE: Final = 0x83  # present, writable, of 2 MB
_TABLE: Final = 0x003


class Boot(Struct, frozen=True):
    """A kernel with what it is given.

    Attributes:
        kernel: the unpacked image.
        command: its command line.
        initrd: the initial ramdisk, as it is packed; b"" for none.
        seed: what the kernel's random numbers follow from.
    """

    kernel: ElfImage
    command: str
    initrd: bytes = b""
    seed: int = 0


def prepare(cpu: SystemCpu, boot: Boot) -> None:
    """Lay everything out in the memory, and stand at the entry.

    Raises:
        CommandError: there is too little memory, or the command line is too long.
    """
    memory = cpu.memory
    size = len(memory)
    end = _load(memory, boot.kernel)
    command = boot.command.encode()
    if len(command) > COMMAND_MOST:
        raise CommandError(
            f"the kernel's command line has {len(command)} bytes, and may have {COMMAND_MOST}"
        )
    initrd = size - _SPARE - len(boot.initrd) & -PAGE
    if initrd < end:
        needed = end + len(boot.initrd) + 2 * _SPARE
        raise CommandError(
            f"{size >> 20} MB of memory are too little for this kernel and its initial ramdisk, "
            f"which take {-(-needed >> 20)} MB before they run: --memory"
        )
    memory[initrd : initrd + len(boot.initrd)] = boot.initrd
    memory[_COMMAND : _COMMAND + len(command) + 1] = command + b"\0"
    _parameters(memory, initrd if boot.initrd else 0, len(boot.initrd))
    _setup_data(memory, boot.seed)
    pack_into("<2Q", memory, _GDT + _CODE_AT, _CODE, _DATA)
    pack_into("<Q", memory, _TABLES, _TABLES + PAGE | _TABLE)
    pack_into("<Q", memory, _TABLES + PAGE, _TABLES + 2 * PAGE | _TABLE)
    for number in range(512):
        pack_into("<Q", memory, _TABLES + 2 * PAGE + 8 * number, number << 21 | _HUGE)
    cpu.enter_long_mode(_TABLES, _GDT, _CODE_AT, _DATA_AT)
    cpu["rsi"], cpu["rsp"], cpu["rip"] = _PARAMETERS, _STACK, boot.kernel.entry


def _load(memory: mmap.mmap, kernel: ElfImage) -> int:
    """Copy the segments; one past the last byte that the kernel takes."""
    end = 0
    for segment in kernel.load_segments:
        start = segment.paddr
        end = max(end, start + segment.memsz)
        if start < _HIGH or end > len(memory):
            raise CommandError(
                f"the kernel wants memory up to {end >> 20} MB: --memory gives {len(memory) >> 20}"
            )
        memory[start : start + segment.filesz] = kernel.data(segment.offset, segment.filesz)
    return end


def _parameters(memory: mmap.mmap, initrd: int, size: int) -> None:
    """Write the zero page: `struct boot_params`."""
    page = _PARAMETERS
    pack_into("<B", memory, page + 0x1F1, 1)
    pack_into("<H", memory, page + 0x1FE, 0xAA55)
    memory[page + 0x202 : page + 0x206] = b"HdrS"
    pack_into("<H", memory, page + 0x206, _VERSION)
    pack_into("<2B", memory, page + 0x210, _LOADER_UNKNOWN, _LOADED_HIGH)
    pack_into("<2I", memory, page + 0x218, initrd, size)
    pack_into("<I", memory, page + 0x228, _COMMAND)
    pack_into("<I", memory, page + 0x230, 16 << 20)  # alignment
    pack_into("<I", memory, page + 0x238, COMMAND_MOST)
    rows = (
        (0, _LOW_END, _USABLE),
        (_LOW_END, 0xA0000 - _LOW_END, _RESERVED),
        (_HIGH_ROM, _HIGH - _HIGH_ROM, _RESERVED),
        (_HIGH, len(memory) - _HIGH, _USABLE),
    )
    pack_into("<B", memory, page + 0x1E8, len(rows))
    for number, row in enumerate(rows):
        pack_into("<QQI", memory, page + 0x2D0 + 20 * number, *row)


def _setup_data(memory: mmap.mmap, seed: int) -> None:
    """Write the list behind the zero page: a seed of randomness, which the kernel wipes out.

    With it the kernel's generator is ready at once. Without it entropy would have to be gathered
    from the jitter of the clock, which this machine does not have.
    """
    data = sha256(b"kprobe-tui boot %d" % seed).digest()
    pack_into("<Q2I", memory, _SETUP, 0, _RNG_SEED, len(data))
    memory[_SETUP + 16 : _SETUP + 16 + len(data)] = data
    pack_into("<Q", memory, _PARAMETERS + 0x250, _SETUP)
