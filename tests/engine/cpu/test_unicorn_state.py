"""Saved registers are read and changed where they are, as those of the processor are."""

import random

import pytest
from archkit import EMULATED
from barecpu import BareCpu


@pytest.mark.parametrize("arch", EMULATED)
def test_saved_registers_are_those_of_the_processor(arch: str) -> None:
    cpu = BareCpu(arch)
    names = [each.name for each in cpu.arch.registers if not each.constant]
    groups = {each.name: each.group for each in cpu.arch.registers}
    chance = random.Random(1)
    for name in names:
        if groups[name] in ("general", "vector"):
            cpu.write_register(name, chance.getrandbits(8 * cpu.width(name)))
    first = cpu.save()
    before = {name: cpu.read_register(name) for name in names}
    saved = cpu.open_saved(first)
    assert {name: saved.read_register(name) for name in names} == before
    wanted = {}
    for name in names:
        if groups[name] in ("general", "vector") or name == cpu.arch.roles.pc:
            wanted[name] = chance.getrandbits(8 * cpu.width(name) - 17) & -4
            saved.write_register(name, wanted[name])
    assert {name: cpu.read_register(name) for name in names} == before
    cpu.restore(first)
    after = {name: cpu.read_register(name) for name in wanted}
    assert after == {name: saved.read_register(name) for name in wanted}
    changed = {name: value for name, value in wanted.items() if after[name] != value}
    assert all(groups[name] == "general" for name in changed), changed
    assert len(changed) < 3, changed
