"""Disassembly of programs and of files of plain bytes."""

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from engine import arch as architectures
from engine.arch.base import Arch
from engine.errors import CommandError
from engine.session.program.listing import Area, ListedInsn, Listing
from engine.session.program.opening import OpenedProgram
from engine.session.program.places import Places
from engine.session.protocol.report import Report
from engine.session.protocol.requests import ListingRequest, RawListingRequest


class ListedCode(Struct, frozen=True):
    """A stretch of code.

    Attributes:
        insns: its instructions, decoded as they are asked for.
        insn_max: bytes of the longest instruction of the architecture.
        damage: remarks about what was damaged in its file up to now, once.
    """

    insns: Iterator[ListedInsn]
    insn_max: int
    damage: Callable[[], tuple[Report, ...]] = tuple


def disassemble(request: ListingRequest) -> Iterator[ListedCode]:
    """List the function around a place, or all executable sections.

    Raises:
        ImageError: the guest is no program for a machine that is supported.
        PlaceError: there is no such place.
        CommandError: the file stores nothing there.
    """
    opened = OpenedProgram.open(request.config)
    arch, program = opened.arch, opened.inspected()
    if request.place is None:
        listing = Listing(arch, program.main)
        for area in listing.sections():
            yield replace(_listed(listing, area, arch), damage=opened.damage)
        return
    shown: set[int] = set()
    with opened.explained():
        places = Places(arch, program).resolve(request.place)
    for found in places:
        listing = Listing(arch, program.at_path(found.path))
        area = listing.around(found)
        if not area.data:
            raise CommandError(f"{request.place}: the file stores nothing there")
        if area.start not in shown:
            yield replace(_listed(listing, area, arch), damage=opened.damage)
        shown.add(area.start)


def disassemble_raw(request: RawListingRequest) -> ListedCode:
    """List a file of plain bytes.

    Raises:
        CommandError: it cannot be read, or does not lie where it should.
    """
    arch, path, base = architectures.by_name(request.arch), request.path, request.base
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    if base < 0 or base + len(data) > 1 << arch.bits:
        raise CommandError(
            f"--base {base:#x}: {len(data)} bytes from there leave {arch.bits} bits"
        )
    if base % arch.insn_align:
        raise CommandError(f"--base {base:#x}: instructions are {arch.insn_align}-aligned")
    return _listed(Listing(arch), Area(base, data), arch)


def _listed(listing: Listing, area: Area, arch: Arch) -> ListedCode:
    return ListedCode(listing.lines(area), arch.insn_max)
