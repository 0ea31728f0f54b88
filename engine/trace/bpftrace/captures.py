"""Values that an action of a script reads of a hit, and the run that it asks for all else.

An action runs after the hit, when its row is taken: what it needs of registers and memory was
recorded in the row. `Capture` names one such value; the session makes an argument of the probe's
event of it and says by a `RowReads` how it is read. The rest (names, stacks, output, memory at
the hit) is asked of a `RunSurroundings`.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from engine.trace.bpftrace.types import INT64, Type

PC: Final = "pc"
"""`reg("pc")`: the instruction pointer, whatever an architecture calls it."""


class Capture(Struct, frozen=True):
    """A value at a hit.

    Attributes:
        base: what it begins with: an argument by the calling convention (`arg0`), what a
            function returns, a register (`reg("di")`), an argument by name (`args.x`), an
            argument of a marker.
        name: "0" for `arg0` and a marker's first argument, the register's name, the name of
            `args.x`, also of a part of it where the base is a structure that is passed by
            value: `x.part`; "" for a return value.
        offsets: what follows, one after the other: the value is an address, this many bytes are
            added, and what is there is the value. The last one is read as `type`, the ones
            before it as pointers of the guest. None at all: the base is the value, as `type`.
        type: of the value: Integer, Boolean, Enumeration, Pointer, TextType (a string that ends
            with NUL, at most `size` bytes with it, which is "" where it cannot be read), or
            BufferType and Structure (so many bytes). A `TextType` has one offset at least.
    """

    base: Literal["argument", "return", "register", "field", "marker"]
    name: str = ""
    offsets: tuple[int, ...] = ()
    type: Type = INT64


class RowReads(Struct, frozen=True):
    """The way in which a probe's rows are read.

    Attributes:
        unpack: gives the numbers of a row, `w`: `w[1]` is the address of the hit, the captures'
            words follow. Of a timer or of begin and end the address is 0.
        time: an expression over `w` and `names` for the time of the hit, in nanoseconds since
            the guest's machine was booted: what `nsecs` is; `elapsed` is counted from
            `RunSurroundings.started`.
        values: an expression over `w`, `data` and `pos` for each capture. Its names beside those
            are in `names`.
        names: what the expressions use.
        probe: what `probe` gives at this place: `uprobe:/bin/bash:readline`.
    """

    unpack: Callable[[Any, int], tuple[Any, ...]]
    time: str
    values: tuple[str, ...]
    names: dict[str, Any]
    probe: bytes


Action = Callable[[Any, int, int], None]
"""Runs an action: the rows (bytes), where the hit's row begins, the thread."""


class RunSurroundings(Protocol):
    """The run, of which compiled actions ask. "Now" is the hit whose action runs."""

    def memory(self, address: int, size: int) -> bytes | None:
        """Bytes of the guest's, None where they cannot be read; for probes that need memory."""

    def string(self, address: int, size: int) -> bytes:
        """A string of at most so many bytes with its NUL, which is left out; "" if unreadable."""

    def register(self, name: str) -> int:
        """A register at the hit, for probes that need memory."""

    def process(self, thread: int) -> int:
        """`pid`: the process of a thread."""

    def parent(self, thread: int) -> int:
        """`ppid`: the parent of a thread's process."""

    def comm(self, thread: int) -> bytes:
        """`comm`."""

    def user(self, thread: int) -> int:
        """`uid`."""

    def group(self, thread: int) -> int:
        """`gid`."""

    def stack(self, space: Literal["user", "kernel"], limit: int) -> tuple[int, ...]:
        """The addresses of the call stack, innermost first; for probes that want one."""

    def build_ids(self, frames: tuple[int, ...], process: int) -> tuple[tuple[bytes, int], ...]:
        """See `StackValue.build_ids`, for the frames of a stack of a process."""

    def function(self, address: int) -> bytes:
        """`func`: the name of the function at an address."""

    def symbol_address(self, name: str, target: str) -> int:
        """`uaddr` and `kaddr`, in the file of the probe before others; 0 if there is none."""

    @property
    def started(self) -> int:
        """The time at which the script began."""

    def wall(self) -> int:
        """Nanoseconds since 1970 at the guest's time 0: `time` and `strftime` add to it."""

    def random(self) -> int:
        """`rand`: 32 bits, by the run's seed."""

    def exit(self, code: int) -> None:
        """End the run; the action returns behind it."""

    def signal(self, number: int, thread: int) -> None:
        """Send the process of a thread, or the thread, a signal."""

    def file(self, path: bytes) -> bytes | None:
        """The content of a file of the guest's (`cat`), None if it cannot be read."""

    def cgroup(self, thread: int) -> int:
        """`cgroup`: the id of a thread's control group."""

    def main_process(self) -> int:
        """`cpid`: the process that GUEST runs as."""

    def task(self) -> int:
        """`curtask`: the address of the kernel's record of the task; 0 outside of kernels."""

    def user_mode(self) -> bool:
        """`usermode`: a program runs, no kernel."""

    def path(self, where: int | bytes, size: int) -> bytes:
        """`path`: what a `struct path`, or the one at an address, names: so many bytes at most."""

    def syscall_name(self, number: int) -> bytes:
        """`syscall_name`: "openat" for its number; "" if there is none."""

    def unwatch(self, address: int) -> None:
        """`unwatch`: the watchpoint at an address watches no more."""

    def processors(self) -> int:
        """`ncpus`: the processors that the guest is told of."""
