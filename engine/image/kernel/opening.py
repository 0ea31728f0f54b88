"""Kernel images opened: out of their wrappers, with names, from a cache the second time."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine import arch as architectures
from engine.errors import ImageError, ModuleKernelError
from engine.hostlimits import because_of
from engine.image.damage import Damage
from engine.image.elf import ElfImage
from engine.image.headers import MACHINES, SHF_ALLOC, Buffer
from engine.image.kernel.imagecache import ImageCache
from engine.image.kernel.kallsyms import KernelSymbols, NamelessError, read_kallsyms
from engine.image.kernel.kernelelf import NOBITS, Piece, sections_of, with_symbols
from engine.image.kernel.kernelimage import KernelImage, vermagic
from engine.image.kernel.modules import ModuleFile
from engine.image.kernel.packing import unpacked, unpacked_head
from engine.image.kernel.rawimage import elf_of_raw
from engine.image.kernel.recognition import (
    is_module,
    is_object,
    is_raw_image,
    mapped,
    unsupported,
)
from engine.image.kernel.scratch import joined

if TYPE_CHECKING:
    from engine.image.kernel.givennames import GivenNames

_HEAD: Final = 64
_ELF: Final = b"\x7fELF"
_LINK: Final = ".gnu_debuglink"
_DEBUG_PLACES: Final = (
    "/usr/lib/debug/boot/vmlinux-{}",
    "/usr/lib/debug/lib/modules/{}/vmlinux",
    "/usr/lib/debug/usr/lib/modules/{}/vmlinux",
    "/boot/vmlinux-{}",
    "/lib/modules/{}/build/vmlinux",
)
"""Paths where distributions have the debug file of a release."""


def open_kernel(
    path: str | os.PathLike[str],
    *,
    damage: Damage | None = None,
    cache: ImageCache | None = None,
    given: "GivenNames | None" = None,
) -> KernelImage:
    """Open a kernel image.

    Args:
        path: of a vmlinuz, vmlinux, Image, or one of these compressed.
        damage: where to tell what cannot be read.
        cache: of images that were opened before.
        given: names that come with it; where it has none itself these are taken.

    Raises:
        ImageError: it cannot be read, is damaged, no kernel image, or the names are another's.
    """
    data, identity = _contents(path)
    return open_kernel_data(
        data, os.fspath(path), identity, damage=damage, cache=cache, given=given
    )


def open_kernel_data(
    data: Buffer,
    name: str,
    identity: str,
    *,
    damage: Damage | None = None,
    cache: ImageCache | None = None,
    given: "GivenNames | None" = None,
) -> KernelImage:
    """Open the bytes of a kernel image.

    Args:
        data: the file.
        name: of it, for messages.
        identity: of the file, see `ImageCache.entry`.
        damage: where to tell what cannot be read.
        cache: of images that were opened before.
        given: names that come with it; where it has none itself these are taken.

    Raises:
        ImageError: as of `open_kernel`.
    """
    kept = (ImageCache() if cache is None else cache).entry(data, identity)
    made: Buffer | None = kept.image()
    if made is None:
        try:
            made = kept.keep_image(_made(data, name))
        except OSError as error:
            raise ImageError(f"{name}: no room for what is in it: {because_of(error)}") from error
        except NamelessError:
            if given is None:
                raise
            image = ElfImage(joined(_made(data, name, given.symbols)), name, name, damage=damage)
            image.damage.note(f"{name}: kallsyms: none; names are those of {given.source}")
            _set_debug_file(image, data, name)
            return KernelImage(image)
    image = ElfImage(made, name, name, damage=damage)
    # What other names lead to is not kept for those who do not have them.
    found = KernelImage(image, kept=kept if given is None else None, given=given)
    if given is not None and not given.fit(found.names.addresses, found.names.names):
        raise ImageError(f"{given.source}: its names are those of another kernel than {name}")
    _set_debug_file(image, data, name)
    release = found.release.release
    image.debug_places = tuple(place.format(release) for place in _DEBUG_PLACES)
    return found


def program_names(image: ElfImage, cache: ImageCache | None = None) -> ElfImage:
    """The same file with the kernel's own names as its symbols, of a kernel that is a program.

    Such is user-mode Linux: it is stripped like any other kernel, and runs as a process.

    Args:
        image: the file.
        cache: of images that were opened before.

    Raises:
        ImageError: it has no names, or is damaged.
    """
    kept = (ImageCache() if cache is None else cache).entry(image.buffer, image.identity)
    made: Buffer | None = kept.image()
    if made is None:
        try:
            made = kept.keep_image(_made(image.buffer, image.name))
        except OSError as error:
            raise ImageError(
                f"{image.name}: no room for what is in it: {because_of(error)}"
            ) from error
    return ElfImage(made, image.name, runnable=False, damage=image.damage)


def _set_debug_file(image: ElfImage, data: Buffer, name: str) -> None:
    """An image in a file with debug information has it from there."""
    if data[:4] == _ELF:
        own = ElfImage(data, name, name, runnable=False, damage=image.damage)
        if own.section(".debug_info") is not None:
            image.debug_file = own


class PackedModule(Struct, frozen=True, eq=False):
    """A file that is a module.

    Attributes:
        path: of it.
        data: unpacked.
        release: of the kernel that it is for; None where it does not say.
    """

    path: str
    data: Buffer
    release: str | None


def find_module(path: str | os.PathLike[str]) -> PackedModule | None:
    """A file as a module; None where it is none. Of other files little is read.

    Raises:
        ImageError: it cannot be read, or is damaged.
    """
    name = os.fspath(path)
    data, _ = _contents(path)
    if not is_object(unpacked_head(data, name)):
        return None
    inner = unpacked(data, name)
    if not is_module(inner, name):
        return None
    release = None
    for section in sections_of(inner, name):
        if section.name == ".modinfo":
            found = vermagic(inner[section.offset : section.offset + section.size])
            release = None if found is None else found.release
    return PackedModule(name, inner, release)


def laid_out_module(
    module: PackedModule, kernel: KernelImage | None, loaded: Sequence[KernelImage] = ()
) -> KernelImage:
    """Lay a module out as a kernel would load it.

    Args:
        module: the module's file, unpacked.
        kernel: that it is for; None = its imports stay stubs.
        loaded: modules that were loaded before it.

    Raises:
        ImageError: it is damaged, or for another kernel.
    """
    name = module.path
    _check_machine(module.data, name)
    file = ModuleFile(module.data, name, kernel, loaded)
    image = KernelImage(ElfImage(file.laid_out(), name, name), kernel, tuple(file.unresolved))
    if kernel is not None and image.release.release != kernel.release.release:
        raise ModuleKernelError(
            f"{name}: a module for Linux {image.release.release}, but {kernel.elf.name} is"
            f" {kernel.release.release}"
        )
    return image


def _check_machine(data: Buffer, name: str) -> None:
    """Refuse a kernel or module, of 64 bits, of an architecture without rules for kernels.

    Raises:
        ImageError: it is one.
    """
    machine = int.from_bytes(data[18:20], "little")
    arch = architectures.for_elf(machine, 64, "little")
    if arch is None or arch.kernel_rules is None:
        raise unsupported(name, MACHINES.get(machine, f"EM_{machine:#x}"))


def _contents(path: str | os.PathLike[str]) -> tuple[Buffer, str]:
    """The bytes of a file, and what tells it from others and from itself after a change."""
    try:
        return mapped(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ImageError(f"{os.fspath(path)}: {reason}") from error


def _made(data: Buffer, name: str, symbols: KernelSymbols | None = None) -> list[Piece]:
    """The pieces of an ELF file with the image's own names, or with those that are given.

    Raises:
        NamelessError: it has none.
        ImageError: it is damaged, or no kernel image.
    """
    inner = unpacked(data, name)
    if is_module(inner, name):
        raise ImageError(f"{name}: a module, where a kernel is needed")
    if is_raw_image(inner[:_HEAD]):
        return elf_of_raw(inner, name, symbols)
    probe = ElfImage(inner, name)
    if (probe.bits, probe.byteorder) != (64, "little"):
        raise ImageError(
            f"{name}: a kernel of {probe.bits} bits, {probe.byteorder}-endian; kernel images of"
            " 64 bits, little-endian, are supported"
        )
    _check_machine(inner, name)
    loads = [(s.vaddr, s.vaddr + s.memsz) for s in probe.load_segments]

    def inside(address: int) -> bool:
        return any(low <= address <= high for low, high in loads)

    if symbols is None:
        symbols = read_kallsyms(inner, name, inside=inside, address_of=probe.vaddr_of)
    sections = sections_of(inner, name)
    if inner is not data:
        return with_symbols([inner], sections, symbols)
    # What is not loaded stays in the file that it is in.
    kept = [s for s in sections if s.flags & SHF_ALLOC or s.name == _LINK]
    ends = [section.offset + section.size for section in kept if section.kind != NOBITS]
    end = max((*ends, *(s.offset + s.filesz for s in probe.segments)), default=len(inner))
    return with_symbols([memoryview(inner)[:end]], kept, symbols)
