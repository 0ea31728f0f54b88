"""The interface of output formats: rows in, bytes out."""

from collections.abc import Callable, Collection
from typing import ClassVar, Final, Generic, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from engine.escaping import escaped_bytes
from engine.fetch.predicate import own_process
from engine.trace.rows import EventTable

_PROGRAMS: Final = 64
"""Programs whose texts are remembered."""

Text = TypeVar("Text")


def no_symbol(address: int) -> str:
    """The `%pS` text of an address that no symbol covers."""
    return f"{address:#x}"


def with_idle(comm: Callable[[int], bytes | None]) -> Callable[[int], bytes | None]:
    """Names of threads by their ids, with that of the idle thread, 0 (trace_find_cmdline)."""
    return lambda thread_id: comm(thread_id) if thread_id else b"<idle>"


class MappedFile(Struct, frozen=True):
    """Code of a file in the guest's memory.

    Attributes:
        path: of the file on the host, the guest's where the host has none.
        start: guest address of the first byte.
        end: behind the last one.
        offset: of the first byte in the file.
        build_id: in hex, or "" for a file that has none.
        name: guest path.
        bias: what is added to a link address to get a guest address.
    """

    path: str
    start: int
    end: int
    offset: int
    build_id: str = ""
    name: str = ""
    bias: int = 0


class Names(Struct, frozen=True):
    """Turns numbers of rows into names, at the time of printing.

    Attributes:
        symbol: an address to "SYM+0x0/0x10", or to plain hex.
        comm: a thread's name by its id, None for one that is not known.
        returning: whether a call of the function at an address gives a return event too.
        exact: whether text has names and strings byte for byte, as the kernel prints them; else
            they are escaped.
        process: the process of a thread by its id; one that is not known stands for itself.
        file: the file whose code is at an address, None for none.
        line: source file and line of an address, None where nobody knows.
        arch: name of the guest's architecture, "" where it does not matter.
        decodes: whether system calls are shown as strace shows them; else in the kernel's way.
    """

    symbol: Callable[[int], str] = no_symbol
    comm: Callable[[int], bytes | None] = lambda thread_id: None
    returning: Callable[[int], bool] = lambda address: False
    exact: bool = False
    process: Callable[[int], int] = own_process
    file: Callable[[int], MappedFile | None] = lambda address: None
    line: Callable[[int], tuple[str, int] | None] = lambda address: None
    arch: str = ""
    decodes: bool = False

    def shown(self, data: bytes) -> bytes:
        """A name as a part of a line."""
        return data if self.exact else escaped_bytes(data)

    def quoted(self, data: bytes) -> bytes:
        """A string between double quotes."""
        return b'"%s"' % (data if self.exact else escaped_bytes(data, quoted=True))

    def symbol_text(self, address: int) -> bytes:
        """The text of an address as a part of a line."""
        return self.shown(self.symbol(address).encode(errors="surrogateescape"))

    def comm_text(self, thread_id: int) -> bytes:
        """A thread's name as a part of a line; "<...>" for one that is not known."""
        comm = self.comm(thread_id)
        return b"<...>" if comm is None else self.shown(comm)


class ByProgram(Generic[Text]):
    """Texts of addresses that are remembered, apart for each program of a guest."""

    def __init__(self) -> None:
        """None yet."""
        self._programs: dict[int, dict[int, Text]] = {}

    def symbols(self, number: int) -> dict[int, Text]:
        """The texts of a program."""
        if len(self._programs) >= _PROGRAMS and number not in self._programs:
            self._programs.clear()
        return self._programs.setdefault(number, {})


class Write(Struct, frozen=True):
    """Bytes that go elsewhere than behind what was written before.

    Attributes:
        data: the bytes.
        name: of a file in the directory of a format that has one; "" for the file itself.
        at: offset in it; None for its end.
    """

    data: bytes
    name: str = ""
    at: int | None = None


class Format(Protocol):
    """One output format.

    Attributes:
        name: what `--format` calls it.
        wants_stacks: whether it needs the call stack behind each event.
        is_text: whether other text may stand behind it in the same file.
        event_most: the highest id of an event that it can tell apart.
    """

    name: ClassVar[str]
    wants_stacks: ClassVar[bool]
    is_text: ClassVar[bool]
    event_most: ClassVar[int]

    def __init__(self, events: EventTable, names: Names, options: Collection[str] = ()) -> None:
        """For the events of a table, which may still grow.

        Args:
            events: the event table.
            names: the namer. What it says of an address or thread may be asked for only once.
            options: trace options as in tracefs (`trace_options`); those that mean nothing to
                the format change nothing.

        Raises:
            CommandError: there is no such option.
        """

    def header(self, kept: int | None = None, written: int | None = None) -> bytes:
        """The output before all events.

        Args:
            kept: events in the ring, None while streaming.
            written: events ever recorded.
        """

    def rows(self, data: bytes) -> bytes:
        """The text of a stretch of whole rows."""

    def lost(self, count: int) -> bytes:
        """The note that events are missing at this place."""

    def end(self) -> bytes:
        """The output after all events."""

    def renamed(self, thread_id: int) -> None:
        """A thread has another name from here on."""

    def program(self, number: int) -> None:
        """The rows from here on are of another program: addresses have other names."""

    def state(self) -> object:
        """The state another one needs to go on behind the rows so far, as plain data; None = none.

        Texts that are remembered only to be quick do not count.
        """

    def restore(self, state: object) -> None:
        """Go on where another one was, given its state.

        Raises:
            ValueError, LookupError or TypeError: it is no state of this format.
        """


@runtime_checkable
class PlacedFormat(Format, Protocol):
    """A format of files of its own: bytes of theirs are written again, or there are several.

    Attributes:
        main: name of the file in a directory that the bytes of the other methods go behind; "" for
            a format that has none, or always a single file.
        batch: bytes of rows that it would have at a time.
    """

    main: ClassVar[str]
    batch: ClassVar[int]

    @property
    def is_directory(self) -> bool:
        """True if it has a directory of files; known once all events are in the table."""

    def aside(self) -> list[Write]:
        """Bytes for other places since the last call; those of the main file come first."""

    def resume(self, path: Callable[[str], str]) -> None:
        """Behind `restore`: look at the files as they are now.

        Args:
            path: of the file of a name.

        Raises:
            CommandError: they are not what they were.
        """

    @classmethod
    def owns(cls, name: str) -> bool:
        """True for the name of a file that a trace of this format has in its directory."""
