"""The architectures that shared tests run on: those of the list, by what their records have.

A test for all of them takes its parameter from here and asks the record for the rest; one that is
about an architecture's own encodings names it. What an architecture has no guests for is told
with the reason in `WITHOUT`: a new one that lacks some fails `tests/engine/arch/test_suites.py`.
"""

import platform
import shutil
from typing import Final

import pytest
from sysroot import CHECKOUT

from engine import arch as architectures
from engine.arch.frames import Flow
from engine.session import Session

COMPILERS: Final = {
    "x86_64": "x86_64-linux-gnu-gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
}
"""C compilers as Debian names them; the host's own is `gcc` too."""

WITHOUT: Final = {
    ("ia64", "compiler"): "a compiler for IA-64 is not packaged any more",
    ("ia64", "samples"): "its samples are in assembly, for lack of a compiler",
    ("ia64", "hostile"): "there is no compiler for them",
}
"""(architecture, what it lacks) to why."""

_FOLDERS: Final = {
    "samples": CHECKOUT / "samples" / "bin",
    "hostile": CHECKOUT / "tests" / "data" / "hostile",
}
_SHARED: Final = {"samples": "sort", "hostile": "code"}
"""A program that an architecture with these guests has."""


def has(arch: str, what: str) -> bool:
    """Tell whether an architecture has a compiler, the samples in C, the hostile guests."""
    if what == "compiler":
        return arch in COMPILERS
    return (_FOLDERS[what] / arch / _SHARED[what]).is_file()


EVERY: Final = architectures.names()
COMPILED: Final = tuple(arch for arch in EVERY if has(arch, "compiler"))
"""Those with programs in C: the samples, and what tests compile."""
FIRST_COMPILED: Final = tuple(
    pytest.param(arch, marks=[pytest.mark.slow] if number else [])
    for number, arch in enumerate(COMPILED)
)
"""The same, all but one with the slow tests: for what hardly depends on the architecture."""
HOSTILE: Final = tuple(arch for arch in EVERY if has(arch, "hostile"))
"""Those with the guests of `tests/data/hostile`."""
EMULATED: Final = tuple(arch.name for arch in architectures.records() if arch.core == "unicorn")
"""Those that Unicorn runs."""
JUMPING: Final = tuple(arch.name for arch in architectures.records() if arch.jumps is not None)
"""Those with jump probes."""
FIRST_JUMPING: Final = tuple(
    pytest.param(arch, marks=[pytest.mark.slow] if number else [])
    for number, arch in enumerate(JUMPING)
)
"""The same, all but one with the slow tests."""
ASSEMBLED: Final = tuple(
    arch.name for arch in architectures.records() if arch.engines.keystone is not None
)
"""Those that Keystone assembles."""
MEASURED: Final = tuple(arch.name for arch in architectures.records() if arch.bench is not None)
"""Those with a guest for `bench`."""


SEVEN: Final = {"x86_64": "mov eax, 7; ret", "aarch64": "mov w0, #7; ret"}
"""Code that returns 7, for what Keystone assembles."""

_DEBIAN: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def debian(arch: str) -> str:
    """Debian's name of an architecture, which folders of golden guests have."""
    return _DEBIAN.get(arch, arch)


def compiler(arch: str, plus: bool = False) -> str:
    """The path of a compiler of C, or of C++; skips the test without one."""
    if arch not in COMPILERS:
        pytest.skip(WITHOUT[arch, "compiler"])
    name = "gcc" if platform.machine() == arch else COMPILERS[arch]
    name = name.removesuffix("gcc") + ("g++" if plus else "gcc")
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}")
    return found


def argument(arch: str, number: int = 0) -> str:
    """The register of a function's argument, from 0, as definitions name it: "%di"."""
    return fetched(arch, architectures.by_name(arch).probes.arguments[number])


def pc(arch: str) -> str:
    """The program counter as definitions name it."""
    return fetched(arch, architectures.by_name(arch).roles.pc)


def link(arch: str) -> str:
    """Where a function's return address is at its entry, as definitions name it."""
    roles = architectures.by_name(arch).roles
    return f"+0({fetched(arch, roles.sp)})" if roles.link is None else fetched(arch, roles.link)


def fetched(arch: str, register: str) -> str:
    """A register as definitions name it."""
    names = architectures.by_name(arch).probes.fetch_registers
    return "%" + next(name for name, stands in names.items() if stands == register)


def returns(session: Session, pc: int) -> bool:
    """Tell whether the instruction at an address returns from a function."""
    code = session.code_at(pc)
    insn = session.disassembler.decode(pc, code)[0]
    found = session.arch.unwind.read(insn.raw, pc) if session.arch.unwind is not None else None
    if found is not None:
        return found.flow is Flow.RETURN
    return insn.mnemonic.rpartition(" ")[2].startswith("br.ret")


def calls(session: Session, pc: int) -> bool:
    """Tell whether the instruction at an address calls a function."""
    return session.arch.is_call(session.disassembler.decode(pc, session.code_at(pc))[0])
