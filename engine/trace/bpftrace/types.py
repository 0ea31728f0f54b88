"""The types of a script's values (bpftrace's src/types.h), and what Python has for each.

| type | Python |
|---|---|
| Integer, Enumeration | int, inside the range of the type |
| Boolean | bool |
| TextType | bytes without the NUL |
| BufferType | bytes |
| Pointer | int from 0 to 2**64 - 1 |
| Array | tuple |
| Structure | bytes, read by its layout |
| Tuple, Record | tuple |
| StackType | `values.StackValue` |
| SymbolType | `values.SymbolValue` |
| ShownType | a record of `values` |
| an aggregate | a record of `maps` |
"""

from typing import Final, Literal

from msgspec import Struct

from engine.image.datatypes import DataType


class Integer(Struct, frozen=True):
    """A number of 8, 16, 32 or 64 bits."""

    bits: int
    signed: bool


class Boolean(Struct, frozen=True):
    """A truth value."""


class TextType(Struct, frozen=True):
    """A string of at most `size` bytes, the NUL included."""

    size: int


class BufferType(Struct, frozen=True):
    """Bytes as they are, at most `size`: what `buf()` gives."""

    size: int


class Void(Struct, frozen=True):
    """No value: what `print()` gives; behind `void *`."""


class Structure(Struct, frozen=True):
    """A structure or union, of the script, of DWARF or of BTF."""

    name: str
    size: int
    layout: DataType


class Pointer(Struct, frozen=True):
    """An address and what is there; `space` says whose memory that is."""

    target: "Type"
    space: Literal["user", "kernel", "script", "none"] = "none"


class Array(Struct, frozen=True):
    """Elements of one type."""

    element: "Type"
    count: int


class Enumeration(Struct, frozen=True):
    """An enumeration: an integer with names."""

    name: str
    integer: Integer
    names: tuple[tuple[int, str], ...]


class Tuple(Struct, frozen=True):
    """Several values."""

    elements: tuple["Type", ...]


class Record(Struct, frozen=True):
    """Several values with names."""

    fields: tuple[tuple[str, "Type"], ...]


class StackType(Struct, frozen=True):
    """A call stack; how it is shown is part of its type."""

    space: Literal["user", "kernel"]
    mode: Literal["bpftrace", "perf", "raw", "build_id"] = "bpftrace"
    limit: int = 127


class SymbolType(Struct, frozen=True):
    """An address that is shown by name: what `usym()` and `ksym()` give."""

    space: Literal["user", "kernel"]


class ShownType(Struct, frozen=True):
    """A value that is shown in a way of its own: the result of a function of that name."""

    kind: Literal[
        "inet", "mac", "username", "timestamp", "strerror", "cgroup_path", "syscall_name"
    ]


class Aggregate(Struct, frozen=True):
    """Values that a map gathers by a function: `count()`, `hist()`.

    Attributes:
        kind: the function.
        signed: values are signed numbers.
        parameters: `hist`: bits; `lhist`: least, most, step; `tseries`: interval, count, and
            the function's name by its place in AGGREGATES.
    """

    kind: Literal["count", "sum", "min", "max", "avg", "stats", "hist", "lhist", "tseries"]
    signed: bool = True
    parameters: tuple[int, ...] = ()


Type = (
    Integer
    | Boolean
    | TextType
    | BufferType
    | Void
    | Structure
    | Pointer
    | Array
    | Enumeration
    | Tuple
    | Record
    | StackType
    | SymbolType
    | ShownType
    | Aggregate
)

AGGREGATES: Final = ("count", "sum", "min", "max", "avg", "stats", "hist", "lhist", "tseries")
INT64: Final = Integer(64, signed=True)
UINT64: Final = Integer(64, signed=False)
INT8: Final = Integer(8, signed=True)
"""The type of a small literal."""
BOOL: Final = Boolean()
VOID: Final = Void()
