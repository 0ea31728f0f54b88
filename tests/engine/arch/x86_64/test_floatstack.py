"""The registers of x87 against what a processor stores of them (SDM volume 1, 8.1)."""

import pytest
from barecpu import BareCpu

from engine.arch.x86_64.extended import INVALID, ONE
from engine.arch.x86_64.floatstack import C1, FloatStack, environment_size

PI = 0x4000_C90FDAA22168C235


def fresh() -> tuple[BareCpu, FloatStack]:
    cpu = BareCpu("x86_64")
    stack = FloatStack(cpu)
    stack.reset()
    return cpu, stack


def test_pushed_values_reach_the_processor() -> None:
    cpu, stack = fresh()
    stack.push(ONE)
    stack.push(PI)
    assert (stack.get(0), stack.get(1), stack.empty(2)) == (PI, ONE, True)
    stack.leave()
    assert (cpu.read_register("st0"), cpu.read_register("st1")) == (PI, ONE)
    assert cpu.read_register("fstat") == 6 << 11
    again = FloatStack(cpu)
    assert (again.top, again.get(1), again.tag_word) == (6, ONE, 0x0FFF)
    again.pop()
    assert (again.get(0), again.empty(7)) == (ONE, True)


@pytest.mark.parametrize("short", [False, True])
def test_what_is_saved_is_restored(short: bool) -> None:
    _, stack = fresh()
    stack.push(PI)
    stack.push(0)
    stack.free(1)
    stack.codes(C1)
    stack.load_word(0x27F)
    image = stack.saved(short=short)
    assert len(image) == environment_size(short=short) + 80
    at = 2 if short else 4
    words = [int.from_bytes(image[at * n :][:2], "little") for n in range(3)]
    assert words == [0x27F, 6 << 11 | C1, 0xDFFF]  # register 7 is free, 6 is a zero
    _, other = fresh()
    other.restore(image, short=short)
    assert (other.word, other.status_word, other.tag_word) == (0x27F, words[1], 0xDFFF)
    assert (other.get(0), other.get(1)) == (0, PI)


def test_a_stack_fault_says_where_it_came_from() -> None:
    _, stack = fresh()
    assert stack.missing(full=True)
    assert stack.status_word == 0x40 | INVALID | C1
    stack.load_word(0x37E)
    assert stack.pending
    assert stack.status_word & 0x8080 == 0x8080
    assert not stack.missing()
    assert not stack.status & C1
