"""How the parts of a recorder follow each other: alike on all architectures, and only once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from engine.arch.recording import CallEntry, CallReturn, Part, Recording, Work, recorded_by


class Emitted(NamedTuple):
    """A part that has been emitted; offsets are the recorder's.

    Attributes:
        start: see `engine.arch.recording.Part`.
        again: see there.
        slow: see there.
    """

    start: int
    again: int
    slow: int


class RecorderParts(ABC):
    """Emits the parts of one recorder.

    Attributes:
        recordings: the rows for events.
        enters: what is done about a call that begins, behind those rows.
        ends: what is done about one that has returned, around its row.
        alone: whether rows are all that there is.
    """

    def __init__(self, work: Work) -> None:
        """Of what code in the guest is to do at one place."""
        self.recordings = recorded_by(work)
        self.enters = work if isinstance(work, CallEntry) else None
        self.ends = work if isinstance(work, CallReturn) else None
        self.alone = isinstance(work, tuple)

    def emit(self, *, filtered: bool) -> list[Emitted]:
        """All parts; `filtered`: the first row's hit is counted and has passed its filter."""
        if self.ends is not None:
            return self._return(self.ends)
        found = [
            self._event(str(number), one, filtered=filtered)
            for number, one in enumerate(self.recordings)
        ]
        return found if self.enters is None else [*found, self.enter(self.enters)]

    def parts(
        self, found: list[Emitted], finish: int, lent: Mapping[str, int], lends: int
    ) -> tuple[Part, ...]:
        """The same for the recorder; the code of a return has one end, and goes on there."""
        behinds = [*(one.start for one in found[1:]), finish]
        if self.ends is not None:
            behinds = [finish] * len(found)
        return tuple(
            Part(one.start, one.again, behind, one.slow, lent, lends)
            for one, behind in zip(found, behinds, strict=True)
        )

    def _event(self, name: str, one: Recording, *, filtered: bool) -> Emitted:
        start = self.label(f"{name}start")
        if not filtered:
            self.count(one)
        again, slow = self._tested_row(name, one, filtered=filtered)
        return Emitted(0 if filtered else start, again, slow)

    def _tested_row(self, name: str, one: Recording, *, filtered: bool) -> tuple[int, int]:
        """Where the row is begun anew, and where it is slow."""
        if one.filter and not filtered:
            self.test(one, name, f"{name}again", f"{name}end")
        again = self.label(f"{name}again")
        slow = self.row(one, name)
        self.label(f"{name}end")
        return again, slow

    def _return(self, ends: CallReturn) -> list[Emitted]:
        """For the last call of a frame, and for one that is chained: then it begins anew."""
        start = self.label("start")
        slow = self.check(ends, "last", "chained")
        chained = self._end("chained", ends)
        self.go("start")
        last = self._end("last", ends)
        return [Emitted(start, last.again, slow), chained, last]

    def _end(self, name: str, ends: CallReturn) -> Emitted:
        start = self.label(name)
        again, slow = self._tested_row(name, ends.row, filtered=False)
        self.forget()
        return Emitted(start, again, slow)

    # -- what an architecture emits -------------------------------------------------------

    @abstractmethod
    def label(self, name: str) -> int:
        """What follows has this name; its offset."""

    @abstractmethod
    def go(self, name: str) -> None:
        """Go on at a label."""

    @abstractmethod
    def count(self, one: Recording) -> None:
        """A hit is counted."""

    @abstractmethod
    def test(self, one: Recording, name: str, passed: str, failed: str) -> None:
        """The filter; labels of its own begin with `name`. What passes falls through."""

    @abstractmethod
    def row(self, one: Recording, name: str) -> int:
        """A row; where the engine is asked to record it, -1 for nowhere."""

    @abstractmethod
    def enter(self, work: CallEntry) -> Emitted:
        """The record of a call that begins."""

    @abstractmethod
    def check(self, ends: CallReturn, last: str, chained: str) -> int:
        """Whether the newest call has returned: to one of two labels, or the trap given back."""

    @abstractmethod
    def forget(self) -> None:
        """The newest call's record goes."""
