"""Instructions that the engine carries out itself, against this machine's processor."""

import os
from pathlib import Path

import pytest
from barecpu import CODE, DATA, BareCpu
from cguest import compiled, emulated, natively

from engine.arch.base import Screening, TrapKind
from engine.arch.machine import Insn, TrapError
from engine.arch.x86_64 import X86_64
from engine.cpu.base import StopKind


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
        ("f60d00000000 01", Screening.EMULATE),  # test byte [rip], 1 by f6 /1
        ("66f70d00000000 0100", Screening.EMULATE),
        ("f60500000000 01", None),  # f6 /0
        ("f0f618", Screening.EMULATE),  # lock neg byte [rax]
        ("f0f7", None),  # cut off
        ("f608 01", Screening.EMULATE),  # test byte [rax], 1
        ("f6c8 01", Screening.EMULATE),
        ("cf", Screening.EMULATE),  # iretd
        ("66cf", Screening.EMULATE),
        ("48cf", None),
        ("f30f2b03", Screening.REFUSE),  # movntss [rbx], xmm0, of SSE4a
        ("f2440f2b03", Screening.REFUSE),
        ("0f2b03", None),  # movntps
        ("660f2b03", None),
        ("660f78c00102", Screening.REFUSE),  # extrq
        ("f20f79c1", Screening.REFUSE),  # insertq
        ("0f79c1", None),  # vmwrite
        ("660faef0", Screening.REFUSE),  # tpause
        ("f20faef0", Screening.REFUSE),  # umwait
        ("f30faef0", Screening.REFUSE),  # umonitor
        ("f3480faee8", Screening.REFUSE),  # incsspq
        ("f30faec0", None),  # rdfsbase
        ("2e0faef0", None),  # mfence
        ("660fae38", None),  # clflushopt
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


SYSCALL = b"\x0f\x05"


@pytest.mark.parametrize(
    ("code", "flags"),
    [
        ("f6cc80", 0x80),  # test ah, 0x80
        ("40f6cc80", 0x44),  # test spl, 0x80
        ("f7c800000080", 0x84),  # test eax, 0x80000000
        ("48f7c800000080", 0x04),  # which is a number with a sign for rax
        ("66f7c80080", 0x84),
        ("f60b01", 0x00),  # test byte [rbx], 1
        ("f60b03", 0x04),
        ("f60df9ff3e0002", 0x00),  # the same by the distance from rip
    ],
)
def test_test_by_its_second_opcode(code: str, flags: int) -> None:
    """As the host does it: ZF, SF and PF of the result, CF and OF cleared, AF left."""
    raw = bytes.fromhex(code)
    if len(raw) == 7 and raw[1] == 0x0D:
        raw = raw[:2] + (DATA - CODE - 7).to_bytes(4, "little") + raw[6:]
    machine = BareCpu("x86_64", raw + SYSCALL)
    machine.write(DATA, b"\x03")
    for name, value in (("rax", 0x80008000), ("rbx", DATA), ("rsp", DATA + 0x100)):
        machine.write_register(name, value)
    machine.write_register("eflags", 0x202 | 0x801)

    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read_register("eflags") & 0x8D5 == flags


@pytest.mark.parametrize("code", ["cf", "66cf"])
def test_iret_never_enters_another_mode(code: str) -> None:
    """With VM among its flags Unicorn goes to virtual-8086 mode, and never comes back."""
    machine = BareCpu("x86_64", bytes.fromhex(code))
    size = 2 if code == "66cf" else 4
    words = (0x1000, 0, 0x20202, 0, 0)
    mask = (1 << 8 * size) - 1
    machine.write(DATA, b"".join((word & mask).to_bytes(size, "little") for word in words))
    machine.write_register("rsp", DATA)

    stop = machine.run()

    assert (stop.kind, stop.trap, stop.number) == (StopKind.TRAP, TrapKind.PRIVILEGED, 13)
    assert (machine.pc, machine.read_register("rsp")) == (CODE, DATA)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("0f20c8", TrapKind.ILLEGAL), ("0f22c8", TrapKind.ILLEGAL), ("440f23c8", TrapKind.ILLEGAL)],
)
def test_control_registers_that_there_are_not(code: str, kind: TrapKind) -> None:
    """Mov of cr1 and of dr9 is no instruction, where that of others is refused."""
    raw = bytes.fromhex(code)
    with pytest.raises(TrapError) as raised:
        X86_64.emulate_trapped(BareCpu("x86_64", raw), raw, CODE)
    assert X86_64.classify_trap(raised.value.number) is kind
