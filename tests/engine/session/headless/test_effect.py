"""The probe-effect differ: what it finds, and that it shows the first of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path

import pytest
from compiled import build
from sessionkit import SAMPLES

from engine.errors import CommandError
from engine.image import ElfImage, SymbolTable
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session import GuestConfig, Session
from engine.session.guest.session import Attach
from engine.session.guest.wanted_probes import Wanted
from engine.session.headless.effect import Effect, compared

Handler = Callable[[Kprobe, PtRegs], int | None]

# work() answers with its argument: the handlers below change that, or what it is told to do.
SOURCE = """
    .intel_syntax noprefix
    .text
    .globl _start, work, spin
    .type work, @function
    .type spin, @function
_start: mov edi, 5
    call work
    mov ebx, eax
    mov ecx, 3
    call spin
    cmp ebx, 7
    jne 1f
    mov eax, 39     # getpid
    syscall
1:  mov eax, 1      # write
    mov edi, 1
    lea rsi, text[rip]
    mov edx, 4
    xor ecx, ecx
    syscall
    mov eax, 60     # exit
    xor edi, edi
    cmp ebx, 6
    sete dil
    xor ebx, ebx
    xor ecx, ecx
    xor edx, edx
    xor esi, esi
    cmp ebx, ebx
    syscall
work: mov eax, edi
    ret
    .size work, .-work
spin: dec ecx
    jnz spin
    ret
    .size spin, .-spin
    .data
text: .ascii "abc\\n"
    .globl text, spare
spare: .quad 0
"""

# Makes no system call: only its end and its time can tell.
SILENT = """
    .intel_syntax noprefix
    .text
    .globl _start, spin, other
    .type spin, @function
_start: mov ecx, 3
    call spin
    hlt
other: ud2
spin: dec ecx
    jnz spin
    ret
    .size spin, .-spin
"""


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("effect"), "silent", SILENT, "-nostdlib", "-static")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("effect"), "work", SOURCE, "-nostdlib", "-static")


def address(path: Path, name: str) -> int:
    return SymbolTable(ElfImage.open(str(path))).find_all(name)[0].address


def attach(session: Session) -> AbstractContextManager[None]:
    return nullcontext()


def effect(path: Path | str, name: str, handler: Handler) -> Effect:
    def place(session: Session) -> None:
        probing = session.probes()
        probe = Kprobe(pre_handler=handler)
        probing.place([Wanted(probing.verdicts.places.resolve(name)[0], probe)])

    return compared(GuestConfig(guest=str(path), isolated=True), place, attach)


def stopped_once(when: Callable[[int], bool]) -> Attach:
    """Stops each run for its time as it begins if its number, from 0, is one of those."""
    runs = count()

    def attach(session: Session) -> AbstractContextManager[None]:
        if when(next(runs)):
            session.stop("timeout")
        return nullcontext()

    return attach


def cut(path: Path, number: int) -> Effect:
    attach = stopped_once(lambda run: run == number)
    config = GuestConfig(guest=str(path), isolated=True)
    return compared(config, lambda session: None, attach)


@pytest.mark.parametrize(("number", "whose"), [(0, "the plain run"), (1, "the probed run")])
def test_a_run_cut_by_the_limit_of_time_is_not_compared(
    program: Path, number: int, whose: str
) -> None:
    found = cut(program, number)
    assert (found.cut, found.lines) == (whose, ())


def test_a_call_that_the_limit_of_time_cuts_is_no_difference(program: Path) -> None:
    runs = count()

    def attach(session: Session) -> AbstractContextManager[None]:
        if next(runs) == 1:  # the call that it is in has no result then
            session.hooks.syscall_exit = lambda number, name, result: session.stop("timeout")
        return nullcontext()

    config = GuestConfig(guest=str(program), isolated=True)
    found = compared(config, lambda session: None, attach)
    assert found.probed.calls[0].result is None
    assert (found.cut, found.lines) == ("the probed run", ())


def test_a_difference_before_the_limit_of_time_is_an_effect(program: Path) -> None:
    """The probe has the program run on for ever: it is past the plain run's end when it is cut."""

    def place(session: Session) -> None:
        probing = session.probes()
        probe = Kprobe(pre_handler=lambda probe, regs: endless(session, regs))
        probing.place([Wanted(probing.verdicts.places.resolve("spin")[0], probe)])

    def endless(session: Session, regs: PtRegs) -> None:
        regs["cx"] = 4  # never comes to its end
        if session.cpu.blocks() > 1000:
            session.stop("timeout")

    config = GuestConfig(guest=str(program), isolated=True)
    found = compared(config, place, attach)
    assert found.cut == ""
    assert len(found.lines) == 1
    assert found.lines[0].startswith(f"the plain run ended at time {found.plain.time}, ")


def test_no_effect(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    def look(probe: Kprobe, regs: PtRegs) -> None:
        seen.append(regs["cx"] & 0xFF)

    found = effect(program, "spin", look)
    assert found.lines == ()
    assert (found.probed.points, found.probed.hits, seen) == (1, 3, [3, 2, 1])
    assert found.plain.time == found.probed.time > 0
    assert [call.name for call in found.plain.calls] == ["write", "exit"]
    assert capfd.readouterr().out == "abc\n"  # once


def test_a_register_at_a_system_call(program: Path) -> None:
    def handler(probe: Kprobe, regs: PtRegs) -> None:
        regs["r12"] = 0x77

    found = effect(program, "work", handler)
    assert found.lines[0] == "system call 1 differs"
    assert found.lines[-1] == "registers (plain / probed): r12 0x0 / 0x77"


def test_one_more_system_call(program: Path) -> None:
    def handler(probe: Kprobe, regs: PtRegs) -> None:
        regs["di"] = 7

    found = effect(program, "work", handler)
    assert found.lines[0] == "system call 1 differs"
    assert found.lines[1].startswith("plain:  write(")
    assert found.lines[2].startswith("probed: getpid(")


def test_output(program: Path) -> None:
    def handler(probe: Kprobe, regs: PtRegs) -> None:
        regs.write(address(program, "text"), b"axc\n")

    found = effect(program, "work", handler)
    assert found.lines == (
        "output or input differs: write(1, 'axc\\n') where the plain run did write(1, 'abc\\n')",
    )


def longer() -> Handler:
    """More turns of a loop, which leave nothing behind but time."""
    turns = iter([30])

    def handler(probe: Kprobe, regs: PtRegs) -> None:
        regs["cx"] = next(turns, regs["cx"])

    return handler


def test_the_clock_at_a_system_call(program: Path) -> None:
    found = effect(program, "spin", longer())
    plain, probed = found.plain, found.probed
    assert probed.time == plain.time + 27
    assert found.lines[0] == "system call 1 differs"
    assert f"time {plain.calls[0].time}" in found.lines[1]
    assert f"time {probed.calls[0].time}" in found.lines[2]


def test_the_clock_at_the_end(silent: Path) -> None:
    found = effect(silent, "spin", longer())
    times = found.plain.time, found.probed.time
    assert found.lines == (f"the guest's clock ended at {times[0]} plain, {times[1]} probed",)
    assert times[1] == times[0] + 27


def test_the_exit_code(silent: Path) -> None:
    def handler(probe: Kprobe, regs: PtRegs) -> int:
        regs.ip = address(silent, "other")
        return 1

    found = effect(silent, "spin", handler)
    assert found.lines == ("exit code 139 plain, 132 probed",)


def test_an_exit_code_shows_in_the_registers_of_the_call_before(program: Path) -> None:
    def handler(probe: Kprobe, regs: PtRegs) -> None:
        regs["di"] = 6

    found = effect(program, "work", handler)
    assert found.lines[0] == "system call 1 differs"
    assert "rbx 0x5 / 0x6" in found.lines[-1]
    reports = found.plain.reports, found.probed.reports
    assert [report and report.exit_code for report in reports] == [0, 1]


def test_a_signal(program: Path) -> None:
    """The probed run dies: what it did not do any more is the difference."""

    def handler(probe: Kprobe, regs: PtRegs) -> int:
        regs.ip = 0x10
        return 1

    found = effect(program, "work", handler)
    assert found.lines[0].startswith("the plain run made more system calls: write(0x1, ")
    assert found.probed.reports is not None
    assert found.probed.reports.exit_code == 139


def test_memory_at_the_end(program: Path) -> None:
    def handler(probe: Kprobe, regs: PtRegs) -> None:
        regs.write(address(program, "spare"), b"\x01")

    found = effect(program, "work", handler)
    assert len(found.lines) == 1
    assert found.lines[0].startswith("memory differs in ")
    assert str(program) in found.lines[0]


@pytest.mark.parametrize(
    ("config", "text"),
    [({"clock": "host"}, "--clock host"), ({"shares": (("/tmp", True),)}, "PATH:rw")],
)
def test_runs_that_could_differ_anyway(config: dict[str, object], text: str) -> None:
    guest = GuestConfig(guest=str(SAMPLES / "x86_64" / "sort"), **config)  # type: ignore[arg-type]
    with pytest.raises(CommandError, match=text):
        compared(guest, lambda session: None, attach)
