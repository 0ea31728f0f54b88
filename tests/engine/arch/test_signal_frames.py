"""Offsets in signal frames, against the C structures of the headers."""

import subprocess
from pathlib import Path

import pytest
from archkit import compiler

from engine.arch.aarch64 import signal_frames as aarch64
from engine.arch.x86_64 import fxsave
from engine.arch.x86_64 import signal_frames as x86_64

_HEADERS = "#define _GNU_SOURCE\n#include <stddef.h>\n#include <signal.h>\n#include <ucontext.h>\n"


def _offsets(arch: str, folder: Path, expressions: dict[str, str]) -> dict[str, int]:
    source = folder / "offsets.c"
    lines = (f"const unsigned long v_{key} = {text};" for key, text in expressions.items())
    source.write_text(_HEADERS + "\n".join(lines))
    try:
        done = subprocess.run(
            [compiler(arch), "-S", "-O1", "-o", "-", source],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no C compiler with headers for {arch}: {error}")
    found, name = {}, ""
    for line in done.stdout.splitlines():
        if line.startswith("v_") and line.endswith(":"):
            name = line[2:-1]
        words = line.split()
        if name and words and words[0] in (".quad", ".xword"):
            found[name] = int(words[1])
            name = ""
        elif name and words and words[0] == ".zero":
            found[name] = 0
            name = ""
    return found


def test_x86_64(tmp_path: Path) -> None:
    found = _offsets(
        "x86_64",
        tmp_path,
        {
            "mcontext": "offsetof(ucontext_t, uc_mcontext)",
            "fpregs": "offsetof(ucontext_t, uc_mcontext.fpregs)",
            "sigmask": "offsetof(ucontext_t, uc_sigmask)",
            "stack": "offsetof(ucontext_t, uc_stack)",
            "rip": "offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP])",
            "eflags": "offsetof(ucontext_t, uc_mcontext.gregs[REG_EFL])",
            "cr2": "offsetof(ucontext_t, uc_mcontext.gregs[REG_CR2])",
            "fx": "sizeof(struct _libc_fpstate)",
        },
    )
    base = x86_64._UCONTEXT
    assert base + found["mcontext"] == x86_64._MCONTEXT
    assert base + found["fpregs"] == x86_64._FPSTATE
    assert base + found["sigmask"] == x86_64._SIGMASK
    assert found["stack"] == 16
    assert found["rip"] - found["mcontext"] == 8 * x86_64._GENERAL.index("rip")
    assert found["eflags"] - found["mcontext"] == 8 * x86_64._GENERAL.index("eflags")
    assert found["cr2"] - found["mcontext"] == 8 * 22
    assert found["fx"] == fxsave.SIZE


def test_aarch64(tmp_path: Path) -> None:
    found = _offsets(
        "aarch64",
        tmp_path,
        {
            "mcontext": "offsetof(ucontext_t, uc_mcontext)",
            "sigmask": "offsetof(ucontext_t, uc_sigmask)",
            "stack": "offsetof(ucontext_t, uc_stack)",
            "sp": "offsetof(ucontext_t, uc_mcontext.sp)",
            "pc": "offsetof(ucontext_t, uc_mcontext.pc)",
            "pstate": "offsetof(ucontext_t, uc_mcontext.pstate)",
            "reserved": "offsetof(ucontext_t, uc_mcontext.__reserved)",
            "size": "sizeof(ucontext_t)",
            "info": "sizeof(siginfo_t)",
            "fpsimd": "sizeof(struct fpsimd_context)",
            "vregs": "offsetof(struct fpsimd_context, vregs)",
        },
    )
    base = aarch64._UCONTEXT
    assert found["info"] == base
    assert base + found["mcontext"] == aarch64._MCONTEXT
    assert base + found["sigmask"] == aarch64._SIGMASK
    assert base + found["stack"] == aarch64._STACK
    assert base + found["reserved"] == aarch64._RESERVED
    assert base + found["size"] == aarch64._SIZE
    assert found["sp"] - found["mcontext"] == 8 * (1 + aarch64._GENERAL.index("sp"))
    assert found["pc"] - found["mcontext"] == 8 * (1 + aarch64._GENERAL.index("pc"))
    assert found["pstate"] - found["mcontext"] == 8 * (1 + aarch64._GENERAL.index("cpsr"))
    assert found["fpsimd"] == aarch64._FPSIMD_SIZE
    assert found["vregs"] == 16
