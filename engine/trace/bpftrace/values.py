"""Values of scripts that are more than a number, a text or a tuple of them.

All of them are compared and used as keys by what they hold, not by what they look like: two
moments are two keys of a map even where `strftime()` shows both as one day, as in bpftrace. What
is shown for one is found when it is printed (`showing`), by the names that the session knows.
"""

from typing import Any, Final, Literal

from msgspec import Struct

from engine.trace.bpftrace import types as kinds

Clock = Literal["boot", "monotonic", "tai", "sw_tai"]
"""The moment that nanoseconds are counted from (bpftrace's TimestampMode)."""

ANY_PROBE: Final = -1


class StackValue(Struct, frozen=True):
    """A call stack: what `ustack()` and `kstack()` give.

    Attributes:
        frames: addresses, the innermost first; UNWOUND_NO_FURTHER where unwinding failed.
        process: whose memory the addresses are of; 0 for the kernel.
        probe: the number of the probe, for user stacks: equal stacks of two probes are two
            keys, as in bpftrace.
        build_ids: for the mode "build_id": of each frame the identification of its file, and the
            offset in it; b"" and the address where there is none.
    """

    frames: tuple[int, ...] = ()
    process: int = 0
    probe: int = ANY_PROBE
    build_ids: tuple[tuple[bytes, int], ...] = ()


UNWOUND_NO_FURTHER: Final = (1 << 64) - 1
"""Stands for the rest of a stack that could not be unwound."""


class SymbolValue(Struct, frozen=True):
    """An address that is shown as the name of what is there: `usym()`, `ksym()`.

    Attributes:
        address: where.
        process: whose memory it is in; 0 for the kernel.
        probe: see `StackValue`.
    """

    address: int
    process: int = 0
    probe: int = ANY_PROBE


class InetValue(Struct, frozen=True):
    """An address of the internet: `ntop()`.

    Attributes:
        family: AF_INET or AF_INET6 of Linux.
        data: 4 or 16 bytes in the order of the network.
    """

    family: int
    data: bytes

    def __str__(self) -> str:
        import socket  # few scripts are about networks

        if self.family == AF_INET:
            return socket.inet_ntop(socket.AF_INET, self.data[:4].ljust(4, b"\0"))
        if self.family == AF_INET6:
            return socket.inet_ntop(socket.AF_INET6, self.data[:16].ljust(16, b"\0"))
        return ""


class MacValue(Struct, frozen=True):
    """An address of a network card, six bytes: `macaddr()`."""

    data: bytes

    def __str__(self) -> str:
        return ":".join(f"{byte:02X}" for byte in self.data[:6].ljust(6, b"\0"))


class TimestampValue(Struct, frozen=True):
    """A moment and how it is to be shown: `strftime()`.

    Attributes:
        nanoseconds: the moment, by its clock.
        format: as strftime(3) takes it, and `%f %k %l` for the parts of a second.
        clock: what is counted from; "boot" for plain `nsecs`.
    """

    nanoseconds: int
    format: bytes
    clock: Clock = "boot"


class UsernameValue(Struct, frozen=True):
    """A user that is shown by name: `username`."""

    user: int


class CgroupPathValue(Struct, frozen=True):
    """A control group that is shown by its path: `cgroup_path()`.

    Attributes:
        group: its number.
        filter: a glob for the hierarchies to look in; b"" for all.
    """

    group: int
    filter: bytes = b""


AF_INET: Final = 2
AF_INET6: Final = 10

Value = (
    int
    | bytes
    | tuple["Value", ...]
    | StackValue
    | SymbolValue
    | InetValue
    | MacValue
    | TimestampValue
    | UsernameValue
    | CgroupPathValue
    | None
)
"""A value of a script; None is that of `void`."""


def default_value(kind: kinds.Type) -> Any:
    """The value of a variable or of an entry that nothing was assigned to: zeros."""
    match kind:
        case kinds.Boolean():
            return False
        case kinds.Integer() | kinds.Enumeration() | kinds.Pointer() | kinds.Aggregate():
            return 0
        case kinds.TextType() | kinds.BufferType():
            return b""
        case kinds.Array():
            return (default_value(kind.element),) * kind.count
        case kinds.Structure():
            return bytes(kind.size)
        case kinds.Tuple():
            return tuple([default_value(element) for element in kind.elements])
        case kinds.Record():
            return tuple([default_value(element) for _, element in kind.fields])
        case kinds.StackType():
            return StackValue()
        case kinds.SymbolType():
            return SymbolValue(0)
        case kinds.ShownType():
            return _NOTHING_SHOWN[kind.kind]
        case kinds.Void():
            return None


_NOTHING_SHOWN: Final[dict[str, Value]] = {
    "inet": InetValue(0, b""),
    "mac": MacValue(bytes(6)),
    "username": UsernameValue(0),
    "timestamp": TimestampValue(0, b""),
    "strerror": b"",
    "cgroup_path": CgroupPathValue(0),
    "syscall_name": b"",
}
