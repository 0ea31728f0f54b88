"""Instructions that look at the system's tables or go to a segment, against the host."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from barecpu import CODE, DATA, BareCpu
from compiled import build

from engine.arch.x86_64 import X86_64, accesses, i386_calls, system
from engine.cpu.base import StopKind

SOURCE = Path(__file__).parents[3] / "data" / "instructions" / "system.c"
SYSCALL = b"\x0f\x05"
needs_host = pytest.mark.skipif(
    platform.machine() != "x86_64" or " umip " not in Path("/proc/cpuinfo").read_text(),
    reason="the host is no x86-64 with UMIP to ask",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("-static", "-no-pie", "-O1", "-w", "-mno-red-zone")
    return build(tmp_path_factory.mktemp("system"), "system", SOURCE.read_text(), *options)


def _output(*command: str | Path) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [*map(_plain, done.stdout.splitlines())]


def _plain(line: str) -> str:
    """A line without the upper half that smsw of 32 bits leaves: Linux's emulation keeps it, a
    processor that carries the instruction out clears it (a virtual machine's may say UMIP and do
    so)."""
    words = line.split()
    if line.startswith("smsw: "):
        words[2] = words[2][-8:]
    return " ".join(words)


# Not selectors: the limit of one of them tells on which processor the program runs.
@needs_host
def test_a_program_sees_what_it_sees_on_the_host(program: Path) -> None:
    ours = _output(sys.executable, "-m", "tui", "run", program, "1234")
    theirs = _output("taskset", "-c", "0", program, "1234")
    assert len(theirs) > 300
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


@needs_host
@pytest.mark.slow
def test_all_selectors_are_those_of_linux(program: Path) -> None:
    ours = _output(sys.executable, "-m", "tui", "run", program, "0")
    assert ours == _output("taskset", "-c", "0", program, "0")
    assert len(ours) == 17


# As Linux 6.18 with CONFIG_IA32_EMULATION does it.
def test_calls_by_the_old_interrupt(tmp_path: Path) -> None:
    source = SOURCE.with_name("i386_calls.c").read_text()
    program = build(tmp_path, "calls", source, "-static", "-O1", "-w", "-mno-red-zone")
    command = (sys.executable, "-m", "tui", "run", program)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == [
        *("getpid 1", "upper half of the number 1", "written", "write 8", "written"),
        *("write from 64 bits 8", "write from nowhere -14", "close -9", "open 3", "read 0"),
        *("dup2 9", "getuid 1", "no such call -38", "gettid 1"),
        "registers are kept 1122334455667788 1",
    ]
    assert "system call number 5000 of a 32-bit program" in done.stderr


@pytest.mark.parametrize("part", ["13", "4"])
def test_a_replay_does_the_same(program: Path, tmp_path: Path, part: str) -> None:
    recording = tmp_path / "run.krec"
    tool = (sys.executable, "-m", "tui")
    recorded = _output(*tool, "record", "-o", recording, program, part)
    assert _output(*tool, "replay", recording) == recorded


def test_calls_by_the_old_interrupt_have_names_of_the_table() -> None:
    own = set(X86_64.linux.syscalls.values())
    assert set(i386_calls.NAMES.values()) <= own
    assert (i386_calls.NAMES[1], i386_calls.NAMES[252]) == ("exit", "exit_group")


def _run(code: str, **registers: int) -> BareCpu:
    machine = BareCpu("x86_64")
    machine.write(CODE, bytes.fromhex(code) + SYSCALL)
    for name, value in registers.items():
        machine.write_register(name, value)
    assert machine.run().kind is StopKind.SYSCALL
    return machine


# Measured on a processor with UMIP under Linux 6.18.
def test_registers_of_the_system_are_those_that_linux_tells() -> None:
    machine = _run("0f01e0 410f01e4 66410f01e5", rax=-1 & 2**64 - 1, r12=2**64 - 1, r13=2**64 - 1)
    assert machine.read_register("rax") == 0xFFFFFFFF80050033
    assert machine.read_register("r12") == 0xFFFFFFFF80050033
    assert machine.read_register("r13") == 0xFFFFFFFFFFFF0033
    machine = _run("0f0103 0f014b10", rbx=DATA)
    assert machine.read(DATA, 10) == bytes.fromhex("00000000feffffffffff")
    assert machine.read(DATA + 16, 10) == bytes.fromhex("00000000ffffffffffff")


@pytest.mark.parametrize(
    ("selector", "rights", "limit"),
    [
        *((0x33, 0xAFFB00, 0xFFFFFFFF), (0x2B, 0xCFF300, 0xFFFFFFFF), (0x20, 0xCFFB00, 2**32 - 1)),
        *((0x7B, 0x40F500, 0), (0x10, None, None), (0, None, None), (0x37, None, None)),
    ],
)
def test_descriptors_are_those_of_linux(
    selector: int, rights: int | None, limit: int | None
) -> None:
    machine = _run("0f02c1 0f94c2 0f03d9", rax=5, rbx=6, rcx=selector, rdx=0)
    assert machine.read_register("rdx") == (rights is not None)
    assert machine.read_register("rax") == (5 if rights is None else rights)
    assert machine.read_register("rbx") == (6 if limit is None else limit)


def test_a_negation_may_be_locked() -> None:
    machine = _run("f0f71b 9c58", rbx=DATA)
    assert machine.read_register("rax") & 0x8D5 == 0x44
    machine = BareCpu("x86_64", bytes.fromhex("f0f71b 9c58") + SYSCALL)
    machine.write(DATA, (0x80000000).to_bytes(4, "little"))
    machine.write_register("rbx", DATA)
    assert machine.run().kind is StopKind.SYSCALL
    assert machine.read(DATA, 4) == (0x80000000).to_bytes(4, "little")
    assert machine.read_register("rax") & 0x8D5 == 0x885


@pytest.mark.parametrize("number", [0, 5, 6, 13, 14, 31, 32, 255])
def test_a_vector_that_programs_may_not_raise_is_refused(number: int) -> None:
    machine = BareCpu("x86_64", b"\x90\xcd" + bytes((number,)))
    stop = machine.run()
    assert machine.read_register("rip") == CODE + 1
    if number != 6:  # the emulator takes that one for no instruction, and the kernel sees to it
        assert (stop.number, stop.error) == (13, number << 3 | 2)


@pytest.mark.parametrize("number", [3, 4, 0x80])
def test_one_that_they_may_raise_is_behind_its_instruction(number: int) -> None:
    machine = BareCpu("x86_64", b"\x90\xcd" + bytes((number,)))
    assert machine.run().number == number
    assert machine.read_register("rip") == CODE + 3


@pytest.mark.parametrize(
    "code", ["0f01d0", "0f01f8", "0f0010", "0f00d8", "0f0110", "0f0132", "90"]
)
def test_other_instructions_are_left_alone(code: str) -> None:
    assert not system.known(bytes.fromhex(code))


@pytest.mark.parametrize(
    ("code", "rewrites", "byte", "stack"),
    [
        *(("480103", True, False, False), ("480303", False, False, False)),
        *(("483903", False, False, False), ("f0ff03", True, False, False)),
        *(("488703", True, False, False), ("480fab0b", True, False, False)),
        *(("480fa30b", False, False, False), ("8803", False, True, False)),
        *(("0003", True, True, False), ("4889442408", False, False, True)),
        *(("488b4500", False, False, True), ("498b4500", False, False, False)),
        *(("498b0424", False, False, False), ("64488b0424", False, False, False)),
        *(("50", False, False, True), ("c3", False, False, True), ("ff33", False, False, True)),
        *(("ff03", True, False, False), ("f6db", False, False, False)),
    ],
)
def test_accesses_of_an_instruction(code: str, rewrites: bool, byte: bool, stack: bool) -> None:
    raw = bytes.fromhex(code)
    assert accesses.rewrites(raw) is rewrites
    assert accesses.uses_stack(raw) is stack
    if not code.startswith("f6"):
        assert accesses.stores_byte(raw) is byte
