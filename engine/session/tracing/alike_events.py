"""Events of lines alike that follow one another, in columns.

A million of them differ in name and offset alone, and most are never hit. An event, its line and
its probe are made when somebody asks for one of them; until then there are its name and numbers.
"""

from array import array
from bisect import bisect_left, bisect_right
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.probes.kprobe import Uprobe
from engine.session.guest.dormant_wanted import DormantWanted
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.places import Enclosing, Place
from engine.session.tracing.event_set import Defined, EventSet, TraceEvent
from engine.trace.rows import EventInfo


class SharedWords(Struct, frozen=True, eq=False):
    """The things that a line has in common with the one before it.

    Attributes:
        key: its group, path, arguments and end as text.
        event: an event that such a line has made.
        done: what it has defined.
        distance: what is added to an offset in its file to get the link address.
    """

    key: tuple[str, str, str, str]
    event: TraceEvent
    done: Defined
    distance: int


class AlikeEvents:
    """Events by number, in the order of their lines (a `DormantEvents`).

    Attributes:
        rows: their probes.
    """

    def __init__(self, words: SharedWords, events: EventSet, mode: Mode) -> None:
        """There are none yet.

        Args:
            words: what they share.
            events: of their trace.
            mode: strictness of it.
        """
        self.rows = DormantWanted(words.done.wanted[0], self._make)
        self._words, self._events, self._mode = words, events, mode
        self._names: list[str] = []
        self._ids = array("I")
        self._functions: list[Enclosing] = []
        self._begins = array("I")  # the first number in each function
        self._made: dict[int, Defined] = {}

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str, offset: int, around: Enclosing) -> None:
        """Add an event behind the others.

        Args:
            name: second part of its name, which none has.
            offset: of its probe in the file.
            around: the function there.

        Raises:
            CommandError: there are too many events.
        """
        self._ids.append(self._events.leave(self._words.event.info.group, name, self))
        if not self._functions or self._functions[-1] is not around:
            self._functions.append(around)
            self._begins.append(len(self._names))
        self._names.append(name)
        self.rows.offsets.append(offset)

    def lines(self) -> list[Defined]:
        """The definitions, in order."""
        return [self._line(number) for number in range(len(self._names))]

    def named(self, name: str) -> TraceEvent:
        """The event with a name."""
        return self._line(self._numbers[name]).event

    def info(self, event_id: int) -> EventInfo:
        """The description of an event's rows: of one that is asked for no more, no event is made.

        Args:
            event_id: of the event.
        """
        return self._info(bisect_left(self._ids, event_id))

    def id_of(self, name: str) -> int:
        """The id of the event with a name."""
        return self._ids[self._numbers[name]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._names)}

    def _info(self, number: int) -> EventInfo:
        like = self._words.event.info
        return replace(like, id=self._ids[number], name=self._names[number])

    def _line(self, number: int) -> Defined:
        self.rows.wanted(number)
        return self._made[number]

    def _make(self, number: int) -> Wanted:
        """Make an event with its line and its probe."""
        words, offset = self._words, self.rows.offsets[number]
        group, path, args, end = words.key
        info = self._info(number)
        event = TraceEvent(info, words.event.kind)
        around = self._functions[bisect_right(self._begins, number) - 1]
        place = Place(around, offset + words.distance, "")
        probe = Uprobe(path, offset, mode=self._mode, name=info)
        like = self.rows.like
        wanted = Wanted(place, probe, event, anywhere=like.anywhere, late=like.late)
        line = f"p:{group}/{info.name} {path}:{offset:#x}{args}{end}"
        done = self._made[number] = Defined(line, wanted, event, words.done.read)
        event.add(done)
        self._events.woke(event)
        return wanted
