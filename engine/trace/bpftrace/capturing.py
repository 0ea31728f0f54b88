"""Values of an action that can be recorded at its hit: registers, and memory that they lead to.

An action runs when its row is taken, not while the guest stands at the probe. What it reads
through addresses that are known at the hit, by offsets that are known before the script runs, is
an argument of the probe's event: `arg0`, `((struct task *)arg0).mm.pgd`, `str(args.filename)`. A
variable that is assigned once stands for its value. All else needs memory at the hit.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from engine.image.datatypes import Member
from engine.trace.bpftrace import tree
from engine.trace.bpftrace.captures import Capture
from engine.trace.bpftrace.checked import CheckedProbe, CheckedScript
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.types import Array, Integer, Pointer, Structure, Type

_ARGUMENT: Final = "arg"
_MAX_OFFSETS: Final = 8
"""Pointers that one capture follows."""
_MARKERS: Final = frozenset({"usdt"})
Base = Literal["argument", "return", "register", "field", "marker"]


class Reached(Struct, frozen=True):
    """An address that is known at a hit.

    Attributes:
        base: what it begins with.
        name: of that.
        offsets: the pointers that were followed.
        added: bytes behind what the last of them gave.
    """

    base: Base
    name: str
    offsets: tuple[int, ...] = ()
    added: int = 0

    def plus(self, size: int) -> "Reached":
        """The address so many bytes on."""
        return Reached(self.base, self.name, self.offsets, self.added + size)

    def followed(self) -> "Reached | None":
        """The address that is stored at this one; None behind too many pointers."""
        if len(self.offsets) >= _MAX_OFFSETS:
            return None
        return Reached(self.base, self.name, (*self.offsets, self.added))

    def capture(self, kind: Type) -> Capture:
        """The value that is stored at this address."""
        return Capture(self.base, self.name, (*self.offsets, self.added), kind)


class Capturing:
    """Finds what an action can have recorded.

    Attributes:
        captures: what was asked for so far, in the order of the row.
    """

    def __init__(self, script: CheckedScript, probe: CheckedProbe) -> None:
        """Look at a probe's action.

        Args:
            script: that the probe is of.
            probe: the probe.
        """
        self.captures: list[Capture] = []
        self._script = script
        self._marker = any(point.provider in _MARKERS for point in probe.points)
        self._stands_for = dict(_assigned_once(script, probe))
        self._following: set[str] = set()

    def number(self, capture: Capture) -> int:
        """The place of a value in the row, which is recorded from now on."""
        if capture not in self.captures:
            self.captures.append(capture)
        return self.captures.index(capture)

    def base(self, node: tree.ScriptNode) -> tuple[Base, str] | None:
        """The part of a hit that an expression names without memory; None if it names none."""
        if isinstance(node, tree.Name):
            number = node.name.removeprefix(_ARGUMENT)
            if node.name.startswith(_ARGUMENT) and number.isdecimal():
                return ("marker" if self._marker else "argument"), number
            if node.name == "retval":
                return "return", ""
        if isinstance(node, tree.CallExpression) and node.name == "reg":
            name = node.arguments[0]
            if isinstance(name, tree.StringLiteral):
                return "register", name.value.decode(errors="replace")
        if isinstance(node, tree.FieldAccess) and is_args(node.of):
            return "field", node.name
        return None

    def value(self, node: tree.Expression) -> Capture | None:
        """The value of an expression as a part of the row, if it can be one."""
        kind = self._script.types.get(node)
        if kind is None:
            return None
        base = self.base(node)
        if base is not None:
            return Capture(*base, (), kind)
        place = self.place(node)
        if place is None or type_size(kind) > _MAX_SIZE:
            return None
        if isinstance(kind, Array) or bitfield_of(self._script, node) is not None:
            return None
        return place.capture(kind)

    def address(self, node: tree.Expression) -> Reached | None:
        """The value of an expression as an address that is known at the hit."""
        kind = self._script.conversions.get(node, self._script.types.get(node))
        if not isinstance(kind, Pointer) and not (isinstance(kind, Integer) and kind.bits == 64):
            return None
        base = self.base(node)
        if base is not None:
            return Reached(*base)
        if isinstance(node, tree.Cast):
            return self.address(node.operand)
        if (
            isinstance(node, tree.BlockExpression)
            and not node.statements
            and node.value is not None
        ):
            return self.address(node.value)
        if isinstance(node, tree.ScratchName):
            return self._variable(node)
        if isinstance(node, tree.Binary) and node.operator in {"+", "-"}:
            return self._moved(node)
        place = self.place(node)
        return None if place is None else place.followed()

    def _variable(self, node: tree.ScratchName) -> Reached | None:
        name = self._script.variables.get(node, node.name)
        value = self._stands_for.get(name)
        if value is None or name in self._following:
            return None
        self._following.add(name)
        try:
            return self.address(value)
        finally:
            self._following.discard(name)

    def _moved(self, node: tree.Binary) -> Reached | None:
        by = self._script.constants.get(node.right)
        start, kind = node.left, self._script.types.get(node.left)
        if not isinstance(by, int) and node.operator == "+":
            by = self._script.constants.get(node.left)
            start, kind = node.right, self._script.types.get(node.right)
        if not isinstance(by, int):
            return None
        reached = self.address(start)
        step = stride(kind) if isinstance(kind, Pointer) else 1
        return (
            None if reached is None else reached.plus(step * (by if node.operator == "+" else -by))
        )

    def place(self, node: tree.Expression) -> Reached | None:
        """The place in memory of an expression's value, if that is known at the hit."""
        types = self._script.types
        if isinstance(node, tree.Unary) and node.operator == "*":
            return self.address(node.operand)
        if isinstance(node, tree.FieldAccess) and not is_args(node.of):
            of = types.get(node.of)
            structure = of.target if isinstance(of, Pointer) else of
            if not isinstance(structure, Structure):
                return None
            member = structure.layout.member(node.name)
            start = self.address(node.of) if isinstance(of, Pointer) else self.place(node.of)
            return None if start is None or member is None else start.plus(member.offset)
        if isinstance(node, tree.Index):
            of = types.get(node.of)
            index = self._script.constants.get(node.index)
            if not isinstance(index, int):
                return None
            if isinstance(of, Pointer):
                start = self.address(node.of)
                return None if start is None else start.plus(index * stride(of))
            if isinstance(of, Array) and 0 <= index < of.count:
                start = self.place(node.of)
                return None if start is None else start.plus(index * type_size(of.element))
        return None


_MAX_SIZE: Final = 4096
"""Bytes of one value that a row holds."""


def stride(pointer: Pointer) -> int:
    """Bytes from what a pointer leads to, to the next one."""
    return max(type_size(pointer.target), 1)


def is_args(node: tree.Expression) -> bool:
    """True for `args`, all arguments of a probe."""
    return isinstance(node, tree.Name) and node.name == "args"


def bitfield_of(script: CheckedScript, node: tree.ScriptNode) -> Member | None:
    """The member that an expression names, if that is some bits of a number."""
    if not isinstance(node, tree.FieldAccess):
        return None
    of = script.types.get(node.of)
    structure = of.target if isinstance(of, Pointer) else of
    if not isinstance(structure, Structure):
        return None
    member = structure.layout.member(node.name)
    return member if member is not None and member.bit_size else None


def _assigned_once(
    script: CheckedScript, probe: CheckedProbe
) -> Iterator[tuple[str, tree.Expression]]:
    """The variables of an action that have one value from their declaration on, and that."""
    counts: Counter[str] = Counter()
    values: dict[str, tree.Expression] = {}
    for node in descendants(probe.body):
        variable: tree.ScriptNode | None = None
        value: tree.Expression | None = None
        if isinstance(node, tree.Assignment):
            variable, value = node.target, node.value if node.operator == "=" else None
        elif isinstance(node, tree.Declaration):
            variable, value = node.variable, node.value
        elif isinstance(node, tree.Increment):
            variable = node.target
        elif isinstance(node, tree.AddressOf):
            variable = node.of
        elif isinstance(node, tree.For):
            variable = node.variable
        if isinstance(variable, tree.ScratchName):
            name = script.variables.get(variable, variable.name)
            if isinstance(node, tree.Declaration) and value is None:
                counts[name] += 2  # what it has before it is assigned is another value
            counts[name] += 1
            if value is not None:
                values[name] = value
    for name, value in values.items():
        if counts[name] == 1:
            yield name, value


def descendants(node: tree.ScriptNode) -> Iterator[tree.ScriptNode]:
    """A node and all that it is made of."""
    pending: list[object] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, tuple):
            pending.extend(reversed(each))
        elif isinstance(each, tree.ScriptNode):
            yield each
            pending.extend(
                getattr(each, name) for name in reversed(each.__struct_fields__) if name != "span"
            )
