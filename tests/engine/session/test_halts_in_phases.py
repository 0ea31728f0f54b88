"""A halt may come at any instruction, also at those that a hit executes phase by phase."""

import pytest
from controlkit import ARCHES, Held, held, sample

from engine.cpu.base import Stop, StopKind
from engine.session import commands as cmd
from engine.session.views import RunState


def play(guest: Held, hits: int) -> tuple[str, str]:
    """Some hits phase by phase, then on to the end: (why it ended, output)."""
    for _ in range(hits):
        guest.do(cmd.Continue())
        assert guest.view.state is RunState.STOPPED, guest.view.reason
        for _ in range(20):
            view = guest.do(cmd.StepPhase())
            assert view.state is RunState.STOPPED, view.reason
            if view.hit is None or not view.hit.next:
                break
    guest.do(cmd.Delete((1,)), cmd.Continue())
    return guest.view.reason, guest.out


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("line", ["p fibonacci", "p fibonacci+0x8", "r fibonacci"])
@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_halt_beside_an_instruction_changes_nothing(
    arch: str, line: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if arch == "x86_64":
        line = line.replace("+0x8", "+0x2")
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.Define(line, stops=True))
        cpu = guest.control.session.cpu
        step, calls = cpu.step, [0]

        def halted() -> Stop | None:
            calls[0] += 1
            if when == "before" and calls[0] % 2:
                return Stop(StopKind.HALTED)
            return step() or (Stop(StopKind.HALTED) if when == "behind" else None)

        monkeypatch.setattr(cpu, "step", halted)
        reason, out = play(guest, 6)
        assert calls[0]
        assert reason == "exited with 0"
        assert "fibonacci(15) = 610" in out
