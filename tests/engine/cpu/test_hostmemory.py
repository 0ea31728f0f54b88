"""The host's calls for memory: fresh, dropped, of a file, in two places."""

import mmap
import os
from ctypes import CDLL, addressof, c_char, memmove, string_at

import pytest

from engine.cpu import hostmemory as host

_SIZE = 16 * host.PAGE


def test_memory_is_zeros_until_written_and_after_a_drop() -> None:
    base = host.reserve(_SIZE)
    assert base is not None
    memmove(base + host.PAGE, b"abc", 3)
    assert string_at(base + host.PAGE, 4) == b"abc\0"
    host.drop(base + host.PAGE, host.PAGE)
    assert string_at(base + host.PAGE, 3) == bytes(3)
    memmove(base, b"abc", 3)
    host.renew(base, host.PAGE)
    assert string_at(base, 3) == bytes(3)
    host.unmap(base, _SIZE)


def test_the_host_refuses_more_addresses_than_there_are() -> None:
    assert host.reserve(1 << 62) is None


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this host has no files in memory")
def test_a_file_is_shared_or_private_and_its_holes_take_no_room() -> None:
    base = host.reserve(_SIZE)
    assert base is not None
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, _SIZE)
    half = _SIZE // 2
    assert host.map_shared(base, half, descriptor, 0)
    assert host.map_privately(base + half, half, descriptor, 0)
    memmove(base, b"both", 4)
    assert string_at(base + half, 4) == b"both"
    memmove(base + half, b"mine", 4)
    assert string_at(base, 4) == os.pread(descriptor, 4, 0) == b"both"
    host.punch(descriptor, 0, host.PAGE)
    assert string_at(base, 4) == bytes(4)
    assert string_at(base + half, 4) == b"mine"
    assert not host.map_shared(base, half, -1, 0)
    assert not host.map_privately(base, half, -1, 0)
    host.unmap(base, _SIZE)
    os.close(descriptor)


def test_a_shared_mapping_can_stand_in_two_places() -> None:
    shared = mmap.mmap(-1, _SIZE)
    view = c_char.from_buffer(shared)
    place = host.reserve(_SIZE)
    assert place is not None
    if not host.double(addressof(view), _SIZE, place):
        pytest.skip("this host cannot")
    shared[0] = 7
    assert string_at(place, 1) == b"\x07"
    host.unmap(place, _SIZE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the host has no fork")
def test_a_forked_process_has_memory_for_itself() -> None:
    """Its own once it does not share: at the same addresses, and in two places where it was."""
    private, shared = host.private(host.PAGE), mmap.mmap(-1, host.PAGE)
    private[:3] = shared[:3] = b"one"
    place = host.reserve(host.PAGE)
    assert place is not None
    twice = host.double(addressof(c_char.from_buffer(shared)), host.PAGE, place)
    pid = os.fork()
    if not pid:
        try:
            host.unshare()
            right = private[:3] == shared[:3] == b"one"
            private[:3] = shared[:3] = b"two"
            right = right and (not twice or string_at(place, 3) == b"two")
            os._exit(0 if right else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert private[:3] == shared[:3] == b"one"


def test_what_is_reserved_is_far_from_libraries() -> None:
    """Within 2 GB of those, code that is made at run time finds room."""
    known = addressof(c_char.in_dll(CDLL(None), "environ"))
    for _ in range(20):
        base = host.reserve(1 << 30)
        assert base is not None
        assert abs(base - known) > 1 << 33
        host.unmap(base, 1 << 30)
        assert abs(addressof(host.distant(_SIZE)) - known) > 1 << 33
