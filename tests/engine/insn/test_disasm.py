"""Capstone is opened by the names of an architecture's record."""

import pytest
from msgspec.structs import replace

from engine.arch import by_name
from engine.arch.base import Arch
from engine.arch.engines import CapstoneNames
from engine.errors import EngineError
from engine.insn.disasm import Disassembler

_RISCV = CapstoneNames("CS_ARCH_RISCV", ("CS_MODE_RISCV64", "CS_MODE_RISCVC"))


def _arch(names: CapstoneNames) -> Arch:
    arch = by_name("x86_64")
    return replace(arch, engines=replace(arch.engines, capstone=names))


def test_modes_are_combined() -> None:
    full, short = Disassembler(_arch(_RISCV)).decode(0, bytes.fromhex("1305a002 0290"))
    assert (full.text, full.size, short.text, short.size) == (
        "addi a0, zero, 0x2a",
        4,
        "c.ebreak",
        2,
    )


def test_options_are_set() -> None:
    names = CapstoneNames(
        "CS_ARCH_X86", ("CS_MODE_64",), (("CS_OPT_SYNTAX", "CS_OPT_SYNTAX_ATT"),)
    )
    (insn,) = Disassembler(_arch(names)).decode(0, b"\x48\x89\xe5")
    assert insn.text == "movq %rsp, %rbp"


def test_a_respelled_instruction() -> None:
    names = replace(_RISCV, respell=lambda insn: replace(insn, operands=hex(insn.address)))
    (insn,) = Disassembler(_arch(names)).decode(0x1000, bytes.fromhex("6f000000"))
    assert insn.text == "j 0x1000"


@pytest.mark.parametrize(
    "names",
    [
        CapstoneNames("CS_ARCH_VAX", ()),
        CapstoneNames("CS_ARCH_X86", ("CS_MODE_66",)),
        CapstoneNames("CS_ARCH_X86", ("CS_MODE_64",), (("CS_OPT_NO_SUCH", "CS_OPT_ON"),)),
    ],
)
def test_nobody_decodes(names: CapstoneNames) -> None:
    with pytest.raises(EngineError, match="no disassembler for"):
        Disassembler(_arch(names)).decode(0, b"\x90")
