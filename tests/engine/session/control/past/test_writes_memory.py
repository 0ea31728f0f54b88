"""The last writes to memory, with many checkpoints on the way."""

import random

import pytest
from historykit import past, recorded
from sessionkit import SAMPLES

from engine.guest.watched import WatchedRange
from engine.history import timeline as timelines
from engine.history.timeline import Moment
from engine.session.control.past import writes as past_writes
from engine.session.control.past.backwards import Backwards
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import Watch, WatchEvent

OTHERS = ("x86_64/structs", "aarch64/words", "riscv64/words", "ia64/recursion")
_PAGE = 4096
_CELL = 8


def _writes(session: PastSession) -> list[tuple[Moment, int]]:
    """All writes to data and the stack's pages, cell by cell, by single steps."""
    timeline = Backwards(session).timeline
    sp = session.cpu.read_register(session.arch.roles.sp) & -_PAGE
    hit: list[int] = []

    def wrote(event: WatchEvent) -> None:
        if event.hit.written is not None:
            first, size = event.hit.written
            hit.extend(range(first & -_CELL, first + size, _CELL))

    ranges = [WatchedRange(sp - _PAGE, 2 * _PAGE)]
    ranges += [
        WatchedRange(mapping.start, min(mapping.size, 4 * _PAGE))
        for mapping in session.seen.memory.mappings
        if mapping.perms & 2 and not mapping.reserved and mapping.name != "[stack]"
    ]
    session.watchpoints.add([Watch(wrote, [each]) for each in ranges])
    found = []
    while session.machine.exit is None:
        before = timeline.now()
        session.kernel.step()
        found += [(before, cell) for cell in hit]
        hit.clear()
    return found


@pytest.mark.parametrize(
    "name", ["x86_64/words", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)]
)
def test_checkpoints_in_any_tick(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write in the tick in which a checkpoint was taken counts, before it and behind it."""
    for setting, value in (("_SLICE", 2), ("_SECONDS", 0.0), ("_SHARE", 0)):
        monkeypatch.setattr(timelines, setting, value)
    monkeypatch.setattr(past_writes, "_BUSY", 16)
    choose = random.Random(3)
    with recorded(SAMPLES / name) as ran:
        with past(ran) as session:
            writes = _writes(session)
        end = writes[-1][0].clock
        with past(ran) as session:
            backwards = Backwards(session)
            timeline = backwards.timeline
            timeline.seek_clock(end)
            assert len(timeline.checkpoints.taken) > 100
            for _ in range(60):
                clock = choose.randrange(end // 4, end)
                timeline.seek_clock(clock)
                last = {cell: moment for moment, cell in writes if moment < timeline.now()}
                cell = choose.choice(sorted(last))
                backwards.last_write(cell, _CELL)
                assert timeline.now() == last[cell], (clock, hex(cell))
