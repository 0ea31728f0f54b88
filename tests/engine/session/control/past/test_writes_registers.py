"""The last writers of a register are those that a run forwards, step by step, has seen."""

import random
import re
from pathlib import Path

import pytest
from compiled import build
from historykit import past, recorded
from sessionkit import SAMPLES

from engine.cpu import native
from engine.errors import CommandError
from engine.history.timeline import Moment
from engine.session.control.past.backwards import Backwards
from engine.session.control.past.writes import spellings
from engine.session.guest.past import PastSession

_CHAIN = 6


def lived(session: PastSession, names: tuple[str, ...], end: int) -> dict[int, list[list[Moment]]]:
    """Of each thread and register the moments in front of what has changed it, by single steps."""
    kernel, timeline = session.kernel, Backwards(session).timeline
    last: dict[int, tuple[Moment, tuple[int, ...]]] = {}
    found: dict[int, list[list[Moment]]] = {}
    while not timeline.ended and timeline.now().clock <= end:
        now, tid = timeline.now(), session.machine.current.tid
        values = session.cpu.read_registers(names)
        changes = found.setdefault(tid, [[] for _ in names])
        if tid in last:
            for number, value in enumerate(values):
                if value != last[tid][1][number]:
                    changes[number].append(last[tid][0])
        last[tid] = now, values
        kernel.step()
    return found


def chain(backwards: Backwards, name: str, tid: int) -> list[Moment]:
    """The writes of a register before now, the newest first."""
    found: list[Moment] = []
    while len(found) < _CHAIN:
        try:
            backwards.last_register_write(name, tid, None)
        except CommandError:
            break
        found.append(backwards.timeline.now())
    return found


def says_so(session: PastSession, register: str, pc: int) -> bool:
    """True if the text of an instruction leaves room for a write of a register."""
    insn = session.disassembler.decode(pc, session.code_at(pc))[0]
    arch = session.arch
    record = next(one for one in arch.registers if one.name == register)
    if insn.mnemonic in ("syscall", "svc", "ecall", "break.m"):
        return register == arch.linux.result
    if register == arch.roles.flags:
        return (
            re.match(r"add|sub|and|or|xor|cmp|test|sh|imul|mul|neg|inc|dec", insn.text) is not None
        )
    if insn.mnemonic in ("push", "pop", "call", "ret") and register == arch.roles.sp:
        return True
    if insn.mnemonic in ("mul", "div", "imul", "idiv", "cdqe", "stosb", "rep stosb"):
        return register in ("rax", "rdx", "rdi", "rcx")
    if insn.mnemonic in ("bl", "jal", "jalr", "c.jalr"):
        return register in ("x30", "ra")
    words = set(re.findall(r"\w+", insn.operands))
    return not words.isdisjoint(spellings(arch, record))


@pytest.mark.parametrize(
    ("arch", "name", "registers", "times"),
    [
        ("x86_64", "race", ("rax", "rsp", "eflags"), 1),
        pytest.param(
            *("x86_64", "race", ("rax", "rbx", "rdi", "r11", "rsp", "eflags", "xmm3"), 4),
            marks=pytest.mark.slow,
        ),
        pytest.param("x86_64", "words", ("rax", "rcx", "r12"), 2, marks=pytest.mark.slow),
        pytest.param(
            "aarch64", "race", ("x0", "x8", "x19", "x30", "sp", "cpsr"), 2, marks=pytest.mark.slow
        ),
        pytest.param("riscv64", "race", ("a0", "s0", "ra"), 2, marks=pytest.mark.slow),
        pytest.param("ia64", "recursion", ("r8", "r32", "r12"), 2, marks=pytest.mark.slow),
    ],
)
def test_last_writes(arch: str, name: str, registers: tuple[str, ...], times: int) -> None:
    """Each change is a write; each other write is an instruction that names the register."""
    choose = random.Random(11)
    with recorded(SAMPLES / arch / name) as ran:
        with past(ran) as session:
            wanted = lived(session, registers, 1 << 40)
            end = session.cpu.blocks()
        with past(ran) as session:
            backwards = Backwards(session)
            timeline = backwards.timeline
            for clock in sorted(choose.sample(range(end // 4, end), times)):
                timeline.seek_clock(clock)
                begun, tid = timeline.now(), session.machine.current.tid
                for number, register in enumerate(registers):
                    timeline.seek(begun)
                    got = chain(backwards, register, tid)
                    assert got == sorted(set(got), reverse=True)
                    changes = [one for one in wanted[tid][number] if one < begun]
                    if len(got) == _CHAIN:
                        changes = [one for one in changes if one >= got[-1]]
                    assert set(changes) <= set(got), (register, begun)
                    for moment in set(got) - set(changes):
                        timeline.seek(moment)
                        assert session.machine.current.tid == tid
                        assert says_so(session, register, moment.pc), (register, moment)


def test_what_the_kernel_writes() -> None:
    """The result of a call is the call's, and said to be."""
    guest = SAMPLES / "x86_64" / "lines"
    with recorded(guest, "foo", stdin=b"one foo\n") as ran, past(ran) as session:
        backwards = Backwards(session)
        timeline = backwards.timeline
        timeline.end()
        read = next(
            entry for entry in ran.journal if session.code_at(entry.pc - 2)[:2] == b"\x0f\x05"
        )
        timeline.start()
        while timeline.now().pc != read.pc:
            session.kernel.step()
        said = backwards.last_register_write("rax", 1000, None)
        assert said.startswith("read(0, ")
        assert timeline.now().pc == read.pc - 2


def test_a_register_of_a_caller() -> None:
    """It is meant as the call began that the frame has made."""
    with recorded(SAMPLES / "aarch64" / "structs") as ran, past(ran) as session:
        backwards = Backwards(session)
        timeline, kernel = backwards.timeline, session.kernel
        entry = session.probes().where("deposit")
        while timeline.now().pc != entry:
            kernel.step()
        begun, cfa = timeline.now(), session.cpu.read_register("sp")
        wanted = backwards.last_register_write("x0", 1000, None), timeline.now()
        timeline.seek(begun)
        for _ in range(3):
            kernel.step()
        deep = timeline.now()
        assert backwards.last_register_write("x0", 1000, (deep.pc, cfa)) == wanted[0]
        assert timeline.now() == wanted[1]


@pytest.mark.skipif(not native.lends(), reason="the host has no AVX2 to lend")
def test_upper_halves_of_avx(tmp_path: Path) -> None:
    """What writes the lower half clears the upper one if it has a VEX prefix, else not."""
    source = (Path(__file__).parents[4] / "data" / "avx" / "copies.S").read_text()
    program = build(tmp_path, "copies", source, "-nostdlib", "-static")
    with recorded(program) as ran, past(ran) as session:
        backwards = Backwards(session)
        writers = {}
        for name in ("ymm1h", "xmm1", "ymm2h", "xmm2"):
            backwards.timeline.end()
            backwards.last_register_write(name, 1000, None)
            pc = backwards.timeline.now().pc
            insn = session.disassembler.decode(pc, session.code_at(pc))[0]
            writers[name] = insn.mnemonic
        assert writers == {"ymm1h": "vpxor", "xmm1": "vpxor", "ymm2h": "vmovaps", "xmm2": "addps"}


def test_no_register() -> None:
    with recorded(SAMPLES / "x86_64" / "structs") as ran, past(ran) as session:
        backwards = Backwards(session)
        backwards.timeline.seek_clock(3)
        now = backwards.timeline.now()
        with pytest.raises(CommandError, match="nothing has written to xmm15 since thread 1000"):
            backwards.last_register_write("xmm15", 1000, None)
        assert backwards.timeline.now() == now
        backwards.timeline.end()
        with pytest.raises(CommandError, match="thread 1001 has ended"):
            backwards.last_register_write("rax", 1001, None)
        with pytest.raises(CommandError, match="nothing has written to xmm15"):
            backwards.last_register_write("xmm15", 1000, None)
        assert backwards.timeline.ended
        assert backwards.last_register_write("rbx", 1000, None) == ""
        assert session.code_at(backwards.timeline.now().pc)[:2] == b"\x89\xfb"  # mov ebx, edi
