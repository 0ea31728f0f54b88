"""Turns of threads: a function of the seed and the guest, whatever is probed."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from archkit import COMPILED, FIRST_COMPILED
from cguest import compiled, emulated

from engine.arch.plan import Mode
from engine.probes.kprobe import Kprobe
from engine.probes.kretprobe import Kretprobe
from engine.session.guest.session import Session
from engine.session.program.places import guest_address
from engine.session.protocol.config import GuestConfig

THREADS, TURNS = 4, 40
CALLS = 67 + 9
"""Of fib in one turn."""

Make = Callable[[Counter[int], Callable[[], int]], Kprobe]


def _recorded(hits: Counter[int], thread: Callable[[], int]) -> Kprobe:
    probe = Kprobe()
    probe.record = lambda number: hits.update([number])
    return probe


KINDS: dict[str, Make] = {
    "recorded": _recorded,
    "pre": lambda hits, thread: Kprobe(pre_handler=lambda p, r: hits.update([thread()]) or 0),
    "post": lambda hits, thread: Kprobe(post_handler=lambda p, r, f: hits.update([thread()])),
    "return": lambda hits, thread: Kretprobe(
        handler=lambda i, r: hits.update([thread()]), maxactive=4096
    ),
    "entry": lambda hits, thread: Kretprobe(
        entry_handler=lambda i, r: hits.update([thread()]) or 0, maxactive=4096
    ),
}


def schedule(
    program: Path, seed: int, kind: str = "", mode: Mode = Mode.STRICT, turns: int = TURNS
) -> tuple[object, Counter[int]]:
    """How a run went, and a probe's hits by thread."""
    words = (str(THREADS), str(turns))
    config = GuestConfig(guest=str(program), args=words, seed=seed, count_blocks=True)
    session, hits = Session(config), Counter[int]()
    try:
        if kind:
            probing = session.probes(mode)
            place = next(iter(probing.verdicts.places.resolve("fib")))
            probe = KINDS[kind](hits, lambda: session.machine.tid)
            probe.addr = guest_address(place, session.modules, session.memory)
            probing.manager.register(probe)
        end = session.kernel.run()
        scheduler = session.kernel.scheduler
        return (end, session.cpu.blocks(), scheduler.switches, scheduler.digest), hits
    finally:
        session.close()


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_seed_is_a_schedule(arch: str) -> None:
    program = compiled("workers", arch)
    first, again, other = (schedule(program, seed, turns=5 * TURNS)[0] for seed in (0, 0, 1))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("kind", "mode", "arch"),
    [
        *(
            pytest.param(kind, Mode.STRICT, arch, marks=[pytest.mark.slow] if number else [])
            for kind in KINDS
            for number, arch in enumerate(COMPILED)
        ),
        *(("post", Mode.KERNEL, "x86_64"), ("return", Mode.KERNEL, "x86_64")),
    ],
)
@pytest.mark.slow
def test_probes_change_no_schedule(kind: str, mode: Mode, arch: str) -> None:
    program = compiled("workers", arch)
    plain, _ = schedule(program, 3)
    probed, hits = schedule(program, 3, kind, mode)
    assert probed == plain
    assert sorted(hits.values()) == [TURNS * CALLS] * THREADS


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_run_without_a_clock_is_the_same(arch: str, tmp_path: Path) -> None:
    """The clock begins with the second thread."""
    program = compiled("workers", arch)
    assert emulated(program, tmp_path, "8", "50") == f"400 {400 * 21}\nexit code 0\n"
