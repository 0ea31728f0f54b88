"""Instructions that the engine carries out itself, against this machine's processor."""

import os
from pathlib import Path

import pytest
from cguest import compiled, emulated, natively

from engine.arch.base import Screening
from engine.arch.machine import Insn
from engine.arch.x86_64 import X86_64


def test_double_shifts_and_far_popping_returns(tmp_path: Path) -> None:
    if os.uname().machine != "x86_64" or os.uname().sysname != "Linux":
        pytest.skip("the oracle is an x86-64 processor")
    program = compiled("shifts", "x86_64")

    want = natively(program, tmp_path)

    assert want.count("\n") > 1700
    assert emulated(program, tmp_path) == want


def test_a_frame_with_bits_that_mxcsr_has_not_is_none(tmp_path: Path) -> None:
    """They would end the engine's own process at the next instruction of SSE."""
    if os.uname().machine != "x86_64" or os.uname().sysname != "Linux":
        pytest.skip("the oracle is an x86-64 processor")
    program = compiled("badmxcsr", "x86_64")

    want = natively(program, tmp_path)

    assert want.startswith("signal 11 code 128 address (nil)\nend\n")
    assert emulated(program, tmp_path) == want


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("f00fabc8", Screening.REFUSE),  # lock bts eax, ecx
        ("48f066490fb3c8", Screening.REFUSE),
        ("f00fbae105", Screening.REFUSE),  # lock bt ecx, 5
        ("f00fbad905", None),  # no bit test
        ("f00fbae905", Screening.REFUSE),  # lock bts ecx, 5
        ("f00fab08", None),  # lock bts [rax], ecx
        ("0fabc8", None),
        ("0fa40500000000 03", Screening.EMULATE),  # shld [rip], eax, 3
        ("0fac0500000000 03", Screening.EMULATE),
        ("0fa50500000000", None),  # by cl
        ("0fa48500000000 03", None),  # shld [rbp], eax, 3
        ("0fa4c003", None),
        ("f00fa40500000000 03", Screening.REFUSE),
        ("f60d00000000 01", Screening.REFUSE),  # test byte [rip], 1 by f6 /1
        ("66f70d00000000 0100", Screening.REFUSE),
        ("f60500000000 01", None),  # f6 /0
        ("f0f618", Screening.EMULATE),  # lock neg byte [rax]
        ("f0f7", None),  # cut off
        ("f608 01", None),  # test byte [rax], 1
        ("8fe97890c1", Screening.REFUSE),  # vprotb, of XOP
        ("8fc8", Screening.REFUSE),
        ("8fc0", None),  # pop rax
        ("8f00", None),
        ("c20080", Screening.EMULATE),
        ("c2ff7f", None),
        ("c2", None),
        ("c3", None),
    ],
)
def test_which_are(code: str, action: Screening | None) -> None:
    found = X86_64.screen((Insn(0x1000, bytes.fromhex(code), "", ""),))

    assert [item.action for item in found] == ([action] if action is not None else [])
