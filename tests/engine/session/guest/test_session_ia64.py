"""IA-64 programs in a session: their start, output, faults, signals, backtraces."""

import gzip
import json
import os
from pathlib import Path

import pytest
from ia64replay import DATA

from engine.arch.ia64 import IA64
from engine.linux.ending import Exit
from engine.linux.fs.attributes import Stat
from engine.linux.fs.layout import pack_stat
from engine.linux.fs.stdio import SinkStream
from engine.linux.pipes import pipe
from engine.session import GuestConfig, Session
from engine.session.inspect.backtrace import Backtraces

GUESTS = DATA / "guests"
SIGNALS = {"SIGILL": 4, "SIGTRAP": 5, "SIGBUS": 7, "SIGFPE": 8, "SIGSEGV": 11}
FAULTS = json.loads(gzip.decompress((DATA / "faults.json.gz").read_bytes()))
EMULATED = ("unaligned_ld8", "unaligned_st2")
"""Linux carries plain unaligned accesses out; the recording's machine faults."""


def session_of(path: Path) -> tuple[Session, bytearray]:
    """A loaded guest, and what it will have written."""
    out = bytearray()
    sink = SinkStream(lambda data: out.extend(data))
    return Session(GuestConfig(os.fspath(path)), (SinkStream(lambda data: None), sink, sink)), out


def run(path: Path) -> tuple[Exit, str]:
    """How a guest ends and what it writes."""
    session, out = session_of(path)
    try:
        session.run()
        end = session.process.exit
        assert end is not None
        return end, out.decode()
    finally:
        session.close()


def test_a_program_starts_as_linux_starts_it() -> None:
    session, _ = session_of(GUESTS / "deep_O2.elf")
    read = session.cpu.read_register
    assert read("ip") == session.image.entry
    assert read("cfm") == 0
    assert read("rsc") == 0xF
    assert read("fpsr") == 0x9804C0270033F
    assert read("bsp") == read("bspstore") == IA64.plan.register_stack[0]
    assert IA64.plan.stack_top - read("bsp") == 1 << 31
    sp = read("r12")
    assert sp % 16 == 0
    words = session.memory.read(sp, 32)
    assert words[:16] == bytes(16)  # scratch space of the first function
    assert int.from_bytes(words[16:24], "little") == 1  # argc
    argument = session.memory.read(int.from_bytes(words[24:32], "little"), 64)
    assert argument.split(b"\0")[0].endswith(b"deep_O2.elf")
    session.close()


@pytest.mark.parametrize("name", ["a_rp", "deep_O2", "tail_O0", "fptr_O3", "fptr_pie"])
def test_guests_print_and_exit_as_recorded(name: str) -> None:
    known = json.loads((DATA / "outputs.json").read_text("utf-8"))[name]
    end, out = run(GUESTS / f"{name}.elf")
    assert (end.code, out) == (known["exit"], known["stdout"])


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_linuxs_signals(name: str, tmp_path: Path) -> None:
    known = FAULTS[name]
    program = tmp_path / name
    program.write_bytes(bytes.fromhex(known["elf"]))
    end, _ = run(program)
    if known.get("signal") is None or name in EMULATED:
        assert (end.code, end.signal) == (42, 0)
        return
    assert end.signal == SIGNALS[known["signal"]]
    assert end.crash is not None
    assert end.crash.pc == int(known["ip"], 16) + known["slot"]


# -- signals -----------------------------------------------------------------------------------


def test_a_handler_may_spoil_all_scratch_registers() -> None:
    """On both stacks: rotation, predicates, a NaT, the register stack, floats come back."""
    end, _ = run(GUESTS / "signals.elf")
    assert (end.code, end.signal) == (0, 0)


@pytest.mark.slow
def test_backtraces_go_through_signal_frames() -> None:
    session, _ = session_of(GUESTS / "signals.elf")
    cpu, kernel = session.cpu, session.kernel
    backtraces = Backtraces(session)
    window = range(IA64.plan.trampoline[0], IA64.plan.trampoline[0] + 0x20)
    interrupted = {f"r{number}": 0x100 + number for number in (*range(32, 42), 47, 51)}
    chains, returning = set(), 0
    while kernel.exit is None:
        ip = cpu.read_register("ip")
        symbol = session.modules.locate(ip).symbol
        if ip in window or (symbol is not None and symbol.name in ("handler", "spoil")):
            found = backtraces.take()
            assert found.end == "the outermost frame has no caller"
            at = next(number for number, frame in enumerate(found.frames) if frame.signal)
            before = found.frames[at + 1]
            assert before.function == "fault"
            assert {name: before.registers[name] for name in interrupted} == interrupted
            assert before.registers["r31"] == 0x200 + 31
            chains.add(tuple(dict.fromkeys(frame.function for frame in found.frames)))
            returning += ip in window
        stop = cpu.step()
        if stop is not None:
            kernel.handle(stop)
    session.close()
    assert returning >= 4
    assert ("spoil", "handler", "", "fault", "_start") in chains
    assert ("handler", "", "fault", "_start") in chains


def test_a_frame_marker_that_is_none_ends_the_program() -> None:
    """rt_sigreturn with a frame of 127 registers."""
    session, _ = session_of(GUESTS / "signals.elf")
    cpu, kernel = session.cpu, session.kernel
    while (stop := cpu.step()) is None or stop.access != "read":
        if stop is not None:
            kernel.handle(stop)
    kernel.handle(stop)
    frame = cpu.read_register("r34")
    session.memory.write(frame + 48, (127).to_bytes(8, "little"))
    kernel.run()
    assert kernel.exit is not None
    assert kernel.exit.signal == 11
    session.close()


# -- conventions -------------------------------------------------------------------------------


def test_the_slot_in_front_of_a_place() -> None:
    before = IA64.linux.syscall_before
    assert before is not None
    base = 0x4000_0000_0000_0100
    assert [before(base + slot) for slot in (1, 2, 16)] == [base, base + 1, base + 2]


def test_struct_stat() -> None:
    stat = Stat(
        dev=1, ino=2, mode=3, nlink=4, uid=5, gid=6, rdev=7, size=8, blksize=9, blocks=10,
        atime=11 * 10**9 + 12, mtime=13 * 10**9 + 14, ctime=15 * 10**9 + 16,
    )  # fmt: skip
    raw = pack_stat(stat, IA64.linux.stat_layout, "little")
    words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw), 8)]
    assert words == [1, 2, 4, 3 | 5 << 32, 6, 7, 8, 11, 12, 13, 14, 15, 16, 9, 10, 0, 0, 0]


def test_pipe_has_its_second_descriptor_in_a_register() -> None:
    session, _ = session_of(GUESTS / "deep_O2.elf")
    first = pipe(session.thread, 0)
    second = session.cpu.read_register("r9")
    assert first != second
    ends = [session.process.files.get(number) for number in (first, second)]
    ends[1].write(b"word")
    assert ends[0].read(8) == b"word"
    session.close()
