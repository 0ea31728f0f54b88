"""Python for the expressions of an action.

Each method gives an expression of Python whose value is that of a node, converted to the type
that it has where it stands. What Python cannot say in an expression is added as lines before it.
Arithmetic is that of bpftrace's code for BPF (its src/ast/passes/codegen_llvm.cpp, `binop_int`):
operands are widened by their own signs to the wider of the two, a comparison is signed if one of
them is, division and shifts to the right are unsigned, and a division by 0 gives 1.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from engine.trace.bpftrace import tree
from engine.trace.bpftrace.arithmetic import BY_ZERO
from engine.trace.bpftrace.capturing import Capturing, bitfield_of, is_args, stride
from engine.trace.bpftrace.checked import CheckedScript
from engine.trace.bpftrace.conversion_code import (
    NUMBER,
    converted,
    fits,
    integer_of,
    wrapped,
)
from engine.trace.bpftrace.layouts import StructurePart, part_named, value_at, value_of
from engine.trace.bpftrace.maps import AVERAGED, SCALAR, ScriptMap
from engine.trace.bpftrace.output import DIVIDED_BY_ZERO, MAP_FULL, OUT_OF_BOUNDS, Fault
from engine.trace.bpftrace.script_memory import BytesOf
from engine.trace.bpftrace.source_lines import SourceLines, is_simple
from engine.trace.bpftrace.state import ScriptState
from engine.trace.bpftrace.type_rules import type_size
from engine.trace.bpftrace.types import (
    VOID,
    Aggregate,
    Array,
    BufferType,
    Integer,
    Pointer,
    Record,
    Structure,
    TextType,
    Tuple,
    Type,
)
from engine.trace.bpftrace.values import default_value

_COMPARISONS: Final = frozenset({"==", "!=", "<", ">", "<=", ">="})
_BITWISE: Final = frozenset({"&", "|", "^"})


class ExpressionCode:
    """Makes Python of expressions.

    Attributes:
        lines: where code goes that does not fit into an expression.
        capturing: what the row of a hit has to hold.
        needs_memory: the action reads memory whose address is not known at the hit.
        addressed: numbers of the variables whose address the action takes, by name.
        call: makes the code of a call or of a builtin's name.
        block: adds the statements of a block; the code of its value, None if it has none.
        script: that the action is of.
        state: of the run.
    """

    def __init__(
        self, script: CheckedScript, state: ScriptState, lines: SourceLines, capturing: Capturing
    ) -> None:
        """Set up.

        Args:
            script: that the action is of.
            state: of the run.
            lines: of the action.
            capturing: of its probe.
        """
        self.script = script
        self.state = state
        self.lines = lines
        self.capturing = capturing
        self.needs_memory = False
        self.addressed: dict[str, int] = {}
        self.call: Callable[[tree.CallExpression | tree.Name], str] = _not_set
        self.block: Callable[[tree.BlockExpression], str | None] = _not_set

    # -- values -----------------------------------------------------------------------------

    def value(self, node: tree.Expression) -> str:
        """The code of a value."""
        code, kind = self.raw(node), self.script.types.get(node, VOID)
        target = self.script.conversions.get(node)
        return code if target is None else converted(self.lines, code, kind, target)

    def values(self, nodes: "tuple[tree.Expression, ...] | list[tree.Expression]") -> list[str]:
        """The codes of several values, worked out from left to right."""
        return self.lines.evaluated([partial(self.value, each) for each in nodes])

    def type_of(self, node: tree.Expression) -> Type:
        """The type that a value has where it stands."""
        return self.script.conversions.get(node, self.script.types.get(node, VOID))

    def target_type(self, node: tree.ScratchName | tree.MapName | tree.MapAccess) -> Type:
        """The type of what is stored in a variable or an entry of a map."""
        if isinstance(node, tree.ScratchName):
            return self.script.types.get(node, VOID)
        return self.map(node.name if isinstance(node, tree.MapName) else node.map.name).value

    def condition(self, node: tree.Expression) -> str:
        """The code of a value of which only the truth is asked."""
        if isinstance(node, tree.Binary) and node.operator in {"&&", "||"}:
            return self._logical(node)
        return self.value(node)

    def raw(self, node: tree.Expression) -> str:
        """The code of a value before it is converted."""
        constant = self.script.constants.get(node)
        if constant is not None:
            return self._literal(constant)
        captured = self._captured(node)
        if captured is not None:
            return captured
        match node:
            case tree.IntegerLiteral() | tree.BooleanLiteral() | tree.StringLiteral():
                return self._literal(node.value)
            case tree.ScratchName():
                return self.variable(node)
            case tree.MapName() | tree.MapAccess():
                return self.entry(node)
            case tree.AddressOf():
                return self._address(node)
            case tree.Name() | tree.CallExpression():
                return self.call(node)
            case tree.Unary():
                return self._unary(node)
            case tree.Increment():
                return self.increment(node)
            case tree.Binary():
                return self._binary(node)
            case tree.Conditional():
                return self.conditional(node) or "None"
            case tree.FieldAccess():
                return self._field(node)
            case tree.Index():
                return self._index(node)
            case tree.Cast():
                return self._cast(node)
            case tree.TupleLiteral():
                return self._tuple(list(node.elements))
            case tree.RecordLiteral():
                return self._tuple([value for _, value in node.fields])
            case tree.BlockExpression():
                return self.block(node) or "None"
            case _:
                raise AssertionError(f"{type(node).__name__} is not in a checked script")

    def _literal(self, value: int | bytes | bool) -> str:
        if isinstance(value, bytes):
            return self.lines.constant(value)
        return repr(value)

    def _captured(self, node: tree.Expression) -> str | None:
        if not isinstance(
            node, tree.Name | tree.CallExpression | tree.FieldAccess | tree.Index | tree.Unary
        ) or is_args(node):
            return None
        capture = self.capturing.value(node)
        if capture is None:
            return None
        return f"r{self.capturing.number(capture)}"

    def variable(self, node: tree.ScratchName) -> str:
        """The name of a scratch variable."""
        return variable_code(self.script.variables.get(node, node.name))

    def _address(self, node: tree.AddressOf) -> str:
        assert isinstance(node.of, tree.ScratchName)
        name, kind = self.variable(node.of), self.target_type(node.of)
        number = self.addressed.setdefault(name, len(self.addressed))
        made = self.lines.constant(BytesOf(kind), ("bytes", kind))
        self.needs_memory = True
        return f"taken({number}, lambda: {made}({name}))"

    def _tuple(self, nodes: list[tree.Expression]) -> str:
        codes = self.values(nodes)
        return f"({', '.join(codes)}{',' if len(codes) == 1 else ''})"

    def _cast(self, node: tree.Cast) -> str:
        source, target = self.type_of(node.operand), self.script.types.get(node, VOID)
        return converted(self.lines, self.value(node.operand), source, target)

    # -- maps -------------------------------------------------------------------------------

    def map(self, name: str) -> ScriptMap:
        """A map of the run."""
        return self.state.maps[name]

    def map_code(self, name: str) -> str:
        """The name of a map in the code."""
        return self.lines.constant(self.map(name), ("map", name))

    def entries_code(self, name: str) -> str:
        """The name of the entries of a map in the code."""
        return self.lines.constant(self.map(name).entries, ("entries", name))

    def key(self, node: tree.MapName | tree.MapAccess) -> str:
        """The code of an entry's key."""
        return str(SCALAR) if isinstance(node, tree.MapName) else self.value(node.key)

    def entry(self, node: tree.MapName | tree.MapAccess, key: str | None = None) -> str:
        """The code of an entry's value; of an aggregate its cell.

        Args:
            node: the entry.
            key: the code of its key, if there is code of it already.
        """
        name = node.name if isinstance(node, tree.MapName) else node.map.name
        found = self.map(name)
        code = self.key(node) if key is None else key
        if found.is_bucketed or not found.is_plain:
            return f"{self.map_code(name)}.get({code})"
        entries, kind = self.entries_code(name), found.value
        if isinstance(kind, Aggregate):
            return f"{entries}.get({code}, {'(0, 0)' if kind.kind in AVERAGED else '0'})"
        default = default_value(kind)
        simple = isinstance(default, int | bytes)
        zero = repr(default) if simple else self.lines.constant(default, ("default", kind))
        return f"{entries}.get({code}, {zero})"

    def increment(self, node: tree.Increment) -> str:
        """The code of `++` and `--`; the change is made by lines before it."""
        sign = "+" if node.operator == "++" else "-"
        kind = self.target_type(node.target)
        step = str(stride(kind)) if isinstance(kind, Pointer) else "1"
        number = integer_of(kind)
        if isinstance(node.target, tree.ScratchName):
            name = self.variable(node.target)
            old = name if node.before else self.lines.temporary(name)
            self.lines.add(f"{name} = {wrapped(f'{name} {sign} {step}', number)}")
            return name if node.before else old
        key = self.lines.kept(self.key(node.target))
        old = self.lines.temporary(self.entry(node.target, key))
        new = self.lines.temporary(wrapped(f"{old} {sign} {step}", number))
        self.set_entry(node.target, key, new)
        return new if node.before else old

    def set_entry(self, node: tree.MapName | tree.MapAccess, key: str, value: str) -> None:
        """Add the lines that set an entry.

        Args:
            node: the entry.
            key: the code of its key, a name or a literal.
            value: the code of its value.
        """
        name = node.name if isinstance(node, tree.MapName) else node.map.name
        entries, add = self.entries_code(name), f"{self.map_code(name)}.add({key}, {value})"
        full = self.lines.constant(FaultTeller(self.state, MAP_FULL, node), ("full", node))
        if not self.map(name).is_plain:
            self.lines.add(f"{add} or {full}()")
            return
        with self.lines.block(f"if {key} in {entries}:"):
            self.lines.add(f"{entries}[{key}] = {value}")
        with self.lines.block("else:"):
            self.lines.add(f"{add} or {full}()")

    # -- operators --------------------------------------------------------------------------

    def _unary(self, node: tree.Unary) -> str:
        kind = self.script.types.get(node, VOID)
        match node.operator:
            case "!":
                return f"(not {self.condition(node.operand)})"
            case "*":
                return self._load(node, kind)
            case _:
                code = self.value(node.operand)
                if isinstance(kind, NUMBER):
                    return wrapped(f"{node.operator}{code}", integer_of(kind))
                return f"({node.operator}{code})"

    def _logical(self, node: tree.Binary) -> str:
        left = self.condition(node.left)
        right, needed = self.lines.aside(lambda: self.condition(node.right))
        word = "and" if node.operator == "&&" else "or"
        if not needed:
            return f"({left} {word} {right})"
        result = self.lines.temporary(left)
        self.lines.add(f"if {result}:" if word == "and" else f"if not {result}:")
        self.lines.put([*needed, (self.lines.depth, f"{result} = {right}")])
        return result

    def _binary(self, node: tree.Binary) -> str:
        if node.operator in {"&&", "||"}:
            return f"bool({self._logical(node)})"
        left_type, right_type = self.type_of(node.left), self.type_of(node.right)
        left, right = self.values([node.left, node.right])
        if isinstance(left_type, Pointer) or isinstance(right_type, Pointer):
            return self._pointer(node, left, right)
        if isinstance(left_type, NUMBER) and isinstance(right_type, NUMBER):
            operands = (left, integer_of(left_type)), (right, integer_of(right_type))
            return self.number(node, *operands)
        if isinstance(left_type, TextType) and isinstance(right_type, TextType):
            # BPF compares as many bytes as the shorter of the two has room for.
            most = min(left_type.size, right_type.size)
            if max(left_type.size, right_type.size) > most:
                left, right = f"{left}[:{most}]", f"{right}[:{most}]"
        return f"({left} {node.operator} {right})"

    def _pointer(self, node: tree.Binary, left: str, right: str) -> str:
        operator = node.operator
        left_type, right_type = self.type_of(node.left), self.type_of(node.right)
        unsigned = Integer(64, signed=False)
        if operator in _COMPARISONS:
            left = left if isinstance(left_type, Pointer) else wrapped(left, unsigned)
            right = right if isinstance(right_type, Pointer) else wrapped(right, unsigned)
            return f"({left} {operator} {right})"
        if isinstance(left_type, Pointer) and isinstance(right_type, Pointer):
            return wrapped(f"{left} {operator} {right}", integer_of(self.type_of(node)))
        pointer = left_type if isinstance(left_type, Pointer) else right_type
        assert isinstance(pointer, Pointer)
        step = stride(pointer)
        if step != 1 and isinstance(left_type, Pointer):
            right = f"{right} * {step}"
        elif step != 1:
            left = f"{left} * {step}"
        return wrapped(f"({left} {operator} {right})", unsigned)

    def number(
        self, node: tree.Binary, left_part: tuple[str, Integer], right_part: tuple[str, Integer]
    ) -> str:
        """The code of an operation on two numbers.

        Args:
            node: the operation.
            left_part: the code and the type of what is left of the operator.
            right_part: of what is right of it.
        """
        (left, left_kind), (right, right_kind) = left_part, right_part
        operator, bits = node.operator, max(left_kind.bits, right_kind.bits)
        result = integer_of(self.script.types.get(node, VOID))
        unsigned, signed = Integer(bits, signed=False), Integer(bits, signed=True)
        if operator in _COMPARISONS:
            if left_kind.signed != right_kind.signed:
                common = unsigned if operator in {"==", "!="} else signed
                left, right = _as(left, left_kind, common), _as(right, right_kind, common)
            return f"({left} {operator} {right})"
        if operator in {"/", "%"}:
            return self._division(
                node, _as(left, left_kind, unsigned), _as(right, right_kind, unsigned)
            )
        if operator == "<<":
            return wrapped(f"({left} << ({right} & 63))", result)
        if operator == ">>":
            code = f"({_as(left, left_kind, unsigned)} >> ({right} & 63))"
            return code if fits(unsigned, result) else wrapped(code, result)
        code = f"({left} {operator} {right})"
        if operator in _BITWISE and fits(left_kind, result) and fits(right_kind, result):
            return code
        return wrapped(code, result)

    def _division(self, node: tree.Binary, left: str, right: str) -> str:
        result = integer_of(self.script.types.get(node, VOID))
        operator = "//" if node.operator == "/" else "%"
        by = self.script.constants.get(node.right)
        if isinstance(by, int) and by:
            code = f"({left} {operator} {right})"
        else:
            left, right = self.lines.kept(left), self.lines.kept(right)
            fault = self.lines.constant(
                FaultTeller(self.state, DIVIDED_BY_ZERO, node, BY_ZERO), ("division", node)
            )
            code = f"({left} {operator} {right} if {right} else {fault}())"
        return code if result.bits == 64 and not result.signed else wrapped(code, result)

    def conditional(self, node: tree.Conditional) -> str | None:
        """The code of a conditional's value; None if it has none, and is all in lines."""
        kind = self.script.types.get(node, VOID)
        if kind == VOID or node.otherwise is None:
            self._branches(node, None)
            return None
        condition = self.condition(node.condition)
        then, then_lines = self.lines.aside(lambda: self.value(node.then))
        otherwise = node.otherwise
        other, other_lines = self.lines.aside(lambda: self.value(otherwise))
        if not then_lines and not other_lines:
            return f"({then} if {condition} else {other})"
        result = self.lines.fresh()
        depth = self.lines.depth
        self.lines.add(f"if {condition}:")
        self.lines.put([*then_lines, (depth, f"{result} = {then}")])
        self.lines.add("else:")
        self.lines.put([*other_lines, (depth, f"{result} = {other}")])
        return result

    def _branches(self, node: tree.Conditional, result: None) -> None:
        with self.lines.block(f"if {self.condition(node.condition)}:"):
            self.effect(node.then)
        if node.otherwise is not None:
            with self.lines.block("else:"):
                self.effect(node.otherwise)

    def effect(self, node: tree.Expression) -> None:
        """Add the lines of an expression whose value is not wanted."""
        if isinstance(node, tree.BlockExpression):
            code = self.block(node)
        elif isinstance(node, tree.Conditional):
            code = self.conditional(node)
        else:
            code = self.raw(node)
        if code is not None and not is_simple(code) and code != "None":
            self.lines.add(code)

    # -- memory -----------------------------------------------------------------------------

    def _field(self, node: tree.FieldAccess) -> str:
        of = self.type_of(node.of)
        if isinstance(of, Tuple):
            return f"{self.value(node.of)}[{int(node.name)}]"
        if isinstance(of, Record):
            names = [name for name, _ in of.fields]
            return f"{self.value(node.of)}[{names.index(node.name)}]"
        structure = of.target if isinstance(of, Pointer) else of
        assert isinstance(structure, Structure)
        part = part_named(structure, node.name)
        assert part is not None
        place = self.capturing.place(node)
        if place is not None and bitfield_of(self.script, node) is not None:
            member = structure.layout.member(node.name)
            assert member is not None
            capture = place.plus(part.offset - member.offset).capture(BufferType(part.size))
            raw = f"r{self.capturing.number(capture)}"
            read = MemberReader(part, 0)
        elif isinstance(of, Pointer) or place is not None or self._is_place(node.of):
            # Parts of what is in memory are read alone: a whole structure may be large.
            raw = self._memory(self.place_code(node, part.offset), part.size)
            read = MemberReader(part, 0)
        else:
            raw, read = self.value(node.of), MemberReader(part, part.offset)
        return f"{self.lines.constant(read, ('part', part, read.offset))}({raw})"

    def _is_place(self, node: tree.Expression) -> bool:
        """True if the value of an expression is in the guest's memory, and was not read."""
        if isinstance(node, tree.Unary):
            return node.operator == "*"
        if isinstance(node, tree.FieldAccess) and not is_args(node.of):
            of = self.type_of(node.of)
            return isinstance(of, Pointer) or (
                isinstance(of, Structure) and self._is_place(node.of)
            )
        if isinstance(node, tree.Index):
            of = self.type_of(node.of)
            return isinstance(of, Pointer) or (isinstance(of, Array) and self._is_place(node.of))
        return False

    def place_code(self, node: tree.Expression, offset: int | None = None) -> str:
        """The code of the address of something in memory.

        Args:
            node: what is there.
            offset: of a part: bytes from the start of what it is a part of.
        """
        if isinstance(node, tree.Unary):
            return self.value(node.operand)
        if isinstance(node, tree.FieldAccess):
            of = self.type_of(node.of)
            structure = of.target if isinstance(of, Pointer) else of
            assert isinstance(structure, Structure)
            part = part_named(structure, node.name)
            assert part is not None
            start = self.value(node.of) if isinstance(of, Pointer) else self.place_code(node.of)
            added = part.offset if offset is None else offset
            return f"({start} + {added})" if added else start
        assert isinstance(node, tree.Index)
        of = self.type_of(node.of)
        if isinstance(of, Pointer):
            start, index = self.values([node.of, node.index])
            return f"({start} + {index} * {stride(of)})"
        assert isinstance(of, Array)
        codes = [lambda: self.place_code(node.of), lambda: self.value(node.index)]
        start, index = self.lines.evaluated(codes)
        if not isinstance(self.script.constants.get(node.index), int):
            # Behind the end of an array, its first element is not read, but a zero.
            index = self.lines.kept(index)
            outside = FaultTeller(self.state, OUT_OF_BOUNDS, node, 0)
            tell = self.lines.constant(outside, ("outside", node))
            start = f"({start} if 0 <= {index} < {of.count} else {tell}())"
        return f"({start} + {index} * {type_size(of.element)})"

    def _index(self, node: tree.Index) -> str:
        of = self.type_of(node.of)
        kind = self.script.types.get(node, VOID)
        if isinstance(of, Pointer) or (isinstance(of, Array) and self._is_place(node.of)):
            return self._load(node, kind)
        index = self.script.constants.get(node.index)
        if isinstance(index, int) and (
            isinstance(of, Tuple | Record) or (isinstance(of, Array) and 0 <= index < of.count)
        ):
            return f"{self.value(node.of)}[{index}]"
        codes = self.values([node.of, node.index])
        outside = FaultTeller(self.state, OUT_OF_BOUNDS, node, default_value(kind))
        element = self.lines.constant(BoundedElement(outside), ("element", node))
        return f"{element}({', '.join(codes)})"

    def _load(self, node: tree.Expression, kind: Type) -> str:
        size = type_size(kind)
        raw = self._memory(self.place_code(node), size)
        read = self.lines.constant(BytesReader(kind), ("reader", kind))
        return f"{read}({raw})"

    def _memory(self, address: str, size: int) -> str:
        self.needs_memory = True
        if not address.startswith("("):
            address = f"({address})"
        return f"memory({address} & 0xffffffffffffffff, {size})"


def variable_code(name: str) -> str:
    """The name of a scratch variable in the code, by its name in `CheckedScript.variables`."""
    return f"v_{name.replace('.', '_in_').replace('$', '_of_')}"


def _as(code: str, kind: Integer, wanted: Integer) -> str:
    """A number by its bits in a type that has as many, or more."""
    return code if fits(kind, wanted) else wrapped(code, wanted)


def _not_set(node: Any) -> Any:
    raise AssertionError(node)


class MemberReader:
    """Reads a member of bytes; zeros where memory could not be read.

    Attributes:
        offset: where the member begins in the bytes.
    """

    def __init__(self, part: StructurePart, offset: int) -> None:
        """Take a member and where it begins."""
        self._part = part
        self.offset = offset
        self._least = offset + part.size

    def __call__(self, data: bytes | None) -> Any:
        """The value of the member."""
        raw = (data or b"").ljust(self._least, b"\0")
        return value_at(self._part, raw, self.offset)


class BytesReader:
    """Reads a value of bytes; zeros where memory could not be read."""

    def __init__(self, kind: Type) -> None:
        """Take the type of the value."""
        self._kind = kind
        self._size = type_size(kind)

    def __call__(self, data: bytes | None) -> Any:
        """The value."""
        return value_of(self._kind, (data or b"").ljust(self._size, b"\0"))


class BoundedElement:
    """Takes an element of an array."""

    def __init__(self, outside: "FaultTeller") -> None:
        """Take what tells of an element that is not there."""
        self._outside = outside

    def __call__(self, array: Any, index: int) -> Any:
        """The element; what stands for it where there is none."""
        return array[index] if 0 <= index < len(array) else self._outside()


class FaultTeller:
    """Tells that something went wrong at a place of a script.

    Attributes:
        result: what a call of this gives: the value that stands for the one that there is not.
    """

    def __init__(
        self, state: ScriptState, fault: Fault, node: tree.ScriptNode, result: Any = None
    ) -> None:
        """Take what is to be told.

        Args:
            state: of the run.
            fault: what went wrong.
            node: where.
            result: what a call gives.
        """
        self._state = state
        self._fault = fault
        self._node = node
        self.result = result

    def __call__(self) -> Any:
        """Tell it."""
        self._state.fault(self._fault, self._node)
        return self.result
