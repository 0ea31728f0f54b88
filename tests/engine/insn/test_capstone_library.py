"""The library opened by ourselves, against the binding."""

import ctypes
import subprocess
import sys
from types import SimpleNamespace

import capstone
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.insn import capstone_library
from engine.insn.capstone_library import Capstone, CapstoneError, number

ENGINES = {
    "x86": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    "arm64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN),
    "riscv": (capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC),
}
OURS = {name: Capstone(*which) for name, which in ENGINES.items()}
THEIRS = {name: capstone.Cs(*which) for name, which in ENGINES.items()}


def test_the_binding_is_not_loaded() -> None:
    code = (
        "import sys; from engine.arch import by_name; from engine.insn.disasm import Disassembler;"
        "print(Disassembler(by_name('x86_64')).decode(0, b'\\x90')[0], 'capstone' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "nop" in done.stdout
    assert done.stdout.endswith(" False\n")


@pytest.mark.parametrize("name", ENGINES)
@given(raw=st.binary(max_size=64), address=st.integers(0, 2**64 - 65))
def test_any_bytes(name: str, raw: bytes, address: int) -> None:
    expected = list(THEIRS[name].disasm_lite(raw, address))
    assert OURS[name].disassemble(raw, address) == expected


def test_constants_are_those_of_the_binding() -> None:
    numbers = {
        name: value
        for name, value in vars(capstone).items()
        if name.startswith(("CS_ARCH_", "CS_MODE_", "CS_OPT_")) and isinstance(value, int)
    }
    for spelt_otherwise in ("CS_ARCH_ALL", "CS_MODE_MOS65XX_65816_LONG_MX"):
        del numbers[spelt_otherwise]
    assert len(numbers) > 50
    assert {name: number(name) for name in numbers} == numbers
    with pytest.raises(CapstoneError, match="no CS_ARCH_PDP11"):
        number("CS_ARCH_PDP11")


def test_what_the_library_refuses() -> None:
    with pytest.raises(CapstoneError, match="Invalid mode"):
        Capstone(capstone.CS_ARCH_X86, 1 << 20)


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def __init__(self, path: str) -> None:
            for name in ("open", "option", "close", "free", "strerror", "disasm"):
                setattr(self, f"cs_{name}", SimpleNamespace())

        def cs_version(self, *_: object) -> int:
            return 6 << 8

    monkeypatch.setattr(ctypes, "CDLL", Library)
    with pytest.raises(CapstoneError, match="this is Capstone 6"):
        capstone_library._library.__wrapped__()
