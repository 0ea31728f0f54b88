"""The events of a guest as a log, to be compared with the running kernel's."""

from typing import ClassVar

from engine.arch.program import EVENT_MOST
from engine.session.guest.session import Session
from engine.session.live.eventlog import EventLog, SpotOf, region_spots


class GuestLogFormat:
    """Rows of a guest that are put into a log; a `Format` without text."""

    name: ClassVar[str] = "log"
    wants_stacks: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    event_most: ClassVar[int] = EVENT_MOST

    def __init__(self, log: EventLog, session: Session) -> None:
        """Put them into a log, with what addresses are in a session's guest."""
        self._log = log
        self._session = session
        self._spots: dict[tuple[tuple[int, int, int, str], ...], SpotOf] = {}
        self._pids = session.machine.pids

    def rows(self, data: bytes) -> bytes:
        """Takes them, with the mappings that there are now."""
        now: dict[int, SpotOf] = {}
        threads, known = self._session.machine.threads, self._spots

        def spots(thread: int, time: int) -> SpotOf:
            found = now.get(thread)
            if found is None:
                owner = threads.get(thread)
                space = self._session.space if owner is None else owner.space
                regions = tuple(
                    (one.start, one.end, one.offset, one.name)
                    for one in space.memory.mappings
                    if not one.reserved
                )
                found = known.get(regions)
                if found is None:
                    found = known[regions] = region_spots(regions)
                now[thread] = found
            return found

        self._log.add(data, spots, lambda thread: self._pids.get(thread, thread))
        return b""

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """Nothing."""
        return b""

    def lost(self, count: int) -> bytes:
        """Nothing: a guest loses none."""
        return b""

    def end(self) -> bytes:
        """Nothing."""
        return b""

    def renamed(self, thread_id: int) -> None:
        """Names do not count."""

    def program(self, number: int) -> None:
        """Mappings say it."""

    def state(self) -> object:
        """Nothing is resumed."""
        return None

    def restore(self, state: object) -> None:
        """Nothing to go on from."""
