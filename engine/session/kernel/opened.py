"""A kernel image opened: names, tables, live text, types, and the rules of its version."""

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from engine import arch as architectures
from engine.arch.base import Arch
from engine.arch.kernelsites import TextPatch
from engine.errors import CommandError, ImageError
from engine.image.elf import ElfImage
from engine.image.headers import SHF_EXECINSTR
from engine.image.kernel.cpumodel import cpu_named
from engine.image.kernel.eventarray import find_event_array
from engine.image.kernel.events import OwnEvents
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.opening import open_kernel, open_module, release_of_module
from engine.image.kernel.sitetables import SiteTables
from engine.probes.kernel_places import KernelPlaces
from engine.session.protocol.kernels import KernelChoice, Patched

if TYPE_CHECKING:
    from engine.image.kernel.btf import Btf

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")
_INIT: Final = (".init.text", ".exit.text")


class ImageNames:
    """Names of an image; those of a module and of its kernel together."""

    def __init__(self, image: KernelImage) -> None:
        """Look names up in an image.

        Args:
            image: it; a module's kernel is asked behind it.
        """
        self._image = image

    def bounds(self, address: int) -> tuple[str, int, int] | None:
        """Name, start and end of the symbol around an address."""
        found = self._image.names.at(address) if self._image.holds(address) else None
        kernel = self._image.kernel
        if found is None and kernel is not None and kernel.holds(address):
            found = kernel.names.at(address)
        return None if found is None else (found.name, found.start, found.end)

    def find(self, name: str) -> int | None:
        """Address of the first symbol of a name."""
        found = self._image.names.find(name)
        if found is None and self._image.kernel is not None:
            found = self._image.kernel.names.find(name)
        return found


class LiveText:
    """The text of an image as a running kernel has it."""

    def __init__(
        self, image: KernelImage, text: Sequence[tuple[int, int]], patches: Sequence[TextPatch]
    ) -> None:
        """Patch a copy.

        Args:
            image: whose text it is.
            text: the [start, end) of its parts, sorted.
            patches: made at boot.
        """
        self.patches = sorted(patches)
        self._parts = [(low, high, bytearray(image.read(low, high - low))) for low, high in text]
        self._starts = [low for low, _, _ in self._parts]
        for patch in patches:
            part = self._part(patch.address)
            if part is not None:
                at = patch.address - part[0]
                part[2][at : at + len(patch.after)] = patch.after
        self._image = image

    def _part(self, address: int) -> tuple[int, int, bytearray] | None:
        at = bisect_right(self._starts, address) - 1
        return self._parts[at] if at >= 0 and address < self._parts[at][1] else None

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """Address and live bytes of each part."""
        for low, _, text in self._parts:
            yield low, bytes(text)

    def read(self, address: int, size: int) -> bytes:
        """Live bytes; those of the file where it is no text."""
        part = self._part(address)
        if part is None:
            return self._image.read(address, size)
        return bytes(part[2][address - part[0] : address - part[0] + size])

    def patches_in(self, low: int, high: int) -> Sequence[TextPatch]:
        """The patches in [low, high)."""
        first = bisect_left(self.patches, low, key=lambda patch: patch.address)
        last = bisect_left(self.patches, high, key=lambda patch: patch.address)
        return self.patches[first:last]


class ImageTables:
    """The tables of an image as the rules for places ask them: sorted addresses."""

    def __init__(
        self,
        image: KernelImage,
        sites: SiteTables,
        live: LiveText,
        kernel_traces: Callable[[], bool],
    ) -> None:
        """Nothing is read before it is asked for.

        Args:
            image: it.
            sites: its tables as they are.
            live: its text.
            kernel_traces: tells of a module's kernel whether it has ftrace.
        """
        self._kernel_traces = kernel_traces
        self._sites = sites
        self._live = live
        self.text, self.gone = text_of(image)

    @cached_property
    def ftrace(self) -> Sequence[int]:
        """Sites that are alive: those of text that is freed are dropped."""
        gone = self.gone
        return [s for s in self._sites.ftrace if not any(a <= s < b for a, b in gone)]

    @property
    def traces(self) -> bool:
        """True if the kernel has ftrace (DYNAMIC_FTRACE): any of its functions has a site."""
        return bool(self.ftrace) or self._kernel_traces()

    @cached_property
    def forbidden(self) -> Sequence[tuple[int, int]]:
        """The ranges of kprobes/blacklist."""
        return self._sites.forbidden

    @cached_property
    def labels(self) -> Sequence[int]:
        """Jump labels."""
        return sorted({label.code for label in self._sites.jump_labels})

    @cached_property
    def static_calls(self) -> Sequence[int]:
        """Static calls."""
        return sorted({call.address for call in self._sites.static_calls})

    @cached_property
    def bugs(self) -> Sequence[int]:
        """Traps of BUG and WARN."""
        return sorted({bug.address for bug in self._sites.bugs})

    @cached_property
    def exceptions(self) -> Sequence[int]:
        """Instructions that may fault."""
        return sorted({entry.insn for entry in self._sites.exceptions})

    def live(self, address: int, size: int) -> bytes:
        """Text as a running kernel has it."""
        return self._live.read(address, size)


def text_of(image: KernelImage) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The [start, end) of an image's text, and of text that is freed after boot or loading.

    Raises:
        ImageError: it has none.
    """
    if image.is_module:
        text: list[tuple[int, int]] = []
        gone: list[tuple[int, int]] = []
        for section in image.elf.sections:
            if section.flags & SHF_EXECINSTR and section.size:
                part = gone if section.name.startswith(_INIT) else text
                part.append((section.addr, section.addr + section.size))
        return sorted(text), sorted(gone)
    names = image.names

    def span(first: str, last: str) -> list[tuple[int, int]]:
        start, end = names.find(first), names.find(last)
        return [(start, end)] if start is not None and end is not None and start < end else []

    found = span("_stext", "_etext")
    if not found:
        raise ImageError(f"{image.elf.name}: kallsyms: no _stext and _etext, so no text")
    return found, span("_sinittext", "_einittext")


def version_of(text: str) -> tuple[int, int, int]:
    """A version that a user has given.

    Raises:
        CommandError: it is none.
    """
    match = _VERSION.match(text)
    if match is None:
        raise CommandError(f"--era {text}: a version is needed, as in 6.1 or 6.12.3")
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _kernel_of(path: str | os.PathLike[str], release: str) -> str | None:
    """The image of a module's kernel: beside it, or where distributions have it."""
    here = os.path.dirname(os.path.abspath(path))
    folders = (here, os.path.dirname(here), "/boot", f"/lib/modules/{release}")
    tried = [f"{folder}/{name}-{release}" for folder in folders for name in ("vmlinuz", "vmlinux")]
    tried += [f"/lib/modules/{release}/vmlinuz", f"/usr/lib/debug/boot/vmlinux-{release}"]
    return next((each for each in tried if os.path.isfile(each)), None)


class _Elder:
    """An image that is taken for one of another version."""

    def __init__(self, image: KernelImage, version: tuple[int, int, int]) -> None:
        self._image = image
        self.version = version
        self.is_module = image.is_module
        self.read = image.read
        self.symbol = image.symbol
        self.section = image.section
        self.layout = image.layout


class OpenedKernel:
    """One image and what is asked of it.

    Attributes:
        image: it.
        arch: its architecture.
        choice: what was chosen for it.
        version: whose rules hold.
    """

    def __init__(self, image: KernelImage, choice: KernelChoice) -> None:
        """Match an image with its architecture.

        Args:
            image: it.
            choice: of rules and of the live text.

        Raises:
            ImageError: the architecture has no rules for kernels.
            CommandError: the version that was chosen is none.
        """
        elf = image.elf
        arch = architectures.for_elf(elf.machine, elf.bits, elf.byteorder)
        if arch is None or arch.kernel_rules is None:
            known = [n for n in architectures.names() if architectures.by_name(n).kernel_rules]
            raise ImageError(
                f"{elf.name}: kernels for {elf.machine_name} are not supported; supported are"
                f" those for {', '.join(known)}"
            )
        self.image = image
        self.arch: Arch = arch
        self.choice = choice
        self.version = image.version if choice.era is None else version_of(choice.era)

    @classmethod
    def open(cls, path: str | os.PathLike[str], choice: KernelChoice) -> "OpenedKernel":
        """Open the image at a path.

        Raises:
            ImageError: it is none, or damaged.
            CommandError: a choice is none.
        """
        release = release_of_module(path)
        if release is None:
            return cls(open_kernel(path), choice)
        near = choice.kernel or _kernel_of(path, release)
        kernel = open_kernel(near) if near is not None else None
        module = open_module(path, kernel)
        assert module is not None, "it was one"
        if kernel is None:
            module.elf.damage.note(
                f"{module.elf.name}: no image of Linux {release} is near: its imports are not"
                " known; --kernel FILE names one"
            )
        return cls(module, choice)

    @property
    def era(self) -> str:
        """The version whose rules hold."""
        return ".".join(map(str, self.version))

    @cached_property
    def names(self) -> ImageNames:
        """Its names."""
        return ImageNames(self.image)

    @cached_property
    def sites(self) -> SiteTables:
        """The tables of places in its text."""
        image = self.image
        shapes = self.arch.kernel_shapes
        return SiteTables(image, image.names.addresses, image.elf.damage, shapes)

    @cached_property
    def live(self) -> LiveText:
        """Its text as it runs."""
        text, _ = text_of(self.image)
        return LiveText(self.image, text, self._patches())

    @cached_property
    def live_image(self) -> ElfImage:
        """The same file with its text as it runs."""
        elf = self.image.elf
        data = bytearray(elf.buffer)
        for low, text in self.live.parts():
            at = elf.file_offset(low)
            if at is not None:
                data[at : at + len(text)] = text
        return ElfImage.from_bytes(bytes(data), elf.name, elf.path, damage=elf.damage)

    def _patches(self) -> Sequence[TextPatch]:
        boot = self.arch.kernel_text
        if self.choice.patched is Patched.FILE or boot is None:
            return ()
        cpu = cpu_named(self.choice.cpu, self.arch.name)
        kernel = self.image.kernel
        if kernel is None:
            return () if self.image.is_module else boot(self.image, self.sites, cpu).patches()
        booted = boot(kernel, self._kernel_sites, cpu)
        parts, _ = text_of(self.image)
        return tuple(
            patch
            for low, high in parts
            for patch in booted.module_patches(self.image, self.sites, low, high)
        )

    @cached_property
    def _kernel_sites(self) -> SiteTables:
        """The tables of a module's kernel."""
        kernel = self.image.kernel
        assert kernel is not None, "asked for modules only"
        names, damage = kernel.names.addresses, kernel.elf.damage
        return SiteTables(kernel, names, damage, self.arch.kernel_shapes)

    @cached_property
    def tables(self) -> ImageTables:
        """The tables as rules ask them."""
        return ImageTables(self.image, self.sites, self.live, self._kernel_traces)

    def _kernel_traces(self) -> bool:
        kernel = self.image.kernel
        if kernel is None:
            return self.image.is_module
        return bool(self._kernel_sites.ftrace)

    def missing(self) -> tuple[str, ...]:
        """Tables that rules ask and that a kernel with probes has, but not this one."""
        if self.image.is_module:
            return ()
        tables = self.tables
        found = (
            ("ftrace's sites", tables.ftrace),
            ("the blacklist", tables.forbidden),
            ("jump labels", tables.labels),
            ("exceptions", tables.exceptions),
            ("BUG and WARN", tables.bugs),
        )
        return tuple(name for name, sites in found if not sites)

    @cached_property
    def places(self) -> KernelPlaces:
        """Judges its addresses."""
        assert self.arch.kernel_rules is not None, "it was opened"
        rules = self.arch.kernel_rules(_Elder(self.image, self.version))
        return KernelPlaces(self.names, self.tables, rules, module=self.image.is_module)

    @cached_property
    def events(self) -> OwnEvents:
        """The trace events of the kernel itself."""
        image = self.image.kernel or self.image
        return OwnEvents(image, lambda: find_event_array(image))

    @cached_property
    def types(self) -> "tuple[Btf, ...]":
        """Its types, a module's behind those of its kernel."""
        found = [image.btf for image in (self.image.kernel, self.image) if image is not None]
        return tuple(btf for btf in found if btf is not None)
