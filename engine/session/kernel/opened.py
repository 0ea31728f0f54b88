"""A kernel image opened: names, tables, live text, types, and the rules of its version."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from mmap import mmap
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine import arch as architectures
from engine.arch.base import Arch
from engine.arch.kernelcalls import KernelCalls
from engine.arch.kernelcpu import CpuModel
from engine.arch.kernelsites import TextPatch
from engine.errors import CommandError, ImageError
from engine.image.elf import ElfImage
from engine.image.kernel.columnfile import Column, ColumnSet, columns_of
from engine.image.kernel.cpumodel import cpu_named, cpu_of
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.opening import find_module, laid_out_module, open_kernel
from engine.image.kernel.recognition import unsupported
from engine.image.kernel.sitetables import SiteTables
from engine.probes.kernel_places import KernelPlaces
from engine.session.kernel.image_tables import ImageTables, table_columns, text_of
from engine.session.kernel.live_text import LiveText, patch_columns
from engine.session.protocol.kernels import KernelChoice, Patched

if TYPE_CHECKING:
    from engine.image.kernel.btf import Btf
    from engine.image.kernel.events import OwnEvents
    from engine.image.lines import Lines

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


class ImageNames:
    """Names of an image; those of a module and of its kernel together."""

    def __init__(self, image: KernelImage) -> None:
        """Look names up in an image.

        Args:
            image: it; a module's kernel is asked behind it.
        """
        self._image = image
        self._near = ("", 0, 0)

    def bounds(self, address: int) -> tuple[str, int, int] | None:
        """Name, start and end of the symbol around an address."""
        if self._near[1] <= address < self._near[2]:
            return self._near
        found = self._image.names.at(address) if self._image.holds(address) else None
        kernel = self._image.kernel
        if found is None and kernel is not None and kernel.holds(address):
            found = kernel.names.at(address)
        if found is None:
            return None
        self._near = found.name, found.start, found.end
        return self._near

    def find(self, name: str) -> int | None:
        """Address of the first symbol of a name."""
        found = self._image.names.find(name)
        if found is None and self._image.kernel is not None:
            found = self._image.kernel.names.find(name)
        return found


def version_of(text: str) -> tuple[int, int, int]:
    """A version that a user has given.

    Raises:
        CommandError: it is none.
    """
    match = _VERSION.match(text)
    if match is None:
        raise CommandError(f"--era {text}: a version is needed, as in 6.1 or 6.12.3")
    return int(match[1]), int(match[2]), int(match[3] or 0)


def _digest(cpu: CpuModel) -> str:
    """A word that tells a CPU from others."""
    text = repr((sorted(cpu.fields.items()), cpu.count, cpu.command_line))
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _kernel_of(path: str | os.PathLike[str], release: str) -> str | None:
    """The image of a module's kernel: beside it, or where distributions have it.

    A module in a tree of its own, as a package unpacked, is looked for in that tree first.
    """
    here = os.path.dirname(os.path.abspath(path))
    roots = [*_roots(here, release), ""]
    modules = [f"{root}/{lib}/modules/{release}" for root in roots for lib in ("lib", "usr/lib")]
    folders = (here, os.path.dirname(here), *(f"{root}/boot" for root in roots), *modules)
    names = ("vmlinuz", "vmlinux")
    tried = [f"{folder}/{name}-{release}" for folder in folders for name in names]
    tried += [f"{folder}/{name}" for folder in modules for name in names]
    tried += [f"{root}/usr/lib/debug/boot/vmlinux-{release}" for root in roots]
    return next((each for each in tried if os.path.isfile(each)), None)


def _roots(folder: str, release: str) -> Iterator[str]:
    """The root of the tree that a folder lies in, if it is one of modules of a release."""
    before, found, _ = f"{folder}/".rpartition(f"/lib/modules/{release}/")
    if found and before:
        yield before.removesuffix("/usr")


def _with_given(path: str | os.PathLike[str], choice: KernelChoice) -> KernelImage:
    """A kernel with the debug file and the System.map that were given for it.

    Raises:
        ImageError: one of them cannot be read, or is of another kernel.
    """
    debug = given = None
    if choice.debug_file is not None or choice.system_map is not None:
        from engine.image.kernel.givennames import (
            GivenNames,
            read_system_map,
            symbols_of_vmlinux,
        )

        if choice.debug_file is not None:
            debug = ElfImage.open(choice.debug_file, runnable=False)
            if (symbols := symbols_of_vmlinux(debug)) is not None:
                given = GivenNames(symbols, choice.debug_file)
        if choice.system_map is not None:
            given = GivenNames(read_system_map(choice.system_map), choice.system_map)
    image = open_kernel(path, given=given)
    if debug is not None:
        own = image.elf.build_id
        if own is not None and debug.build_id not in (None, own):
            raise ImageError(
                f"{debug.name}: build-id {debug.build_id} is that of another kernel than"
                f" {image.elf.name} ({own})"
            )
        image.elf.debug_file = debug
    return image


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
        image: the kernel image or module.
        arch: its architecture.
        choice: what was chosen for it.
        version: whose rules hold.
        loaded: modules that are loaded beside it.
    """

    def __init__(
        self,
        image: KernelImage,
        choice: KernelChoice,
        loaded: "tuple[OpenedKernel, ...]" = (),
    ) -> None:
        """Match an image with its architecture.

        Args:
            image: the kernel image or module.
            choice: of rules and of the live text.
            loaded: modules that are loaded beside it.

        Raises:
            ImageError: the architecture has no rules for kernels.
            CommandError: the version that was chosen is none.
        """
        elf = image.elf
        arch = architectures.for_elf(elf.machine, elf.bits, elf.byteorder)
        if arch is None or arch.kernel_rules is None:
            raise unsupported(elf.name, elf.machine_name)
        self.image = image
        self.arch: Arch = arch
        self.choice = choice
        self.loaded = loaded
        self.version = image.version if choice.era is None else version_of(choice.era)

    @classmethod
    def open(cls, path: str | os.PathLike[str], choice: KernelChoice) -> "OpenedKernel":
        """Open the image at a path.

        Raises:
            ImageError: it is none, or damaged.
            CommandError: a choice is none.
        """
        packed = find_module(path)
        if packed is None:
            kernel = _with_given(path, choice)
            return cls(kernel, choice, cls._modules(kernel, choice))
        near = choice.kernel or _kernel_of(path, packed.release or "")
        if near is None:
            module = laid_out_module(packed, None)
            module.elf.damage.note(
                f"{module.elf.name}: no image of Linux {packed.release or '?'} is near: its"
                " imports are not known; --kernel FILE names one"
            )
            return cls(module, choice)
        kernel = _with_given(near, choice)
        loaded = cls._modules(kernel, choice)
        module = laid_out_module(packed, kernel, [each.image for each in loaded])
        return cls(module, choice, loaded)

    @classmethod
    def _modules(cls, kernel: KernelImage, choice: KernelChoice) -> "tuple[OpenedKernel, ...]":
        """The modules that count as loaded, each laid out behind those before it.

        Raises:
            ImageError: one is none, or for another kernel.
        """
        found: list[OpenedKernel] = []
        for path in choice.modules:
            packed = find_module(path)
            if packed is None:
                raise ImageError(f"--module {path}: no kernel module")
            before = [each.image for each in found]
            found.append(cls(laid_out_module(packed, kernel, before), choice))
        return tuple(found)

    def at(self, address: int) -> "OpenedKernel":
        """The image or loaded module that has an address."""
        return next((each for each in self.loaded if each.image.holds(address)), self)

    @cached_property
    def guest_arch(self) -> Arch:
        """The image's architecture with the address space that its functions are called in.

        Raises:
            ImageError: functions of the architecture cannot be called.
        """
        if self.arch.kernel_plan is None:
            raise ImageError(
                f"{self.image.elf.name}: functions of {self.arch.name} cannot be called"
            )
        return replace(self.arch, plan=self.arch.kernel_plan)

    @property
    def calls(self) -> KernelCalls:
        """The rules for calling its functions.

        Raises:
            ImageError: functions of the architecture cannot be called.
        """
        if self.arch.kernel_calls is None:
            raise ImageError(
                f"{self.image.elf.name}: functions of {self.arch.name} cannot be called"
            )
        return self.arch.kernel_calls()

    @cached_property
    def base(self) -> "OpenedKernel | None":
        """A module's kernel; None for a kernel, and where it is not known."""
        kernel = self.image.kernel
        return None if kernel is None else OpenedKernel(kernel, self.choice)

    @property
    def era(self) -> str:
        """The version whose rules hold."""
        return ".".join(map(str, self.version))

    @cached_property
    def names(self) -> ImageNames:
        """The image's names."""
        return ImageNames(self.image)

    @cached_property
    def sites(self) -> SiteTables:
        """The tables of places in its text."""
        image = self.image
        shapes = self.arch.kernel_shapes
        return SiteTables(image, image.names.addresses, image.elf.damage, shapes)

    @cached_property
    def live(self) -> LiveText:
        """The image's text as it runs."""
        text, _ = text_of(self.image)
        cpu = self._cpu
        if cpu is None:
            return LiveText(self.image, text, columns_of(patch_columns(())))
        columns = self._columns(self.image, f"live-{_digest(cpu)}", self._patch_columns)
        return LiveText(self.image, text, columns)

    def _patch_columns(self) -> dict[str, Column]:
        return patch_columns(self._patches())

    def _columns(
        self, image: KernelImage, kind: str, make: Callable[[], Mapping[str, Column]]
    ) -> ColumnSet:
        """Columns that are kept, or made and kept; those of damaged tables are not."""
        kept = image.kept
        found = kept.columns(kind) if kept is not None else None
        if found is None:
            damage = image.elf.damage
            before = len(damage.found())
            made = make()
            if kept is not None and len(damage.found()) == before:
                kept.keep_columns(kind, made)
            found = columns_of(made)
        return found

    @cached_property
    def lines(self) -> "Lines":
        """The image's source lines, of a debug file that is found or was given."""
        from engine.image.lines import Lines

        return Lines(self.image.elf)

    @cached_property
    def live_image(self) -> ElfImage:
        """The same file with its text as it runs."""
        elf, kept = self.image.elf, self.image.kept
        data = kept.private_image() if kept is not None else None
        memory = data if data is not None else bytearray(elf.buffer)
        for low, high in text_of(self.image)[0]:
            at = elf.file_offset(low)
            if at is not None:
                self.live.patch(memory, low, at, high - low)
        whole = memory if isinstance(memory, mmap) else bytes(memory)
        made = ElfImage(whole, elf.name, elf.path, damage=elf.damage)
        made.kernel, made.kept = elf.kernel, elf.kept
        made.debug_file, made.debug_places = elf.debug_file, elf.debug_places
        return made

    def boot_on(self, cpuinfo: str) -> None:
        """Take a CPU in place of the chosen one, before the live text is asked for.

        Args:
            cpuinfo: text of its /proc/cpuinfo, with a line `command line`.
        """
        self._cpu = cpu_of(cpuinfo)

    @cached_property
    def _cpu(self) -> CpuModel | None:
        """The CPU that it boots on; None where its text stays as it is."""
        alone = self.image.is_module and self.image.kernel is None
        if self.choice.patched is Patched.FILE or self.arch.kernel_text is None or alone:
            return None
        return cpu_named(self.choice.cpu, self.arch.name)

    def _patches(self) -> Sequence[TextPatch]:
        boot, cpu = self.arch.kernel_text, self._cpu
        if cpu is None or boot is None:
            return ()
        kernel = self.image.kernel
        if kernel is None:
            return boot(self.image, self.sites, cpu).patches()
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
        return ImageTables(
            self.image, self._columns(self.image, "tables", self._table_columns), self.live
        )

    def _table_columns(self) -> dict[str, Column]:
        return table_columns(self.sites, text_of(self.image)[1], self._kernel_traces)

    def _kernel_traces(self) -> bool:
        kernel = self.image.kernel
        if kernel is None:
            return self.image.is_module
        return bool(self._kernel_sites.ftrace)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The troubles with what is kept of it, for debugging."""
        images = (self.image.kernel, self.image)
        kept = [image.kept for image in images if image is not None]
        return tuple(line for each in kept if each is not None for line in each.remarks)

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
        return tuple(name for name, sites in found if not len(sites))

    @cached_property
    def places(self) -> KernelPlaces:
        """Judges its addresses."""
        assert self.arch.kernel_rules is not None, "it was opened"
        # A module has neither thunks nor landing pads of its own: they are its kernel's.
        rules = self.arch.kernel_rules(_Elder(self.image.kernel or self.image, self.version))
        return KernelPlaces(self.names, self.tables, rules, module=self.image.is_module)

    @cached_property
    def events(self) -> "OwnEvents":
        """The trace events of the kernel itself."""
        from engine.image.kernel.eventarray import find_event_array
        from engine.image.kernel.events import OwnEvents

        image = self.image.kernel or self.image

        def made() -> dict[str, Column]:
            return {"text": OwnEvents(image, lambda: find_event_array(image)).listing.encode()}

        return OwnEvents(image, known=self._columns(image, "events", made).bytes("text").decode())

    @cached_property
    def types(self) -> "tuple[Btf, ...]":
        """The image's types, a module's behind those of its kernel."""
        images = (self.image.kernel, self.image, *(each.image for each in self.loaded))
        found = [image.btf for image in images if image is not None]
        return tuple(btf for btf in found if btf is not None)
