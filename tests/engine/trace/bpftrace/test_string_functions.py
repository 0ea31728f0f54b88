"""Functions of scripts on strings, memory and network addresses, compared with those of libc."""

import ctypes
import socket

from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace import string_functions as strings
from engine.trace.bpftrace.values import AF_INET, AF_INET6, InetValue

LIBC = ctypes.CDLL(None)
TEXTS = st.binary(max_size=12)


@given(TEXTS, TEXTS, st.integers(min_value=0, max_value=16))
def test_comparing_is_that_of_c(left: bytes, right: bytes, count: int) -> None:
    assert strings.compare_strings(left, right, count) == bool(LIBC.strncmp(left, right, count))
    size = min(count, len(left), len(right))
    theirs = LIBC.memcmp(left, right, size)
    ours = strings.compare_memory(left, right, size)
    assert (ours > 0, ours < 0) == (theirs > 0, theirs < 0)


@given(TEXTS, TEXTS)
def test_searching_is_that_of_c(haystack: bytes, needle: bytes) -> None:
    LIBC.strstr.restype = ctypes.c_void_p
    held = ctypes.create_string_buffer(haystack)
    found = LIBC.strstr(held, needle)
    wanted = -1 if found is None else found - ctypes.addressof(held)
    assert strings.find_string(haystack, needle) == wanted
    assert strings.contains_string(haystack, needle) == (found is not None)
    assert strings.string_length(haystack) == len(held.value)


def test_strings_end_at_their_room() -> None:
    assert strings.concatenated(b"ab\0x", b"cd") == b"abcd"
    assert len(strings.concatenated(b"a" * 2000, b"")) == 1023


def test_numbers_of_errors_and_signals_have_the_kernels_texts() -> None:
    assert strings.error_text(7) == b"Argument list too long"
    assert strings.error_text(-5) == b"I/O error"
    assert strings.error_text(0) == b"Success"
    assert strings.error_text(41) == strings.error_text(1 << 40) == b"Unknown error"
    assert strings.signal_text(11) == b"Segmentation fault"
    assert strings.signal_text(32) == b"Unknown signal 32"
    assert strings.signal_text(34) == b"Real-time signal 0"
    assert strings.signal_text(-1) == strings.signal_text(65) == b"N/A"


def test_network_addresses() -> None:
    assert str(strings.inet_value(0x0100007F)) == "127.0.0.1"
    assert str(strings.inet_value(0x7F000001, little=False)) == "127.0.0.1"
    assert str(strings.inet_value(0xFFFF0000 | 1 << 40)) == "0.0.255.255"
    assert str(strings.inet_value(bytes(15) + b"\1")) == "::1"
    assert str(strings.inet_value(b"\1\2\3\4" + bytes(12), AF_INET)) == "1.2.3.4"
    assert str(InetValue(AF_INET6, b"")) == "::"
    assert str(InetValue(77, b"abcd")) == ""
    assert strings.network_bytes(b"127.0.0.1") == b"\x7f\0\0\1"
    assert strings.network_bytes(b"::1") == bytes(15) + b"\1"
    for wrong in (b"", b"1.2.3", b"1.2.3.4.5", b"::g", b"\xff", b"1.2.3.4\0"):
        assert strings.network_bytes(wrong) is None


@given(st.binary(min_size=16, max_size=16))
def test_addresses_are_read_as_they_are_shown(data: bytes) -> None:
    text = str(strings.inet_value(data)).encode()
    assert strings.network_bytes(text) == data
    assert text.decode() == socket.inet_ntop(socket.AF_INET6, data)


def test_addresses_of_cards() -> None:
    assert str(strings.mac_value(b"\x05\x04\x03\xff\0\x0a more")) == "05:04:03:FF:00:0A"
    assert str(strings.mac_value(b"")) == "00:00:00:00:00:00"
