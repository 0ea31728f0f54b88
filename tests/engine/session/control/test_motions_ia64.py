"""Motions of a debugger on IA-64, held against single steps.

Calls share one stack pointer there.
"""

import pytest
from controlkit import Held, held
from ia64returns import RETURNS, SAMPLES, WAYS

from engine.session.protocol import commands as cmd

PLACES = {
    "recursion": (SAMPLES / "recursion", "fibonacci", 12, 260),  # fibonacci(4)
    "returns": (RETURNS, "predicated", 1, 90),
}
"""Guest, function, which call of it, how many slots from there on."""


def begin(guest: Held, name: str) -> None:
    _, function, times, _ = PLACES[name]
    for _ in range(times):
        guest.do(cmd.RunTo(guest.address(function)), cmd.StepInsn())


def mnemonic(guest: Held) -> str:
    session, pc = guest.control.session, guest.view.pc
    return session.disassembler.decode(pc, session.code_at(pc))[0].mnemonic


def trail(name: str) -> list[tuple[int, int]]:
    """(pc, how many calls are open) of slots executed one by one from a function on."""
    with held(str(PLACES[name][0])) as guest:
        begin(guest, name)
        found, level = [], 0
        for _ in range(PLACES[name][3]):
            pc, what = guest.view.pc, mnemonic(guest)
            found.append((pc, level))
            guest.do(cmd.StepInsn())
            taken = guest.view.pc not in (pc + 1, (pc & -16) + 16)
            if "br.call" in what and taken:
                level += 1
            elif "br.ret" in what and taken:
                level -= 1
        return found


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_over_calls_of_one_stack_pointer(name: str) -> None:
    """Over a recursion on the register stack, over calls that predicates forbid."""
    known = trail(name)
    with held(str(PLACES[name][0])) as guest:
        begin(guest, name)
        at: int | None = 0
        calls = 0
        while at is not None and at + 1 < len(known):
            level = known[at][1]
            calls += known[at + 1][1] > level
            after = range(at + 1, len(known))
            at = next((n for n in after if known[n][1] <= level), None)
            if at is not None:
                guest.do(cmd.StepOver())
                assert guest.view.pc == known[at][0]
        assert calls > 1


@pytest.mark.parametrize("way", WAYS)
def test_out_of_a_recursion(way: str) -> None:
    with held(str(SAMPLES / "recursion"), returns=way) as guest:
        guest.do(cmd.Define("r:demo/r fibonacci $retval"))
        for _ in range(5):
            guest.do(cmd.RunTo(guest.address("fibonacci")), cmd.StepInsn())
        guest.do(cmd.StepInsn(3))
        places = [guest.do(cmd.Finish()).location.partition("+")[0] for _ in range(5)]
        assert places == ["fibonacci"] * 4 + ["main"]
        assert guest.registers()["r8"] == 610
        assert guest.do(cmd.Continue()).exit_code == 0
