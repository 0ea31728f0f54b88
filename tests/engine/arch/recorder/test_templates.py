"""Recorders from templates are those that are generated: random numbers, many kinds of work."""

import random

import pytest
from archkit import JUMPING

from engine.arch import by_name
from engine.arch.jump import ArchJumps
from engine.arch.program import RecordLayout
from engine.arch.recorder import generator
from engine.arch.recorder.generator import record
from engine.arch.recorder.templates import RecorderTemplates
from engine.arch.recording import CallEntry, DetourPlaces, NotCompilableError, Recording, Work
from engine.trace.definition import Definition, parse

_FETCHES = {
    "x86_64": ("", "a=%di b=%si", "a=+8(%di):u16", "s=+0(%si):string", "i=%ip"),
    "aarch64": ("", "a=%x0 b=%x1", "a=+8(%x0):u16", "s=+0(%x1):string", "i=%pc"),
}
_BASE = 0x7FFF_F000_0000
_PLACES = DetourPlaces(
    save=_BASE,
    time=_BASE + 0x1FF0,
    thread=_BASE + 88,
    ring=_BASE + 0x10_0000,
    left=_BASE + 0x2000,
    sites=_BASE + 0x20_1000,
)


def layouts(arch: str) -> list[RecordLayout]:
    found = []
    for words in _FETCHES[arch]:
        parsed = parse(f"p:g/e /f:0x10 {words}", by_name(arch))
        assert isinstance(parsed, Definition)
        found.append(RecordLayout.of(parsed.args))
    return found


def recording(rng: random.Random, layout: RecordLayout) -> Recording:
    address = rng.choice((rng.getrandbits(31), 0x5555_5555_4000 + rng.getrandbits(24), 0x40_1000))
    event = rng.choice((1, 0xFFFF, rng.randrange(1, 0x10000), 0x12345))
    counter = _BASE + 0x3000 + 16 * rng.randrange(1000)
    return Recording(event, layout, address, address & -4096, address + 1, (), counter)


def work(rng: random.Random, known: list[RecordLayout]) -> Work:
    rows = tuple(recording(rng, rng.choice(known)) for _ in range(rng.choice((1, 1, 1, 2))))
    if rng.random() < 0.7:
        return rows
    number, function = rng.randrange(1000), rng.choice((rng.getrandbits(31), _BASE - 77))
    row = recording(rng, known[0]) if rng.random() < 0.3 else None
    counter = _BASE + 0x3000 + 16 * rng.randrange(1000)
    return CallEntry(number, 3, function, False, 0, function, (), row, counter, rows)


def outcome(make: object, *given: object) -> object:
    assert callable(make)
    try:
        return make(*given)
    except NotCompilableError as error:
        return str(error)


def jumps_of(arch: str) -> ArchJumps:
    found = by_name(arch).jumps
    assert found is not None
    return found


@pytest.mark.parametrize("arch", JUMPING)
def test_templates_change_nothing(arch: str) -> None:
    rng, encoder, known = random.Random(arch), jumps_of(arch).encoder, layouts(arch)
    found = RecorderTemplates(encoder)
    for _ in range(600):
        wanted = work(rng, known)
        window = rng.choice((b"", b"\x48\x01\xd8\x90\x90", b"\x90" * 5))
        expected = outcome(record, encoder, wanted, _PLACES, window)
        assert outcome(found.record, wanted, _PLACES, window) == expected


def test_the_same_work_is_generated_twice_at_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counted(*given: object) -> object:
        nonlocal calls
        calls += 1
        return outcome(record, *given)

    monkeypatch.setattr(generator, "record", counted)
    found, layout = RecorderTemplates(jumps_of("x86_64").encoder), RecordLayout.of(())
    for number in range(100):
        address = 0x40_1000 + 16 * number
        wanted = Recording(number + 1, layout, address, 0, address, (), _BASE + 16 * number)
        found.record((wanted,), _PLACES, b"")
    assert calls == 2
