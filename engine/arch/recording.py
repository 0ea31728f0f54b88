"""Orders to record in a detour, and the code made of them: plain data for all architectures.

`Work` says what is done at one place: rows are written for events, a call that begins gets a
record, the record of one that has returned goes. `DetourPlaces` says where all of that stands in
the guest, and `Recorder` is the code, with what the engine must know to take over from it.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct, field

from engine.arch.program import FetchArg, PredicateOp, RecordLayout


class NotCompilableError(Exception):
    """A recording that no code in the guest can make; the text says why."""


class Recording(Struct, frozen=True):
    """Recording of a probe without handlers, for a detour.

    Attributes:
        event: id of the event.
        layout: of its rows.
        address: of the probe, as rows show it.
        image_base: what `@+OFF` is relative to.
        pc: what the program counter is to a fetch.
        filter: predicate over the row; without ops all rows pass.
        counter: guest address of the probe's count of hits, a 64-bit word.
    """

    event: int
    layout: RecordLayout
    address: int
    image_base: int
    pc: int
    filter: tuple[PredicateOp, ...] = ()
    counter: int = 0


SCRATCH = 48
"""Offset in the page of `DetourPlaces.save` of two words for `ArchJumps.scratch`, which whoever
leads the guest from a breakpoint to a detour fills."""

CURSOR = 64
"""Offset of the ring's cursor in the page of `DetourPlaces.save`."""

COMM = 96
"""Offset of the running thread's name there: `COMM_BYTES`, then a word with its size."""

COMM_BYTES = 16
"""Bytes of a thread's name with all its NULs (TASK_COMM_LEN); its size counts one NUL."""

CALLS = 128
"""Offset there of the address of the newest call's record (see `CallWord`)."""

LOWEST = 136
"""Offset there of the lowest frame that may be recorded without the engine."""

CHAINED = 1 << 31
"""In `CallWord.KIND`: the record below is of the same frame; a tail call has been made there."""

SITES = 1 << 13
"""Words in the table of addresses whose returns are caught; see `DetourPlaces.sites`."""

SITE_SHIFT = 2
"""Low bits of an address that say nothing of its word there."""

STRING_TOTAL = 4000
"""Bytes of strings in a row beyond which a detour asks the engine to record it."""


class CallWord(IntEnum):
    """Words of a pending call's record.

    Records lie one behind the other, `CallWord.SIZE` words each; what is called later has its
    frame at a lower address and its record behind.
    """

    FRAME = 0
    """See `engine.probes.kretprobe.KretprobeInstance.slot`."""
    RETURN = 1
    """Return address of the call."""
    KIND = 2
    """Which code may end it (bits 0-30), 0 = none; CHAINED; number of the probe (32-63)."""
    TIME = 3
    DEPTH = 4
    """Of the call among those that a tracker follows, all ones = it follows none so far."""
    FUNCTION = 5
    """The function's address as rows show it."""
    KEPT = 6
    """First of the values that were captured."""
    SIZE = 16


class CallEntry(Struct, frozen=True):
    """Work of a return probe at its function's entry, for a detour: a record of the call.

    Only a call whose return is caught, and whose frame lies below all that are pending, is
    recorded, and one that the newest call has made in its place (a tail call): the others are
    the engine's business.

    Attributes:
        number: of the probe.
        kind: which code may end the call.
        function: its address as rows show it.
        deeper: whether a tracker counts it.
        image_base: what `@+OFF` is relative to.
        pc: what the program counter is to a fetch.
        kept: what is captured, the time for None.
        row: what is recorded beside it; None for nothing. Its `Source.CALL` is the new record.
        counter: see `Recording.counter`.
        before: what other probes record there first.
    """

    number: int
    kind: int
    function: int
    deeper: bool
    image_base: int
    pc: int
    kept: tuple[FetchArg | None, ...] = ()
    row: Recording | None = None
    counter: int = 0
    before: tuple[Recording, ...] = ()


class CallReturn(Struct, frozen=True):
    """Work at the place that calls return to, for a detour: the newest call's record goes.

    If it is that of the call which has returned, by an instruction known to be a return; those
    it is chained to go as well. All else is the engine's business.

    Attributes:
        site: the address.
        kind: which calls this code may end.
        row: what is recorded. Its `Source.CALL` is the record.
        of_call: whether the row's address is the record's.
        known: guest address of two words with the ends of the return instructions seen last.
    """

    site: int
    kind: int
    row: Recording
    of_call: bool = False
    known: int = 0


Work: TypeAlias = tuple[Recording, ...] | CallEntry | CallReturn
"""Work of code in the guest at one place."""


def recorded_by(work: Work) -> tuple[Recording, ...]:
    """The rows that it writes for events, but for those of calls that begin."""
    if isinstance(work, CallEntry):
        return work.before
    return (work.row,) if isinstance(work, CallReturn) else work


class DetourPlaces(Struct, frozen=True):
    """Guest addresses of what detours share.

    Attributes:
        save: a page that detours may write, whose first words keep registers; the ring's cursor
            (bytes of rows in it) and the thread's name stand there too.
        time: word of the clock's end; the word behind it is the ticks left to that.
        thread: word whose upper half is the running thread's id.
        ring: where rows go. Behind its end nothing is mapped.
        left: the words of `engine.cpu.base.Cpu.last_branches`.
        sites: table of addresses that calls return to and where that is caught: each may stand
            in the word (address >> SITE_SHIFT) % SITES.
    """

    save: int
    time: int
    thread: int
    ring: int
    left: int
    sites: int

    @property
    def cursor(self) -> int:
        """The ring's cursor."""
        return self.save + CURSOR

    @property
    def calls(self) -> int:
        """The address of the newest call's record."""
        return self.save + CALLS

    @property
    def lowest(self) -> int:
        """The lowest frame that may be recorded without the engine."""
        return self.save + LOWEST

    @property
    def comm(self) -> int:
        """The running thread's name."""
        return self.save + COMM


class Part(Struct, frozen=True):
    """The code of one recording in a recorder; offsets are those of the recorder.

    Attributes:
        start: where it begins: it counts the hit and tests the filter.
        again: where a row is begun anew after the ring was emptied, with the program's own
            values in all registers.
        behind: where the next part begins, or registers get their own values back. The same
            is asked of the registers.
        slow: a trap that asks the engine to record the hit instead, -1 if none.
        lent: registers that are recorded, and used behind `lends` without being saved: to where
            in the row, in bytes, the program's own values stand.
        lends: from where on; -1 if there are none.
    """

    start: int
    again: int
    behind: int
    slow: int = -1
    lent: Mapping[str, int] = field(default_factory=dict)
    lends: int = -1


class Recorder(Struct, frozen=True):
    """The part of a detour in front of the displaced instructions; position-independent.

    Attributes:
        code: its bytes.
        saved: register to the offset in the page of `DetourPlaces.save` of the program's own
            value, from the first instruction on that can fault; all others are in place.
        parts: one for each recording, in order.
        finish: offset where the registers get their own values back from the save area.
        trap: offset of a trap at which the engine serves all probes, -1 if code does.
    """

    code: bytes
    saved: Mapping[str, int]
    parts: tuple[Part, ...]
    finish: int
    trap: int = -1

    @property
    def again(self) -> int:
        """Place where the first recording's row is begun anew."""
        return self.parts[0].again if self.parts else self.finish

    @property
    def slow(self) -> int:
        """The first trap that asks the engine to record, -1 if there is none."""
        return next((part.slow for part in self.parts if part.slow >= 0), -1)
