"""Operands of static probes: every form that compilers write, and what no compiler writes."""

import time

import pytest

from engine.arch import by_name
from engine.arch.marker_operands import MarkerOperand, operands
from engine.errors import ProbeError
from engine.trace.marker_words import UnfetchableError, fetch_words

SYMBOLS = {"table": 0x4060, "_ZN3geo1fEi": 0x4100}


def read(text: str, arch: str) -> tuple[MarkerOperand, ...]:
    made = by_name(arch).markers
    assert made is not None
    return operands(text, made(), by_name(arch).bits // 8)


def fetched(text: str, arch: str, *, fixed: bool = False) -> str:
    """The fetch argument of one operand; why there is none behind "!"."""

    def symbol(name: str, absolute: bool) -> int:
        if absolute and not fixed:
            raise UnfetchableError(f"{name} moves")
        return SYMBOLS[name]

    (operand,) = read(text, arch)
    try:
        return ":".join(fetch_words(operand, by_name(arch), symbol))
    except ProbeError as error:
        return f"!{error}"


FORMS = {
    "x86_64": {
        "-4@%edi": "%di:s32",
        "4@%edi": "%di:u32",
        "-8@%rax": "%ax:s64",
        "8@%r15": "%r15:u64",
        "-4@%r8d": "%r8:s32",
        "2@%r9w": "%r9:u16",
        "1@%r11b": "%r11:u8",
        "1@%r11l": "%r11:u8",
        "-1@%dl": "%dx:s8",
        "1@%ah": "%ax:b8@8/16",
        "-1@%ah": "!-1@%ah: a signed part of a register",
        "-2@%sp": "%sp:s16",
        "8@%rsp": "%sp:u64",
        "%rdi": "%di:u64",
        "8@-16(%rbp)": "-16(%bp):u64",
        "-4@(%rdx)": "+0(%dx):s32",
        "-4@0x10(%rdx)": "+16(%dx):s32",
        "-4@-16+8(%rbp)": "-8(%bp):s32",
        "-4@(%rcx,%rax,4)": "+0(%cx+%ax*4):s32",
        "-4@-24(%rsp,%rdi,4)": "-24(%sp+%di*4):s32",
        "-8@8(%rcx, %rax)": "+8(%cx+%ax):s64",
        "-8@8(,%rax,8)": "+8(%ax*8):s64",
        "-4@$5": "\\5:s32",
        "-4@$-7": "\\-7:s32",
        "4@$-294967296": "\\-294967296:u32",
        "-8@$9223372036854775807": "\\9223372036854775807:s64",
        "8@$0x7f": "\\127:u64",
        "2@table(%rip)": "@+0x4060:u16",
        "2@table+6(%rip)": "@+0x4066:u16",
        "2@6+table(%rip)": "@+0x4066:u16",
        "2@0x6+table(%rip)": "@+0x4066:u16",
        "2@-8+table(%rip)": "@+0x4058:u16",
        "2@8-2+table+4(%rip)": "@+0x406a:u16",
        "2@table+8-2(%rip)": "@+0x4066:u16",
        "2@6+table(%rip, %rax)": "!nothing is known at 6+table(%rip, %rax)",
        "2@6table(%rip)": "!it is not understood",
        "2@6-table(%rip)": "!it is not understood",
        "2@6++table(%rip)": "!it is not understood",
        "2@table+table(%rip)": "!it is not understood",
        "2@table+(%rip)": "!it is not understood",
        "2@table+6": "!table moves",
        "2@6+": "!it is not understood",
        "2@123456789012345678901(%rax)": "!it is not understood",
        "2@table-8(%rip)": "@+0x4058:u16",
        "8@_ZN3geo1fEi(%rip)": "@+0x4100:u64",
        "8f@%rax": "%ax:x64",
        "8f@table(%rip)": "@+0x4060:x64",
        "4f@-4(%rbp)": "-4(%bp):x32",
        "8f@%xmm0": "!register xmm0 holds no integer",
        "-4@16(%rip)": "!nothing is known at 16(%rip)",
        "-4@%fs:-8": "!it is not understood",
        "-4@%fs": "!register fs holds no integer",
        "8@(%eax)": "!register eax is only a part of an address",
        "8@$table": "!it is not understood",
        "-4@table": "!table moves",
        "-4@table(,%rax,4)": "!table moves",
        "-4@%nosuch": "!it is not understood",
        "16@%rax": "!16 bytes are no size of a number",
        "3@%rax": "!3 bytes are no size of a number",
        "0@%rax": "!0 bytes are no size of a number",
        "8@(%rax,%rbx,3)": "!it is not understood",
        "8@*%rax": "!it is not understood",
        "8@(%rax": "!it is not understood",
        "8@": "!it is not understood",
        "8@()": "!it is not understood",
        "@%rax": "!it is not understood",
        "-@%rax": "!it is not understood",
        "8@$99999999999999999999": "!99999999999999999999 does not fit into 64 bits",
        "8@99999999999999999999(%rax)": "!8@99999999999999999999(%rax): its distance does not fit",
        "8@$": "!it is not understood",
        "8@%": "!it is not understood",
        "8@%eax%ebx": "!it is not understood",
        "9999999@%rax": "!it is not understood",
        "8@x" * 200: "!it has more than 512 characters",
    },
    "aarch64": {
        "-4@w0": "%x0:s32",
        "8@x30": "%x30:u64",
        "8@sp": "%sp:u64",
        "8@fp": "%x29:u64",
        "4@wzr": "\\0:u32",
        "8@xzr": "\\0:u64",
        "-4@5": "\\5:s32",
        "-4@#-7": "\\-7:s32",
        "-4@[sp]": "+0(%sp):s32",
        "-4@[sp, 12]": "+12(%sp):s32",
        "-4@[sp, #-12]": "-12(%sp):s32",
        "-4@[x29,-20]": "-20(%x29):s32",
        "-8@[x0, x1]": "+0(%x0+%x1):s64",
        "-8@[x0, x1, lsl 3]": "+0(%x0+%x1*8):s64",
        "-8@[x0, x1, lsl #3]": "+0(%x0+%x1*8):s64",
        "-8@[x0, w1, sxtw 3]": "!it is not understood",
        "-8@[x0, w1]": "!register w1 is only a part of an address",
        "-8@[w0]": "!register w0 is only a part of an address",
        "-8@[x0, 8]!": "!it is not understood",
        "-8@[x0": "!it is not understood",
        "-8@[x0, :lo12:table]": "!it is not understood",
        "8f@d0": "!register d0 holds no integer",
        "8f@[x3, 64]": "+64(%x3):x64",
        "-4@w31": "!it is not understood",
        "-4@x31": "!it is not understood",
    },
    "riscv64": {
        "-4@a0": "%a0:s32",
        "8@s11": "%s11:u64",
        "8@x10": "%a0:u64",
        "8@fp": "%s0:u64",
        "8@sp": "%sp:u64",
        "8@zero": "\\0:u64",
        "-4@5": "\\5:s32",
        "-8@-7": "\\-7:s64",
        "-4@-52(s0)": "-52(%s0):s32",
        "2@0(a5)": "+0(%a5):u16",
        "2@(a5)": "+0(%a5):u16",
        "-8@%lo(table)(a5)": "!it is not understood",
        "8f@fa0": "!register fa0 holds no integer",
        "8@16(zero)": "!register zero is no address",
        "8@a9": "!it is not understood",
        "8@16(s0": "!it is not understood",
    },
}


@pytest.mark.parametrize(("arch", "text"), [(a, t) for a, forms in FORMS.items() for t in forms])
def test_an_operand_is_fetched_as_perf_writes_it(arch: str, text: str) -> None:
    assert fetched(text, arch) == FORMS[arch][text]


def test_symbols_of_a_file_that_does_not_move_are_addresses() -> None:
    assert fetched("-4@table", "x86_64", fixed=True) == "@0x4060:s32"
    assert fetched("-4@table(,%rax,4)", "x86_64", fixed=True) == "+16480(%ax*4):s32"
    assert fetched("-4@table+4(%rbx)", "x86_64", fixed=True) == "+16484(%bx):s32"


def test_blanks_within_brackets_do_not_separate() -> None:
    found = read("-4@[sp, 12] 8@x0  -4@[x0, x1, lsl 2] -4@5", "aarch64")

    assert [one.text for one in found] == ["-4@[sp, 12]", "8@x0", "-4@[x0, x1, lsl 2]", "-4@5"]
    assert not any(one.problem for one in found)


def test_an_open_bracket_takes_the_rest() -> None:
    first, second = read("8@x0 -4@[sp, 12 8@x1", "aarch64")

    assert not first.problem
    assert second.problem


@pytest.mark.parametrize("arch", FORMS)
def test_hostile_texts_are_read_in_no_time(arch: str) -> None:
    began = time.process_time()
    for text in ("8@" + "1+" * 200_000, "(" * 500_000, "8@" + "a" * 500_000, "8@$1 " * 200_000):
        assert len(read(text, arch)) <= 12
    for body in ("-1" * 240, "1" * 500, "a.$@" * 120, "[x0," * 120, "(%rax," * 80):
        read(f"8@{body}", arch)
    assert time.process_time() - began < 3


def test_no_more_than_twelve_arguments() -> None:
    assert len(read("8@%rax " * 40, "x86_64")) == 12
    assert read("", "x86_64") == read("   ", "x86_64") == ()
