"""Kernel images opened: out of their wrappers, with names, from a cache the second time."""

import mmap
import os

from engine.errors import ImageError
from engine.image.damage import Damage
from engine.image.elf import ElfImage
from engine.image.kernel.imagecache import ImageCache
from engine.image.kernel.kallsyms import read_kallsyms
from engine.image.kernel.kernelelf import sections_of, with_symbols
from engine.image.kernel.kernelimage import KernelImage, vermagic
from engine.image.kernel.modules import ModuleFile
from engine.image.kernel.packing import unpacked
from engine.image.kernel.rawimage import elf_of_raw
from engine.image.kernel.recognition import contents, is_module, is_raw_image


def open_kernel(
    path: str | os.PathLike[str],
    *,
    damage: Damage | None = None,
    cache: ImageCache | None = None,
) -> KernelImage:
    """Open a kernel image.

    Args:
        path: of a vmlinuz, vmlinux, Image, or one of these compressed.
        damage: where to tell what cannot be read.
        cache: of unpacked images.

    Raises:
        ImageError: it cannot be read, is damaged, or no kernel image.
    """
    data, name = _contents(path), os.fspath(path)
    cache = ImageCache() if cache is None else cache
    made: bytes | mmap.mmap | None = cache.get(data)
    if made is None:
        made = _made(data, name)
        cache.put(data, made)
    return KernelImage(ElfImage(made, name, name, damage=damage))


def open_module(path: str | os.PathLike[str], kernel: KernelImage | None) -> KernelImage | None:
    """Open a module, laid out as a kernel would load it; None where a file is none.

    Args:
        path: of a *.ko, or of one that is compressed.
        kernel: that it is for; None = its imports stay stubs.

    Raises:
        ImageError: it is damaged, or for another kernel.
    """
    name = os.fspath(path)
    inner = unpacked(_contents(path), name)
    if not is_module(inner, name):
        return None
    file = ModuleFile(inner, name, kernel)
    image = KernelImage(ElfImage(file.laid_out(), name, name), kernel, tuple(file.unresolved))
    if kernel is not None and image.release.release != kernel.release.release:
        raise ImageError(
            f"{name}: a module for Linux {image.release.release}, but {kernel.elf.name} is"
            f" {kernel.release.release}"
        )
    return image


def release_of_module(path: str | os.PathLike[str]) -> str | None:
    """The release of the kernel that a module is for; None where a file is no module.

    Raises:
        ImageError: it is damaged.
    """
    name = os.fspath(path)
    inner = unpacked(_contents(path), name)
    if not is_module(inner, name):
        return None
    for section in sections_of(inner, name):
        if section.name == ".modinfo":
            release = vermagic(inner[section.offset : section.offset + section.size])
            return None if release is None else release.release
    return None


def _contents(path: str | os.PathLike[str]) -> bytes:
    try:
        return contents(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ImageError(f"{os.fspath(path)}: {reason}") from error


def _made(data: bytes, name: str) -> bytes:
    inner = unpacked(data, name)
    if is_module(inner, name):
        raise ImageError(f"{name}: a module, where a kernel is needed")
    if is_raw_image(inner):
        return elf_of_raw(inner, name)
    probe = ElfImage.from_bytes(inner, name)
    if (probe.bits, probe.byteorder) != (64, "little"):
        raise ImageError(
            f"{name}: a kernel of {probe.bits} bits, {probe.byteorder}-endian; kernel images of"
            " 64 bits, little-endian, are supported"
        )
    loads = [(s.vaddr, s.vaddr + s.memsz) for s in probe.load_segments]

    def inside(address: int) -> bool:
        return any(low <= address <= high for low, high in loads)

    return with_symbols(inner, read_kallsyms(inner, name, inside=inside), name)
