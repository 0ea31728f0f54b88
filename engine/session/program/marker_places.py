"""Static probes (USDT) as places of breakpoints: `%sdt_PROVIDER:NAME`, `PATH:OFFSET(COUNTER)`.

A program may ask a counter whether anybody listens before it comes to its static probe: while
something stands at such a place, that counter is raised, as gdb and perf do.
"""

import re
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import Rules
from engine.errors import ProbeError
from engine.session.program.libraries import Program
from engine.session.program.places import Place, PlaceError, Places

_COUNTED: Final = re.compile(
    r"(.*/.*:(?:0[xX][0-9a-fA-F]+|\d+))\((0[xX][0-9a-fA-F]+)\)", re.DOTALL
)


class MarkerPlace(Place, frozen=True, gc=False):
    """A place with a counter of those who listen.

    Attributes:
        counter: its offset in the file, 0 for none.
    """

    counter: int = 0


def counter_of(place: Place) -> int:
    """The offset in its file of the counter that a probe at a place raises, 0 for none."""
    return place.counter if isinstance(place, MarkerPlace) else 0


def marker_places(
    places: Places, arch: Arch, program: Program, text: str
) -> tuple[Place, ...] | None:
    """The places of static probes that a text names; None for a text that names none.

    Raises:
        PlaceError: there is no such static probe, or nothing can be placed there.
    """
    counted = _COUNTED.fullmatch(text)
    if counted is not None:
        found = places.resolve(counted[1])
        return tuple(_with(place, text, int(counted[2], 16)) for place in found)
    from engine.session.program.markers import Markers  # few places are markers
    from engine.trace.marker_syntax import marker_name

    try:
        name = marker_name(text)
        markers = () if name is None else Markers(arch, program).named(name)
    except ProbeError as error:
        raise PlaceError(str(error), "BAD_PROBE_ADDR", "ENOENT") from error
    if name is None:
        return None
    usable = [one for one in markers if not one.problem]
    if not usable:
        why = f"{text}: {markers[0].problem}"
        raise PlaceError(why, "BAD_PROBE_ADDR", "EINVAL")
    return tuple(
        _with(places.at(one.file, one.probe.address, Rules.UPROBE, text), text, one.counter or 0)
        for one in usable
    )


def _with(place: Place, text: str, counter: int) -> MarkerPlace:
    return MarkerPlace(place.around, place.link, text, counter)
