"""What is refused on x86-64, against Capstone's own instruction groups."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.arch.base import Screening
from engine.arch.machine import Insn
from engine.arch.x86_64 import X86_64
from engine.insn.disasm import Disassembler

capstone = pytest.importorskip("capstone")

_IRET = 0xCF
_MD = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_MD.detail = True
_AVX = {
    getattr(capstone.x86, name)
    for name in dir(capstone.x86)
    if name.startswith(("X86_GRP_AVX", "X86_GRP_FMA", "X86_GRP_F16C", "X86_GRP_XOP"))
}
_BMI = {capstone.x86.X86_GRP_BMI, capstone.x86.X86_GRP_BMI2}
_VEX = st.one_of(
    st.tuples(st.just(b"\xc5"), st.binary(min_size=14, max_size=14)),
    st.tuples(st.just(b"\xc4"), st.binary(min_size=14, max_size=14)),
    st.tuples(st.just(b"\x62"), st.binary(min_size=14, max_size=14)),
    st.tuples(st.just(b""), st.binary(min_size=15, max_size=15)),
).map(b"".join)


def _suspected(raw: bytes) -> bool:
    """Whether it has a pair of bytes, or could end as, what every screened instruction has."""
    pairs = pairwise(raw)
    suspects = {**X86_64.suspects, **X86_64.float_suspects}
    return (
        any(second in suspects.get(first, ()) for first, second in pairs)
        or raw[-1] in suspects
        or _IRET in raw  # which ends a block, so that it is the last byte of one
        or any(first in X86_64.suspect_lasts for first in raw[:-1])
        or any(
            first in X86_64.suspect_ends and last > 0x7F
            for first, last in zip(raw, raw[2:], strict=False)
        )
    )


def _refused(raw: bytes, text: str = "") -> bool:
    found = X86_64.screen((Insn(0x1000, raw, text, ""),))
    later = (Screening.REFUSE, Screening.BORROW, Screening.EXTEND)
    return bool(found) and found[0].action in later


@settings(max_examples=1000, deadline=None)
@given(_VEX)
def test_groups(raw: bytes) -> None:
    insn = next(_MD.disasm(raw, 0x1000, 1), None)
    if insn is None:
        return
    groups = set(insn.groups)
    code = bytes(insn.bytes)
    if groups & (_AVX | _BMI) and code[0] in (0xC4, 0xC5, 0x62):
        assert _refused(code), (insn.mnemonic, code.hex())
        assert _suspected(code)


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("c5f877", True),  # vzeroupper
        ("c4e27918c0", True),  # vbroadcastss
        ("62f17c4858c0", True),  # vaddps zmm
        ("c4e2f0f2c2", True),  # andn
        ("c4e2fbf7c2", True),  # shrx
        ("c4e3fbf0c205", True),  # rorx
        ("f30fbdc1", True),  # lzcnt
        ("0fbdc1", False),  # bsr
        ("f0f71e", False),  # lock neg dword [rsi]
        ("f71e", False),
        ("f30fb8c1", False),  # popcnt
        ("f30fbcc1", False),  # tzcnt
        ("660f3840c1", False),  # pmulld
        ("62", False),
    ],
)
def test_known(code: str, refused: bool) -> None:
    assert _refused(bytes.fromhex(code)) is (refused or code == "62")


@settings(max_examples=500, deadline=None)
@given(st.binary(min_size=1, max_size=64))
def test_nothing_to_screen_without_suspicion(raw: bytes) -> None:
    insns = Disassembler(X86_64).decode(0x1000, raw)
    if X86_64.screen(insns):
        assert _suspected(raw)
