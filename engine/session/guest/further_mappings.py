"""Probes of a file that one process has mapped executable several times at once.

The kernel plants a uprobe in each mapping of its inode (kernel/events/uprobes.c, uprobe_mmap):
dlmopen maps a library once for each namespace, and a program may map a file by hand. The first
mapping has the probe itself; in each further one a probe stands for it.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Map

from engine.cpu.ram import EXECUTE
from engine.guest.memory import Mapping, Memory
from engine.probes.kprobe import Kprobe
from engine.session.program.places import Place

Mapped = tuple[Mapping, ...]
_File = tuple[tuple[int, int], str]


class FurtherProbes:
    """The probes that stand for others in further mappings of one address space.

    Attributes:
        stand_for: by such a probe: the one that it stands for.
    """

    def __init__(self) -> None:
        """There are none."""
        self.stand_for: dict[Kprobe, Kprobe] = {}

    def __contains__(self, probe: object) -> bool:
        """True if a probe stands for another one."""
        return probe in self.stand_for

    def __len__(self) -> int:
        """Number of probes that stand for others."""
        return len(self.stand_for)

    def __iter__(self) -> Iterator[Kprobe]:
        """The probes that stand for others, in the order in which they were added."""
        return iter(self.stand_for)

    def add(self, made: Kprobe, probe: Kprobe) -> None:
        """One stands for another from now on."""
        self.stand_for[made] = probe

    def drop(self, made: Kprobe) -> bool:
        """One is gone; False if it stood for none."""
        return self.stand_for.pop(made, None) is not None

    def of(self, probes: Iterable[Kprobe]) -> list[Kprobe]:
        """The probes that stand for some probes in further mappings."""
        if not self.stand_for:
            return []
        asked = {id(probe) for probe in probes}
        return [made for made, probe in self.stand_for.items() if id(probe) in asked]

    def addresses(self, probe: Kprobe) -> set[int]:
        """Addresses of those that stand for a probe."""
        return {made.addr or 0 for made in self.of((probe,))}

    def follow(self, other: "FurtherProbes", pairs: Map[Kprobe, Kprobe]) -> None:
        """A copy of the address space has its own ones: `pairs` has who stands for whom there."""
        for made, probe in other.stand_for.items():
            if made in pairs and probe in pairs:
                self.stand_for[pairs[made]] = pairs[probe]


def mapped_again(memory: Memory, start: int, size: int) -> Mapped:
    """Executable mappings in a range of files that are mapped executable elsewhere, too."""
    found = [m for m in memory.overlapping(start, start + size) if _is_code(m)]
    if not found:
        return ()
    wanted = {_file(mapping) for mapping in found}
    seen: set[_File] = set()
    often: set[_File] = set()
    for mapping in memory.mappings:
        if _is_code(mapping) and (file := _file(mapping)) in wanted:
            (often if file in seen else seen).add(file)
    return tuple(mapping for mapping in found if _file(mapping) in often)


def addresses_in(place: Place, mappings: Mapped) -> Iterator[int]:
    """Guest addresses of a place in mappings."""
    offset = place.file_offset
    if offset is None:
        return
    for mapping in mappings:
        if mapping.offset <= offset < mapping.offset + mapping.size and place.is_in(mapping):
            yield mapping.start + offset - mapping.offset


def _is_code(mapping: Mapping) -> bool:
    return bool(mapping.perms & EXECUTE) and mapping.name.startswith("/")


def _file(mapping: Mapping) -> _File:
    return mapping.inode, mapping.name
