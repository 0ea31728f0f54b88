"""Guests that take memory without end and play tricks with mappings."""

from collections.abc import Callable
from pathlib import Path

import pytest
from guestrun import Outcome, guest

from engine.linux.fs.stdio import SinkStream
from engine.session import GuestConfig, Session

Attack = Callable[..., Outcome]
SMALL = ("--memory", "64M")


@pytest.mark.parametrize("mode", ["touch", "heap", "read"])
def test_touched_memory_is_limited(attack: Attack, mode: str) -> None:
    done = attack("memory", mode, options=SMALL)

    assert done.code == 137
    assert "used up its 64 MiB of memory; --memory raises the limit" in done.err
    assert done.rss < 200


def test_reserving_costs_nothing(attack: Attack) -> None:
    done = attack("memory", "reserve", options=SMALL)

    assert done.code == 0
    assert done.facts["16 TiB without access"] == 0
    assert done.facts["32 GiB with access"] == 0
    assert done.facts["too much"] == done.facts["wraps"] == 1
    assert done.rss < 150


def test_memory_given_back_counts_no_more(attack: Attack) -> None:
    done = attack("memory", "recycle", options=SMALL)

    assert done.out == "recycled\n"
    assert done.rss < 200


def test_thousands_of_mappings(attack: Attack) -> None:
    done = attack("memory", "many", 2000)

    assert done.facts == {"changed": 1000, "mprotect": 0, "value": 5, "munmap": 0, "mmap": 0}


def test_thousands_of_holes(attack: Attack) -> None:
    assert attack("memory", "holes", 1000).facts == {"holes": 1000, "munmap": 0}


def test_mremap_keeps_what_it_moves(attack: Attack) -> None:
    done = attack("memory", "remap")

    assert done.code == 0, done.out
    assert done.facts["not mapped"] == -14
    assert done.facts["huge"] == done.facts["wrap"] == 1


def test_shared_mappings_are_the_file(attack: Attack) -> None:
    done = attack("memory", "shared", "/tmp/shared")

    facts = done.facts
    assert (facts["file has"], facts["mapping has"]) == (ord("m"), ord("w"))
    assert facts["second mapping has"] == ord("s")
    assert facts["shared writable of a read-only file"] == facts["upgrade"] == -13
    assert facts["mmap of a directory"] == -19


def test_a_file_that_shrinks_under_its_mapping(attack: Attack) -> None:
    done = attack("memory", "shrink", "/tmp/shrunk")

    assert done.code == 135
    assert "SIGBUS" in done.err
    assert "behind the end of /tmp/shrunk" in done.err


def test_endless_recursion(attack: Attack) -> None:
    done = attack("memory", "stack")

    assert done.code == 139
    assert "SIGSEGV" in done.err
    assert "stack+" in done.err


def test_senseless_system_calls(attack: Attack) -> None:
    done = attack("memory", "calls")

    assert done.out == "survived\n"
    assert done.rss < 300


@pytest.mark.parametrize("mode", ["many", "holes"])
def test_the_number_of_mappings_is_limited(
    arch: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("engine.guest.mappingtable.MAX_MAPPINGS", 500)
    parts: list[bytes] = []
    sink = SinkStream(parts.append)
    session = Session(GuestConfig(guest(arch, "memory"), (mode, "70000")), (sink, sink, sink))
    try:
        assert session.run().exit_code == 0
        own = [mapping for mapping in session.memory.mappings if not mapping.reserved]
        assert len(own) <= 502
    finally:
        session.close()

    assert b": -12\n" in b"".join(parts)
