"""Rows from the instructions themselves, where no table describes a function.

Two ways, each right where the other is not:

- Forwards from the function's entry, over its branches, to the place: exact where the entry
  is known and the way there is visible. Values are distances from the CFA.
- Onwards from the place to the nearest return: needs no entry and no size, sees `leave` and
  a restored sp, but not past a call that never returns. Values are distances from what the
  registers hold now.

Method: a small abstract interpretation, `stackwalk`, over `ArchUnwind.read`.
"""

from collections import deque
from collections.abc import Callable, Iterator
from copy import copy
from itertools import tee
from typing import Final

from engine.arch.base import Arch
from engine.arch.frames import ArchUnwind, Copy, Flow, StackInsn
from engine.unwind.rows import (
    AtCfa,
    AtRegister,
    CfaRegister,
    CfiRow,
    Rule,
    SameValue,
    Undefined,
)
from engine.unwind.stackwalk import CFA, StackState, Value

ReadCode = Callable[[int, int], bytes]
"""(address, size) to the program's own code, without planted bytes; less where it ends."""

FunctionAt = Callable[[int], tuple[int, int] | None]
"""Address to (start, end) of the function around it, None where none is known."""

_STEPS: Final = 20_000
"""Instructions looked at in one function."""
_AHEAD: Final = 2_000
"""Instructions looked at on the way to a return."""
_BACK: Final = 4096
"""Bytes in front of a place that are searched for the beginning of its function."""
_BACK_UNALIGNED: Final = 1024
"""The same where it is not aligned."""
_SOON: Final = 4
"""Instructions in which a function that needs stack has taken some."""
_ALIGNMENT: Final = 16
"""Of functions, as compilers place them."""
_STRAIGHT: Final = 64
"""Instructions of a prologue or an epilogue."""
_KEPT: Final = 512
"""Functions whose analysis is kept."""


class Prologues:
    """Analyses code for rows.

    Attributes:
        source: as `Frame.source` names it.
    """

    source: Final = "prologue"

    def __init__(
        self,
        arch: Arch,
        read: ReadCode,
        function_at: FunctionAt,
        is_entry: Callable[[int], bool],
    ) -> None:
        """Nothing is read before the first question.

        Args:
            arch: the architecture, with `unwind`.
            read: the program's code.
            function_at: where functions are.
            is_entry: whether a program or its loader is entered there: nobody has called it.
        """
        assert arch.unwind is not None, "checked by the unwinder"
        self._arch = arch
        self._unwind: ArchUnwind = arch.unwind
        self._read = read
        self._function_at = function_at
        self._is_entry = is_entry
        self._pushed = 0 if arch.roles.link else arch.bits // 8
        self._states: dict[int, dict[int, StackState]] = {}
        self._rows: dict[tuple[int, bool], Iterator[CfiRow]] = {}

    def begin_walk(self) -> None:
        """Forget the rows of the last walk: the code may have been rewritten since."""
        self._rows.clear()

    def rows(self, pc: int, exact: bool) -> Iterator[CfiRow]:
        """The rows that may hold at a place, the most trustworthy first.

        Those of a place that a walk meets again, as in a recursion, are kept: the search for the
        beginning of a function can take a tenth of a second.

        Args:
            pc: guest address.
            exact: an instruction about to be executed, not a return address.
        """
        key = pc, exact
        if key not in self._rows:
            (self._rows[key],) = tee(self._found_rows(pc, exact), 1)
        return copy(self._rows[key])

    def _found_rows(self, pc: int, exact: bool) -> Iterator[CfiRow]:
        function = self._function_at(pc if exact else pc - 1)
        if function is not None and self._is_entry(function[0]):
            yield self._nobody()
            return
        if function is not None:
            row = self._from_entry(function, pc, exact)
            if row is not None:
                yield row
        row = self._to_return(pc, exact)
        if row is not None:
            yield row
        for start in self._possible_starts(pc):
            states = {start: self._at_entry()}
            self._spread(states, (start, pc + 1), [start])
            row = self._at(states, pc, exact)
            if row is not None:
                yield row

    def certain(self, pc: int, is_plain: Callable[[int], bool]) -> CfiRow | None:
        """The row at a place that a straight line joins to an entry, a return or a tail call.

        There the instructions leave no doubt, while tables may: those of LLVM without
        asynchronous unwind tables are right at calls only.

        Args:
            pc: an instruction about to be executed.
            is_plain: whether a function begins there as a call leaves the stack.
        """
        function = self._function_at(pc)
        if function is not None and not self._is_entry(function[0]) and is_plain(function[0]):
            at, state = function[0], self._at_entry()
            for _ in range(_STRAIGHT):
                if at == pc:
                    return self._entry_row(state)
                insn = self.insn(at)
                if insn is None or insn.flow is not Flow.NEXT or at > pc:
                    break
                state.apply(insn.effects)
                at += insn.size
        at, state = pc, self._now(exact=True)
        for _ in range(_STRAIGHT):
            insn = self.insn(at)
            if insn is None:
                return None
            if insn.flow is Flow.RETURN or (function is not None and _leaves(insn, function)):
                return self._return_row(state)
            if insn.flow is not Flow.NEXT:
                return None
            state.apply(insn.effects)
            at += insn.size
        return None

    def insn(self, address: int) -> StackInsn | None:
        """The instruction at an address; None if there is none."""
        raw = self._read(address, self._arch.insn_max)
        return self._unwind.read(raw, address) if raw else None

    def _nobody(self) -> CfiRow:
        """At a program's entry: sp is what the kernel gave, or a little below it."""
        sp = CfaRegister(self._arch.roles.sp, 0)
        column = self._arch.roles.link or self._arch.roles.pc
        return CfiRow(sp, {column: Undefined()}, column)

    # -- from the entry --------------------------------------------------------------------

    def _from_entry(self, function: tuple[int, int], pc: int, exact: bool) -> CfiRow | None:
        return self._at(self._analyse(function), pc, exact)

    def _at(self, states: dict[int, StackState], pc: int, exact: bool) -> CfiRow | None:
        if exact:
            state = states.get(pc)
            return None if state is None else self._entry_row(state)
        longest = self._arch.insn_max
        for address in range(pc - 1, pc - longest - 1, -1):
            state = states.get(address)
            insn = None if state is None else self.insn(address)
            if state is not None and insn is not None and address + insn.size == pc:
                after = state.copy()
                self._pass(after, insn)
                return self._entry_row(after)
        return None

    def _possible_starts(self, pc: int) -> Iterator[int]:
        """Places in front of one where a function may begin, the nearest first.

        Aligned ones where what stands before ends or pads something; then, as code for size is
        not aligned, those behind an end that take stack soon. Callers prove such rows.
        """
        for start in range(pc & -_ALIGNMENT, pc - _BACK, -_ALIGNMENT):
            if self._stands_alone(start, padded=True):
                yield start
        step = self._arch.insn_align
        for start in range(pc & -step, pc - _BACK_UNALIGNED, -step):
            if start % _ALIGNMENT and self._takes_stack(start) and self._stands_alone(start):
                yield start

    def _takes_stack(self, start: int) -> bool:
        """True if one of the first instructions makes room on the stack."""
        sp, at = self._arch.roles.sp, start
        for _ in range(_SOON):
            insn = self.insn(at)
            if insn is None or insn.flow is not Flow.NEXT:
                return False
            for effect in insn.effects:
                if isinstance(effect, Copy) and effect.source == effect.target == sp:
                    return effect.offset < 0
            at += insn.size
        return False

    def _stands_alone(self, start: int, *, padded: bool = False) -> bool:
        """True if the instruction before leads elsewhere, or perhaps does nothing."""
        step = self._arch.insn_align
        for size in range(step, self._arch.insn_max + 1, step):
            insn = self.insn(start - size)
            if insn is not None and insn.size == size:
                ends = insn.flow in (Flow.RETURN, Flow.JUMP, Flow.STOP, Flow.CALL)
                if ends or (padded and insn.flow is Flow.NEXT and not insn.effects):
                    return True
        return False

    def _pass(self, state: StackState, insn: StackInsn) -> None:
        state.apply(insn.effects)
        if insn.flow is Flow.CALL:
            state.call((self._arch.roles.sp, *self._unwind.preserved))

    def _analyse(self, function: tuple[int, int]) -> dict[int, StackState]:
        start, end = function
        known = self._states.get(start)
        if known is not None:
            return known
        if len(self._states) >= _KEPT:
            self._states.clear()
        states: dict[int, StackState] = {start: self._at_entry()}
        self._states[start] = states
        dispatched = self._spread(states, function, [start])
        if dispatched is not None:
            # The cases of a switch: what nothing else leads to has the state at its jump.
            at = start
            while at < end and len(states) < _STEPS:
                insn = self.insn(at)
                if at not in states:
                    states[at] = dispatched.copy()
                    self._spread(states, function, [at])
                at += insn.size if insn is not None else self._arch.insn_align
        return states

    def _spread(
        self, states: dict[int, StackState], function: tuple[int, int], begin: list[int]
    ) -> StackState | None:
        """Follow the flow from some places; the state at a jump to nobody knows where."""
        start, end = function
        dispatched: StackState | None = None
        work = deque(begin)
        for _ in range(_STEPS):
            if not work:
                break
            address = work.popleft()
            insn = self.insn(address)
            if insn is None:
                continue
            if insn.flow is Flow.JUMP and insn.target is None:
                dispatched = dispatched or states[address]
            state = states[address].copy()
            self._pass(state, insn)
            for follower in _followers(address, insn):
                if not start <= follower < end:
                    continue
                there = states.get(follower)
                if there is None:
                    states[follower] = state.copy()
                    work.append(follower)
                elif there.merge(state):
                    work.append(follower)
        return dispatched

    def _at_entry(self) -> StackState:
        roles = self._arch.roles
        names = (*self._unwind.preserved, *((roles.link,) if roles.link else ()))
        registers: dict[str, Value] = {name: (("entry", name), 0) for name in names}
        registers[roles.sp] = (CFA, -self._pushed)
        return StackState(registers)

    def _entry_row(self, state: StackState) -> CfiRow | None:
        roles = self._arch.roles
        names = (roles.sp, roles.fp, *state.registers)
        base = next(
            (
                name
                for name in names
                if name in state.registers and state.registers[name][0] == CFA
            ),
            None,
        )
        if base is None:
            return None
        rules: dict[str, Rule] = {}
        for address, (what, distance) in state.memory.items():
            if address[0] != CFA or distance or not isinstance(what, tuple):
                continue
            if what[0] == "entry" and state.registers.get(what[1]) != (what, 0):
                rules[what[1]] = AtCfa(address[1])
        column = roles.link or roles.pc
        if roles.link is None:
            rules[column] = AtCfa(-self._pushed)
        elif state.registers.get(column) == (("entry", column), 0):
            rules[column] = SameValue()
        elif column not in rules:
            return None
        return CfiRow(CfaRegister(base, -state.registers[base][1]), rules, column)

    # -- to the return ---------------------------------------------------------------------

    def _to_return(self, pc: int, exact: bool) -> CfiRow | None:
        work = deque([(pc, self._now(exact))])
        seen = {pc}
        last: StackState | None = None  # at a jump nobody knows where to, as of a tail call
        for _ in range(_AHEAD):
            if not work:
                break
            address, state = work.popleft()
            insn = self.insn(address)
            if insn is None:
                continue
            if insn.flow is Flow.RETURN:
                return self._return_row(state)
            if insn.flow is Flow.JUMP and insn.target is None:
                last = last or state
            self._pass(state, insn)
            for follower in _followers(address, insn):
                if follower not in seen:
                    seen.add(follower)
                    work.append((follower, state.copy()))
        return None if last is None else self._return_row(last)

    def _now(self, exact: bool) -> StackState:
        """The registers' values, told by itself; the link register only before any call."""
        roles = self._arch.roles
        names = {roles.sp, roles.fp, *self._unwind.preserved}
        if exact and roles.link:
            names.add(roles.link)
        return StackState({name: (("now", name), 0) for name in names}, reads=True)

    def _return_row(self, state: StackState) -> CfiRow | None:
        """Read the row off the state in front of a return."""
        roles = self._arch.roles
        sp = state.registers.get(roles.sp)
        if sp is None or not isinstance(sp[0], tuple) or sp[0][0] != "now":
            return None
        base, distance = sp[0][1], sp[1] + self._pushed
        rules: dict[str, Rule] = {}
        column = roles.link or roles.pc
        if roles.link is None:
            rules[column] = AtCfa(-self._pushed)
        for name in (*self._unwind.preserved, *((roles.link,) if roles.link else ())):
            rule = _rule_of(state.registers.get(name), name, base, distance)
            if rule is not None:
                rules[name] = rule
        if column not in rules:
            return None
        return CfiRow(CfaRegister(base, distance), rules, column)


def _rule_of(value: Value | None, name: str, base: str, distance: int) -> Rule | None:
    """The rule by which a register's value in front of a return is found now."""
    if value is None or value[1] or not isinstance(value[0], tuple):
        return None
    kind, what = value[0]
    if kind == "now":
        return SameValue() if what == name else None
    if kind != "word":
        return None
    origin, offset = what
    if not isinstance(origin, tuple) or origin[0] != "now":
        return None
    register = origin[1]
    return AtCfa(offset - distance) if register == base else AtRegister(register, offset)


def _leaves(insn: StackInsn, function: tuple[int, int]) -> bool:
    """True if an instruction jumps to another function: the end of a tail call."""
    inside = insn.target is None or function[0] <= insn.target < function[1]
    return insn.flow is Flow.JUMP and not inside


def _followers(address: int, insn: StackInsn) -> tuple[int, ...]:
    """The successors of an instruction, calls passed over."""
    after = address + insn.size
    if insn.flow in (Flow.NEXT, Flow.CALL):
        return (after,)
    if insn.flow is Flow.BRANCH:
        return (after,) if insn.target is None else (after, insn.target)
    if insn.flow is Flow.JUMP and insn.target is not None:
        return (insn.target,)
    return ()
