"""Return probes of IA-64, in all three ways: programs do not notice, calls are told apart."""

from pathlib import Path

import pytest
from ia64returns import GUESTS, RETURNS, SAMPLES, SET_JUMP, WAYS, Guest, guest

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.linux.kernel import Exit
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe, KretprobeInstance, default_maxactive
from engine.probes.regs import PtRegs

each = pytest.mark.parametrize("way", WAYS)

PROGRAMS = (
    *sorted(SAMPLES.iterdir()),
    *(
        GUESTS / f"{name}.elf"
        for name in ("a_br", "a_rot", "a_rp", "a_rse", "a_spec", "deep_O2", "fptr_O3", "fptr_pie")
    ),
    *(GUESTS / f"{name}.elf" for name in ("tail_O0", "signals")),
    RETURNS,
)


def state(one: Guest) -> dict[str, int]:
    """The registers but for what the trampolines leave in them."""
    landing = one.manager.trampoline() or (0, 0)
    return {name: value for name, value in one.registers().items() if value != landing[0]}


def mappings(one: Guest) -> dict[tuple[int, int], bytes]:
    """All memory of the program's own."""
    plan = one.session.arch.plan
    windows = range(plan.trampoline[0], sum(plan.detour))
    return {
        (m.start, m.end): one.session.memory.read(m.start, m.end - m.start)
        for m in one.session.memory.mappings
        if m.start not in windows and not m.reserved
    }


@each
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.stem))
def test_a_return_probe_on_every_function_changes_nothing(path: Path, way: str) -> None:
    with guest(path) as plain, guest(path, way) as probed:
        ends = plain.run()
        probed.hook_all(*(() if way == "watched" else (SET_JUMP,)))
        assert probed.run() == ends
        assert probed.out == plain.out
        assert probed.session.cpu.blocks() == plain.session.cpu.blocks()
        assert len(probed.rows) >= 4 or path.stem == "signals"
        assert sum(probe.nmissed for probe in probed.probes.values()) == 0
        if way != "owens":  # there the stacks lie elsewhere
            known = plain.registers()
            assert all(known[name] == value for name, value in state(probed).items())
        if way == "watched":
            assert probed.registers() == plain.registers()
            found, expected = mappings(probed), mappings(plain)
            for where, data in expected.items():
                assert probed.probing.overlay.restore(where[0], found[where]) == data
