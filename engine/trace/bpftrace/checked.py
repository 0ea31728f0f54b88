"""A checked script: what `checking` found out, as `compiling` and the session read it.

The tree of a checked script is not the one that was read. Macros are expanded, `if comptime` is
decided, parameters are literals, and a function that has several spellings is there in one:

| written | in a checked tree |
|---|---|
| `delete(@x[1])`, `delete(@x, 1)` | `CallExpression("delete", (MapName, key))` |
| `delete(@x)` of a map without keys | `CallExpression("delete", (MapName,))` |
| `has_key(@x, 1)`, `len(@x)`, `clear(@x)`, `zero(@x)` | the map is a `MapName` that is no value |
| `print(@x, 5, 2)` of a map with keys | `CallExpression("print", (MapName, top, div))` |
| `print(@x)` of a scalar map | the same: the output has the map's name |
| `print(@x[1])`, `print($y)` | `CallExpression("print", (expression,))` |
| `pid()`, `pid`, `nsecs()` | `Name("pid")`, `Name("nsecs")` |
| `nsecs(boot)`, `kstack(perf, 3)` | a `CallExpression`; `Name`s that are words have no type |
| `sizeof`, `offsetof`, `comptime`, `$1`, `getopt()` | a literal |
| `config`, `typeinfo()`, `args` without a member | a `RecordLiteral` |
| `(*args).x`, `args->x` | a `FieldAccess` of `Name("args")` |
| `printf("%d", 1)` | a `CallExpression`; its first argument is a `StringLiteral` |
| `@x = count()` | an `Assignment` with a `CallExpression`, whose type is an `Aggregate` |
| `@x`, `@x[1]` of an aggregate, read as a number | in `conversions` with an `Integer` |
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from engine.image.datatypes import DataType
from engine.trace.bpftrace.config import Config
from engine.trace.bpftrace.text import ScriptRemark, Span
from engine.trace.bpftrace.tree import (
    AttachPoint,
    BlockExpression,
    Expression,
    ScratchName,
    ScriptNode,
)
from engine.trace.bpftrace.types import Enumeration, Type


class ScriptSurroundings(Protocol):
    """The guest that a script is for, as far as checking asks."""

    @property
    def pointer_size(self) -> int:
        """Bytes of an address."""

    @property
    def aligns_unnamed(self) -> bool:
        """True if bitfields without a name align structures, as on AArch64."""

    @property
    def registers(self) -> Sequence[str]:
        """The names that `reg()` takes."""

    def struct(self, name: str) -> DataType | None:
        """A structure, union or enumeration by its name, with or without the word before it."""

    def typedef(self, name: str) -> DataType | None:
        """The type that a name stands for."""

    def enumerator(self, name: str) -> tuple[int, Enumeration] | None:
        """The value of a constant of an enumeration, and which one that is."""

    def places(self, point: AttachPoint) -> Sequence[AttachPoint]:
        """The places of a point with globs; the point itself if it has none or none matches."""

    def arguments(self, point: AttachPoint) -> Mapping[str, Type] | None:
        """The members of `args` there; None where nothing tells them."""

    def usdt_arguments(self, point: AttachPoint) -> Sequence[Type] | None:
        """The types of `arg0` and so on of a marker; None if that is not known."""

    def returns(self, point: AttachPoint) -> Type | None:
        """The type of `retval` there, where types are known."""

    def symbol_size(self, name: str, point: AttachPoint, kernel: bool) -> int | None:
        """Bytes of what `kaddr()` and `uaddr()` name, 0 if not known; None if there is no such."""

    def provides(self, what: str) -> str | None:
        """None if something can be had here; else why not, and what to do instead.

        Args:
            what: a provider of probes, or a function with its brackets: "signal()".
        """


class CheckedMap(Struct, frozen=True):
    """A map, as it is known before a script runs.

    Attributes:
        key: the type of its keys; None for a map that is one value (`@x`).
        value: the type of its values.
        kind: as declared: "hash", "lruhash", "percpuhash", "percpulruhash", "percpuarray", ...
        entries: how many it holds at most.
    """

    key: Type | None
    value: Type
    kind: str
    entries: int

    @property
    def is_scalar(self) -> bool:
        """True if it has no keys."""
        return self.key is None


class CheckedProbe(Struct, frozen=True):
    """A probe whose action is ready to be compiled.

    Attributes:
        points: where it runs. Places whose `args` have other types are a probe of their own.
        predicate: it only runs where this is true; None = always.
        body: the action.
        span: the place of the probe in the text.
    """

    points: tuple[AttachPoint, ...]
    predicate: Expression | None
    body: BlockExpression
    span: Span


class CheckedScript(Struct, frozen=True):
    """A script that can run.

    Attributes:
        probes: all of them, in order.
        types: of each expression, by its node, before it is converted.
        conversions: the type that the value of a node is converted to where it stands, if that is
            another one than its own.
        constants: values of nodes that are known before the script runs.
        variables: for each place of a scratch variable a name that is its own in the probe:
            two variables of one name in two blocks are two.
        variable_types: of those, by the name of `variables`, for each probe (by its number).
        maps: by their names, without the sign.
        config: the settings.
        warnings: what is odd.
        uses: of calls that come out of a macro the places where that is used, the innermost first.
    """

    probes: tuple[CheckedProbe, ...]
    types: dict[ScriptNode, Type]
    conversions: dict[ScriptNode, Type]
    constants: dict[ScriptNode, int | bytes | bool]
    variables: dict[ScratchName, str]
    variable_types: tuple[dict[str, Type], ...]
    maps: dict[str, CheckedMap]
    config: Config
    warnings: tuple[ScriptRemark, ...]
    uses: dict[ScriptNode, tuple[Span, ...]] = field(default_factory=dict)
