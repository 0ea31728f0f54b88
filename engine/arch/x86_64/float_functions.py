"""x87's instructions of one operand, remainders, and transcendental functions (8.3.5 to 8.3.7)."""

from collections.abc import Callable

from engine.arch.x86_64 import extended, transcendental
from engine.arch.x86_64.extended import (
    INDEFINITE,
    ONE,
    SIGN,
    ControlWord,
    Operation,
    Result,
)
from engine.arch.x86_64.floatstack import (
    C0,
    C1,
    C2,
    C3,
)
from engine.arch.x86_64.floatstep import EARLY, FloatStep, InstructionTable, Run


def _unary(function: Callable[[int, ControlWord], Result]) -> Run:
    def run(step: FloatStep) -> None:
        if step.lacks(0):
            step.refuse(0)
        else:
            step.keep(function(step.registers.get(0), step.registers.control), 0)

    return run


def _upon_next(function: Operation) -> Run:
    """Of st(0) and st(1), into st(1), then pop."""

    def run(step: FloatStep) -> None:
        registers = step.registers
        if step.lacks(0, 1):
            step.refuse(1, 1)
        else:
            result = function(registers.get(0), registers.get(1), registers.control)
            step.keep(result, 1, 1)

    return run


def _scale(step: FloatStep) -> None:
    registers = step.registers
    if step.lacks(0, 1):
        step.refuse(0)
    else:
        result = extended.scale(registers.get(0), registers.get(1), registers.control)
        step.keep(result, 0)


def _remainder(*, nearest: bool) -> Run:
    def run(step: FloatStep) -> None:
        registers = step.registers
        registers.status &= ~C2
        if step.lacks(0, 1):
            step.refuse(0)
            return
        found = extended.remainder(
            registers.get(0), registers.get(1), registers.control, nearest=nearest
        )
        step.keep(found.result, 0)
        count = found.quotient
        if count is None or found.result.flags & ~registers.word & EARLY:
            return
        registers.codes(
            (C2 if found.partial else 0)
            | (C1 if count & 1 else 0)
            | (C3 if count & 2 else 0)
            | (C0 if count & 4 else 0)
        )

    return run


def _two_results(step: FloatStep, first: Result, second: Result) -> None:
    """Replace st(0), then push."""
    registers = step.registers
    flags = first.flags | second.flags
    if flags & ~registers.word & EARLY:
        registers.raised(flags & EARLY)
        registers.direction(up=False)
        return
    registers.raised(flags)
    registers.direction(up=second.up)
    registers.put(0, first.value)
    registers.push(second.value)


def _no_room(step: FloatStep) -> bool:
    """True if st(0) is missing, or there is no room to push; that is then dealt with."""
    registers = step.registers
    if not step.lacks(0) and registers.empty(7):
        return False
    if registers.missing(full=not step.lacks(0)):
        registers.put(0, INDEFINITE)
        registers.push(INDEFINITE)
    return True


def _extract(step: FloatStep) -> None:
    if not _no_room(step):
        parts = extended.extract(step.registers.get(0))
        _two_results(step, Result(parts.exponent, parts.flags), Result(parts.significand))


def _reducible(step: FloatStep) -> bool:
    """C2 says that an angle is too large."""
    registers = step.registers
    large = transcendental.out_of_range(registers.get(0))
    if large:
        registers.codes(registers.status & (C0 | C3) | C2)
    return not large


def _circular(function: Callable[[int, ControlWord], Result]) -> Run:
    def run(step: FloatStep) -> None:
        registers = step.registers
        registers.status &= ~C2
        if step.lacks(0):
            step.refuse(0)
        elif _reducible(step):
            step.keep(function(registers.get(0), registers.control), 0)

    return run


def _sine_and_cosine(step: FloatStep) -> None:
    registers = step.registers
    registers.status &= ~C2
    if not _no_room(step) and _reducible(step):
        value = registers.get(0)
        sine, cosine = (
            function(value, registers.control)
            for function in (transcendental.sine, transcendental.cosine)
        )
        _two_results(step, sine, cosine)


def _tangent(step: FloatStep) -> None:
    registers = step.registers
    registers.status &= ~C2
    if not _no_room(step) and _reducible(step):
        found = transcendental.tangent(registers.get(0), registers.control)
        nan = extended.refused(found.value) is not None
        _two_results(step, found, Result(found.value if nan else ONE, 0, found.up))


def _changed_sign(value: int, control: ControlWord) -> Result:
    return Result(value ^ SIGN)


def _absolute(value: int, control: ControlWord) -> Result:
    return Result(value & ~SIGN)


def _angle(width: int, height: int, control: ControlWord) -> Result:
    return transcendental.angle(height, width, control)


def enter(table: InstructionTable) -> None:
    """Put these instructions into a table."""
    table.registers |= {
        (0xD9, 0xE0): _unary(_changed_sign),
        (0xD9, 0xE1): _unary(_absolute),
        (0xD9, 0xF0): _unary(transcendental.power_less_one),
        (0xD9, 0xF1): _upon_next(transcendental.times_log),
        (0xD9, 0xF2): _tangent,
        (0xD9, 0xF3): _upon_next(_angle),
        (0xD9, 0xF4): _extract,
        (0xD9, 0xF5): _remainder(nearest=True),
        (0xD9, 0xF8): _remainder(nearest=False),
        (0xD9, 0xF9): _upon_next(transcendental.times_log_of_next),
        (0xD9, 0xFA): _unary(extended.root),
        (0xD9, 0xFB): _sine_and_cosine,
        (0xD9, 0xFC): _unary(extended.whole),
        (0xD9, 0xFD): _scale,
        (0xD9, 0xFE): _circular(transcendental.sine),
        (0xD9, 0xFF): _circular(transcendental.cosine),
    }
