"""What hardly any probe has is shared by those that have nothing of it, and only by them."""

import sys

import pytest

from engine.probes.kprobe import Kprobe, Uprobe
from engine.session.guest.wanted_probes import twin_of

VALUES: dict[str, object] = {
    "symbol_name": "main",
    "offset": 4,
    "pre_handler": lambda probe, regs: 0,
    "post_handler": lambda probe, regs, flags: None,
    "handler": lambda probe, regs: 0,
    "stops": True,
    "always": True,
    "reference": 0x40,
}


@pytest.mark.parametrize("name", VALUES)
def test_one_that_is_given_something_shares_it_with_nobody(name: str) -> None:
    first, other = Uprobe("/bin/x", 1), Uprobe("/bin/x", 2)
    before, value = getattr(other, name), VALUES[name]
    setattr(first, name, before)
    assert first.terms is other.terms
    setattr(first, name, value)
    assert getattr(first, name) is value
    assert getattr(other, name) is before
    assert getattr(Uprobe("/bin/x", 3), name) is before


@pytest.mark.parametrize("name", VALUES)
def test_a_twin_has_the_same_until_it_is_given_something_else(name: str) -> None:
    probe = Uprobe("/bin/x", 1)
    setattr(probe, name, VALUES[name])
    twin = twin_of(probe)
    assert twin.origin is probe
    assert getattr(twin, name) is VALUES[name]
    setattr(twin, name, None)
    assert getattr(probe, name) is VALUES[name]


def test_one_that_only_records_is_small() -> None:
    """A million of them are to fit in two gigabytes, with all that belongs to them."""
    assert Kprobe(addr=1).terms is Uprobe("/bin/x", 1).terms
    assert sys.getsizeof(Uprobe("/bin/x", 1)) <= 144
