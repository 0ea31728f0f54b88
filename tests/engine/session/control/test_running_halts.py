"""A halt may come at any instruction, also at those that a hit executes phase by phase."""

import pytest
from archkit import FIRST_COMPILED
from controlkit import Held, held, sample

from engine.cpu.base import Cpu, Stop
from engine.cpu.unicorn_cpu import UnicornCpu
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState


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


def beside(cpu: Cpu, when: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Halts before each step, or while it is made; how many there were."""
    assert isinstance(cpu, UnicornCpu)
    start, step, calls = cpu._start, cpu.step, [0]

    def entered(pc: int, end: int = 0, count: int = 0) -> int:
        if not count:
            return start(pc, end, count)
        calls[0] += 1
        cpu.halt()
        error = start(pc, end, count)
        cpu.halt()
        return error

    def stepped() -> Stop | None:
        calls[0] += 1
        if calls[0] % 2:
            cpu.halt()
        return step()

    if when == "within":
        monkeypatch.setattr(cpu, "_start", entered)
    else:
        monkeypatch.setattr(cpu, "step", stepped)
    return calls


@pytest.mark.parametrize("arch", FIRST_COMPILED)
@pytest.mark.parametrize("line", ["p fibonacci", "p fibonacci+0x8", "r fibonacci"])
@pytest.mark.parametrize("when", ["before", "within"])
def test_a_halt_beside_an_instruction_changes_nothing(
    arch: str, line: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if arch == "x86_64":
        line = line.replace("+0x8", "+0x2")
    with held(sample(arch, "recursion")) as guest:
        guest.do(cmd.Define(line, stops=True))
        calls = beside(guest.control.session.cpu, when, monkeypatch)
        reason, out = play(guest, 6)
        assert calls[0]
        assert reason == "exited with 0"
        assert "fibonacci(15) = 610" in out


@pytest.mark.parametrize("when", ["before", "within"])
def test_a_step_is_one_instruction_whenever_a_halt_comes(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk(guest: Held) -> list[int]:
        return [guest.do(cmd.StepInsn()).pc for _ in range(60)]

    with held(sample("x86_64", "recursion")) as guest:
        plain = walk(guest)
    with held(sample("x86_64", "recursion")) as guest:
        calls = beside(guest.control.session.cpu, when, monkeypatch)
        assert walk(guest) == plain
        assert calls[0] >= 60
