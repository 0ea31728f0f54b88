"""Format strings of printf: what they show, what they refuse, and nothing that takes the host."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.formats import PrintFormat, check_format
from engine.trace.bpftrace.gfp_flags import gfp_text
from engine.trace.bpftrace.types import INT64, UINT64, Aggregate, BufferType, TextType, Tuple
from engine.trace.bpftrace.value_names import ValueNames

ENUM = kinds.Enumeration("Foo", kinds.Integer(32, signed=False), ((1, "ONE"), (2, "TWO")))
POINTER = kinds.Pointer(kinds.VOID)
BIG = 0x12345678ABCDEF


def shown(form: str, *values: tuple[kinds.Type, Any]) -> str:
    types = [kind for kind, _ in values]
    made = PrintFormat.of(form.encode())
    assert made.error(types) is None
    return made.renderer(types, ValueNames())([value for _, value in values]).decode()


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        ("%d", 5_000_000_000, "705032704"),  # cut to an int
        ("%lld %%", 5_000_000_000, "5000000000 %"),
        ("%ld", -1, "-1"),
        ("%u", -1, "4294967295"),
        ("%lu", -1, "18446744073709551615"),
        ("%hhx", BIG, "ef"),
        ("%hx", BIG, "cdef"),
        ("%x", BIG, "78abcdef"),
        ("%jx", BIG, "12345678abcdef"),
        ("%hhd", 200, "-56"),
        ("%X", 0xAB, "AB"),
        ("%#x|", 255, "0xff|"),
        ("%#X", 255, "0XFF"),
        ("%#x", 0, "0"),
        ("%#o", 8, "010"),
        ("%o", 8, "10"),
        ("%i", -3, "-3"),
        ("%5d|", 42, "   42|"),
        ("%-5d|", 42, "42   |"),
        ("%05d", 42, "00042"),
        ("%05d", -42, "00-42"),  # C++ streams fill before the sign
        ("%+d", 42, "+42"),
        ("% d", 42, "42"),
        ("%.8d", 42, "42"),
        ("%c%%", 0x41, "A%"),
        ("%3c|", 0x141, "  A|"),
        ("%p", 0xFFFF888000000000, "0xffff888000000000"),
        ("%p", 0, "0"),
        ("%20p|", 0x7FFF, "              0x7fff|"),
        ("%s", -7, "-7"),
        ("%gr", 0xCC0, "GFP_KERNEL"),
        ("%gr", 1, "GFP_DMA"),
        ("100%, %d", 3, "100%, 3"),
        ("%5%%d", 3, "%3"),
        ("%y %d", 3, "%y 3"),
    ],
)
def test_numbers(form: str, value: int, text: str) -> None:
    assert shown(form, (INT64, value)) == text


def test_anything_is_shown_by_s() -> None:
    assert shown("%s|%5s|%-5s|%05s", *((TextType(8), b"ab"),) * 4) == "ab|   ab|ab   |000ab"
    assert shown("%s %.1s", (TextType(3), b"abc"), (TextType(8), b"abc")) == "abc.. abc"
    assert shown("%s %s %d", (ENUM, 1), (ENUM, 9), (ENUM, 2)) == "ONE 9 2"
    assert shown("%-5s %5s", (ENUM, 1), (ENUM, 2)) == "ONE     TWO"
    assert shown("%s %d", (kinds.BOOL, True), (kinds.BOOL, True)) == "true 1"
    assert shown("%s %x", (POINTER, 16), (POINTER, 16)) == "0x10 10"
    pair = Tuple((INT64, TextType(8)))
    assert shown("%s|%5s", (pair, (1, b"x")), (pair, (1, b"x"))) == "(1, x)|    (1, x)"
    assert shown("%-4s", (pair, (1, b"x"))) == "(   1, x)"  # the width is for what comes first
    stats = Aggregate("stats")
    assert shown("%s", (stats, [2, 5])) == "{ .count = 2, .average = 2, .total = 5 }"


def test_buffers() -> None:
    data = (BufferType(8), b"Hello\0\xff")
    assert shown("%r", data) == r"Hello\x00\xff"
    assert shown("%rx", data) == r"\x48\x65\x6c\x6c\x6f\x00\xff"
    assert shown("%rh|%2r|", data, (BufferType(8), b"")) == "48 65 6c 6c 6f 00 ff|  |"


def test_bytes_that_are_no_text_pass() -> None:
    made = PrintFormat.of(b"\xff%s\0")
    assert made.renderer([TextType(8)], ValueNames())([b"\x80"]) == b"\xff\x80\0"


@pytest.mark.parametrize(
    ("form", "types", "error"),
    [
        ("%d", (), "not enough arguments for format string (0 supplied, 1 expected)"),
        ("x", (INT64,), "too many arguments for format string (1 supplied, 0 expected)"),
        ("%d", (TextType(4),), "unsupported format specifier for type 'string[4]': d"),
        ("%r", (TextType(4),), "unsupported format specifier for type 'string[4]': r"),
        ("%p", (BufferType(4),), "unsupported format specifier for type 'buffer[8]': p"),
        ("%f", (INT64,), "unsupported format specifier: f"),
        ("%n", (INT64,), "unsupported format specifier: n"),
        ("%s", (kinds.VOID,), "unable to print none type for specifier: s"),
        ("%*d", (INT64,), "unsupported format specifier: *d (write the width as a number)"),
        ("%.*d", (INT64,), "unsupported format specifier: *d (write the width as a number)"),
        ("%99999d", (INT64,), "field width 99999 of %d is too large (4096 at most)"),
        ("%" + "9" * 50 + "s", (INT64,), "field width 9999999999 of %s is too large"),
    ],
)
def test_what_is_refused(form: str, types: tuple[kinds.Type, ...], error: str) -> None:
    found = check_format(form.encode(), types)
    assert found is not None
    assert found.startswith(error)


@given(st.binary(max_size=40))
def test_any_text_is_a_format(text: bytes) -> None:
    made = PrintFormat.of(text)
    assert len(made.fragments) == len(made.specifications) + 1
    if not made.specifications and b"%" not in text:
        assert made.renderer([], ValueNames())([]) == text


@given(st.integers(min_value=0, max_value=(1 << 64) - 1), st.sampled_from("duxXo"))
def test_whole_numbers_are_those_of_c(value: int, letter: str) -> None:
    wanted = value - (1 << 64) if letter == "d" and value >> 63 else value
    assert shown(f"%ll{letter}", (UINT64, value)) == f"%{letter}" % wanted


def test_flags_of_the_allocator() -> None:
    assert gfp_text(0) == b"0"
    assert gfp_text(0xCC0 | 0x100) == b"GFP_KERNEL|__GFP_ZERO"
    assert gfp_text(1 << 40) == b"0x10000000000"
