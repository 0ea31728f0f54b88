"""Watched bytes: each access is caught once, with its values, and the program notices nothing."""

import random
import re
from pathlib import Path

import archkit
import pytest
from cguest import compiled, compiled_from
from sessionkit import Guest, loaded
from sysroot import CHECKOUT

from engine.guest.watched import WatchedRange
from engine.session.guest.watchpoints import Watch, WatchEvent

SOURCES = CHECKOUT / "tests" / "data" / "watch"
IA64 = CHECKOUT / "samples" / "bin" / "ia64"


def watch(guest: Guest, *ranges: WatchedRange) -> list[WatchEvent]:
    """What happens to some bytes, in order, once the guest has run."""
    seen: list[WatchEvent] = []
    guest.session.watchpoints.add([Watch(seen.append, list(ranges))])
    return seen


def address(guest: Guest, name: str) -> int:
    """The address of a symbol."""
    module = guest.session.modules.main
    assert module is not None
    (symbol,) = module.symbols.find_all(name)
    return symbol.address + module.bias


def outcome(guest: Guest) -> object:
    """All that a run leaves behind, and the time that it took."""
    session = guest.session
    names = [one.name for one in session.arch.registers if one.group == "general"]
    figures = session.figures()
    return (
        guest.out,
        session.end,
        session.cpu.read_registers(names),
        figures.system_calls,
        figures.blocks,
        figures.touched,
    )


def plainly(path: Path, *args: str) -> object:
    """The same of a run without watches."""
    with loaded(path, *args, count_blocks=True) as guest:
        guest.run()
        return outcome(guest)


ROUNDS = 700


@pytest.mark.parametrize("portable", ["0", "1"])
@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_each_store_to_a_thousand_random_words_is_caught_once(
    arch: str, portable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", portable)
    program = compiled_from(SOURCES / "words.c", arch)
    with loaded(program, str(ROUNDS), count_blocks=True) as guest:
        base = address(guest, "words")
        chosen = random.Random(3).sample(range(4096), 1000)
        kept = [WatchedRange(base + 8 * k, 8) for k in chosen]
        ranges = {id(one): k for one, k in zip(kept, chosen, strict=True)}
        seen = watch(guest, *kept)
        guest.run()
        told = [(ranges[id(one.hit.range)], one.hit.new[::-1].hex()) for one in seen]
        after = outcome(guest)
    lines = re.findall(r"^\d+ (\d+) ([0-9a-f]{16})$", guest.out, re.MULTILINE)
    wanted = [(int(word), value) for word, value in lines if int(word) in set(chosen)]
    assert len(wanted) > 100
    assert told == wanted
    assert {one.by.partition("(")[0] for one in seen} == {"", "read"}
    values: dict[int, bytes] = {}
    for one in seen:  # what was there before is what the last one left
        key = id(one.hit.range)
        assert one.hit.old == values.get(key, bytes(8))
        values[key] = one.hit.new
    assert after == plainly(program, str(ROUNDS))


@pytest.mark.parametrize("arch", archkit.FIRST_COMPILED)
def test_loads_are_caught_where_they_are_wanted(arch: str) -> None:
    program = compiled_from(SOURCES / "words.c", arch)
    with loaded(program, "60", count_blocks=True) as guest:
        base = address(guest, "words")
        seen = watch(guest, WatchedRange(base, 8 * 4096, reads=True, writes=False))
        guest.run()
        after = outcome(guest)
    assert all(one.hit.read for one in seen)
    assert all(one.hit.old == one.hit.new for one in seen if one.hit.written is None)
    assert len(seen) > 60
    assert after == plainly(program, "60")


def test_words_of_ia64() -> None:
    program = IA64 / "syscalls"
    with loaded(program, count_blocks=True) as guest:
        word = WatchedRange(address(guest, "word"), 8, reads=True)
        seen = watch(guest, word)
        guest.run()
        after = outcome(guest)
    assert after == plainly(program)
    assert len(seen) == 200
    first = [
        (one.by.partition("(")[0], one.hit.read, int.from_bytes(one.hit.new, "little"))
        for one in seen[:5]
    ]
    assert first == [
        ("", False, 40),
        ("write", True, 40),
        ("", False, 0),
        ("read", False, 40),
        ("", True, 40),
    ]


def test_the_page_keeps_the_rights_that_the_program_gave_it() -> None:
    program = compiled_from(SOURCES / "pages.c", "x86_64")
    with loaded(program, count_blocks=True) as guest:
        page = address(guest, "page")
        seen = watch(guest, WatchedRange(page, 8, reads=True), WatchedRange(page + 4096, 8))
        guest.run()
        after = outcome(guest)
    assert after == plainly(program)
    assert guest.out == "rw-p r--p fault 7 fault 8 moved 9 child 10 parent 9\n"
    stores = [int.from_bytes(one.hit.new, "little") for one in seen if one.hit.written]
    assert stores == [7, 8, 9, 10]
    assert [one.by for one in seen if one.hit.written].count("") == 4


@pytest.mark.parametrize("kind", ["r", "p", "a"])
def test_timers_expire_between_the_same_instructions(kind: str) -> None:
    program = compiled("moments", "x86_64")
    with loaded(program, kind, "3000", count_blocks=True) as guest:
        seen = watch(guest, WatchedRange(address(guest, "to") + 30, 40))
        guest.run()
        after = outcome(guest)
    assert len(seen) > 100  # iterations of a repeated instruction
    assert after == plainly(program, kind, "3000")


@pytest.mark.slow
@pytest.mark.parametrize("arch", archkit.EVERY)
def test_bytes_anywhere_in_the_samples_may_be_watched(arch: str) -> None:
    chance, hits = random.Random(1), 0
    for program in sorted((CHECKOUT / "samples" / "bin" / arch).iterdir()):
        with loaded(program, count_blocks=True, max_blocks=3_000_000) as guest:
            ranges = []
            for mapping in guest.session.memory.mappings:
                if not mapping.perms & 2 or mapping.reserved or mapping.physical is None:
                    continue
                low = mapping.end - 6000 if mapping.name == "[stack]" else mapping.start
                high = min(mapping.end, low + 65536)
                ranges += [
                    WatchedRange(
                        chance.randrange(low, high), chance.choice((1, 2, 8, 40)), bool(at % 3)
                    )
                    for at in range(25)
                ]
            seen = watch(guest, *ranges)
            guest.run()
            hits += len(seen)
            after = outcome(guest)
        with loaded(program, count_blocks=True, max_blocks=3_000_000) as guest:
            guest.run()
            assert after == outcome(guest), program
    assert hits > 50
