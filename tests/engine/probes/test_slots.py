"""Slots: who uses one, and that clean-up asks about dirty ones only."""

from typing import cast

import pytest
from workcount import calls

from engine.cpu.ram import PAGE
from engine.probes.engine_window import EngineWindow
from engine.probes.slots import InsnSlots, SlotState

SIZE = 16


class _Window:
    """So many pages, and then no more."""

    def __init__(self, pages: int) -> None:
        self._pages = [0x10000 + PAGE * index for index in reversed(range(pages))]

    def page(self) -> int | None:
        return self._pages.pop() if self._pages else None


def _slots(pages: int) -> InsnSlots:
    return InsnSlots(cast(EngineWindow, _Window(pages)), SIZE)


def test_a_dirty_slot_is_used_again_when_nobody_is_in_it() -> None:
    slots = _slots(1)
    taken = [slots.get() for _ in range(PAGE // SIZE)]
    assert len({*taken}) == PAGE // SIZE
    assert slots.get() is None
    first, second = taken[0], taken[1]
    assert first is not None
    assert second is not None
    slots.free(first, dirty=True)
    slots.free(second, dirty=True)
    assert slots.state(first) is SlotState.DIRTY
    assert slots.collect(lambda slot: slot == first) == 1
    assert slots.get() == second
    assert slots.get() == first  # nobody is left to ask
    assert slots.get() is None


@pytest.mark.parametrize("pages", [8, 32])
def test_a_full_window_is_not_gone_through_for_each_slot(pages: int) -> None:
    slots = _slots(pages)
    for _ in range(pages * PAGE // SIZE):
        assert slots.get() is not None
    for _ in range(3):
        assert calls(slots.get, 50) < 20
