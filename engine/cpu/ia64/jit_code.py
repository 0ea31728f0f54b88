"""LLVM text of one region: values, state, leaving.

A region's function takes the address of the words (`jit_words`) and an entry's number, and returns
the slot to go on at. Registers are written where the instruction stands, so that every slot can
be left.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from engine.arch.ia64.decode import SlotInsn
from engine.cpu.ia64.jit_parallel import CALLS, PAIRWISE
from engine.cpu.ia64.jit_value import JitLines, JitValue, Unsupported, number
from engine.cpu.ia64.jit_words import (
    ASSIST,
    END,
    EXPECTED,
    EXPONENTS,
    FUEL,
    HALT,
    LEFT,
    LEFT_BEFORE,
    LEFT_FOR,
    NATS,
    PR,
    SIGNIFICANDS,
    SOF_WORD,
    TICKS,
    TOP,
    TURN,
    UM,
)
from engine.cpu.ia64.value import Argument, CodeValue, Operand

PARAMETERS: Final = "ptr noundef nonnull %s, i64 %at"
"""Of a region's function, and of those that enter it."""


def stub(name: str, function: str, at: int) -> str:
    """A function that goes on at an entry of another."""
    given = PARAMETERS.replace("%at", str(at))
    call = f"  %value = musttail call i64 @{function}({given})"
    return f"define i64 @{name}({PARAMETERS}) nounwind {{\n{call}\n  ret i64 %value\n}}"


class JitCode(JitLines):
    """Collects a function.

    Attributes:
        clocked: whether the block clock runs.
        nats: whether any general register may be a NaT; Python sees to an instruction that reads
            one, but for those that ask for it, keep it or pass it on.
        sources: NaT bits of what a described instruction has read, which go to what it writes.
        insn: the instruction at hand.
        slot: its slot address.
        behind: the slot address behind it.
        guard: the condition under which it writes registers, "" for always.
        frame: the frame's size where it is known.
        ends: nothing goes on behind the instruction.
        assists: slots that Python executes.
    """

    def __init__(
        self, clocked: bool, nats: bool, inside: Container[int], cells: Callable[[int], int]
    ) -> None:
        """Begin a function.

        Args:
            clocked: see above.
            nats: see above.
            inside: entries that a branch may go to in this function.
            cells: the word that holds the function of a region, by its entry.
        """
        super().__init__()
        self._cells = cells
        self.ends = False
        self.clocked, self.nats = clocked, nats
        self._inside = inside
        self._aside: list[str] = []
        self._pointers: dict[tuple[str, int], str] = {}
        self._has_top = False
        self._tails: dict[str, list[str]] = {}
        self.slot = self.behind = 0
        self.guard = ""
        self.sources: list[str] = []
        self.frame: int | None = None
        self.insn: SlotInsn
        self.assists: set[int] = set()

    # -- text --------------------------------------------------------------------------------

    def mark(self) -> tuple[int, int]:
        """A place to go back to."""
        return len(self._lines), len(self._aside)

    def back(self, mark: tuple[int, int]) -> None:
        """Take back what has been added since."""
        del self._lines[mark[0] :]
        del self._aside[mark[1] :]
        self._pointers.clear()

    @contextmanager
    def aside(self, label: str) -> Iterator[None]:
        """A block that control hardly ever comes to, emitted inside, behind all others."""
        usual, self._lines = self._lines, []
        known, self._pointers = self._pointers, {}
        try:
            self.label(label)
            yield
            self._aside += self._lines
        finally:
            self._lines, self._pointers = usual, known

    def label(self, name: str) -> None:
        """A block begins."""
        self._lines.append(f"{name}:")
        self._pointers.clear()

    def text(self, name: str, entries: Sequence[str]) -> str:
        """The whole function, which begins at one of some labels."""
        head = [f"  %topword = getelementptr i64, ptr %s, i64 {TOP}"] if self._has_top else []
        head += ["  %top = load ptr, ptr %topword"] if self._has_top else []
        first, *others = entries
        if others:
            cases = " ".join(f"i64 {at}, label %{to}" for at, to in enumerate(others, 1))
            head.append(f"  switch i64 %at, label %{first} [{cases}]")
        else:
            head.append(f"  br label %{first}")
        tails = [line for lines in self._tails.values() for line in lines]
        return "\n".join(
            [
                f"define i64 @{name}({PARAMETERS}) nounwind {{",
                *head,
                *self._lines,
                *self._aside,
                *tails,
                "}",
            ]
        )

    # -- words of the state ----------------------------------------------------------------------

    def _pointer(self, base: str, index: int) -> str:
        # One for each block: the code generator has no registers for those of other blocks, but
        # makes those of its own part of the instruction.
        made = self._pointers.get((base, index))
        if made is None:
            made = self.op(f"getelementptr i64, ptr {base}, i64 {index}")
            self._pointers[base, index] = made
        return made

    def word(self, index: int) -> str:
        """Pointer to a word."""
        return self._pointer("%s", index)

    def load(self, index: int) -> str:
        """A word's value."""
        return self.op(f"load i64, ptr {self.word(index)}")

    def store(self, index: int, value: str) -> None:
        """Write a word."""
        self.emit(f"store i64 {value}, ptr {self.word(index)}")

    def stacked(self, register: int) -> str:
        """Pointer to a stacked register."""
        self._has_top = True
        return self._pointer("%top", register - 32)

    # -- values ----------------------------------------------------------------------------------

    def number(self, value: int) -> JitValue:
        """A constant."""
        return JitValue(self, number(value))

    def shift(self, kind: str, value: CodeValue, count: CodeValue) -> JitValue:
        """A shift by any count; that of the machine's is modulo 64."""
        few = self.test("ult", count.text, "64")
        low = self.masked(count.text, 63)
        if kind == "r":
            return JitValue(self, self.binary("ashr", value.text, self.choose(few, low, "63")))
        shifted = self.binary("shl" if kind == "l" else "lshr", value.text, low)
        return JitValue(self, self.choose(few, shifted, "0"))

    def funnel(self, high: CodeValue, low: CodeValue, count: int) -> JitValue:
        """The lower half of 128 shifted bits."""
        given = (("i64", text) for text in (high.text, low.text, str(count)))
        return JitValue(self, self.intrinsic("llvm.fshr.i64", "i64", *given))

    def call(self, name: str, *arguments: Argument) -> JitValue:
        """The result of a function of Python's namespace that has LLVM text, too."""
        if name not in CALLS:
            raise Unsupported
        given = (each.text if isinstance(each, JitValue) else each for each in arguments)
        return JitValue(self, CALLS[name](self, *given))

    def pairwise(self, name: str, left: CodeValue, right: CodeValue) -> JitValue:
        """The result of a function of the elements of two registers."""
        if name not in PAIRWISE:
            raise Unsupported
        function, *given = PAIRWISE[name]
        return JitValue(self, function(self, *given, left.text, right.text))

    def relation(self, what: str, left: CodeValue, right: Operand, bits: int = 64) -> str:
        """The condition that two values are in a relation."""
        one, other = left.text, number(right) if isinstance(right, int) else right.text
        if bits == 32:
            one, other = (self.op(f"trunc i64 {text} to i32") for text in (one, other))
        return self.op(f"icmp {what} i{bits} {one}, {other}")

    # -- registers -------------------------------------------------------------------------------

    def general(self, register: int) -> JitValue:
        """A general register, whose NaT bit is passed on."""
        if self.nats and register:
            self.sources.append(self.nat(register))
        return JitValue(self, self.value(register))

    def nat_of(self, register: int) -> JitValue:
        """The NaT bit of a general register."""
        return JitValue(self, self.nat(register))

    def gr(self, register: int) -> str:
        """A general register's value; Python goes on where it is a NaT."""
        if self.nats and register:
            self.leave_if(self.test("ne", self.nat(register), "0"))
        return self.value(register)

    def value(self, register: int) -> str:
        """A general register's value, whether or not it is a NaT."""
        if register == 0:
            return "0"
        return self.op(f"load i64, ptr {self._general(register)}")

    def nat(self, register: int) -> str:
        """1 if a general register is a NaT, else 0."""
        if register == 0 or not self.nats:
            return "0"
        return self.op(f"load i64, ptr {self._general(register, NATS)}")

    def _general(self, register: int, beyond: int = 0) -> str:
        """Pointer to a general register's word, or to one so many words behind it."""
        return self.word(register + beyond) if register < 32 else self.stacked(register + beyond)

    def check_target(self, register: int) -> None:
        """Leave the slot to Python if this general register may not be written.

        Raises:
            Unsupported: it never may.
        """
        if register == 0 or (self.frame is not None and register - 31 > self.frame):
            raise Unsupported
        if register >= 32 and self.frame is None:
            narrow = self.test("ult", self.load(SOF_WORD), str(register - 31))
            self.leave_if(narrow)

    def put(self, register: int, value: str, nat: str = "0") -> None:
        """Write a general register, where the guard holds; the target has been checked."""
        if self.guard:
            value = self.choose(self.guard, value, self.value(register))
        self.emit(f"store i64 {value}, ptr {self._general(register)}")
        if self.nats:
            for source in self.sources:
                nat = source if nat == "0" else self.binary("or", nat, source)
            if self.guard:
                nat = self.choose(self.guard, nat, self.nat(register))
            self.emit(f"store i64 {nat}, ptr {self._general(register, NATS)}")

    def result(self, insn: SlotInsn, how: "Callable[[JitCode, SlotInsn], CodeValue]") -> None:
        """Write an instruction that only writes a general register."""
        register = insn.field("r1")
        self.check_target(register)
        self.put(register, how(self, insn).text)

    def compare(self, insn: SlotInsn, condition: object, kind: str) -> None:
        """Write two predicates; a NaT among the sources clears both, or leaves both."""
        first, second, qp = insn.field("p1"), insn.field("p2"), insn.qp
        assert isinstance(condition, str)
        if first == second:
            raise Unsupported
        one, two = (1 << first) & ~1, (1 << second) & ~1
        both = one | two
        old = self.load(PR)
        cleared = self.masked(old, ~both)
        if kind in ("", "unc"):
            bits = self.choose(condition, number(one), number(two))
            new = self.binary("or", cleared, bits)
            other = cleared if kind else old
        elif kind == "and":
            new, other = self.choose(condition, old, cleared), old
        elif kind == "or":
            new, other = self.choose(condition, self.binary("or", old, number(both)), old), old
        else:
            new, other = self.choose(condition, self.binary("or", cleared, number(one)), old), old
        if self.sources:
            nat = self.sources[0]
            for source in self.sources[1:]:
                nat = self.binary("or", nat, source)
            unknown = cleared if kind in ("", "unc", "and") else old
            new = self.choose(self.test("eq", nat, "0"), new, unknown)
        if qp:
            new = self.choose(self.predicate(qp), new, other)
        self.store(PR, new)

    def predicate(self, register: int) -> str:
        """Condition that a predicate is set."""
        if register == 0:
            return "true"
        bit = self.masked(self.load(PR), 1 << register)
        return self.test("ne", bit, "0")

    def float_pointers(self, register: int) -> tuple[str, str]:
        """Pointers to significand and exponent of a floating-point register."""
        if register < 32:
            return self.word(SIGNIFICANDS + register), self.word(EXPONENTS + register)
        turned = self.binary("add", self.load(TURN), str(register - 32))
        wrapped = self.binary("sub", turned, "96")
        at = self.choose(self.test("ult", turned, "96"), turned, wrapped)
        low = self.op(f"getelementptr i64, ptr {self.word(SIGNIFICANDS + 32)}, i64 {at}")
        high = self.op(f"getelementptr i64, ptr {self.word(EXPONENTS + 32)}, i64 {at}")
        return low, high

    def fr(self, register: int) -> tuple[str, str]:
        """Significand, and sign and exponent of a floating-point register."""
        if register < 2:
            return ("0", "0") if not register else (number(1 << 63), "65535")
        low, high = self.float_pointers(register)
        return self.op(f"load i64, ptr {low}"), self.op(f"load i64, ptr {high}")

    def put_float(self, register: int, significand: str, exponent: str) -> None:
        """Write a floating-point register; the user mask notes which half was written."""
        if register < 2:
            raise Unsupported
        low, high = self.float_pointers(register)
        self.emit(f"store i64 {significand}, ptr {low}")
        self.emit(f"store i64 {exponent}, ptr {high}")
        self.written_half(register)

    def written_half(self, register: int) -> None:
        """Note in the user mask in which half a floating-point register is written."""
        self.store(UM, self.binary("or", self.load(UM), "16" if register < 32 else "32"))

    # -- control ---------------------------------------------------------------------------------

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Code, emitted inside, that is executed only where a condition holds."""
        if condition == "true":
            yield
            return
        then, after = self.name("then"), self.name("after")
        self.emit(f"br i1 {condition}, label %{then}, label %{after}")
        self.label(then)
        yield
        self.emit(f"br label %{after}")
        self.label(after)

    def leave_if(self, condition: str) -> None:
        """Python executes this slot, where a condition holds."""
        if self.guard:
            condition = self.op(f"and i1 {condition}, {self.guard}")
        go_on = self.name("on")
        tail = self._leaving(self.slot)
        self.emit(f"br i1 {condition}, label %{tail}, label %{go_on}")
        self.label(go_on)

    def leave(self) -> None:
        """Python goes on at this slot."""
        self.emit(f"br label %{self._leaving(self.slot)}")

    def _leaving(self, place: int) -> str:
        name = f"leave_{place:x}"
        if name not in self._tails:
            lines = self._tails[name] = [f"{name}:"]
            if self.clocked:
                where = "%" + self.name("e")
                lines.append(f"  {where} = getelementptr i64, ptr %s, i64 {EXPECTED}")
                lines.append(f"  store i64 {number(place)}, ptr {where}")
            lines.append(f"  ret i64 {number(place)}")
        return name

    def tick(self, target: str) -> None:
        """Control goes elsewhere than to the next slot: the clock, if it runs."""
        if not self.clocked:
            return
        ticks = self.load(TICKS)
        spent = self.test("uge", ticks, self.load(END))
        stop, go_on = self.name("spent"), self.name("on")
        self.emit(f"br i1 {spent}, label %{stop}, label %{go_on}")
        with self.aside(stop):
            self.arrive(target, number(self.behind))
        self.label(go_on)
        self.store(TICKS, self.binary("add", ticks, "1"))
        self.store(LEFT_BEFORE, self.load(LEFT))
        self.store(LEFT, number(self.behind))
        self.store(LEFT_FOR, target)

    def arrive(self, target: str, expected: str = "") -> None:
        """Give control back to Python at a place: one that the clock knows of, if not told."""
        if self.clocked:
            self.store(EXPECTED, expected or target)
        if expected:  # tells it from not having begun
            self.store(FUEL, self.binary("add", self.load(FUEL), "-1"))
        self.emit(f"ret i64 {target}")

    def poll(self, target: str) -> None:
        """See whether the core is to stop before it goes on at a place."""
        fuel = self.binary("add", self.load(FUEL), "-1")
        self.store(FUEL, fuel)
        halted = self.op(f"load volatile i64, ptr {self.word(HALT)}")
        stop, go_on = self.name("stop"), self.name("on")
        over = self.test("eq", fuel, "0")
        halted = self.test("ne", halted, "0")
        either = self.op(f"or i1 {over}, {halted}")
        self.emit(f"br i1 {either}, label %{stop}, label %{go_on}")
        with self.aside(stop):
            self.arrive(target)
        self.label(go_on)

    def assist(self) -> None:
        """Python executes this instruction, and machine code goes on behind it."""
        self.assists.add(self.slot)
        function = self.op(f"load ptr, ptr {self.word(ASSIST)}")
        refused = self.op(f"call i64 {function}(i64 {number(self.slot)})")
        self.leave_if(self.test("ne", refused, "0"))

    def cell(self, target: int) -> int:
        """The word that holds the function of a region elsewhere."""
        return self._cells(target)

    def inside(self, target: int) -> bool:
        """True if an entry is in this function."""
        return target in self._inside


Emit = Callable[[JitCode, SlotInsn], None]
"""Writes an instruction that is not described for both writers."""
