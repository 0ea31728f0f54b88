"""The IA-64 core's clock, breakpoints with an action, and halts."""

import threading

import pytest
from ia64kit import CODE, BareIa64, bundle, code

from engine.arch.base import TrapKind
from engine.cpu.base import LEAVE, Stop, StopKind
from engine.cpu.ram import PAGE

pytestmark = pytest.mark.usefixtures("each_core")

_END = "M break.m 0x0"

_LOOP = code(
    "M adds r8=1,r8",
    "I cmp.ltu p6,p7=r8,r9",
    f"B (p06) br.cond.dptk.few {CODE:#x}",
    _END,
)


def test_the_clock_counts_taken_branches_and_a_quantum_ends_at_one() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 10)
    assert cpu.run(4) == Stop(StopKind.QUANTUM)
    assert (cpu.blocks(), cpu.read_register("r8"), cpu.read_register("ip")) == (4, 5, CODE)
    assert cpu.run().kind is StopKind.TRAP
    assert (cpu.blocks(), cpu.now()) == (9, 9)
    assert list(cpu.last_branches) == [CODE + 0x30, CODE + 0x30, CODE]


def test_steps_tick_as_runs_do() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 4)
    cpu.count_blocks(True)
    while cpu.step() is None:
        pass
    assert cpu.blocks() == 3


def test_no_time_passes_in_the_windows_of_the_machinery() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 10)
    cpu.count_blocks(True)
    cpu.exempt((CODE, PAGE))
    cpu.run()
    assert cpu.blocks() == 0


def test_an_action_deals_with_a_breakpoint_in_any_slot() -> None:
    for slot in range(3):
        texts = ["adds r8=1,r0", "adds r9=1,r0", "adds r10=1,r0"]
        texts[slot] = f"break.{'MII'[slot].lower()} 0x81000"
        cpu = BareIa64(bundle("MII", *texts) + code(_END))
        hits: list[int] = []
        after = CODE + slot + 1 if slot < 2 else CODE + 16

        def action(cpu: BareIa64 = cpu, hits: list[int] = hits, after: int = after) -> int:
            hits.append(cpu.read_register("ip"))
            return after

        cpu.traps.plant(CODE + slot, action, after)
        cpu.count_blocks(True)
        stop = cpu.run()
        assert (stop.number, hits, cpu.blocks()) == (0, [CODE + slot], 0)
        assert sum(cpu.read_registers(("r8", "r9", "r10"))) == 2


def test_an_action_may_leave_and_may_be_removed() -> None:
    cpu = BareIa64(code("M break.m 0x81000", _END))
    cpu.traps.plant(CODE, lambda: LEAVE, CODE + 1)
    assert cpu.run().trap is TrapKind.BREAKPOINT
    cpu.traps.plant(CODE, lambda: CODE + 1, CODE + 1)
    cpu.traps.remove(CODE)
    assert cpu.run().trap is TrapKind.BREAKPOINT


def test_an_action_may_make_a_nat_or_start_the_clock() -> None:
    cpu = BareIa64(code("M break.m 0x81000", "M adds r9=1,r8", _END))

    def poison() -> int:
        cpu.write_register("nat8", 1)
        cpu.traps.remove(CODE)
        return CODE + 1

    cpu.traps.plant(CODE, poison, CODE + 1)
    cpu.run()
    assert cpu.read_register("nat9") == 1
    cpu = BareIa64(_LOOP.replace(code("M adds r8=1,r8"), code("M break.m 0x81000")))
    cpu.write_register("r9", 5)

    def count() -> int:
        cpu.count_blocks(True)
        cpu.write_register("r8", cpu.read_register("r8") + 1)
        return CODE + 1

    cpu.traps.plant(CODE, count, CODE + 1)
    cpu.run()
    assert cpu.blocks() == 4


def test_what_an_action_raises_comes_out() -> None:
    cpu = BareIa64(code("M break.m 0x81000", _END))

    def action() -> int:
        raise RuntimeError("the action failed")

    cpu.traps.plant(CODE, action, CODE + 1)
    with pytest.raises(RuntimeError, match="the action failed"):
        cpu.run()
    assert cpu.read_register("ip") == CODE

    def missing() -> int:
        cpu.invalidate_all()
        raise KeyError("name")

    cpu.traps.plant(CODE, missing, CODE + 1)
    with pytest.raises(KeyError, match="name"):
        cpu.run()


def test_halt_from_another_thread_stops_an_endless_loop() -> None:
    cpu = BareIa64(code(f"B br.few {CODE:#x}"))
    timer = threading.Timer(0.05, cpu.halt)
    timer.start()
    assert cpu.run() == Stop(StopKind.HALTED)
    timer.join()


def test_engine_code_runs_up_to_its_end_and_counts_nothing() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 3)
    cpu.count_blocks(True)
    cpu.execute(CODE, CODE + 0x30)
    assert (cpu.read_register("r8"), cpu.blocks()) == (3, 0)


def test_a_halt_during_engine_code_is_kept_for_the_guest() -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 3)
    cpu.halt()
    cpu.execute(CODE, CODE + 0x30)
    assert cpu.read_register("r8") == 3
    cpu.write_register("ip", CODE)
    assert cpu.run() == Stop(StopKind.HALTED)


@pytest.mark.parametrize("stepped", [False, True])
def test_halts_take_no_time_and_lose_none(stepped: bool) -> None:
    cpu = BareIa64(_LOOP)
    cpu.write_register("r9", 100_000)
    cpu.count_blocks(True)
    done = threading.Event()

    def disturb() -> None:
        while not done.wait(0.0002):
            cpu.halt()

    thread = threading.Thread(target=disturb)
    thread.start()
    while (stop := cpu.run()).kind is StopKind.HALTED:
        if stepped:
            cpu.halt()
            assert cpu.step() == Stop(StopKind.HALTED)
    done.set()
    thread.join()
    assert stop.kind is StopKind.TRAP
    assert (cpu.read_register("r8"), cpu.blocks()) == (100_000, 99_999)
