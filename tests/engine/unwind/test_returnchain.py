"""The quick way to a stack's addresses against the walk, at any instruction of real programs."""

import random
from collections.abc import Mapping

import archkit
import pytest
from msgspec.structs import replace
from unwindkit import Stepper, session_of

from engine.errors import GuestFaultError
from engine.unwind.unwinder import LIMIT, Unwinder

GUESTS = [
    pytest.param(f"{arch}/unw-{kind}", marks=[pytest.mark.slow] if number else [])
    for number, kind in enumerate(("O2", "O2dbgframe", "O2fp", "O2strip", "Os", "O0"))
    for arch in map(archkit.debian, archkit.COMPILED)
]


@pytest.mark.parametrize("name", GUESTS)
def test_the_same_addresses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = Stepper(session_of(name))
    unwinder = stepper.unwinder
    chain = unwinder.chain
    assert chain is not None
    chosen = random.Random(name)
    asked = plain = remembered = quick = 0

    def visit(now: Stepper) -> None:
        nonlocal asked, plain, remembered, quick
        if chosen.random() > 0.03:
            return
        registers = now.backtraces.registers()
        walk = tuple(frame.pc for frame in unwinder.walk(registers).frames)
        before = sum(map(len, chain._tails.values()))
        found = chain.places(registers, limit=LIMIT, exact=True)
        # A tail of the caller's spares making one: at the most the whole stack is new.
        new = sum(map(len, chain._tails.values())) - before
        remembered += found is not None and new <= 1
        asked, plain = asked + 1, plain + (found is not None)
        assert found in (None, walk)
        assert unwinder.places(registers) == walk
        assert unwinder.places(registers, limit=2) == walk[:2]
        again = _remembered(unwinder, registers)
        assert again in (None, found)
        if again is not None:
            quick += 1
            values = [registers[name] for name in chain.names]
            assert chain.remembered(walk[0], values, limit=2, exact=True) == walk[:2]
        later = tuple(frame.pc for frame in unwinder.walk(registers, exact=False).frames)
        assert unwinder.places(registers, exact=False) == later

    stepper.run(monkeypatch, visit)
    assert asked > 60
    if "strip" not in name and archkit.debian("x86_64") in name:
        assert plain > asked // 4
        assert remembered > asked // 10
        assert quick > plain // 2


def _remembered(unwinder: Unwinder, registers: Mapping[str, int]) -> tuple[int, ...] | None:
    chain = unwinder.chain
    assert chain is not None
    values = [registers[name] for name in chain.names]
    return chain.remembered(
        registers["pc" if "pc" in registers else "rip"], values, limit=LIMIT, exact=True
    )


@pytest.mark.slow
def test_a_tail_is_as_good_as_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever word of a stack is changed, the answer is the walk's of then."""
    stepper = Stepper(session_of("amd64/unw-O2fp"))
    memory = stepper.session.memory
    chosen = random.Random(7)
    seen = changed = 0

    def visit(now: Stepper) -> None:
        nonlocal seen, changed
        if chosen.random() > 0.01 or seen > 30:
            return
        registers = now.backtraces.registers()
        unwinder: Unwinder = now.unwinder
        whole = unwinder.places(registers)
        if len(whole) < 4:
            return
        seen += 1
        for _ in range(12):
            at = registers["rsp"] + 8 * chosen.randrange(40)
            try:
                old = memory.peek(at, 8)
            except GuestFaultError:
                continue
            word = chosen.choice((whole[-1], whole[1] + 1, 0, int.from_bytes(old, "little") + 16))
            memory.poke(at, (word & (1 << 64) - 1).to_bytes(8, "little"))
            walk = tuple(frame.pc for frame in unwinder.walk(registers).frames)
            assert _remembered(unwinder, registers) in (None, walk), hex(at)
            assert unwinder.places(registers) == walk, hex(at)
            changed += walk != whole
            memory.poke(at, old)
            assert unwinder.places(registers) == whole
        other = {**registers, "rbp": registers["rbp"] ^ 0x40}
        walk = tuple(frame.pc for frame in unwinder.walk(other).frames)
        assert _remembered(unwinder, other) in (None, walk)
        assert unwinder.places(other) == walk

    stepper.run(monkeypatch, visit)
    assert changed > 10


def test_without_memory_nothing_is_said() -> None:
    stepper = Stepper(session_of("amd64/unw-O2"))
    unwinder = stepper.unwinder
    registers = stepper.backtraces.registers()
    lost = {**registers, "rsp": 8}
    assert unwinder.places(lost) == tuple(frame.pc for frame in unwinder.walk(lost).frames)

    def refuse(address: int, size: int) -> bytes:
        raise GuestFaultError(address, "read")

    blind = Unwinder(replace(stepper.backtraces.view, read=refuse))
    assert blind.places(registers) == tuple(frame.pc for frame in blind.walk(registers).frames)
    stepper.session.close()
