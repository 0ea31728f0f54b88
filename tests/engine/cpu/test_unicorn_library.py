"""The library opened by ourselves, against the binding."""

import importlib
import subprocess
import sys

import pytest
import unicorn
from unicorn.arm64_const import UC_ARM64_REG_CP_REG
from unicorn.unicorn_py3.unicorn import Uc, UcError, uclib
from unicorn.x86_const import UC_X86_REG_CR4, UC_X86_REG_GDTR, UC_X86_REG_MSR, UC_X86_REG_RAX

from engine.cpu import unicorn_library
from engine.cpu.unicorn_library import Emulator, UnicornError, constants
from engine.errors import EngineError

X86 = unicorn.UC_ARCH_X86, unicorn.UC_MODE_64
ARM64 = unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM
FS_BASE = 0xC0000100
TPIDR = (13, 0, 3, 3, 2)


@pytest.fixture
def theirs() -> Uc:
    """An engine of the binding's."""
    return Uc(*X86)


def of_ours(theirs: Uc) -> Emulator:
    """The same engine, as our class sees it."""
    ours = Emulator(*X86)
    ours.handle = theirs._uch
    return ours


def test_the_binding_is_not_loaded() -> None:
    code = "import sys, engine.cpu.unicorn_cpu; print('unicorn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_it_is_the_same_library() -> None:
    assert vars(unicorn_library.uclib)["_handle"] == vars(uclib)["_handle"]


@pytest.mark.parametrize("name", ["unicorn", "x86", "arm64", "riscv"])
def test_constants_are_those_of_the_binding(name: str) -> None:
    module = importlib.import_module(f"unicorn.{name}_const")
    numbers = {key: value for key, value in vars(module).items() if key.startswith("UC_")}
    assert numbers
    found = vars(constants(name))
    assert {key: value for key, value in found.items() if key.startswith("UC_")} == numbers


def test_no_constants() -> None:
    with pytest.raises(ImportError, match="no constants of pdp11"):
        constants("pdp11")


@pytest.mark.parametrize("value", [0, 1, 2**63 + 5, -1])
def test_registers(value: int, theirs: Uc) -> None:
    ours = of_ours(theirs)
    ours.write_register(UC_X86_REG_RAX, value)
    assert theirs.reg_read(UC_X86_REG_RAX) == value % 2**64
    assert ours.read_register(UC_X86_REG_RAX) == value % 2**64
    assert ours.read_register(UC_X86_REG_CR4) == theirs.reg_read(UC_X86_REG_CR4)


def test_registers_of_keys_and_tables(theirs: Uc) -> None:
    ours = of_ours(theirs)
    ours.write_register(UC_X86_REG_MSR, 0x123456789A, (FS_BASE,))
    assert theirs.reg_read(UC_X86_REG_MSR, FS_BASE) == ours.read_register(
        UC_X86_REG_MSR, (FS_BASE,)
    )
    assert theirs.reg_read(UC_X86_REG_MSR, FS_BASE) == 0x123456789A
    ours.write_register(UC_X86_REG_GDTR, (0, 0x5000, 0xFFF, 0))
    assert theirs.reg_read(UC_X86_REG_GDTR) == (0, 0x5000, 0xFFF, 0)
    arm = Uc(*ARM64)
    ours = Emulator(*ARM64)
    ours.handle = arm._uch
    ours.write_register(UC_ARM64_REG_CP_REG, 77, TPIDR)
    assert arm.reg_read(UC_ARM64_REG_CP_REG, TPIDR) == 77
    assert ours.read_register(UC_ARM64_REG_CP_REG, TPIDR) == 77


def test_saved_registers() -> None:
    ours = Emulator(*X86)
    ours.write_register(UC_X86_REG_RAX, 1)
    saved = ours.save()
    ours.write_register(UC_X86_REG_RAX, 2)
    ours.restore(saved)
    assert ours.read_register(UC_X86_REG_RAX) == 1
    assert saved.size > 1000


def test_what_is_refused_is_said_as_the_binding_says_it(theirs: Uc) -> None:
    with pytest.raises(UnicornError) as our:
        of_ours(theirs).run(0x1000, 0x2000)
    with pytest.raises(UcError) as their:
        theirs.emu_start(0x1000, 0x2000)
    assert str(our.value) == str(their.value)
    with pytest.raises(UnicornError, match="Invalid mode"):
        Emulator(unicorn.UC_ARCH_X86, 0)


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unicorn_library.uc_const, "UC_API_MINOR", 99)
    with pytest.raises(EngineError, match=r"is of Unicorn 2\.1"):
        Emulator(*X86)
