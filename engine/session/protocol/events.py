"""Events told to a front end: plain records that leave the engine's thread in batches."""

from dataclasses import dataclass
from typing import TypeAlias

from engine.session.protocol.commands import Command
from engine.session.protocol.views import GuestView, ModuleView, PartsView, StackWord
from engine.trace.rows import EventInfo


@dataclass(frozen=True, slots=True)
class Viewed:
    """A new view; only the last one counts."""

    view: GuestView


@dataclass(frozen=True, slots=True)
class Declared:
    """Events that rows may be of from now on."""

    infos: tuple[EventInfo, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Recorded events: `count` rows, one behind the other as `engine.trace.rows` has them."""

    data: bytes
    count: int


@dataclass(frozen=True, slots=True)
class ProgramBegan:
    """A thread is in a program from a time on, in ticks; 0 is the one that a run begins with."""

    thread: int
    time: int
    program: int


@dataclass(frozen=True, slots=True)
class FileMapped:
    """A program has code of a file in memory; the program's own file comes first."""

    program: int
    file: ModuleView


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot trigger: what has been recorded up to here is to be kept, whatever follows."""


@dataclass(frozen=True, slots=True)
class Restarted:
    """A new run begins: rows and numbers of events start afresh."""


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that the guest wrote to its terminal."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """A command was carried out; `text` says what it came to, "" if there is nothing to say."""

    command: Command
    text: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """A command was not carried out.

    Attributes:
        command: it.
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


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """The answer to `ReadMemory`: stretches that could be read, by address.

    Attributes:
        command: the question.
        pieces: (address, bytes).
        changed: `GuestView.changed` when they were read.
    """

    command: Command
    pieces: tuple[tuple[int, bytes], ...]
    changed: int


@dataclass(frozen=True, slots=True)
class WordsRead:
    """The answer to `ReadWords`: those up to the first that cannot be read."""

    command: Command
    words: tuple[StackWord, ...]


@dataclass(frozen=True, slots=True)
class PartsRead:
    """The answer to `ReadParts`: one for each branch, None where there is no such value."""

    command: Command
    found: tuple[PartsView | None, ...]


@dataclass(frozen=True, slots=True)
class Printed:
    """Text that gdb's words print, newlines included."""

    text: str


@dataclass(frozen=True, slots=True)
class WordsKnown:
    """The answer to `AskWords`: names of each, the whole one first, and what it does."""

    words: tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something happened to the guest or a probe that the user did not ask for."""

    text: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the guest that belongs among its output, line by line."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Crashed:
    """The engine itself failed: a defect. The session is over."""

    text: str
    trace: str


SessionEvent: TypeAlias = (
    Viewed
    | Declared
    | Rows
    | ProgramBegan
    | FileMapped
    | Snapshot
    | Restarted
    | Output
    | Done
    | Failed
    | MemoryRead
    | WordsRead
    | PartsRead
    | Printed
    | WordsKnown
    | Notice
    | Remark
    | Crashed
)
