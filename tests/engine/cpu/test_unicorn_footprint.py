"""Memory that Unicorn keeps: what is given back is there again when somebody looks."""

import ctypes

import pytest

from engine.cpu.unicorn_footprint import forget_tables, small_pages
from engine.cpu.unicorn_linkage import address_of, slots_of, tables


def _resident(start: int) -> tuple[int, str]:
    """KiB of a mapping that are in memory, and its permissions."""
    with open("/proc/self/smaps") as lines:
        perms = ""
        for line in lines:
            word, _, rest = line.partition(" ")
            if word.startswith(f"{start:x}-"):
                perms = rest.split()[0]
            elif perms and word == "Rss:":
                return int(rest.split()[0]), perms
    raise AssertionError("there is no such mapping")


def test_tables_are_given_back_and_found_again() -> None:
    found = tables()
    assert found is not None, "the pinned build is laid out as expected"
    start, size = found
    before = ctypes.string_at(start, size)
    resident, perms = _resident(start)
    assert resident >= size >> 10
    assert perms == "r--p"
    forget_tables()
    assert _resident(start)[0] < size >> 11
    assert ctypes.string_at(start, size) == before
    forget_tables()
    assert address_of("uc_open")
    assert slots_of((b"memcpy",))


def _huge_pages_off() -> int:
    return int(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))


def test_small_pages_end() -> None:
    assert not _huge_pages_off()
    with small_pages():
        assert _huge_pages_off()
        with small_pages():
            assert _huge_pages_off()
        assert _huge_pages_off(), "who has switched them off switches them on"
    assert not _huge_pages_off()
    with pytest.raises(KeyError), small_pages():
        raise KeyError
    assert not _huge_pages_off()
