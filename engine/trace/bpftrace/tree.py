"""The tree of a script: probes, statements and expressions, as they were written.

A node is told apart from others by what it is, not by what it holds, so that tables can be keyed
by nodes: what checking finds about a node (its type, its constant) is kept beside the tree. A
macro that is used gives nodes of its own each time.
"""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from engine.trace.bpftrace.text import Span


class ScriptNode(Struct, frozen=True, eq=False):
    """A part of a script.

    Attributes:
        span: where it stands.
    """

    span: Span


def with_parts(node: "ScriptNode", made: "Callable[[ScriptNode], ScriptNode]") -> "ScriptNode":
    """A copy of a node.

    Args:
        node: the node.
        made: gives what stands in the copy for each node right below it.
    """

    def part(value: object) -> object:
        if isinstance(value, ScriptNode):
            return made(value)
        return tuple(map(part, value)) if isinstance(value, tuple) else value

    values = [part(getattr(node, name)) for name in type(node).__struct_fields__]
    return type(node)(*values)  # type: ignore[arg-type]  # the fields of this very class


class WrittenType(ScriptNode, frozen=True, eq=False):
    """A type as it is written: `struct foo *[4]`, `uint8`, `string[64]`.

    Attributes:
        name: the first part: "uint8", "struct foo", "string".
        suffixes: what follows, in order: "*" or the size between brackets (None for `[]`).
    """

    name: str
    suffixes: tuple["Literal['*'] | int | None", ...] = ()


# -- expressions ------------------------------------------------------------------------------


class IntegerLiteral(ScriptNode, frozen=True, eq=False):
    """A number, never negative; units (`1s`) and suffixes are worked in already."""

    value: int


class BooleanLiteral(ScriptNode, frozen=True, eq=False):
    """`true` or `false`."""

    value: bool


class StringLiteral(ScriptNode, frozen=True, eq=False):
    """A string, its escapes worked in."""

    value: bytes


class PositionalParameter(ScriptNode, frozen=True, eq=False):
    """A positional parameter: `$1`; number 0 is `$#`, their count."""

    number: int


class Name(ScriptNode, frozen=True, eq=False):
    """A name: a builtin (`pid`), a macro without arguments, an enumerator, a macro's argument."""

    name: str


class ScratchName(ScriptNode, frozen=True, eq=False):
    """A scratch variable, `$x`; its name is without the dollar sign."""

    name: str


class MapName(ScriptNode, frozen=True, eq=False):
    """A map, `@x`; its name is without the sign, "" for `@`. As a value: its one entry."""

    name: str


class MapAccess(ScriptNode, frozen=True, eq=False):
    """An entry of a map: `@x[1, "a"]`.

    Attributes:
        map: the map.
        key: what is between the brackets; a `TupleLiteral` where it is several expressions.
    """

    map: MapName
    key: "Expression"


class AddressOf(ScriptNode, frozen=True, eq=False):
    """The address of a variable or a map: `&$x`, `&@x`."""

    of: "ScratchName | MapName"


class Unary(ScriptNode, frozen=True, eq=False):
    """`!`, `-`, `~` or `*` before an expression."""

    operator: Literal["!", "-", "~", "*"]
    operand: "Expression"


class Increment(ScriptNode, frozen=True, eq=False):
    """`++` or `--` of a variable or a map.

    Attributes:
        operator: which.
        target: of what.
        before: the operator stands before it: the value is the new one.
    """

    operator: Literal["++", "--"]
    target: "ScratchName | MapName | MapAccess"
    before: bool


class Binary(ScriptNode, frozen=True, eq=False):
    """Two expressions with an operator between them, `&&` and comparisons included."""

    operator: str
    left: "Expression"
    right: "Expression"


class Conditional(ScriptNode, frozen=True, eq=False):
    """`a ? b : c`, or `if` with blocks that have values.

    Attributes:
        condition: what decides.
        comptime: it is to be known before the script runs (`if comptime`).
        then: the value if it is true.
        otherwise: the value if not; None for an `if` without `else`.
        is_statement: it was written as `if`, not with a question mark.
    """

    condition: "Expression"
    then: "Expression"
    otherwise: "Expression | None"
    is_statement: bool = False
    comptime: bool = False


class FieldAccess(ScriptNode, frozen=True, eq=False):
    """A field of a structure, a record, a tuple or a pointer to one: `a.b`, `a->b`, `t.0`."""

    of: "Expression"
    name: str


class Index(ScriptNode, frozen=True, eq=False):
    """An element of an array, a string, a tuple or behind a pointer: `a[1]`."""

    of: "Expression"
    index: "Expression"


class Cast(ScriptNode, frozen=True, eq=False):
    """A cast. The type may be given by an expression: `(typeof($x))y`."""

    type: "WrittenType | TypeOf"
    operand: "Expression"


class TupleLiteral(ScriptNode, frozen=True, eq=False):
    """`(1, "a")`, `(1,)`, `()`."""

    elements: tuple["Expression", ...]


class RecordLiteral(ScriptNode, frozen=True, eq=False):
    """`(color="green", size=2)`."""

    fields: tuple[tuple[str, "Expression"], ...]


class CallExpression(ScriptNode, frozen=True, eq=False):
    """A call of a function or a macro (`name!(...)` too); arguments may be types."""

    name: str
    arguments: tuple["Expression | WrittenType", ...]


class TypeOf(ScriptNode, frozen=True, eq=False):
    """`typeof(...)` of an expression or a type; an expression in there never runs."""

    of: "Expression | WrittenType"


class SizeOf(ScriptNode, frozen=True, eq=False):
    """`sizeof(...)` of an expression or a type; an expression in there never runs."""

    of: "Expression | WrittenType"


class OffsetOf(ScriptNode, frozen=True, eq=False):
    """`offsetof(TYPE, a.b)`."""

    of: "Expression | WrittenType"
    path: tuple[str, ...]


class TypeInfoOf(ScriptNode, frozen=True, eq=False):
    """`typeinfo(...)`: a record of names that describe a type."""

    of: "Expression | WrittenType"


class Comptime(ScriptNode, frozen=True, eq=False):
    """`comptime EXPRESSION`: known before the script runs."""

    operand: "Expression"


class BlockExpression(ScriptNode, frozen=True, eq=False):
    """Statements between braces; the value of the last one, if it is an expression without `;`."""

    statements: tuple["Statement", ...]
    value: "Expression | None" = None


Expression = (
    IntegerLiteral
    | BooleanLiteral
    | StringLiteral
    | PositionalParameter
    | Name
    | ScratchName
    | MapName
    | MapAccess
    | AddressOf
    | Unary
    | Increment
    | Binary
    | Conditional
    | FieldAccess
    | Index
    | Cast
    | TupleLiteral
    | RecordLiteral
    | CallExpression
    | TypeOf
    | SizeOf
    | OffsetOf
    | TypeInfoOf
    | Comptime
    | BlockExpression
)

# -- statements -------------------------------------------------------------------------------


class ExpressionStatement(ScriptNode, frozen=True, eq=False):
    """An expression whose value is dropped: a call, an increment, an `if`, a block."""

    expression: Expression


class Discard(ScriptNode, frozen=True, eq=False):
    """`_ = EXPRESSION`: its value is dropped, and nobody is warned."""

    expression: Expression


class Declaration(ScriptNode, frozen=True, eq=False):
    """`let $x`, `let $x: TYPE`, `let $x = EXPRESSION`."""

    variable: ScratchName
    type: "WrittenType | TypeOf | None"
    value: Expression | None


class Assignment(ScriptNode, frozen=True, eq=False):
    """`$x = ...`, `@x[k] += ...`.

    Attributes:
        target: what gets the value.
        operator: "=" or an operator before it: "+", "<<".
        value: what it gets; a call of `count()` and the like changes an aggregate.
    """

    target: ScratchName | MapName | MapAccess
    operator: str
    value: Expression


class Unroll(ScriptNode, frozen=True, eq=False):
    """`unroll(N) { ... }`."""

    count: Expression
    body: BlockExpression


class While(ScriptNode, frozen=True, eq=False):
    """`while (CONDITION) { ... }`."""

    condition: Expression
    body: BlockExpression


class Range(ScriptNode, frozen=True, eq=False):
    """`START..END`, the end excluded."""

    start: Expression
    end: Expression


class For(ScriptNode, frozen=True, eq=False):
    """`for ($x : @map)`, `for ($i : 0..10)`."""

    variable: ScratchName
    over: MapName | Range
    body: BlockExpression


class Jump(ScriptNode, frozen=True, eq=False):
    """`return`, `break`, `continue`."""

    kind: Literal["return", "break", "continue"]
    value: Expression | None = None


Statement = ExpressionStatement | Discard | Declaration | Assignment | Unroll | While | For | Jump

# -- what stands at the top -------------------------------------------------------------------


class AttachPoint(ScriptNode, frozen=True, eq=False):
    """A place of a probe: `uprobe:/bin/bash:readline`.

    Attributes:
        text: its whole name, as `probe` gives it before globs are expanded; the name that the
            script gave it (`name=uprobe:...`) if it did.
        provider: its first word, in full and lower case ("uprobe" for "u", "begin" for "BEGIN").
        parts: what stands between the colons behind it, quotes taken off.
        written: all of it, as it is written.
        given: the name that the script gave it; "" for none.
        target: a program, a library, a module, a category; the unit of time of a timer; the
            event of "software" and "hardware"; "" where there is none.
        function: the function, the marker or the event; may be a glob, as the target may.
        namespace: of a USDT marker.
        language: of a function: "cpp".
        offset: bytes from the function's start.
        address: instead of a function, or of a watchpoint.
        argument: of 0.17's watchpoints on what a function is given: which argument.
        file: of `uprobe:PROGRAM@FILE:LINE:COLUMN`.
        line: in it, from 1.
        column: in that line; 0 if it is not given.
        rate: of a timer: so many units, or times a second for "hz"; a count for "software".
        length: bytes of a watchpoint.
        mode: of a watchpoint: letters of "rwx" in order.
    """

    text: str
    provider: str
    parts: tuple[str, ...]
    written: str = ""
    given: str = ""
    target: str = ""
    function: str = ""
    namespace: str = ""
    language: str = ""
    offset: int = 0
    address: int | None = None
    argument: int | None = None
    file: str = ""
    line: int = 0
    column: int = 0
    rate: int = 0
    length: int = 0
    mode: str = ""

    def elsewhere(
        self, text: str, target: str, function: str, namespace: str = ""
    ) -> "AttachPoint":
        """The same of another name, in another program or function: its globs are replaced."""
        return replace(self, text=text, target=target, function=function, namespace=namespace)


class Probe(ScriptNode, frozen=True, eq=False):
    """An action and where it runs.

    Attributes:
        points: the places.
        predicate: it only runs where this is true; None = always.
        body: the action.
    """

    points: tuple[AttachPoint, ...]
    predicate: Expression | None
    body: BlockExpression


class Macro(ScriptNode, frozen=True, eq=False):
    """A macro.

    Attributes:
        name: of it.
        parameters: `$x` takes a variable, `@x` a map, a plain name any expression.
        body: what stands for a use of it.
    """

    name: str
    parameters: tuple[ScratchName | MapName | Name, ...]
    body: BlockExpression


class MapDeclaration(ScriptNode, frozen=True, eq=False):
    """`let @x = lruhash(100);`."""

    map: MapName
    kind: str
    entries: int


class ConfigSetting(ScriptNode, frozen=True, eq=False):
    """A line of the config block: `max_map_keys = 10`."""

    name: str
    value: int | str | bool


class CDefinition(ScriptNode, frozen=True, eq=False):
    """A definition in C before the probes: `struct x { ... };`, `enum`, `#define`, `#include`.

    Attributes:
        text: as it is written, without what follows it.
    """

    text: str


class Script(ScriptNode, frozen=True, eq=False):
    """A whole script."""

    definitions: tuple[CDefinition, ...] = ()
    settings: tuple[ConfigSetting, ...] = ()
    imports: tuple[StringLiteral, ...] = ()
    maps: tuple[MapDeclaration, ...] = ()
    macros: tuple[Macro, ...] = ()
    probes: tuple[Probe, ...] = ()
