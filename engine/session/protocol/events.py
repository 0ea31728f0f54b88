"""Events told to a front end: plain records that leave the engine's thread in batches."""

from typing import TypeAlias

from msgspec import Struct

from engine.session.protocol.commands import Command
from engine.session.protocol.views import (
    GuestView,
    LayoutView,
    ModuleView,
    OriginLink,
    PartsView,
    StackWord,
)
from engine.trace.rows import EventInfo


class Viewed(Struct, frozen=True):
    """A new view; only the last one counts."""

    view: GuestView


class Declared(Struct, frozen=True):
    """Events that rows may be of from now on."""

    infos: tuple[EventInfo, ...]


class Rows(Struct, frozen=True):
    """Recorded events.

    Attributes:
        data: rows, one behind the other as `engine.trace.rows` has them.
        count: how many.
        stretch: number of the stretch of the past that they are of, where a refill goes through
            the past in another order than it was; None where they come in order.
    """

    data: bytes
    count: int
    stretch: int | None = None


class StretchBegun(Struct, frozen=True):
    """Rows of a stretch of the past come from its begin on, in order; it has none yet.

    Stretches are numbered in the order in which they were: rows of one are behind those of all
    with lower numbers.
    """

    stretch: int


class ProgramBegan(Struct, frozen=True):
    """A thread is in a program from a time on, in ticks; 0 is the one that a run begins with."""

    thread: int
    time: int
    program: int


class FileMapped(Struct, frozen=True):
    """A program has code of a file in memory; the program's own file comes first."""

    program: int
    file: ModuleView


class FileRead(Struct, frozen=True):
    """The content of an ELF file that is in the memory of a kernel which is the guest only.

    Attributes:
        path: of it, there.
        data: all of it; zeros for what is not in memory.
    """

    path: str
    data: bytes


class Snapshot(Struct, frozen=True):
    """A snapshot trigger: what has been recorded up to here is to be kept, whatever follows."""


class Restarted(Struct, frozen=True):
    """A new run begins: rows and numbers of events start afresh."""


class Branched(Struct, frozen=True):
    """The run at hand is another branch: the output of that branch so far follows.

    Attributes:
        name: of the branch.
    """

    name: str


class Output(Struct, frozen=True):
    """Bytes that the guest wrote to its terminal.

    Attributes:
        data: the bytes.
        time: the tick in which it has written the last of them, 0 where that is not known.
        pc: the instruction that has.
    """

    data: bytes
    time: int = 0
    pc: int = 0


class OutputLines(Output, frozen=True):
    """Whole lines that the guest wrote one by one; `time` and `pc` are those of the first.

    Attributes:
        moments: tick and instruction that has written it, of each line.
    """

    moments: tuple[tuple[int, int], ...] = ()


class Refilling(Struct, frozen=True):
    """The log of the recorded run is made anew; rows that come now are those of its past.

    Attributes:
        done: ticks that are done; 0 at the begin: the log is empty then.
        end: all ticks.
    """

    done: int
    end: int


class Refilled(Struct, frozen=True):
    """The log is as if what is recorded now had been so from the start.

    Attributes:
        before: it was cut short: from the first to the last tick of these the log is as it was.
    """

    before: tuple[tuple[int, int], ...] = ()


class Erased(Struct, frozen=True):
    """Rows of events, by their ids, are no longer in the log."""

    events: frozenset[int]


class Done(Struct, frozen=True):
    """A command was carried out; `text` says what it came to, "" if there is nothing to say."""

    command: Command
    text: str = ""


class Failed(Struct, frozen=True):
    """A command was not carried out.

    Attributes:
        command: the command that failed.
        text: why, as the command line would print it.
        hint: the way out, "" if unknown.
        source: the line with the mistake, "" where the error is not about a text.
        column: where in it, from 0; None where the error is not about a text.
    """

    command: Command
    text: str
    hint: str = ""
    source: str = ""
    column: int | None = None


class MemoryRead(Struct, frozen=True):
    """The answer to `ReadMemory`: stretches that could be read, by address.

    Attributes:
        command: the question.
        pieces: (address, bytes).
        changed: `GuestView.changed` when they were read.
        kept: when this answer changes it is told again; False of one that is told again, as the
            order in which questions were asked says which ones are kept.
    """

    command: Command
    pieces: tuple[tuple[int, bytes], ...]
    changed: int
    kept: bool = False


class WordsRead(Struct, frozen=True):
    """The answer to `ReadWords`: those up to the first that cannot be read."""

    command: Command
    words: tuple[StackWord, ...]


class LayoutRead(Struct, frozen=True):
    """The answer to `ReadLayout`."""

    command: Command
    layout: LayoutView


class PartsRead(Struct, frozen=True):
    """The answer to `ReadParts`: one for each branch, None where there is no such value."""

    command: Command
    found: tuple[PartsView | None, ...]


class OriginFound(Struct, frozen=True):
    """The answer to `commands.Origin`: the links from now backwards.

    Attributes:
        text: the value that was asked for.
        links: as far as they were found.
        cut: the user has ended it.
    """

    text: str
    links: tuple[OriginLink, ...]
    cut: bool


class Printed(Struct, frozen=True):
    """Text that gdb's words print, newlines included."""

    text: str


class WordsKnown(Struct, frozen=True):
    """The answer to `AskWords`: names of each, the whole one first, and what it does."""

    words: tuple[tuple[tuple[str, ...], str], ...]


class LineCompleted(Struct, frozen=True):
    """The answer to `CompleteLine`.

    Attributes:
        line: as it was typed.
        lines: what it may become, the likeliest first.
    """

    line: str
    lines: tuple[str, ...]


class Notice(Struct, frozen=True):
    """Something happened to the guest or a probe that the user did not ask for."""

    text: str


class Remark(Struct, frozen=True):
    """Something about the guest that belongs among its output, line by line."""

    lines: tuple[str, ...]


class Listed(Struct, frozen=True):
    """The answer to `commands.ListDefinitions`: lines, as another tool takes them."""

    form: str
    lines: tuple[str, ...]


class Crashed(Struct, frozen=True):
    """The engine itself failed: a defect. The session is over."""

    text: str
    trace: str


SessionEvent: TypeAlias = (
    Viewed
    | Declared
    | Rows
    | StretchBegun
    | Refilling
    | Refilled
    | Erased
    | ProgramBegan
    | FileMapped
    | FileRead
    | Snapshot
    | Restarted
    | Branched
    | Output
    | Done
    | Failed
    | MemoryRead
    | WordsRead
    | PartsRead
    | LayoutRead
    | OriginFound
    | Printed
    | WordsKnown
    | LineCompleted
    | Listed
    | Notice
    | Remark
    | Crashed
)
