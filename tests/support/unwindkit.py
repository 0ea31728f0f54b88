"""Guests run one instruction at a time, with a backtrace wherever a test wants one."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from goldenruns import GUESTS

from engine.arch.frames import Flow
from engine.cpu.base import Stop, StopKind
from engine.linux.ending import Exit
from engine.linux.fs.stdio import SinkStream
from engine.session import GuestConfig, Session
from engine.session.inspect.backtrace import Backtraces
from engine.unwind.unwinder import FORMATS, Unwinder


def guest(name: str) -> Path:
    """The path of ARCH/NAME."""
    path = GUESTS / name
    if not path.exists():
        pytest.skip(f"{name} is not committed")
    return path


def session_of(name: str, *args: str) -> Session:
    """A loaded guest whose output goes nowhere."""
    streams = [SinkStream(lambda data: None) for _ in range(3)]
    config = GuestConfig(os.fspath(guest(name)), args=args)
    return Session(config, (streams[0], streams[1], streams[2]))


def flow_at(session: Session, pc: int) -> tuple[Flow, int]:
    """Where the instruction at an address leads, and the address behind it."""
    assert session.arch.unwind is not None
    insn = session.arch.unwind.read(session.memory.read(pc, session.arch.insn_max), pc)
    assert insn is not None
    return insn.flow, pc + insn.size


class Stepper:
    """Steps a guest to its end.

    Attributes:
        session: it.
        backtraces: of it.
        unwinder: with the formats that were asked for.
        count: instructions executed so far.
    """

    def __init__(self, session: Session, formats: tuple[str, ...] = FORMATS) -> None:
        self.session = session
        self.backtraces = Backtraces(session)
        self.unwinder = Unwinder(self.backtraces.view, formats)
        self.count = 0

    def run(self, monkeypatch: pytest.MonkeyPatch, visit: Callable[["Stepper"], None]) -> None:
        """Call `visit` before every instruction, signals delivered."""
        session = self.session
        cpu = session.cpu

        def step(quantum: int | None = None) -> Stop:
            visit(self)
            self.count += 1
            return cpu.step() or Stop(StopKind.QUANTUM)

        monkeypatch.setattr(cpu, "run", step)
        while session.process.exit is None:
            session.kernel.resume()
        session.close()

    def stop(self) -> None:
        """Let `run` end here."""
        self.session.process.exit = Exit(limit="test")

    def frames(self) -> list[tuple[int, int | None]]:
        """(pc, CFA) of the frames now, innermost first."""
        walk = self.unwinder.walk(self.backtraces.registers())
        return [(frame.pc, frame.cfa) for frame in walk.frames]
