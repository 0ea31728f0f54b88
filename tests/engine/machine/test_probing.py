"""Probes in a machine: hits and returns, of tail calls, of tasks that are gone, of too many."""

import pytest
from machinekit import CODE, STACK, bare, word

from engine.arch import by_name
from engine.cpu import native
from engine.insn.asm import assemble
from engine.machine import probing
from engine.machine.addresses import KernelAddresses
from engine.machine.machine import BareMachine
from engine.machine.probing import MachineProbes, ReturnProbe

pytestmark = pytest.mark.skipif(
    not native.possible(), reason="host code is for x86-64 hosts without KPROBE_TUI_PORTABLE"
)
INNER, OUTER, TAIL, DEEP = CODE + 0x100, CODE + 0x200, CODE + 0x300, CODE + 0x400
MAIN = f"""
    mov edi, 1; call {OUTER}; mov edi, 2; call {TAIL};
    mov edi, 3; call {DEEP}; cli; hlt
"""
FUNCTIONS = {
    INNER: "lea eax, [rdi + rdi]; ret",
    OUTER: f"push rdi; call {INNER}; pop rdi; inc eax; ret",
    TAIL: f"inc edi; jmp {INNER}",
    DEEP: f"dec edi; jz done; call {DEEP}; done: lea eax, [rdi + 40]; ret",
}


class Told:
    """A machine with these functions, and what its probes have seen."""

    def __init__(self, *, tasks: tuple[int, ...] = (), trampolines: tuple[int, ...] = ()) -> None:
        arch = by_name("x86_64")
        assert arch is not None
        self.machine: BareMachine = bare(assemble(arch, CODE, MAIN))
        for address, text in FUNCTIONS.items():
            code = assemble(arch, address, text)
            self.machine.cpu.memory[address : address + len(code)] = code
        self.seen: list[tuple[str | int, ...]] = []
        given = iter(tasks)
        cpu = self.machine.cpu
        addresses = KernelAddresses(cpu)
        self.probes = MachineProbes(cpu, addresses, lambda: next(given, 0), trampolines)

    def on_entry(self, address: int, name: str, *, begins: bool = True) -> None:
        cpu = self.machine.cpu
        self.probes.add(address, lambda: self.seen.append((name, cpu["rdi"])), begins=begins)

    def on_return(self, address: int, name: str, limit: int | None = None) -> ReturnProbe:
        cpu = self.machine.cpu

        def returned(leads_to: int, entry: int) -> None:
            self.seen.append((name, entry, cpu["rax"], leads_to - CODE, cpu["rsp"] - STACK))

        probe = ReturnProbe(lambda: cpu["rdi"], returned, limit)
        self.probes.add_return(address, probe, begins=True)
        return probe


def test_a_call_is_told_where_it_begins_and_where_it_returns() -> None:
    told = Told()
    told.on_entry(OUTER, "outer")
    probe = told.on_return(OUTER, "back")
    told.machine.run()
    assert told.seen == [("outer", 1), ("back", 1, 3, 0xA, 0)]
    assert (probe.hits, probe.missed, probe.pending) == (1, 0, 0)


def test_a_tail_call_returns_with_its_caller_the_newest_first() -> None:
    told = Told()
    told.on_return(TAIL, "tail")
    told.on_return(INNER, "inner")
    told.machine.run()
    tails = [each for each in told.seen if each[4] == 0]
    assert [each[:3] for each in tails] == [("inner", 3, 6), ("tail", 2, 6)]
    assert tails[0][3] == tails[1][3] == 0x14


def test_a_recursion_returns_from_the_inside() -> None:
    told = Told()
    told.on_return(DEEP, "deep")
    told.machine.run()
    assert [each[1:3] for each in told.seen] == [(1, 40), (2, 40), (3, 40)]


def test_of_several_probes_at_a_place_the_newest_is_first() -> None:
    told = Told()
    told.on_entry(INNER, "old")
    told.on_return(INNER, "return")
    told.on_entry(INNER, "new")
    told.machine.run()
    assert [each[0] for each in told.seen[:3]] == ["new", "old", "return"]


def test_a_place_may_be_probed_where_something_returns_to() -> None:
    """The return is told first, as it was first."""
    told = Told()
    told.on_entry(CODE + 0xA, "behind")
    told.on_return(OUTER, "back")
    told.machine.run()
    assert [each[0] for each in told.seen] == ["back", "behind"]


def test_an_instruction_inside_a_block() -> None:
    told = Told()
    told.on_entry(CODE + 5, "call", begins=False)
    told.machine.run()
    assert told.seen == [("call", 1)]


def test_no_more_calls_are_followed_than_may_be_pending() -> None:
    told = Told()
    probe = told.on_return(DEEP, "deep", 2)
    told.machine.run()
    assert [each[1] for each in told.seen] == [2, 3]
    assert (probe.hits, probe.missed, probe.pending) == (3, 1, 0)


def test_a_call_of_a_task_that_is_gone_is_forgotten() -> None:
    """The stack is another's when the same place of it holds a return address again."""
    told = Told(tasks=(7,))  # the task is asked for at the first entry only: others have 0
    probe = told.on_return(TAIL, "tail")
    told.machine.run()
    assert told.seen == []
    assert probe.pending == 1
    told.machine.cpu["rip"], told.machine.cpu["rsp"] = CODE, STACK
    told.machine.run()
    assert [each[0] for each in told.seen] == ["tail"]
    assert probe.pending == 0
    assert told.probes.unreturned == 0


def test_a_return_address_that_the_kernel_has_written_over() -> None:
    """A trampoline of its own stands there when the tail call is entered."""
    told = Told(trampolines=(CODE + 0x500,))
    told.on_return(TAIL, "tail")
    told.on_return(INNER, "inner")
    arch = by_name("x86_64")
    assert arch is not None
    cpu = told.machine.cpu
    hijack = f"""
        inc edi; mov r8, [rsp]; mov rax, {CODE + 0x500}; mov [rsp], rax; jmp {INNER}
    """
    for address, text in {TAIL: hijack, CODE + 0x500: "mov rax, 99; jmp r8"}.items():
        code = assemble(arch, address, text)
        cpu.memory[address : address + len(code)] = code
    told.machine.run()
    tails = [each for each in told.seen if each[4] == 0]
    assert [(each[0], each[2]) for each in tails] == [("inner", 99), ("tail", 99)]


def test_calls_that_never_return_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that comes to a function with another stack pointer each time, and on one alike."""
    monkeypatch.setattr(probing, "PENDING_MOST", 16)
    for step in (8, 0):
        told = Told()
        probe = told.on_return(TAIL, "tail")
        arch = by_name("x86_64")
        assert arch is not None
        cpu = told.machine.cpu
        text = f"mov ecx, 100; again: sub rsp, {step}; dec ecx; jnz {TAIL}; cli; hlt"
        for address, code in {CODE: text, TAIL: f"jmp {CODE + 5}"}.items():
            raw = assemble(arch, address, code)
            cpu.memory[address : address + len(raw)] = raw
        for at in range(0x17000, STACK + 8, 8):
            word(told.machine, at, OUTER)
        told.machine.run()
        assert probe.hits == 99
        assert told.probes.unreturned == probe.pending <= 16
        assert probe.missed + probe.pending == 99 if step else probe.missed > 50
        assert told.seen == []


def test_a_function_without_a_stack_is_not_followed() -> None:
    for stack in (0x7FFF_0000_0000, STACK - 64):  # nowhere, and over a return address of 0
        told = Told()
        probe = told.on_return(DEEP, "deep")
        told.machine.cpu["rsp"], told.machine.cpu["rip"] = stack, DEEP
        told.machine.cpu["rdi"] = 1
        told.machine.run()
        assert told.seen == []
        assert (probe.hits, probe.missed) == (1, 1)


def test_instructions_come_and_go_while_the_machine_runs() -> None:
    """One that is told makes room for the next one; code that comes again is not told again."""
    told = Told()
    seen: list[int] = []
    following = iter((INNER, OUTER + 6, TAIL, DEEP, CODE + 0x1E))

    def came(address: int) -> None:
        seen.append(address)
        instructions.discard(address)
        place = next(following, None)
        if place is not None:
            instructions.add(place)

    instructions = told.machine.cpu.places.tell_instructions(came)
    instructions.add(OUTER)
    told.machine.run()
    assert seen == [OUTER, INNER, OUTER + 6, TAIL, DEEP, CODE + 0x1E]
    assert len(instructions) == 0
