"""Slots through which Unicorn's library calls functions: two ways to find the same ones."""

import platform

import pytest

from engine.cpu import unicorn_linkage as linkage

_NAMES = (b"abort", b"printf", b"fprintf", b"helper_le_ldq_mmu_x86_64")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="host code is x86-64's, and its slots")
def test_slots_are_found_by_what_they_hold_and_by_name() -> None:
    found = linkage._linkage()
    if found is None:
        pytest.skip("the library is laid out otherwise")
    by_name = linkage._slots_by_name(found, _NAMES)
    assert by_name is not None
    for name, slot in zip(_NAMES, by_name, strict=True):
        assert linkage._bound_slot(found, name) in (0, slot)
    assert linkage.slots_of(_NAMES) == by_name


def test_what_the_library_does_not_call_has_no_slot() -> None:
    assert linkage.slots_of((b"no_such_function",)) is None
    assert linkage.slots_of((b"abort", b"no_such_function")) is None
