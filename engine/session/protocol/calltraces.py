"""The request of `strace`: which calls of a guest are shown, and how."""

from msgspec import Struct

from engine.session.protocol.config import GuestConfig


class CallTraceRequest(Struct, frozen=True):
    """A run whose system calls are shown.

    Attributes:
        config: the guest.
        follows: 1 = further threads and processes, too; 2 = a file for each (-f, -ff).
        expressions: KEY=SET of -e, in order.
        paths: only calls about one of these paths of the guest (-P).
        output: file to write to, None for a stream (-o).
        counts: 1 = a table instead of lines, 2 = behind them (-c, -C).
        sort: what the table is sorted by (-S).
        takes: the ticks that each call took (-T).
        times: 1 = the guest's time of day, 2 with microseconds, 3 since 1970 (-t, -tt, -ttt).
        relative: the ticks since the line before (-r).
        descriptors: 1 = descriptors with their files, 2 with what they are (-y, -yy).
        stacks: the call stack behind each call (-k).
        string_max: bytes of a string that are shown (-s).
        verbose: structures are shown whole (-v).
        hexadecimal: 1 = text that no terminal shows as hexadecimal numbers, 2 = all (-x, -xx).
        quiet: 1 = no word of new threads, 2 = nor of their ends (-q, -qq).
        column: where results stand (-a).
        numbers: the number of the call (-n).
        pointers: the address behind the call's instruction (-i).
        columns: of the table, None for the usual ones (-U).
    """

    config: GuestConfig
    follows: int = 0
    expressions: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    output: str | None = None
    counts: int = 0
    sort: str = "time"
    takes: bool = False
    times: int = 0
    relative: bool = False
    descriptors: int = 0
    stacks: bool = False
    string_max: int = 32
    verbose: bool = False
    hexadecimal: int = 0
    quiet: int = 0
    column: int = 40
    numbers: bool = False
    pointers: bool = False
    columns: str | None = None
