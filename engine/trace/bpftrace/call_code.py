"""Python for what calls of functions have in common: arguments, memory, aggregates."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal

from engine.trace.bpftrace import tree
from engine.trace.bpftrace.captures import RunSurroundings
from engine.trace.bpftrace.capturing import Reached
from engine.trace.bpftrace.checked import CheckedProbe
from engine.trace.bpftrace.conversion_code import integer_of
from engine.trace.bpftrace.expression_code import ExpressionCode, FaultTeller
from engine.trace.bpftrace.histograms import hist_bucket, linear_bucket
from engine.trace.bpftrace.output import MAP_FULL
from engine.trace.bpftrace.script_memory import ScriptMemory
from engine.trace.bpftrace.types import BufferType, TextType, Type

Maker = Callable[["ActionCalls", tree.CallExpression], str]
"""Makes the code of a call."""


class ActionCalls:
    """Makes Python of calls and builtins.

    Attributes:
        expressions: of the same action.
        lines: where code goes that does not fit into an expression.
        stacks: the call stacks that the action asks for.
        probe: that the action is of.
        number: of the probe in the script.
    """

    def __init__(
        self,
        expressions: ExpressionCode,
        probe: CheckedProbe,
        number: int,
        functions: Mapping[str, Maker],
    ) -> None:
        """Set up.

        Args:
            expressions: of the same action.
            probe: that the action is of.
            number: of the probe in the script.
            functions: makers of the code of calls, by the functions' names.
        """
        self.expressions = expressions
        self.lines = expressions.lines
        self.stacks: set[Literal["user", "kernel"]] = set()
        self.probe = probe
        self.number = number
        self._functions = functions

    def value(self, node: tree.CallExpression | tree.Name) -> str:
        """The code of a call or a builtin."""
        if isinstance(node, tree.Name):
            types, name = self.expressions.script.types, node
            node = tree.CallExpression(name.span, name.name, ())
            types[node] = types[name]
        return self._functions[node.name](self, node)

    def late(self, run: RunSurroundings) -> dict[str, Any]:
        """The names in the code that are of a run."""
        names: dict[str, Any] = {
            "run": run,
            "memory": run.memory,
            "string": run.string,
            "process": run.process,
            "comm": run.comm,
            "stack": run.stack,
        }
        if self.expressions.addressed:
            held = ScriptMemory(run.memory, run.string)
            names |= {"memory": held.memory, "string": held.string, "taken": held.taken}
        return names

    # -- arguments --------------------------------------------------------------------------

    def argument(self, node: tree.CallExpression, number: int) -> tree.Expression:
        """An argument of a call that is an expression."""
        found = node.arguments[number]
        assert not isinstance(found, tree.WrittenType)
        return found

    def codes(self, node: tree.CallExpression, first: int = 0) -> list[str]:
        """The codes of a call's arguments, from one on."""
        count = range(first, len(node.arguments))
        return self.expressions.values([self.argument(node, number) for number in count])

    def kind(self, node: tree.CallExpression) -> Type:
        """The type of a call's value."""
        return self.expressions.script.types[node]

    def constant(self, node: tree.Expression) -> int | bytes | bool | None:
        """The value of an expression that is known before the script runs."""
        if isinstance(node, tree.StringLiteral | tree.IntegerLiteral | tree.BooleanLiteral):
            return node.value
        return self.expressions.script.constants.get(node)

    def map_name(self, node: tree.CallExpression) -> str:
        """The map that a call is about."""
        found = node.arguments[0]
        assert isinstance(found, tree.MapName)
        return found.name

    def helper(self, function: Callable[..., Any], key: object = None) -> str:
        """The name of a function in the code."""
        return self.lines.constant(function, key if key is not None else function)

    # -- memory -----------------------------------------------------------------------------

    def text_at(self, node: tree.Expression, size: int) -> str:
        """The code of a string in memory.

        Args:
            node: its address.
            size: bytes of it at most, without a NUL.
        """
        place = self.expressions.capturing.address(node)
        if place is not None:
            return self._recorded(place, TextType(size + 1))
        self.expressions.needs_memory = True
        return f"string({self.expressions.value(node)}, {size + 1})"

    def bytes_at(self, node: tree.Expression, size: int) -> str:
        """The code of bytes in memory; `b""` where they cannot be read."""
        place = self.expressions.capturing.address(node)
        if place is not None and size <= _MOST_BYTES:
            return self._recorded(place, BufferType(size))
        self.expressions.needs_memory = True
        return f"(memory({self.expressions.value(node)}, {size}) or b'')"

    def _recorded(self, place: Reached, kind: Type) -> str:
        return f"r{self.expressions.capturing.number(place.capture(kind))}"

    # -- aggregates -------------------------------------------------------------------------

    def aggregate(self, target: tree.MapName | tree.MapAccess, call: tree.CallExpression) -> None:
        """Add the lines of `@x = count()` and the like."""
        name = target.name if isinstance(target, tree.MapName) else target.map.name
        found = self.expressions.map(name)
        kind = found.aggregate
        assert kind is not None
        numbers = [self.argument(call, 0)] if call.name != "count" else []
        parts = [lambda: self.expressions.key(target)]
        parts += [partial(self.expressions.value, each) for each in numbers]
        key, *values = self.lines.evaluated(parts)
        value = values[0] if values else "1"
        method = _METHODS[kind.kind]
        full = self.helper(FaultTeller(self.expressions.state, MAP_FULL, call), ("full", call))
        if not found.is_plain or kind.kind in {"avg", "stats", "tseries"}:
            more = ", now" if kind.kind == "tseries" else ""
            argument = "" if kind.kind == "count" else f", {value}"
            update = f"{self.expressions.map_code(name)}.{method}({key}{argument}{more})"
            self.lines.add(f"{update} or {full}()")
            return
        entries = self.expressions.entries_code(name)
        if kind.kind == "hist":
            bits = kind.parameters[0] if kind.parameters else 0
            number = integer_of(self.expressions.type_of(numbers[0]))
            if bits or (number.bits == 64 and not number.signed):
                bucket = f"{self.helper(hist_bucket)}({value}, {bits})"
            else:  # the same without a call
                value = self.lines.temporary(value)
                bucket = f"{value}.bit_length() + 1 if {value} >= 0 else 0"
            key, value = self.lines.temporary(f"({key}, {bucket})"), "1"
        elif kind.kind == "lhist":
            bounds = ", ".join(map(str, kind.parameters))
            bucket = f"{self.helper(linear_bucket)}({value}, {bounds})"
            key, value = self.lines.temporary(f"({key}, {bucket})"), "1"
        key = self.lines.kept(key)
        add = f"{self.expressions.map_code(name)}.add"
        if kind.kind in {"min", "max"}:
            value = self.lines.kept(value)
            old = self.lines.temporary(f"{entries}.get({key})")
            sign = "<" if kind.kind == "min" else ">"
            condition = f"({old} is None or {value} {sign} {old})"
            with self.lines.block(f"if {condition} and not {add}({key}, {value}):"):
                self.lines.add(f"{full}()")
            return
        with self.lines.block("try:"):
            self.lines.add(f"{entries}[{key}] += {value}")
        with self.lines.block("except KeyError:"):
            self.lines.add(f"{add}({key}, {value}) or {full}()")


_MOST_BYTES: Final = 4096
_METHODS: Final = {
    "count": "count",
    "sum": "sum",
    "min": "minimum",
    "max": "maximum",
    "avg": "average",
    "stats": "average",
    "hist": "histogram",
    "lhist": "linear",
    "tseries": "series",
}
