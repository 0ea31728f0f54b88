"""Kernel images and modules told from programs, by little of the file."""

import errno
import mmap
import os
import stat
from typing import Final

from engine.errors import ImageError
from engine.image.elf import ElfImage
from engine.image.headers import Buffer

MODULE_SECTION: Final = ".gnu.linkonce.this_module"
"""Section that makes a module of an object file."""

LETTERS: Final = ".kallsyms_types"
"""Section, of our own, with the letters of all symbols, in their order."""
ADDRESSES: Final = ".kallsyms_addresses"
"""Section, of our own, with the addresses of all symbols: 64 bits each."""
ORDER: Final = ".kallsyms_order"
"""Section, of our own, with the numbers of all symbols sorted by name: 32 bits each."""

_OBJECT: Final = b"\1\0"  # ET_REL
_FILE_MAX: Final = 4 << 30
_HEAD: Final = 1024
_ELF: Final = b"\x7fELF"
_ELF64: Final = b"\x7fELF\x02\x01"
_KERNEL_SECTIONS: Final = frozenset(("__ksymtab", "__ksymtab_gpl", LETTERS))
_BOOT, _BOOT_AT = b"HdrS", 0x202
_ZBOOT, _ZBOOT_AT = b"zimg", 4
_RAW, _RAW_AT = b"ARM\x64", 56
_RISCV, _RISCV_AT = b"RSC\x05", 56
COMPRESSED: Final = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\x5d\0\0": "lzma",
    b"\x02\x21\x4c\x18": "lz4",
    b"\x89LZO": "lzo",
}
"""First bytes of what the kernel's build compresses with, to its name."""


def compression(data: bytes) -> str:
    """Name of the compression that bytes begin as, "" for none."""
    found = (name for magic, name in COMPRESSED.items() if data.startswith(magic))
    return next(found, "")


def is_boot_image(head: bytes) -> bool:
    """True for a bzImage, by its beginning."""
    return head[_BOOT_AT : _BOOT_AT + 4] == _BOOT


def is_zboot(head: bytes) -> bool:
    """True for an EFI zboot image, by its beginning."""
    return head[_ZBOOT_AT : _ZBOOT_AT + 4] == _ZBOOT


def is_raw_image(head: bytes) -> bool:
    """True for AArch64's Image, which is memory as it is loaded and no ELF, by its beginning."""
    return head[_RAW_AT : _RAW_AT + 4] == _RAW and not head.startswith(_ELF)


def is_riscv_image(head: bytes) -> bool:
    """True for RISC-V's Image, by its beginning.

    Source: Documentation/arch/riscv/boot-image-header.rst (magic2).
    """
    return head[_RISCV_AT : _RISCV_AT + 4] == _RISCV and not head.startswith(_ELF)


def is_packed(head: bytes) -> bool:
    """True for a file that may be a kernel image in a wrapper, or a raw Image, RISC-V's too.

    Args:
        head: its first 1,024 bytes.
    """
    wrapped = is_boot_image(head) or is_zboot(head)
    raw = is_raw_image(head) or is_riscv_image(head)
    return wrapped or raw or bool(compression(head))


def is_kernel_image(path: str | os.PathLike[str]) -> bool:
    """True for a kernel image: in one of its wrappers, raw, or an ELF file.

    A vmlinux is told from a program by the section of its exported symbols.
    """
    try:
        head = _head(path)
        if is_packed(head):
            return True
        if not head.startswith(_ELF64):
            return False
        data, _ = mapped(path)
        if is_object(head):
            return is_module(data, os.fspath(path))
        return is_kernel(ElfImage(data, os.fspath(path), runnable=False))
    except (OSError, ImageError, ValueError):
        return False


def is_kernel(image: ElfImage) -> bool:
    """True for an ELF file that is a kernel, by the section of its exported symbols."""
    return any(section.name in _KERNEL_SECTIONS for section in image.sections)


def _head(path: str | os.PathLike[str]) -> bytes:
    """The beginning of a regular file."""
    # O_NONBLOCK: opening a FIFO that nobody writes to must not wait.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _checked(handle)
        return os.read(handle, _HEAD)
    finally:
        os.close(handle)


def mapped(path: str | os.PathLike[str]) -> tuple[Buffer, str]:
    """All bytes of a regular file, and what changes with the file on disk.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = _checked(handle)
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if not status.st_size:
            raise OSError(errno.EINVAL, "the file is empty")
        data = mmap.mmap(handle, status.st_size, access=mmap.ACCESS_READ)
        return data, " ".join(map(str, (*identity, status.st_ctime_ns)))
    finally:
        os.close(handle)


def _checked(handle: int) -> os.stat_result:
    """The status of an open file that may be an image.

    Raises:
        OSError: it is no regular file, or too large.
    """
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        what = "is a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise OSError(errno.EINVAL, what)
    if status.st_size > _FILE_MAX:
        text = f"{status.st_size} bytes are more than any kernel image has"
        raise OSError(errno.EFBIG, text)
    return status


def is_object(head: bytes) -> bool:
    """True for what may be a module, by its beginning: an object file of 64 bits."""
    return head[:6] == _ELF64 and head[16:18] == _OBJECT


def unsupported(name: str, machine: str) -> ImageError:
    """The refusal of a kernel of an architecture without rules for kernels.

    Args:
        name: of the file.
        machine: of the ELF machine, as in elf.h.
    """
    from engine import arch as architectures  # few files are refused

    known = [one for one in architectures.names() if architectures.by_name(one).kernel_rules]
    return ImageError(
        f"{name}: kernels for {machine} are not supported; supported are those for"
        f" {', '.join(known)}"
    )


def is_module(data: Buffer, name: str) -> bool:
    """True for an object file that is a module.

    Raises:
        ImageError: its section headers are damaged.
    """
    from engine.image.kernel.kernelelf import sections_of

    if not is_object(data[:64]):
        return False
    return any(section.name == MODULE_SECTION for section in sections_of(data, name))
