"""The functions of a program's own file, and its static probes: all, and those that match."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from fnmatch import translate
from itertools import pairwise
from operator import sub
from re import compile as compiled
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from engine.image import ElfImage
from engine.image.headers import SHF_EXECINSTR
from engine.session.program.libraries import ProgramFile

if TYPE_CHECKING:  # few guests are kernels
    from engine.session.kernel.opened import OpenedKernel

_SECTION, _MODULE = "in:", "mod:"
_MARKERS: Final = "sdt"
"""The word for static probes in the column of sections."""
_GLOB: Final = frozenset("*?[")


class FunctionRow(Struct, frozen=True):
    """A function.

    Attributes:
        name: as a definition spells it.
        shown: as its source has it.
        address: link address.
        size: bytes, 0 where it is not known.
        section: name of the section.
        module: "" for the program's own file.
    """

    name: str
    shown: str
    address: int
    size: int
    section: str
    module: str = ""


class FunctionList:
    """All functions of some files, by address.

    Attributes:
        names: of all, in order; the other columns belong to them.
        markers: static probes among them by link address, as a definition names them.
    """

    def __init__(self) -> None:
        """None yet."""
        self.names: list[str] = []
        self.markers: Mapping[int, str] = {}
        self._shown: dict[int, str] = {}
        self._addresses: list[int] = []
        self._sizes: list[int] = []
        self._sections: list[str] = []
        self._modules: list[str] = []

    @classmethod
    def of_file(cls, file: ProgramFile, markers: Mapping[int, str]) -> "FunctionList":
        """List the functions of a program's own file, its static probes (USDT) among them.

        Args:
            file: the one of the program itself.
            markers: the probes by link address.
        """
        made = cls()
        made.markers = markers
        section = _sections(file.image)
        left = deque(sorted(markers))
        for symbol in file.symbols.functions():
            while left and left[0] < symbol.address:
                made._add(markers[left[0]], left.popleft(), 0, _MARKERS, "")
            made._add(symbol.name, symbol.address, symbol.size, section(symbol.address), "")
            if symbol.demangled != symbol.name:
                made._shown[len(made.names) - 1] = symbol.demangled
        for address in left:
            made._add(markers[address], address, 0, _MARKERS, "")
        return made

    @classmethod
    def of_kernel(cls, opened: "OpenedKernel") -> "FunctionList":
        """List the functions of a kernel image; a module's stand in front of its kernel's."""
        made = cls()
        for image in (opened.image, opened.image.kernel):
            if image is None:
                continue
            names, addresses = image.names.names, image.names.addresses
            module = image.module if opened.image.is_module else ""
            for start, end, where in _areas(image.elf):
                here = slice(bisect_left(addresses, start), bisect_left(addresses, end))
                made.names += names[here]
                made._addresses += addresses[here]
                made._sizes += _reaches(addresses, here)
                made._sections += [where] * (len(made.names) - len(made._sections))
                made._modules += [module] * (len(made.names) - len(made._modules))
        return made

    def _add(self, name: str, address: int, size: int, section: str, module: str) -> None:
        self.names.append(name)
        self._addresses.append(address)
        self._sizes.append(size)
        self._sections.append(section)
        self._modules.append(module)

    def __len__(self) -> int:
        """Their number."""
        return len(self.names)

    def __getitem__(self, index: int) -> FunctionRow:
        """One of them."""
        name = self.names[index]
        return FunctionRow(
            name,
            self._shown.get(index, name),
            self._addresses[index],
            self._sizes[index],
            self._sections[index],
            self._modules[index],
        )

    def matching(self, text: str) -> Sequence[int]:
        """Numbers of those that meet all words of a text.

        A word is a part of a name, or a pattern for all of it (`vfs_*`); `in:PATTERN` is about
        the section, `mod:PATTERN` about the module. Without capitals any case will do.
        """
        found: Sequence[int] = range(len(self))
        for word in text.split():
            if word.startswith(_SECTION):
                column, word = self._sections, word.removeprefix(_SECTION)
            elif word.startswith(_MODULE):
                column, word = self._modules, word.removeprefix(_MODULE)
            else:
                column = self.names
            matches = _test(word)
            shown = self._shown if column is self.names else {}
            found = [n for n in found if matches(column[n]) or (n in shown and matches(shown[n]))]
        return found


def _test(word: str) -> Callable[[str], bool]:
    folded = word == word.lower()
    if _GLOB.isdisjoint(word):
        if folded:
            return lambda text: word in text.lower()
        return lambda text: word in text
    pattern = compiled(translate(word))
    if folded:
        return lambda text: pattern.match(text.lower()) is not None
    return lambda text: pattern.match(text) is not None


def _reaches(addresses: Sequence[int], here: slice) -> list[int]:
    """Bytes from each of some addresses to the next other one; 0 where there is none.

    Args:
        addresses: all that there are, in order.
        here: those that are asked for.
    """
    count = here.stop - here.start
    if count <= 0:
        return []
    behind = bisect_right(addresses, addresses[here.stop - 1])
    found = list(map(sub, addresses[here.start + 1 : behind + 1], addresses[here.start : behind]))
    found += [0] * (count - len(found))
    for number in reversed([number for number, size in enumerate(found) if not size]):
        found[number] = found[number + 1] if number + 1 < len(found) else 0
    return found[:count]


def _areas(image: ElfImage) -> list[tuple[int, int, str]]:
    """The executable sections: (start, end, name), none of which reaches into the next."""
    found = sorted(
        (s.addr, s.addr + s.size, s.name)
        for s in image.sections
        if s.flags & SHF_EXECINSTR and s.size
    )
    if not found:
        found = sorted(
            (s.vaddr, s.vaddr + s.memsz, "code") for s in image.load_segments if s.flags & 1
        )
    ends = [min(end, start) for (_, end, _), (start, _, _) in pairwise(found)]
    ends += [end for _, end, _ in found[-1:]]
    return [(start, end, name) for (start, _, name), end in zip(found, ends, strict=True)]


def _sections(image: ElfImage) -> Callable[[int], str]:
    """The name of the executable section that holds an address, "" for none."""
    found = _areas(image)
    starts = [row[0] for row in found]

    def section(address: int) -> str:
        at = bisect_right(starts, address) - 1
        return found[at][2] if at >= 0 and address < found[at][1] else ""

    return section
