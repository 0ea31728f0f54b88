"""Memory that Unicorn keeps: what is given back is there again when somebody looks."""

import ctypes
import mmap

import pytest

from engine.cpu.unicorn_footprint import forget_tables, join_pages, small_pages
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
    """Where the kernel can join them later."""
    with small_pages():
        if not _huge_pages_off():
            pytest.skip("huge pages could not be had later")
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


def _huge(start: int) -> int:
    """KiB of huge pages in the mapping around an address."""
    inside = False
    with open("/proc/self/smaps") as lines:
        for line in lines:
            word, _, rest = line.partition(" ")
            low, dash, high = word.partition("-")
            if dash and not word.endswith(":"):
                inside = int(low, 16) <= start < int(high, 16)
            elif inside and word == "AnonHugePages:":
                return int(rest.split()[0])
    raise AssertionError("there is no such mapping")


def test_pages_are_joined_when_a_guest_grows() -> None:
    code = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    area = mmap.mmap(-1, 128 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, code)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    at = -start % (2 << 20)
    area.madvise(mmap.MADV_HUGEPAGE)
    with small_pages():
        off = _huge_pages_off()
        area[at] = 1
    if not off:
        pytest.skip("huge pages could not be had later")
    assert not _huge(start)
    join_pages()
    if not _huge(start):
        pytest.skip("this host gives none")
    assert _huge(start) == 2048
    assert area[at] == 1
