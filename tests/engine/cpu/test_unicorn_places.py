"""Places whose execution is told: each time, in order, and without a trace in the machine."""

from collections import Counter

import pytest
from machinekit import CODE, bare

from engine.arch import by_name
from engine.cpu import native
from engine.insn.asm import assemble
from engine.machine.machine import BareMachine

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)
LOOP = "mov ecx, 10; again: inc rax; inc rbx; dec ecx; jnz again; cli; hlt"
AGAIN = CODE + 5


def machine_of(text: str) -> BareMachine:
    arch = by_name("x86_64")
    assert arch is not None
    return bare(assemble(arch, CODE, text))


def test_a_block_and_an_instruction_are_told_each_time() -> None:
    """The first round of the loop is fallen into: no block begins there yet."""
    machine, seen = machine_of(LOOP), list[tuple[str, int]]()
    places, cpu = machine.cpu.places, machine.cpu
    places.tell_block(AGAIN, lambda: seen.append(("block", cpu["rax"])))
    places.tell_instruction(AGAIN + 3, lambda: seen.append(("inside", cpu["rax"])))
    machine.run()
    assert [each for name, each in seen if name == "block"] == list(range(1, 10))
    assert [each for name, each in seen if name == "inside"] == list(range(1, 11))
    assert cpu["rbx"] == 10


def test_the_clock_and_the_registers_are_as_without() -> None:
    ends = []
    for told in (False, True):
        machine = machine_of(LOOP)
        if told:
            machine.cpu.places.tell_block(AGAIN, lambda: None)
            machine.cpu.places.tell_instruction(AGAIN + 6, lambda: None)
        end = machine.run()
        ends.append((end, machine.cpu["rax"], machine.cpu["eflags"]))
    assert ends[0] == ends[1]


def test_thousands_of_places_that_share_bits_and_words_of_the_tables() -> None:
    """Of those near each other, a multiple of 2^19 apart, and forgotten, only the right one."""
    machine, seen = machine_of(LOOP), Counter[int]()
    places = machine.cpu.places
    others = [AGAIN + (each << 19) for each in range(1, 3000)]
    others += [AGAIN + each for each in range(1, 3000)]
    for each in others:
        places.tell_block(each, lambda each=each: seen.update([each]))  # type: ignore[misc]
    places.tell_block(AGAIN, lambda: seen.update([AGAIN]))
    for each in others[1::2]:
        places.forget_block(each)
    places.forget_block(AGAIN + 1)
    places.forget_block(12345678)
    machine.run()
    assert seen == {AGAIN: 9, AGAIN + 10: 1}  # behind the loop a block begins, too


def test_a_place_that_is_forgotten_and_told_again() -> None:
    machine, seen = machine_of(LOOP), list[str]()
    places = machine.cpu.places

    def first() -> None:
        seen.append("first")
        places.forget_block(AGAIN)
        places.tell_block(AGAIN + 10, lambda: seen.append("end"))

    places.tell_block(AGAIN, first)
    machine.run()
    assert seen == ["first", "end"]
    places.tell_block(AGAIN, lambda: seen.append("again"))
    machine.cpu["rip"], machine.cpu["rcx"] = CODE, 0
    machine.run()
    assert seen == ["first", "end", *["again"] * 9, "end"]


def test_what_an_action_raises_ends_the_run() -> None:
    machine = machine_of("again: inc rax; jmp again")

    def fails() -> None:
        if machine.cpu["rax"] == 5:
            raise KeyError("five")

    machine.cpu.places.tell_block(CODE, fails)
    with pytest.raises(KeyError, match="five"):
        machine.run()


def test_an_interrupted_block_is_told_once() -> None:
    """A stop in front of a block is not its execution: it goes on there."""
    machine, seen = machine_of(LOOP), list[int]()

    def halts() -> None:
        seen.append(machine.cpu["rax"])
        if machine.cpu["rax"] == 4:
            machine.halt()

    machine.cpu.places.tell_block(AGAIN, halts)
    machine.run()
    assert seen == [1, 2, 3, 4]
    assert machine.cpu["rax"] == 5  # the block that began is finished
