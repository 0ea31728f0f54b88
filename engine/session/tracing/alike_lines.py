"""Lines that define what the line before them has defined, but for the name and the offset.

Programs write them, by the hundred thousand. What such a line has in common with the one before it
is not read, judged and looked up again, and its event has no objects before somebody asks for it.
It has the same outcome as any other way to carry it out: a line that is special in any way is left
to that.
"""

import re
from typing import TYPE_CHECKING, Final

from engine.arch.plan import Mode
from engine.probes.kprobe import Uprobe
from engine.session.guest.probing import Probing
from engine.session.guest.wanted_probes import Wanted
from engine.session.tracing.alike_events import AlikeEvents, SharedWords
from engine.session.tracing.defined_set import DefinedSet
from engine.session.tracing.event_set import Defined, EventSet

if TYPE_CHECKING:
    from engine.session.program.plain_uprobes import PlainUprobes

_LINE: Final = re.compile(
    r"p:([A-Za-z_][\w-]{0,62})/([A-Za-z_]\w{0,62}) "  # the head: group and name
    r"([\w./+-]*/[\w./+-]*):0x([1-9a-f][0-9a-f]{0,14})"  # the place: path and offset
    r'((?: [!"$-~]+)*)(\n?)',  # arguments, the end
    re.ASCII,
)
_MARKERS: Final = "sdt"
"""In a line that may be about static probes."""


class AlikeLines:
    """Carries out lines of one trace that are like the one before."""

    def __init__(
        self, mode: Mode, probing: Probing, events: EventSet, defined: DefinedSet
    ) -> None:
        """Set up; nothing runs and no other probe is placed meanwhile.

        Args:
            mode: strictness of the trace.
            probing: places probes.
            events: of the trace.
            defined: its definitions.
        """
        self._mode, self._probing = mode, probing
        self._events, self._defined = events, defined
        self._pattern: SharedWords | None = None
        self._places: PlainUprobes | None = None  # of the pattern's file
        self._alike: AlikeEvents | None = None  # of the lines just before

    def take(self, line: str) -> bool:
        """Carry out a line if it is like the one before; False if it has to be read.

        Raises:
            CommandError: there are too many events.
        """
        pattern, places = self._pattern, self._places
        found = _LINE.fullmatch(line) if pattern is not None else None
        if found is None or pattern is None or places is None or _MARKERS in line:
            return False
        group, name, path, digits, args, end = found.groups()
        if (group, path, args, end) != pattern.key or not self._events.is_free(group, name):
            return False
        if self._defined.compares_sites:
            return False
        offset = int(digits, 16)
        around = places.around(offset)
        if around is None:
            return False
        alike = self._alike
        if alike is None:
            alike = self._alike = AlikeEvents(pattern, self._events, self._mode)
            self._defined.add_dormant(alike)
            self._probing.wait(alike.rows)
        alike.add(name, offset, around)
        return True

    def follow(self, line: str, made: Defined | None) -> None:
        """Have the next line compared with this one, which was carried out by itself.

        Args:
            line: the line.
            made: what it has defined; None if that is not one definition.
        """
        self._alike = None
        found = _LINE.fullmatch(line) if made is not None and self._mode is Mode.STRICT else None
        if found is None or made is None:
            self._pattern = None
            return
        key = found[1], found[3], found[5], found[6]
        if self._pattern is not None and self._pattern.key == key:
            return  # the next one may be ordinary again
        self._pattern = None
        wanted = made.given
        if made.what is not line or not isinstance(wanted, Wanted):
            return
        place, event = wanted.place, made.event
        usual = type(wanted.probe) is Uprobe and wanted.probe.plain and wanted.ready is event
        usual = usual and wanted.late
        if not usual or place.typed or place.path != key[1] or not self._probing.waits(place):
            return
        self._places = self._probing.verdicts.plain_uprobes(place)
        self._pattern = SharedWords(key, event, made, self._places.distance)
