"""System calls that are carried out inside the emulator."""

import struct
from collections.abc import Callable

import pytest
from barecpu import CODE, DATA, BareCpu

from engine.cpu import unicorn_cpu
from engine.cpu.base import Stop, StopKind

LOOPS = {  # call; count down; again unless 0; call
    "x86_64": (bytes.fromhex("0f05 ffc9 75fa 0f05"), "rcx", 2, b"\x90"),
    "aarch64": (
        struct.pack("<4I", 0xD4000001, 0xF1000421, 0x54FFFFC1, 0xD4000001),
        "x1",
        4,
        struct.pack("<I", 0xD503201F),
    ),
    "riscv64": (
        struct.pack("<4I", 0x73, 0xFFF58593, 0xFE059CE3, 0x73),
        "a1",
        4,
        struct.pack("<I", 0x13),
    ),
}
"""Code, the register that counts, bytes of a call, an instruction that does nothing."""
TURNS = 6
CALL = Stop(StopKind.SYSCALL)


@pytest.fixture(params=[(arch, True) for arch in LOOPS] + [("aarch64", False)])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], BareCpu]:
    arch, native = request.param
    if not native:
        monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")

    def make() -> BareCpu:
        code, counter, *_ = LOOPS[arch]
        cpu = BareCpu(arch, code)
        cpu.write_register(counter, TURNS)
        cpu.count_blocks(True)
        return cpu

    return make


def size(cpu: BareCpu) -> int:
    return LOOPS[cpu.arch.name][2]


def left_each_time(cpu: BareCpu) -> list[tuple[int, int]]:
    found = []
    for _ in range(TURNS + 1):
        assert cpu.run() == CALL
        found.append((cpu.pc, cpu.blocks()))
    return found


def test_it_is_as_if_the_processor_had_been_left(loop: Callable[[], BareCpu]) -> None:
    cpu = loop()
    seen: list[tuple[int, int]] = []
    stops = 0

    def serve() -> bool:
        seen.append((cpu.pc, cpu.blocks()))
        return len(seen) <= TURNS

    cpu.serve(serve)
    while len(seen) <= TURNS:
        assert cpu.run() == CALL
        stops += 1
        if not seen or seen[-1] != (cpu.pc, cpu.blocks()):
            seen.append((cpu.pc, cpu.blocks()))
    assert seen == left_each_time(loop())
    assert stops == 2  # the first one shows where pc is


def test_a_call_that_is_left_to_the_engine_stops_behind_it(loop: Callable[[], BareCpu]) -> None:
    cpu = loop()
    cpu.serve(lambda: False)
    assert left_each_time(cpu) == left_each_time(loop())


def test_the_program_goes_on_where_it_is_sent(loop: Callable[[], BareCpu]) -> None:
    cpu = loop()
    calls = []

    def serve() -> bool:
        calls.append(cpu.pc)
        if len(calls) == 1:  # the call again, as after a signal
            cpu.write_register(cpu.arch.roles.pc, cpu.pc - size(cpu))
        return len(calls) < 3

    cpu.serve(serve)
    assert cpu.run() == CALL
    assert cpu.run() == CALL
    assert calls == [CODE + size(cpu)] * 3


def test_a_quantum_ends_between_calls(loop: Callable[[], BareCpu]) -> None:
    cpu, other = loop(), loop()
    cpu.serve(lambda: True)
    assert cpu.run(3) == CALL
    assert cpu.run(3).kind is StopKind.QUANTUM
    while other.run(cpu.blocks() - other.blocks()).kind is not StopKind.QUANTUM:
        pass
    assert (other.pc, other.blocks()) == (cpu.pc, cpu.blocks())


def test_without_the_registers_in_place_the_engine_is_left(
    monkeypatch: pytest.MonkeyPatch, loop: Callable[[], BareCpu]
) -> None:
    monkeypatch.setattr("engine.cpu.unicorn_live.find", lambda *arguments: None)
    cpu = loop()
    cpu.serve(lambda: True)
    assert left_each_time(cpu) == left_each_time(loop())


def test_an_error_comes_out_of_the_run(loop: Callable[[], BareCpu]) -> None:
    cpu = loop()
    assert cpu.run() == CALL

    def serve() -> bool:
        raise KeyboardInterrupt

    cpu.serve(serve)
    assert cpu.run() == CALL
    with pytest.raises(KeyboardInterrupt):
        cpu.run()


def test_code_that_a_call_changes_is_seen_at_once(loop: Callable[[], BareCpu]) -> None:
    cpu = loop()
    calls = []

    def serve() -> bool:
        calls.append(cpu.pc)
        if len(calls) == 2:  # what counts down and jumps back is gone
            cpu.patch(CODE + call, nothing * ((len(code) - 2 * call) // len(nothing)))
        return len(calls) < 3

    code, _, call, nothing = LOOPS[cpu.arch.name]
    cpu.serve(serve)
    assert cpu.run() == CALL
    assert cpu.run() == CALL
    assert calls == [CODE + call, CODE + call, CODE + len(code)]


def test_calls_that_change_mappings_do_not_make_each_miss_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flush moves the number of misses at which the emulator stops, from inside, too."""
    misses, turns = 64, 200
    monkeypatch.setattr(unicorn_cpu, "_MISSES", misses)
    # call; mov eax, [rsi]; dec ecx; again unless 0; call
    cpu = BareCpu("x86_64", bytes.fromhex("0f05 8b06 ffc9 75f8 0f05"))
    cpu.write_register("rcx", turns)
    cpu.write_register("rsi", DATA)
    calls = starts = 0
    start = cpu._guard.start

    def serve() -> bool:
        nonlocal calls
        calls += 1
        cpu.flush_tlb()
        return calls < turns

    def counted(pc: int, end: int, count: int) -> int:
        nonlocal starts
        starts += 1
        return start(pc, end, count)

    cpu.serve(serve)
    monkeypatch.setattr(cpu._guard, "start", counted)
    before = cpu.memory.control.fills
    while calls < turns:
        assert cpu.run() == CALL
    fills = cpu.memory.control.fills - before
    assert fills >= turns
    assert starts < 4 + 2 * fills / misses
