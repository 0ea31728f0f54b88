"""Python source of one block: the writer of described instructions, and tools for the others.

Generated code reads and writes the lists of `State` by constant index. Its names: g n p f b A F U
are State's g n p f b a frame um; R1 to R8 and W1 to W8 views of memory; L the ALAT; S the state.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.python_value import MASK, REGISTERS, PythonValue
from engine.cpu.ia64.value import Argument, CodeValue, Operand

_SIGN: Final = {32: 1 << 31, 64: 1 << 63}
_LOW: Final = (1 << 32) - 1
_OPERATORS: Final = {
    "eq": ("==", "!="),
    "ne": ("!=", "=="),
    "slt": ("<", ">="),
    "sle": ("<=", ">"),
    "sgt": (">", "<="),
    "sge": (">=", "<"),
    "ult": ("<", ">="),
}
"""Operators of relations, and of their opposites."""


class PythonCondition(NamedTuple):
    """An expression for a relation, and one for its opposite."""

    text: str
    inverse: str


def part(value: CodeValue) -> str:
    """A value between 0 and 2**64, as an operand."""
    assert isinstance(value, PythonValue)
    return value.part


def _argument(value: Argument) -> str:
    if isinstance(value, PythonValue):
        return value.part
    return repr(value)


class Emitter:
    """Collects the lines of a block.

    Attributes:
        nats: whether NaT bits are kept by this version of the code.
        sources: NaT bits of what a described instruction has read, which go to what it writes.
        lines: source lines.
        places: the slot address that each line belongs to.
        required: how many registers the frame must have at the block's start.
        required_if: predicate under which the last slot needs them, 0 for always.
        ip: the bundle address of the instruction at hand.
        slot: its slot address.
        behind: the slot address behind it.
        ends: the block cannot go on behind this instruction.
        loops: it goes round inside its function.
    """

    def __init__(self, nats: bool, clocked: bool, loop: int = -1) -> None:
        """`loop` is the block's own entry if it may go round inside its function."""
        self._loop = str(loop)
        self.nats = nats
        self.clocked = clocked
        self.sources: list[str] = []
        self.lines: list[str] = []
        self.places: list[int] = []
        self.required = self.required_if = 0
        self._frame: int | None = None
        self._depth = 2
        self._marked: set[int] = set()
        self.conditional, self._qp = False, 0
        self.ip = self.slot = self.behind = 0
        self.ends = False
        self.loops = False

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self._depth + text)
        self.places.append(self.slot)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines under a compound statement; it disappears if there are none."""
        self.line(head)
        count = len(self.lines)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if len(self.lines) == count:
                self.lines.pop()
                self.places.pop()

    @contextmanager
    def predicated(self, qp: int) -> Iterator[None]:
        """Lines that a predicate guards."""
        if not qp:
            yield
            return
        self.conditional, self._qp = True, qp
        try:
            with self.block(f"if p[{qp}]:"):
                yield
        finally:
            self.conditional, self._qp = False, 0

    # -- values ------------------------------------------------------------------------------

    def number(self, value: int) -> PythonValue:
        """A constant."""
        return PythonValue.number(value)

    def shift(self, kind: str, value: CodeValue, count: CodeValue) -> PythonValue:
        """A shift by any count."""
        text, few = part(value), f"(c := {part(count)}) < 64"
        if kind == "l":
            return PythonValue(f"({text} << c & {MASK} if {few} else 0)")
        if kind == "u":
            return PythonValue(f"({text} >> c if {few} else 0)")
        signed = f"(({text} ^ {_SIGN[64]:#x}) - {_SIGN[64]:#x})"
        return PythonValue(f"({signed} >> (c if {few} else 63) & {MASK})")

    def funnel(self, high: CodeValue, low: CodeValue, count: int) -> PythonValue:
        """The lower half of 128 shifted bits."""
        return PythonValue(f"(({high.text} << 64 | {part(low)}) >> {count} & {MASK})")

    def call(self, name: str, *arguments: Argument) -> PythonValue:
        """The result of a function of the namespace (`Helpers.namespace`)."""
        return PythonValue(f"{name}({', '.join(map(_argument, arguments))})")

    def pairwise(self, name: str, left: CodeValue, right: CodeValue) -> PythonValue:
        """The result of a function of `integers.PARALLEL`."""
        return PythonValue(f"PARALLEL[{name!r}]({part(left)}, {part(right)})")

    def relation(
        self, what: str, left: CodeValue, right: Operand, bits: int = 64
    ) -> PythonCondition:
        """The condition that two values are in a relation."""
        operator, opposite = _OPERATORS[what]
        if isinstance(right, int):
            right = PythonValue.number(right)
        assert isinstance(left, PythonValue)
        assert isinstance(right, PythonValue)
        if bits == 32 and what in ("eq", "ne"):
            left, right = left ^ right, PythonValue.number(0)
        if bits == 32:
            left, right = left & _LOW, right & _LOW
        if what[0] == "s":
            left, right = left ^ _SIGN[bits], right ^ _SIGN[bits]
        one, other = part(left), part(right)
        return PythonCondition(f"{one} {operator} {other}", f"{one} {opposite} {other}")

    # -- described instructions ----------------------------------------------------------------

    def general(self, register: int) -> PythonValue:
        """A general register, whose NaT bit is passed on."""
        if register and self.nats:
            self.sources.append(f"n[{register}]")
        return REGISTERS[register]

    def nat_of(self, register: int) -> PythonValue:
        """The NaT bit of a general register."""
        return PythonValue(f"n[{register}]", 1) if self.nats and register else REGISTERS[0]

    def result(self, insn: SlotInsn, how: "Callable[[Emitter, SlotInsn], CodeValue]") -> None:
        """Write an instruction that only writes a general register."""
        value = how(self, insn)
        assert isinstance(value, PythonValue)
        self.put(insn.field("r1"), value.whole, nat=" | ".join(self.sources) or "0")

    def compare(self, insn: SlotInsn, condition: object, kind: str) -> None:
        """Write two predicates."""
        assert isinstance(condition, PythonCondition)
        compare(self, insn, *condition, kind, " | ".join(self.sources))

    # -- operands ----------------------------------------------------------------------------

    def illegal(self, why: str) -> None:
        """The instruction is an illegal operation."""
        self.line(f"raise Illegal({why!r})")

    def gr(self, register: int) -> str:
        """Value of a general register."""
        return f"g[{register}]" if register else "0"

    def nat(self, *registers: int) -> str:
        """NaT of a result that depends on registers."""
        return " | ".join(f"n[{register}]" for register in registers if register) or "0"

    def consume(self, *registers: int) -> None:
        """The instruction needs values: a NaT among them is a fault."""
        if self.nats and any(registers):
            self.line(f"if {self.nat(*registers)}: raise NatConsumption")

    def check_target(self, register: int) -> bool:
        """Emit the checks of a register that is written; False if it is always illegal."""
        if register == 0:
            self.illegal("r0 is written")
            return False
        if register >= 32:
            need = register - 31
            if self._frame is not None:
                if need > self._frame:
                    self.illegal("a register beyond the frame is written")
                    return False
            else:
                self.required, self.required_if = max(self.required, need), self._qp
        return True

    def put(self, register: int, value: str, *sources: int, nat: str = "") -> None:
        """Write a general register from an expression."""
        if not self.check_target(register):
            return
        self.line(f"g[{register}] = {value}")
        if self.nats:
            self.line(f"n[{register}] = {nat or self.nat(*sources)}")

    def set_frame(self, size: int) -> None:
        """The frame's size is known from here on."""
        self._frame = size

    def check_float_target(self, register: int) -> bool:
        """The checks of a floating-point register that is written."""
        if register < 2:
            self.illegal(f"f{register} is written")
            return False
        return True

    def put_float(self, register: int, value: str) -> None:
        """Write a floating-point register; the user mask notes which half was written."""
        if self.check_float_target(register):
            self.line(f"f[{register}] = {value}")
            self.mark(register)

    def mark(self, register: int) -> None:
        """Note in the user mask that the register was written."""
        bit = 16 if register < 32 else 32
        if bit not in self._marked:
            self.line(f"U[0] |= {bit}")
            if not self.conditional:
                self._marked.add(bit)

    def forget_marks(self) -> None:
        """The user mask is written."""
        self._marked.clear()

    # -- leaving -----------------------------------------------------------------------------

    def leave(self, target: str) -> None:
        """Control goes on elsewhere."""
        if self.clocked:
            self.line(f"C[0] = {self.behind}")
        if target == self._loop:
            self.line("if H: return " + target)
            self.line("continue")
            self.loops = True
        else:
            self.line(f"return {target}")

    def after_traps(self) -> None:
        """Behind a floating-point operation: unmasked exceptions may be pending."""
        self.line("if X: trap()")


def compare(e: Emitter, insn: SlotInsn, condition: str, inverse: str, kind: str, nat: str) -> None:
    """Write two predicates.

    Args:
        e: where to.
        insn: the compare; its predicate is dealt with here.
        condition: expression for the relation.
        inverse: for its opposite.
        kind: "", "unc", "and", "or" or "or.andcm".
        nat: an expression of the NaT bits that decide, "" for none.
    """
    first, second, qp = insn.field("p1"), insn.field("p2"), insn.qp
    if first == second:
        with e.predicated(0 if kind == "unc" else qp):
            e.illegal("both predicates of a compare are the same")
        return
    targets = [at for at in (first, second) if at]
    clear = " = ".join(f"p[{at}]" for at in targets)
    with e.predicated(qp):
        if kind in ("", "unc"):
            if nat and targets:
                e.line(f"if {nat}: {clear} = 0")
                with e.block("else:"):
                    _assign(e, first, second, condition, inverse)
            else:
                _assign(e, first, second, condition, inverse)
        elif kind == "and":
            also = f"{nat} or " if nat else ""
            if targets:
                e.line(f"if {also}{inverse}: {clear} = 0")
        else:
            also = f"not ({nat}) and " if nat else ""
            with e.block(f"if {also}({condition}):"):
                if first:
                    e.line(f"p[{first}] = 1")
                if second:
                    e.line(f"p[{second}] = {int(kind == 'or')}")
    if kind == "unc" and qp and targets:
        e.line(f"else: {clear} = 0")


def _assign(e: Emitter, first: int, second: int, condition: str, inverse: str) -> None:
    if first and second:
        e.line(f"p[{first}] = t = {condition}")
        e.line(f"p[{second}] = not t")
    elif first:
        e.line(f"p[{first}] = {condition}")
    elif second:
        e.line(f"p[{second}] = {inverse}")


Emit = Callable[[Emitter, SlotInsn], None]
"""Writes an instruction that is not described for both writers."""
