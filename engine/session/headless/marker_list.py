"""The static probes (USDT) of a program and its libraries, listed without a run."""

from collections.abc import Callable

from msgspec import Struct

from engine.session.program.markers import Marker, Markers
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report
from engine.trace.marker_words import UnfetchableError


class ListedArgument(Struct, frozen=True):
    """An argument of a static probe.

    Attributes:
        operand: where it is, in the words of the assembler.
        fetch: the words that fetch it in a definition; "" where it cannot be fetched.
        problem: why not.
    """

    operand: str
    fetch: str = ""
    problem: str = ""


class ListedMarker(Struct, frozen=True):
    """A static probe at one of its places.

    Attributes:
        event: as -e takes it.
        provider: of it.
        name: of it.
        path: guest path of the file.
        address: link address.
        offset: in the file; None where no code is.
        semaphore: link address of its counter, 0 for none.
        place: as `uprobe_events` takes it; "" where nothing can be placed.
        arguments: of it.
        problem: why nothing can be placed there, "" where it can.
    """

    event: str
    provider: str
    name: str
    path: str
    address: int
    offset: int | None
    semaphore: int
    place: str
    arguments: tuple[ListedArgument, ...]
    problem: str = ""


class MarkerList(Struct, frozen=True):
    """All static probes of a program.

    Attributes:
        rows: of them, file by file, in the order of their notes.
        damage: remarks about notes that could not be read, once.
    """

    rows: tuple[ListedMarker, ...]
    damage: Callable[[], tuple[Report, ...]]


def list_markers(config: GuestConfig) -> MarkerList:
    """The static probes of a program and of the libraries that it begins with.

    Raises:
        ImageError: the guest is no program for a machine that is supported.
    """
    opened = OpenedProgram.open(config)
    markers = Markers(opened.arch, opened.inspected())

    def argument(marker: Marker, number: int) -> ListedArgument:
        text = marker.operands[number - 1].text
        try:
            return ListedArgument(text, ":".join(marker.fetch(number, opened.arch)))
        except UnfetchableError as error:
            return ListedArgument(text, problem=str(error))

    def row(marker: Marker) -> ListedMarker:
        probe, problem = marker.probe, marker.problem
        numbers = range(1, len(marker.operands) + 1)
        return ListedMarker(
            event=marker.event,
            provider=probe.provider,
            name=probe.name,
            path=marker.file.path,
            address=probe.address,
            offset=marker.offset,
            semaphore=probe.semaphore,
            place="" if problem else marker.place,
            arguments=tuple(argument(marker, number) for number in numbers),
            problem=problem,
        )

    return MarkerList(tuple(map(row, markers.all())), opened.damage)
