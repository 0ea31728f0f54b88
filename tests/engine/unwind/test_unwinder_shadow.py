"""Backtraces of real runs against shadow stacks: another emulator's, and one kept here."""

import json
import random

import archkit
import pytest
from sysroot import CHECKOUT
from unwindkit import Stepper, flow_at, session_of

from engine.arch.frames import Flow
from engine.arch.plan import Mode
from engine.errors import ProbeRejectedError
from engine.guest.modules import Module
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session.inspect.backtrace import Backtraces
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing
from engine.unwind.unwinder import FORMATS, EndReason

DATA = CHECKOUT / "tests" / "data" / "unwind"
SAMPLE = json.loads((DATA / "shadow-sample.json").read_text("utf-8"))
LIBC = json.loads((DATA / "libc-stops.json").read_text("utf-8"))
GUESTS = [
    f"{arch}/unw-{kind}"
    for arch in map(archkit.debian, archkit.COMPILED)
    for kind in ("O0", "O2", "O2dbgframe", "O2fp", "O2strip", "Os")
]
DEPTH = 12
"""Frames that the recorded stacks keep."""


@pytest.mark.parametrize("formats", [FORMATS, ("prologue",)], ids=["all", "prologue"])
@pytest.mark.parametrize("name", SAMPLE)
def test_as_recorded(name: str, formats: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {row["n"]: row for row in SAMPLE[name]}
    stepper = Stepper(session_of(name), formats)
    roles = stepper.session.arch.roles
    initial = stepper.session.cpu.read_register(roles.sp)
    seen = 0

    def visit(now: Stepper) -> None:
        nonlocal seen
        row = wanted.get(now.count)
        if row is None:
            return
        assert now.session.cpu.read_register(roles.pc) == row["pc"]
        found = [(pc, None if cfa is None else cfa - initial) for pc, cfa in now.frames()]
        assert found[:DEPTH] == [(pc, cfa) for pc, _, cfa in row["frames"]], hex(row["pc"])
        seen += 1
        if seen == len(wanted):
            now.stop()

    stepper.run(monkeypatch, visit)
    assert seen == len(wanted)


@pytest.mark.parametrize("known", [True, False], ids=["tables", "bare"])
@pytest.mark.parametrize("name", GUESTS)
def test_any_instruction(name: str, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls and returns, told by the decoder, keep a stack; `bare`: no table, no symbol."""
    if not known:
        monkeypatch.setattr(Module, "symbol_at", lambda self, address: None)
    stepper = Stepper(session_of(name), FORMATS if known else ("prologue",))
    session = stepper.session
    roles, cpu = session.arch.roles, session.cpu
    pushed = 0 if roles.link else 8
    initial = cpu.read_register(roles.sp)
    calls: list[tuple[int, int]] = []  # return address, CFA
    before: list[tuple[Flow, int]] = []  # the last instruction and what follows it
    flows: dict[int, tuple[Flow, int]] = {}
    chosen = random.Random(name)
    checked = 0

    def visit(now: Stepper) -> None:
        nonlocal checked
        pc, sp = cpu.read_registers((roles.pc, roles.sp))
        if before:
            flow, after = before.pop()
            if flow is Flow.CALL:
                calls.append((after, sp + pushed))
            elif flow is Flow.RETURN:
                assert calls.pop()[0] == pc
        if chosen.random() < 0.015:
            wanted, at = [], pc
            for back, cfa in reversed(calls):
                wanted.append((at, cfa))
                at = back
            assert now.frames() == [*wanted, (at, initial)], hex(pc)
            checked += 1
        if pc not in flows:
            flows[pc] = flow_at(session, pc)
        before.append(flows[pc])

    stepper.run(monkeypatch, visit)
    assert checked > 30


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", ["amd64/unw-O2", "arm64/unw-O2fp"])
def test_every_function_has_a_return_probe(name: str, mode: Mode) -> None:
    session = session_of(name)
    manager = session.probes(mode).manager
    tracing = Tracing(session, TraceOptions(output="/dev/null", mode=mode))
    tracing.definitions.on_returns("*")
    initial = session.cpu.read_register(session.arch.roles.sp)
    backtraces = Backtraces(session)
    wanted = {(row["pc"], row["hit"]): row["frames"] for row in SAMPLE[name]}
    hits: dict[int, int] = {}
    caught: list[bool] = []

    def reached(probe: Kprobe, regs: PtRegs) -> None:
        hits[regs.ip] = hits.get(regs.ip, 0) + 1
        frames = wanted.pop((regs.ip, hits[regs.ip]), None)
        if frames is None:
            return
        found = backtraces.take()
        whole = [frame for frame in found.frames if not frame.inlined]
        assert [
            (frame.pc, frame.function, (frame.cfa or 0) - initial) for frame in whole[:DEPTH]
        ] == [tuple(frame) for frame in frames]
        assert found.reason is EndReason.OUTERMOST
        caught.extend(frame.trampoline for frame in whole)

    refused = 0
    for pc in {pc for pc, _ in wanted}:
        try:
            manager.register(Kprobe(addr=pc, pre_handler=reached))
        except ProbeRejectedError:
            refused += 1
    tracing.start()
    assert session.run().exit_code == 155
    tracing.finish()
    session.close()
    assert len(wanted) <= refused <= 1
    assert sum(caught) > len(caught) / 2


@pytest.mark.parametrize(
    ("arch", "args"),
    sorted({(arch, tuple(row["args"])) for arch, rows in LIBC.items() for row in rows}),
)
@pytest.mark.slow
def test_libc_stops(arch: str, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """qsort's callback, a signal's handler, exit, longjmp: as gdb saw them under qemu."""
    rows = [row for row in LIBC[arch] if tuple(row["args"]) == args]
    stepper = Stepper(session_of(f"{arch}/guests-static", *args))
    pc = stepper.session.arch.roles.pc
    places = {row["frames"][0][0] for row in rows}
    left = [[at for at, _ in row["frames"]] for row in rows]

    def visit(now: Stepper) -> None:
        if left and now.session.cpu.read_register(pc) in places:
            found = [at for at, _ in now.frames()]
            if found in left:
                left.remove(found)
        if not left:
            now.stop()

    stepper.run(monkeypatch, visit)
    assert left == []
