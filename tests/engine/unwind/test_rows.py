"""Rows: their evaluation, and the tables they come from against binutils' reading of them."""

import re
import shutil
import subprocess
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from unwindkit import guest

from engine.arch.aarch64 import AARCH64
from engine.arch.x86_64 import X86_64
from engine.errors import GuestFaultError
from engine.image import ElfImage, find_fde, function_ranges
from engine.unwind.expression import ExpressionError, evaluate
from engine.unwind.program import rows
from engine.unwind.rows import (
    AtCfa,
    AtExpression,
    AtRegister,
    Caller,
    CfaExpression,
    CfaPlus,
    CfaRegister,
    CfiRow,
    InRegister,
    Rule,
    SameValue,
    Undefined,
    Unreadable,
    ValueOfExpression,
)

ARCHES = {"amd64": X86_64, "arm64": AARCH64}


class Words:
    """Memory of a few words."""

    def __init__(self, words: Mapping[int, int]) -> None:
        self.words = words

    def read(self, address: int, size: int) -> bytes:
        if address not in self.words:
            raise GuestFaultError(address, "read")
        return self.words[address].to_bytes(8, "little")[:size]


def caller(
    row: CfiRow, registers: Mapping[str, int], words: Mapping[int, int], arch: str = "amd64"
) -> Caller:
    found = row.caller(ARCHES[arch], registers, Words(words).read)
    assert isinstance(found, Caller), found
    return found


# CFA = rsp + 8 + ((rip & 15) >= 11) * 8: what linkers write for a lazy linkage table.
PLT = bytes.fromhex("77 08 80 00 3f 1a 3b 2a 33 24 22")


@pytest.mark.parametrize(
    ("pc", "sp", "cfa"),
    # By framehop's vectors: pushed once by the stub above, once by the table's head.
    [(0xC0DB, 40, 56), (0xC0E0, 48, 56), (0xC0E6, 48, 56), (0xC0EB, 40, 56)],
)
def test_linkage_stub(pc: int, sp: int, cfa: int) -> None:
    row = CfiRow(CfaExpression(PLT), {"rip": AtCfa(-8)}, "rip")
    found = caller(row, {"rip": pc, "rsp": sp, "rbp": 837}, {cfa - 8: 0x123456})
    assert (found.cfa, found.pc) == (cfa, 0x123456)
    assert found.registers["rbp"] == 837


def test_return_address_by_expression() -> None:
    """glibc 2.19's lock stubs: rip is the value of an expression, not in memory."""
    code = bytes.fromhex("80 00 23 05")  # breg16 0; plus_uconst 5
    row = CfiRow(CfaRegister("rsp", 0), {"rip": ValueOfExpression(code)}, "rip", signal_frame=True)
    found = caller(row, {"rip": 37937, "rsp": 16, "rbp": 288}, {})
    assert (found.pc, found.registers["rsp"], found.registers["rbp"]) == (37942, 16, 288)


def test_all_rules() -> None:
    rules: dict[str, Rule] = {
        "rip": AtCfa(-8),
        "rbx": AtRegister("rbp", 16),
        "rbp": InRegister("r10"),
        "r12": CfaPlus(-32),
        "r13": AtExpression(bytes.fromhex("23 08")),  # CFA + 8
        "r14": Undefined(),
        "r15": SameValue(),
    }
    known = {"rip": 1, "rsp": 100, "rbp": 200, "r10": 7, "r14": 9, "r15": 11, "rax": 5}
    found = caller(
        CfiRow(CfaRegister("rsp", 20), rules, "rip"), known, {112: 0x4000, 216: 3, 128: 4}
    )
    assert found.cfa == 120
    assert dict(found.registers) == {
        "rip": 0x4000,
        "rsp": 120,
        "rbx": 3,
        "rbp": 7,
        "r12": 88,
        "r13": 4,
        "r15": 11,
    }


def test_no_caller() -> None:
    row = CfiRow(CfaRegister("rsp", 8), {"rip": Undefined()}, "rip")
    assert caller(row, {"rsp": 8, "rip": 1}, {}).pc is None


def test_authentication_code() -> None:
    """A signed return address loses its code, in the link register and in memory."""
    known = {"sp": 0x1000, "x29": 1, "x30": 0x0025_0000_0040_1234, "pc": 0x400000}
    plain = CfiRow(CfaRegister("sp", 0), {}, "x30", signed=True)
    assert caller(plain, known, {}, "arm64").pc == 0x40_1234
    saved = CfiRow(CfaRegister("sp", 16), {"x30": AtCfa(-8)}, "x30", signed=True)
    found = caller(saved, known, {0x1008: 0x007F_0000_0040_5678}, "arm64")
    assert (found.pc, found.registers["x30"]) == (0x40_5678, 0x40_5678)


@pytest.mark.parametrize(
    "row",
    [
        CfiRow(CfaRegister("rsp", 8), {"rip": AtCfa(-8)}, "rip"),
        CfiRow(CfaRegister("r9", 8), {"rip": AtCfa(-8)}, "rip"),
        CfiRow(CfaExpression(b"\x13"), {"rip": AtCfa(-8)}, "rip"),
        CfiRow(CfaExpression(b"\x2f\xfd\xff"), {"rip": AtCfa(-8)}, "rip"),  # for ever
    ],
)
def test_what_cannot_be_carried_out(row: CfiRow) -> None:
    found = row.caller(X86_64, {"rsp": 0, "rip": 0}, Words({}).read)
    assert isinstance(found, Unreadable)
    assert found.reason


@given(st.binary(max_size=40), st.integers(0, 2**64 - 1))
def test_any_expression(code: bytes, start: int) -> None:
    """A value or an `ExpressionError`, whatever the bytes are."""
    try:
        value = evaluate(code, start, dict.fromkeys(range(32), 8), Words({}).read, "<")
    except ExpressionError:
        return
    assert 0 <= value < 2**64


# -- tables ------------------------------------------------------------------------------


def _binutils(path: str) -> dict[int, list[tuple[int, str, dict[str, str]]]]:
    """Function start to rows (address, CFA, rules) as readelf prints them."""
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("no readelf on this machine")
    done = subprocess.run(
        [readelf, "--debug-dump=frames-interp", "-W", path],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[int, list[tuple[int, str, dict[str, str]]]] = {}
    columns: list[str] = []
    table: list[tuple[int, str, dict[str, str]]] | None = None
    for line in done.stdout.splitlines():
        if match := re.match(r"[0-9a-f]+ .* FDE .* pc=([0-9a-f]+)\.\.", line):
            table = found.setdefault(int(match[1], 16), [])
        elif " CIE " in line:
            table = None
        elif line.split()[:2] == ["LOC", "CFA"]:
            columns = line.split()[2:]
        elif table is not None and re.match(r"[0-9a-f]{16} ", line):
            words = re.sub(r"r\d+ \((\w+)\)", r"\1", line).split()
            table.append((int(words[0], 16), words[1], dict(zip(columns, words[2:], strict=True))))
    return found


def _spelled(rule: Rule | None) -> str:
    match rule:
        case None:
            return "u"
        case Undefined():
            return "u"
        case SameValue():
            return "s"
        case AtCfa(offset):
            return f"c{offset:+d}"
        case CfaPlus(offset):
            return f"v{offset:+d}"
        case InRegister(register):
            return register
        case AtExpression() | ValueOfExpression():
            return "exp"
    raise AssertionError(rule)


@pytest.mark.parametrize(
    "name",
    [
        f"{arch}/{kind}"
        for arch in ARCHES
        for kind in ("unw-O0", "unw-O2dbgframe", "guests-static")
    ],
)
def test_the_same_tables_as_binutils(name: str) -> None:
    arch = ARCHES[name.partition("/")[0]]
    names = {r.dwarf: r.name for r in arch.registers if r.dwarf is not None}
    path = guest(name)
    image = ElfImage.open(str(path))
    theirs = _binutils(str(path))
    compared = 0
    ranges = function_ranges(image)
    for start, _ in ranges if len(ranges) < 300 else ranges[::4]:
        fde = find_fde(image, start)
        assert fde is not None
        if not theirs.get(fde.start):
            continue
        starts, table = rows(fde, names, image.bits, "<")
        column = names[fde.cie.return_register]
        ours = dict(zip(starts, table, strict=True))
        for address, cfa, rules in theirs[fde.start]:
            row = ours.get(address)
            assert row is not None, hex(address)
            if isinstance(row.cfa, CfaRegister):
                assert cfa == f"{row.cfa.register}{row.cfa.offset:+d}", hex(address)
            else:
                assert cfa == "exp"
            mine = {
                ("ra" if name == column else name): _spelled(rule)
                for name, rule in row.rules.items()
            }
            for register, rule in rules.items():
                shown = "ra" if register == column else register
                if register != "ra_sign_state":
                    assert mine.get(shown, "u") == rule, (hex(address), register)
            compared += 1
    assert compared > 20


@settings(max_examples=60)
@given(st.binary(max_size=60))
def test_any_program(code: bytes) -> None:
    """Rows up to the damage, whatever the instructions are."""
    image = ElfImage.open(str(guest("amd64/unw-O2")))
    fde = find_fde(image, function_ranges(image)[3][0])
    assert fde is not None
    names = {r.dwarf: r.name for r in X86_64.registers if r.dwarf is not None}
    starts, table = rows(replace(fde, instructions=code), names, 64, "<")
    assert starts == sorted(starts)
    assert starts[0] == fde.start
    assert len(starts) == len(table)
