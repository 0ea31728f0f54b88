"""Mappings as values: what is told of an address space is what it becomes again."""

import random

import pytest
from historykit import recorded
from sessionkit import SAMPLES, loaded

from engine.cpu.ram import EXECUTE, READ, WRITE
from engine.guest.mapping import MappingError, SharedExtent
from engine.history.layout import Extents, MappingLog, mapping_of, show, value_of


@pytest.mark.parametrize("seed", range(5))
def test_changes_lead_to_the_same_mappings(seed: int) -> None:
    choose = random.Random(seed)
    with loaded(SAMPLES / "x86_64" / "words") as guest:
        memory = guest.session.memory
        plan = guest.session.arch.plan
        layout = MappingLog(memory, Extents(), plan)
        other = memory.fresh()
        extents: dict[int, SharedExtent] = {}

        def follow() -> int:
            count = 0
            for start, end, values in layout.changes():
                show(other, start, end, [mapping_of(value, extents) for value in values])
                count += 1
            return count

        follow()
        for _ in range(60):
            start = 0x10_0000_0000 + choose.randrange(40) * 4096
            size = choose.randrange(1, 12) * 4096
            try:
                what = choose.randrange(3)
                if what == 0:
                    perms = choose.choice((0, READ, READ | WRITE, READ | EXECUTE))
                    memory.map(start, size, perms, shared=choose.random() < 0.3)
                elif what == 1:
                    memory.unmap(start, size)
                else:
                    memory.protect(start, size, choose.choice((0, READ, READ | WRITE)))
            except MappingError:
                pass
            follow()
            wanted = [value_of(one, Extents())[:6] for one in memory.mappings]
            assert [value_of(one, Extents())[:6] for one in other.mappings] == wanted
        assert follow() == 0
        other.table.mappings.clear()


def test_the_engines_own_windows_are_left_out() -> None:
    """What probes have put into them while a guest was recorded is not the guest's."""
    with recorded(SAMPLES / "x86_64" / "words") as ran:
        memory = ran.session.memory
        layout = MappingLog(memory, Extents(), ran.session.arch.plan)
        told = [value for _, _, values in layout.changes() for value in values]
        window = next(one for one in memory.mappings if one.name == "[kprobe-tui:xol]")
        memory.commit(window.start, 4096)
        assert list(layout.changes()) == []
        assert any(value[4] == "[kprobe-tui:xol]" for value in told)
