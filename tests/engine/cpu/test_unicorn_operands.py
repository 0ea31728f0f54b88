"""Operands of SSE in memory: alignment and size."""

import capstone
import pytest
from barecpu import CODE, DATA, BareCpu

from engine.arch.base import TrapKind
from engine.cpu import native, unicorn_operands
from engine.cpu.base import StopKind

needs_host_code = pytest.mark.skipif(
    not native.possible(), reason="the check is host code, which is not wanted or not possible"
)
SYSCALL = b"\x0f\x05"


def test_bytes_are_the_instructions_beside_them() -> None:
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    whole = b"".join(
        getattr(unicorn_operands, name) for name in ("LOAD", "STORE", "REFUSE", "KIND")
    )
    decoded = list(engine.disasm_lite(whole, 48))
    assert sum(size for _, size, _, _ in decoded) == len(whole)
    starts = {at for at, _, _, _ in decoded}
    jumps = {int(text, 16) for _, _, name, text in decoded if name[0] in "jc" and "0x" in text[:2]}
    assert len(jumps) > 10
    assert jumps <= starts


def _run(code: str, address: int) -> tuple[StopKind, TrapKind]:
    machine = BareCpu("x86_64")
    machine.write(CODE, bytes.fromhex(code) + SYSCALL)
    machine.write_register("rbx", address)
    stop = machine.run()
    if stop.kind is StopKind.TRAP:
        assert stop.number == 13
        assert machine.read_register("rip") == CODE
    return stop.kind, stop.trap


# As the host's own processor does it; all have [rbx] as their operand.
ALIGNED = {
    "movaps load": "0f2803",
    "movaps store": "0f2903",
    "movapd": "660f2803",
    "movdqa load": "660f6f03",
    "movdqa store": "660f7f03",
    "movntps": "0f2b03",
    "movntdq": "660fe703",
    "movntdqa": "660f382a03",
    "addps": "0f5803",
    "paddd": "660ffe03",
    "cvtpd2pi": "660f2d03",
    "cvtpd2ps": "660f5a03",
    "pshufb": "660f380003",
    "movsldup": "f30f1203",
    "haddps": "f20f7c03",
    "palignr": "660f3a0f0301",
    "aesenc": "660f38dc03",
    "pshuflw": "f20f700301",
}
ANYWHERE = {
    "movups load": "0f1003",
    "movups store": "0f1103",
    "movdqu load": "f30f6f03",
    "movdqu store": "f30f7f03",
    "lddqu": "f20ff003",
    "pcmpistri": "660f3a630301",
    "movsd": "f20f1003",
    "addss": "f30f5803",
    "paddd of MMX": "0ffe03",
    "movq": "f30f7e03",
    "cvtps2pd": "0f5a03",
    "cvtdq2pd": "f30fe603",
    "roundss": "660f3a0a0301",
    "cvtps2pi": "0f2d03",
    "punpcklwd of MMX": "0f6103",
    "pmovsxbw": "660f382003",
    "movddup": "f20f1203",
    "movlps": "0f1203",
}


@needs_host_code
@pytest.mark.parametrize("name", ALIGNED)
def test_an_operand_of_16_bytes_has_to_be_aligned(name: str) -> None:
    assert _run(ALIGNED[name], DATA)[0] is StopKind.SYSCALL
    for offset in (1, 8, 15):
        assert _run(ALIGNED[name], DATA + offset) == (StopKind.TRAP, TrapKind.PRIVILEGED)


@needs_host_code
@pytest.mark.parametrize("name", ANYWHERE)
def test_others_may_be_anywhere(name: str) -> None:
    for offset in (0, 1, 8, 15):
        assert _run(ANYWHERE[name], DATA + offset)[0] is StopKind.SYSCALL


@needs_host_code
@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("cvtps2pd", 8), ("cvtdq2pd", 8), ("roundss", 4), ("movsd", 8)),
        *(("cvtps2pi", 8), ("punpcklwd of MMX", 4), ("paddd of MMX", 8)),
    ],
)
def test_no_more_is_loaded_than_the_operand_has(name: str, size: int) -> None:
    machine = BareCpu("x86_64")
    end = max(region.end for region in machine.regions)
    assert _run(ANYWHERE[name], end - size)[0] is StopKind.SYSCALL
    assert _run(ANYWHERE[name], end - size + 1)[0] is StopKind.FAULT


@needs_host_code
def test_prefixes_do_not_hide_an_instruction() -> None:
    # ds movaps; rex movaps; 67 movaps; 66 f3 movdqu, which is no movdqa
    for code in ("3e0f2803", "440f2803", "670f2803"):
        assert _run(code, DATA + 4)[0] is StopKind.TRAP
    assert _run("66f30f6f03", DATA + 4)[0] is StopKind.SYSCALL


def test_without_host_code_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    assert not unicorn_operands.watch(0, "x86_64")
