"""Descriptions of IA-64 instructions: values of both writers, and the Python text they make."""

import ctypes
import operator
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from engine.arch.ia64.decode import SlotInsn, decode_slot
from engine.arch.ia64.encode import assemble
from engine.cpu.ia64.emitter import Emitter
from engine.cpu.ia64.jit import available, compiler
from engine.cpu.ia64.jit_value import JitLines, JitValue, number
from engine.cpu.ia64.python_value import PythonValue
from engine.cpu.ia64.translate import emit

_M: Final = (1 << 64) - 1
_EXPRESSIONS: Final = 200
_INPUTS: Final = (0, 1, 0x7F, 0x80, 0xFFFF_8000, 1 << 63, _M, 0x0123_4567_89AB_CDEF)
Expression = Callable[[Any, Any, Callable[[int], Any]], Any]
"""What it makes of two values, and of constants that the third argument makes."""


class Plain:
    """A value computed at once, by what Python's integers and the manual say."""

    def __init__(self, value: int) -> None:
        self.value = value & _M

    def __add__(self, other: "Plain | int") -> "Plain":
        return Plain(self.value + _plain(other))

    def __sub__(self, other: "Plain | int") -> "Plain":
        return Plain(self.value - _plain(other))

    def __and__(self, other: "Plain | int") -> "Plain":
        return Plain(self.value & _plain(other))

    def __or__(self, other: "Plain | int") -> "Plain":
        return Plain(self.value | _plain(other))

    def __xor__(self, other: "Plain | int") -> "Plain":
        return Plain(self.value ^ _plain(other))

    def __invert__(self) -> "Plain":
        return Plain(~self.value)

    def __lshift__(self, count: int) -> "Plain":
        return Plain(self.value << count)

    def cut(self, at: int, length: int, signed: bool = False) -> "Plain":
        """Bits as a string of digits, so that no shift or mask is the one under test."""
        digits = f"{self.value:064b}"[64 - at - length : 64 - at]
        extension = digits[0] if signed else "0"
        return Plain(int(digits.rjust(64, extension), 2))

    def ones(self) -> "Plain":
        """How many digits are 1."""
        return Plain(f"{self.value:b}".count("1"))

    def leading_zeros(self) -> "Plain":
        """How many digits are 0 before the first 1."""
        return Plain(64 - len(f"{self.value:b}".lstrip("0")))


def _plain(other: Plain | int) -> int:
    return other.value if isinstance(other, Plain) else other


def _step(what: int, left: Any, right: Any, bits: int) -> Any:
    """One operation of a writer's values; `bits` decides its constants."""
    by = bits >> 58
    length = 1 + (bits >> 8) % (64 - by)
    if bits & 1:
        right = (bits & 0xFFFF) - 0x8000 if bits & 2 else bits
    if bits & 4:
        by, length = 0, (8, 16, 32, 64)[bits >> 4 & 3]
    if what < 5:
        operations = (operator.add, operator.sub, operator.and_, operator.or_, operator.xor)
        return operations[what](left, right)
    if what == 5:
        return ~left
    if what == 6:
        return left << by
    if what == 7:
        return left.cut(by, length, bool(bits & 8))
    return left.ones() if bits & 16 else left.leading_zeros()


def _expression(source: random.Random) -> Expression:
    """A random function of two values, with the operations of a writer's values."""
    steps = [
        (source.randrange(9), source.random(), source.random(), source.getrandbits(64))
        for _ in range(source.randrange(1, 6))
    ]

    def run(x: Any, y: Any, number: Callable[[int], Any]) -> Any:
        known = [x, y, number(steps[0][3]), number(0), number(-3)]
        for what, first, second, bits in steps:
            left, right = (known[int(at * len(known))] for at in (first, second))
            known.append(_step(what, left, right, bits))
        return known[-1]

    return run


def _all(seed: int) -> list[Expression]:
    source = random.Random(seed)
    return [_expression(source) for _ in range(_EXPRESSIONS)]


def test_python_expressions_are_arithmetic_modulo_2_to_the_64() -> None:
    """Whatever is put together, the whole is cut to 64 bits where it has to be."""
    for at, run in enumerate(_all(1)):
        made = run(PythonValue("x"), PythonValue("y"), PythonValue.number)
        code = compile(made.whole, "value", "eval")
        for x in _INPUTS:
            for y in _INPUTS:
                expected = run(Plain(x), Plain(y), Plain).value
                assert eval(code, {"x": x, "y": y}) == expected, (at, made.whole, x, y)


def _number(lines: JitLines, value: int) -> JitValue:
    return JitValue(lines, number(value))


@pytest.mark.skipif(not available(), reason="llvmlite is not installed")
def test_llvm_values_are_the_same() -> None:
    """The same expressions as machine code."""
    functions, runs = [], _all(1)
    helpers: set[str] = set()
    for at, run in enumerate(runs):
        lines = JitLines()
        constant = partial(_number, lines)
        made = run(JitValue(lines, "%x"), JitValue(lines, "%y"), constant)
        helpers |= lines.helpers
        body = "\n".join([*lines._lines, f"  ret i64 {made.text}"])
        functions.append(f"define i64 @f{at}(i64 %x, i64 %y) {{\n{body}\n}}")
    llvm = compiler()
    assert llvm is not None
    names = [f"f{at}" for at in range(len(runs))]
    keep, addresses = llvm.compile("\n".join([*sorted(helpers), *functions]), *names)
    kind = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
    for at, (address, run) in enumerate(zip(addresses, runs, strict=True)):
        function = kind(address)
        for x in _INPUTS:
            for y in _INPUTS:
                assert function(x, y) == run(Plain(x), Plain(y), Plain).value, (at, x, y)
    del keep


def _source(insn: SlotInsn, nats: bool) -> str:
    emitter = Emitter(nats, False)
    emit(emitter, insn)
    return "\n".join(line.removeprefix("        ") for line in emitter.lines)


@pytest.mark.parametrize(
    ("text", "unit", "source"),
    [
        ("add r8=r9,r10", "I", "g[8] = (g[9] + g[10]) & 0xFFFFFFFFFFFFFFFF"),
        ("adds r8=-8,r12", "I", "g[8] = (g[12] - 8) & 0xFFFFFFFFFFFFFFFF"),
        ("mov r8=r9", "I", "g[8] = g[9]"),
        ("mov r8=0x1", "I", "g[8] = 0x1"),
        ("extr.u r8=r9,4,8", "I", "g[8] = (g[9] >> 4) & 0xff"),
        ("dep.z r8=r9,4,8", "I", "g[8] = (g[9] & 0xff) << 4"),
        ("zxt4 r8=r9", "I", "g[8] = g[9] & 0xffffffff"),
        ("cmp.eq p6,p7=r8,r9", "I", "p[6] = t = g[8] == g[9]\np[7] = not t"),
        ("(p6) and r8=r9,r10", "I", "if p[6]:\n    g[8] = g[9] & g[10]"),
    ],
)
def test_python_text_stays_short(text: str, unit: str, source: str) -> None:
    """Nothing is masked, shifted by 0 or put in brackets without need."""
    assert _source(decode_slot(unit, assemble(text, unit, 0)[0]), False) == source


def test_nats_of_all_that_is_read_go_to_what_is_written() -> None:
    insn = decode_slot("I", assemble("add r8=r9,r10", "I", 0)[0])
    assert _source(insn, True).splitlines()[1:] == ["n[8] = n[9] | n[10]"]


def test_what_is_always_illegal_says_why() -> None:
    """The reserved count of pshladd2, under a predicate."""
    word = assemble("(p6) pshladd2 r8=r9,1,r10", "I", 0)[0] | 3 << 27
    assert _source(decode_slot("I", word), False) == (
        "if p[6]:\n    raise Illegal('a reserved shift count')"
    )
