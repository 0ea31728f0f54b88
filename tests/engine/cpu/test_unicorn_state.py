"""Saved registers are read and changed where they are, as those of the processor are."""

import random

import pytest
from archkit import EMULATED
from barecpu import BareCpu

from engine.cpu import unicorn_live
from engine.cpu.base import StopKind


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


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("arch", EMULATED)
def test_registers_are_copied_in_any_order(arch: str, in_place: bool) -> None:
    cpu = BareCpu(arch)
    if in_place:
        cpu.traps.reader((cpu.arch.roles.pc,))
        assert cpu._places.keys() >= {cpu.arch.roles.pc, cpu.arch.roles.sp}
    chance = random.Random(2)
    groups = {
        8: [one.name for one in cpu.arch.registers if one.bits == 64 and not one.constant],
        16: [one.name for one in cpu.arch.registers if one.group == "vector"],
    }
    for size, names in groups.items():
        for count in (1, 2, 5, len(names), len(names)) if names else ():
            some = chance.sample(names, count)
            if count == len(names) and chance.random() < 0.5:
                some.sort(key=names.index)
            values = [chance.getrandbits(8 * cpu.width(name) - 17) & -4 for name in some]
            for name, value in zip(some, values, strict=True):
                cpu.write_register(name, value)
            values = [cpu.read_register(name) for name in some]
            whole = b"".join(value.to_bytes(size, "little") for value in values)
            assert cpu.read_block(some, size) == whole
            for name in some:
                cpu.write_register(name, 4)
            cpu.write_block(some, size, whole)
            assert [cpu.read_register(name) for name in some] == values


@pytest.mark.parametrize("arch", EMULATED)
def test_vectors_are_found_in_place(arch: str) -> None:
    cpu = BareCpu(arch)
    banks = [one for one in cpu.arch.registers if one.group in ("float", "vector")]
    before = {one.name: cpu.read_register(one.name) for one in banks}
    cpu.traps.reader((cpu.arch.roles.pc,))
    assert {one.name: cpu.read_register(one.name) for one in banks} == before
    assert {one.name for one in banks if one.bits in (64, 128)} <= cpu._places.keys()


@pytest.mark.parametrize("arch", EMULATED)
def test_places_of_registers_are_learnt_once_and_tried_each_time(
    arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = BareCpu(arch)
    first.traps.reader((first.arch.roles.pc,))
    learnt = places_of(first)
    wrong = {key: dict.fromkeys(places, 8) for key, places in unicorn_live._FOUND.items()}
    banks = {key: (at + 16, step) for key, (at, step) in unicorn_live._FOUND_BANKS.items()}
    with monkeypatch.context() as searched:
        searched.setattr(unicorn_live, "_FOUND", wrong)
        searched.setattr(unicorn_live, "_FOUND_BANKS", banks)
        assert places_of(looked_at(arch)) == learnt
    monkeypatch.setattr(unicorn_live, "_peek", lambda memory, address, size: b"")
    assert places_of(looked_at(arch)) == learnt


def looked_at(arch: str) -> BareCpu:
    """A fresh engine whose registers were looked for; all of them have their values still."""
    cpu = BareCpu(arch)
    names = [register.name for register in cpu.arch.registers]
    before = [cpu.read_register(name) for name in names]
    cpu.traps.reader((cpu.arch.roles.pc,))
    assert [cpu.read_register(name) for name in names] == before
    return cpu


def places_of(cpu: BareCpu) -> dict[str, tuple[int, int]]:
    """Place and words of each register that is seen in memory; never none."""
    found = {name: (place.at, place.wide) for name, place in cpu._places.items()}
    assert len(found) > 16
    return found


def test_instructions_of_sse_leave_upper_halves_alone() -> None:
    """None of them brings there what a host's stack holds."""
    code = bytes.fromhex("660f3800c2 660f6cc2 660f3802c2 0fc6c2e4 0f05")
    cpu = BareCpu("x86_64", code)
    halves = [f"ymm{number}h" for number in range(16)]
    values = [(number + 1) << 64 | 0xAA55 for number in range(16)]
    for name, value in zip(halves, values, strict=True):
        cpu.write_register(name, value)
    cpu.write_register("xmm0", 0x0F0E0D0C0B0A09080706050403020100)
    cpu.write_register("xmm2", 0x000102030405060708090A0B0C0D0E0F)
    assert cpu.run().kind is StopKind.SYSCALL
    assert [cpu.read_register(name) for name in halves] == values
    assert cpu.read_register("ymm0") == values[0] << 128 | cpu.read_register("xmm0")
