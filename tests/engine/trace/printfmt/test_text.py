"""Texts by a `print fmt`: C's arithmetic, printk's conversions, the kernel's own helpers."""

from random import Random
from typing import Any

import pytest

from engine.arch.program import FieldType, ValueKind
from engine.trace.printfmt.text import print_text
from engine.trace.printfmt.tokens import UnprintableError
from engine.trace.rows import Column

S, U, T = ValueKind.SIGNED, ValueKind.UNSIGNED, ValueKind.STRING
COLUMNS = (
    Column("i", FieldType(S, 4), 3, "int"),
    Column("u", FieldType(U, 4), 4, "unsigned int"),
    Column("l", FieldType(U, 8), 5, "unsigned long"),
    Column("c", FieldType(U, 1), 6, "u8"),
    Column("name", FieldType(T, 0), 7, "char[16]"),
    Column("path", FieldType(T, 0), 8, "__data_loc char[]"),
    Column("raw", FieldType(T, 0), 9, "__data_loc u8[]"),
    Column("six", FieldType(U, 1, 16), 10, "__u8[16]"),
    Column("args", FieldType(U, 8, 3), 26, "unsigned long[3]"),
)
SIX = bytes.fromhex("20010db8000000000000000000000001")
VALUES: dict[str, Any] = {
    "i": -5, "u": 0xFFFFFFFE, "l": 1 << 63, "c": 200, "name": b"cat", "path": b"/bin/x",
    "raw": b"\1\2\xff\0", "six": tuple(SIX), "args": (1, 0x20, (1 << 64) - 1),
}  # fmt: skip


def text(expression: str) -> str:
    symbol = {0x1000: b"vfs_read+0x10/0x300", 0x2000: b"f+0x0/0x1 [mod]"}
    found = print_text(expression, COLUMNS)(VALUES, lambda at: symbol.get(at, b"%#x" % at))
    return found.decode(errors="replace")


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        # What gcc's programs print with int i = -5, unsigned u = -2, unsigned long l = 1 << 63.
        ('"%d %u %x", REC->i, REC->i, REC->i', "-5 4294967291 fffffffb"),
        ('"%ld %lx", REC->i, (long)REC->i', "-5 fffffffffffffffb"),
        ('"%d", REC->i < REC->u', "1"),
        ('"%d", REC->i < (long)REC->u', "1"),
        ('"%d", REC->i / 2 * 10 + REC->i % 3', "-22"),
        ('"%u", REC->u + 3', "1"),
        ('"%lu", REC->u + 3UL', "4294967297"),
        ('"%d", REC->i >> 1', "-3"),
        ('"%lx", REC->l >> 60 | ~0xfUL', "fffffffffffffff8"),
        ('"%d", REC->l != -1UL && !0 || 0', "1"),
        ('"%d", (u8)(REC->u << 4) == 0xe0 ? 7 : 8', "7"),
        ('"%d %d", -REC->c, (s8)REC->c', "-200 -56"),
        ('"%d", sizeof(u64) * 010', "64"),
        ('"%d", 1 + 2 * 3 - 4 & 6 ^ 1', "3"),
        ('"a" "b %% %c%c", 65, \'z\'', "ab % Az"),
    ],
)
def test_numbers_are_those_of_c(expression: str, shown: str) -> None:
    assert text(expression) == shown


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ('"[%5d|%-5d|%05d|%+d]", 42, 42, 42, 42', "[   42|42   |00042|+42]"),
        ('"%#x %#lx %o %#o %.3d", 0, 255, 8, 8, 7', "0x0 0xff 10 010 007"),
        ('"%08llx", 0xabcULL', "00000abc"),
        ('"%hhd %hu %zu", 300, 65537, REC->l', "44 1 9223372036854775808"),
        ('"%-6s|%6s|%.2s|%s", REC->name, REC->name, REC->name, __get_str(path)',
         "cat   |   cat|ca|/bin/x"),
        ('"%*d", 4, 1', "   1"),
        ('"%p %ps %pS %pS", (void *)REC->l, (void *)0x1000, (void *)0x1000, 0x2000',
         "8000000000000000 vfs_read vfs_read+0x10/0x300 f+0x0/0x1 [mod]"),
        ('"%pI6c %pI4 %pM %*ph", REC->six, REC->six, REC->six, 2, REC->six',
         "2001:db8::1 32.1.13.184 20:01:0d:b8:00:00 20 01"),
        ('"%pUb", &REC->six', "20010db8-0000-0000-0000-000000000001"),
        ('"%lx %lx", REC->args[0], REC->args[1 + 1]', "1 ffffffffffffffff"),
    ],
)  # fmt: skip
def test_conversions_are_those_of_printk(expression: str, shown: str) -> None:
    assert text(expression) == shown


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ('"%s", __print_flags(0x15, "|", { 1, "A" }, { 4, "B" }, { 2, "C" })', "A|B|0x10"),
        ('"%s", __print_flags(0, "|", { 1, "A" })', ""),
        ('"%s", __print_symbolic(REC->i, { 1, "A" }, { -5, "minus" })', "minus"),
        ('"%s", __print_symbolic(77, { 1, "A" })', "0x4d"),
        ('"%s", REC->i ? "some" : "none"', "some"),
        ('"%s|%s", __print_hex(__get_dynamic_array(raw), 3), __print_hex_str(REC->six, 2)',
         "01 02 ff|2001"),
        ('"%d %d", __get_dynamic_array_len(raw), __get_dynamic_array_len(path)', "4 7"),
        ('"%s", __print_array(REC->args, 2, sizeof(u64))', "{0x1,0x20}"),
        ('"%d", *(u16 *)REC->six', "288"),
        ('"%s", __get_bitmask(raw)', "00ff0201"),
        ('"%d", (REC)->i', "-5"),
        ('"%d", __builtin_expect(!!(REC->i), 1)', "1"),
    ],
)  # fmt: skip
def test_helpers_are_those_of_the_kernel(expression: str, shown: str) -> None:
    assert text(expression) == shown


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ('"%s", xen_name(REC->i)', "a function of the kernel"),
        ('"%d", jiffies', "which only the kernel knows"),
        ('"%d", REC->none', "there is no field none"),
        ('"%d"', "a value is missing"),
        ('"%s", REC->i', "no text"),
        ('"%d", (struct x)REC->i', "a cast to"),
        ('"%d", ({ int a; a; })', "in place of a value"),
        ('"%d", REC->i.x', "a member"),
        ('"%pISpc", REC->i', "no address"),
        ("REC->i", "there is no text"),
        ('"%d", (((', "in place of a value"),
        ('"%d", ' + "(" * 5000, "too deep"),
        ('"%d", REC->i @ 1', "no word of C"),
    ],
)
def test_what_only_the_kernel_could_print_is_refused(expression: str, why: str) -> None:
    with pytest.raises(UnprintableError, match=why):
        text(expression)


def number(source: Random, deep: int) -> list[str]:
    """Words of a number."""
    if deep <= 0 or source.random() < 0.2:
        return source.choice(
            [["REC", "->", source.choice("iulc")], ["7"], ["0x80000000UL"], ["-1"]]
        )
    one, other = number(source, deep - 1), number(source, deep - 2)
    mark = source.choice(
        ["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "&&", "||", "<", ">=", "=="]
    )
    return source.choice(
        [
            ["(", *one, mark, *other, ")"],
            ["(", source.choice(("int", "u8", "unsigned long")), ")", *one],
            [source.choice("-~!"), *one],
            ["(", *one, "?", *other, ":", *one, ")"],
            [*memory(source), "[", *one, "]"],
            ["__get_dynamic_array_len", "(", source.choice(("raw", "path")), ")"],
        ]
    )


def memory(source: Random) -> list[str]:
    """Words of some bytes."""
    found = [["REC", "->", "six"], ["REC", "->", "args"], ["__get_dynamic_array", "(", "raw", ")"]]
    return source.choice([*found, ["(", "(", "u32", "*", ")", *found[0], ")"]])


def shown_text(source: Random, deep: int) -> list[str]:
    """Words of a text."""
    one = number(source, deep)
    pairs = [",", "{", "1", ",", '"A"', "}", ",", "{", "6", ",", '"B"', "}"]
    return source.choice(
        [
            ["REC", "->", "name"],
            ["__get_str", "(", "path", ")"],
            ["__print_flags", "(", *one, ",", '"|"', *pairs, ")"],
            ["__print_symbolic", "(", *one, *pairs, ")"],
            ["__print_hex", "(", *memory(source), ",", *one, ")"],
            ["__print_array", "(", *memory(source), ",", *one, ",", "8", ")"],
            ["__get_bitmask", "(", "raw", ")"],
            [*one, "?", '"yes"', ":", "REC", "->", "name"],
        ]
    )


def told(expression: str) -> str:
    """The text, or why there is none."""
    try:
        return text(expression)
    except UnprintableError as error:
        return f"refused: {error}"


def test_any_words_are_a_text_or_are_refused() -> None:
    """Kernels may come from anybody, and with them what their events print."""
    source = Random(11)
    shown = refused = 0
    for _ in range(3000):
        form = source.choice(("%d", "%#x", "%-5lu", "%c", "%pS", "%*u", "%.3s", "%pI4"))
        words = [f'"{form} %s"', ",", *number(source, 3), ",", *shown_text(source, 2)]
        if source.random() < 0.5:
            del words[source.randrange(len(words))]
        elif source.random() < 0.3:
            words.insert(source.randrange(len(words)), source.choice(words))
        found = told(" ".join(words))
        refused += found.startswith("refused: ")
        shown += not found.startswith("refused: ")
    assert shown > 500
    assert refused > 500


@pytest.mark.parametrize(
    "expression",
    [
        '"%d", ' + "!" * 100_000 + "1",
        '"%d", ' + "-" * 5000 + "1",
        '"%d", ' + "(" * 100_000,
        '"%d", ' + "1" + "+1" * 20_000,
        '"%d", ' + "(int)" * 3000 + "1",
        '"%d", ' + "1?" * 3000 + "1",
        '"%d", REC->args' + "[0]" * 3000,
        '"%d", ' + "9" * 6000,
        '"%d", sizeof(int',
        '"%s", __print_hex()',
        '"%s", __print_array()',
        '"%s", __print_flags(1, REC->name, {1, "a"})',
        '"%s", __print_symbolic(1, {REC->i, "a"})',
        '"%s", __print_symbolic(1, {1, REC->name})',
        '"x" ' * 60_000,
    ],
)
def test_what_is_too_deep_or_does_not_end_is_refused(expression: str) -> None:
    assert told(expression).startswith("refused: ")


def test_a_long_table_of_flags_is_not_deep() -> None:
    """The kernel's own of allocations have some 150 operators, each worked out once."""
    table = ", ".join(
        f'{{ (unsigned long)(((unsigned)1 << {n % 31}) | 0u), "B{n}" }}' for n in range(300)
    )
    assert text(f'"%s", __print_flags(REC->c, "|", {table})') == "B3|B6|B7"
