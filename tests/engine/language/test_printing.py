"""Values as gdb writes them: every row was printed by gdb 13.1."""

import struct

import pytest
from memoryscope import MemoryScope

from engine.errors import CommandError, GuestFaultError
from engine.image.datatypes import TypeKind
from engine.language import value_types as ct
from engine.language.format_letters import formatted, lines_of
from engine.language.printing import Printer
from engine.language.quoting import character, quoted
from engine.language.real_texts import real


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", '""'),
        (b"abc", '"abc"'),
        (b'say "hi"\\', r'"say \"hi\"\\"'),
        (b"tab\there\n", r'"tab\there\n"'),
        (b"\x1b[0m\x7f\xc8", r'"\033[0m\177\310"'),
        (b"node-3" + bytes(9), '"node-3' + r"\000" * 9 + '"'),
        (b"hello" + bytes(20), "\"hello\", '\\000' <repeats 20 times>"),
        (bytes(11) + b"x", "'\\000' <repeats 11 times>, \"x\""),
        (b"a" * 10, '"aaaaaaaaaa"'),
    ],
)
def test_strings(data: bytes, shown: str) -> None:
    assert quoted(data) == shown


@pytest.mark.parametrize(
    ("code", "shown"),
    [(97, "'a'"), (39, r"'\''"), (34, "'\"'"), (0, r"'\000'"), (200, r"'\310'"), (10, r"'\n'")],
)
def test_characters(code: int, shown: str) -> None:
    assert character(code) == shown


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (struct.pack("<f", 0.1), "0.100000001"),
        (struct.pack("<f", 0.5), "0.5"),
        (struct.pack("<d", 0.1), "0.10000000000000001"),
        (struct.pack("<d", 1e300), "1.0000000000000001e+300"),
        (struct.pack("<d", 10 / 3), "3.3333333333333335"),
        (struct.pack("<d", float("inf")), "inf"),
        (struct.pack("<d", float("-inf")), "-inf"),
        (bytes.fromhex("000000000000f87f"), "nan(0x8000000000000)"),
        (bytes.fromhex("35c26821a2da0fc90040") + bytes(6), "3.14159265358979323851"),
        (bytes.fromhex("00000000000000c0ff3f") + bytes(6), "1.5"),
        (bytes(16), "0"),
    ],
)
def test_floating_point_numbers(raw: bytes, shown: str) -> None:
    assert real(raw, "little") == shown


@pytest.mark.parametrize(
    ("number", "size", "letter", "shown"),
    [
        (-1, 4, "x", "0xffffffff"),
        (10, 4, "t", "1010"),
        (8, 4, "o", "010"),
        (0, 4, "o", "0"),
        (5, 4, "z", "0x00000005"),
        (-5, 4, "u", "4294967291"),
        (97, 1, "d", "97"),
        (300, 4, "c", "44 ','"),
        (1, 4, "f", "1.40129846e-45"),
        (1, 8, "f", "4.9406564584124654e-324"),
        (0x401136, 8, "a", "0x401136"),
    ],
)
def test_formats(number: int, size: int, letter: str, shown: str) -> None:
    raw = (number & (1 << 8 * size) - 1).to_bytes(size, "little")
    assert formatted(raw, letter, "little", kind=ct.integer(size, signed=True)) == shown


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(CommandError, match='Undefined output format "q"'):
        formatted(b"\0", "q", "little")


def _printer(memory: bytes, start: int) -> Printer:
    def symbol(address: int) -> str:
        return f"data+{address - start}" if address > start else "data"

    return Printer(MemoryScope(memory, start), symbol)


@pytest.mark.parametrize(
    ("letter", "size", "count", "lines"),
    [
        ("x", 4, 5, ["0x1000 <data>:\t0x64636261\t0x00000000\t0x000000ff\t0x80000000",
                     "0x1010 <data+16>:\t0x00000001"]),
        ("x", 1, 3, ["0x1000 <data>:\t0x61\t0x62\t0x63"]),
        ("d", 4, 4, ["0x1000 <data>:\t1684234849\t0\t255\t-2147483648"]),
        ("u", 2, 2, ["0x1000 <data>:\t25185\t25699"]),
        ("c", 1, 4, ["0x1000 <data>:\t97 'a'\t98 'b'\t99 'c'\t100 'd'"]),
        ("s", 1, 2, ['0x1000 <data>:\t"abcd"', '0x1005 <data+5>:\t""']),
        ("t", 1, 1, ["0x1000 <data>:\t01100001"]),
        ("x", 8, 1, ["0x1000 <data>:\t0x0000000064636261"]),
    ],
)  # fmt: skip
def test_memory(letter: str, size: int, count: int, lines: list[str]) -> None:
    memory = b"abcd" + bytes(4) + struct.pack("<III", 255, 1 << 31, 1) + bytes(12)
    found = list(lines_of(_printer(memory, 0x1000), 0x1000, count, letter, size))
    assert [text for text, _ in found] == lines
    taken = {"s": 6}.get(letter, size * count)
    assert found[-1][1] == 0x1000 + taken


def test_memory_that_ends_is_shown_as_far_as_it_goes() -> None:
    printer = _printer(b"abc", 0x1000)
    assert printer.texts.string_at(0x1000) == ('"abc"...', 3)
    with pytest.raises(GuestFaultError):
        printer.texts.string_at(0x2000)


def test_kinds_of_made_types_are_written_as_in_c() -> None:
    row = ct.array_of(ct.pointer_to(ct.CHAR), 3)
    assert row.text == "char *[3]"
    assert ct.pointer_to(row).text == "char *(*)[3]"
    assert ct.pointer_to(ct.function_returning(ct.INT)).declared("call") == "int (*call)()"
    assert ct.integer(2, signed=False).kind is TypeKind.UNSIGNED
