"""Guests under control in the test's own thread: what they say, and what they would do alone."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import archkit
from msgspec.structs import replace
from runfolder import run_folder
from sysroot import CHECKOUT, locked

from engine.arch.plan import Mode
from engine.session import GuestConfig
from engine.session.control.control import Control
from engine.session.guest.terminal import GuestTerminal
from engine.session.program.opening import OpenedProgram
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.probes import ProbeView
from engine.session.protocol.views import GuestView
from engine.trace.rows import HEAD, Event, EventInfo, decode

SAMPLES = CHECKOUT / "samples" / "bin"
_SOURCES = CHECKOUT / "tests" / "data" / "control"
_FLAGS = "-O1 -g -ffreestanding -fno-stack-protector -fno-pie -nostdlib -static -no-pie -w"

Told = TypeVar("Told")


class Given:
    """A source of commands that a test gives.

    Attributes:
        waiting: gives the next command that has come in, None for none.
        wait: the same, but waits for one; None gives the run up.
    """

    def __init__(
        self,
        waiting: Callable[[], cmd.Command | None] = lambda: None,
        wait: Callable[[], cmd.Command | None] = lambda: None,
    ) -> None:
        self.waiting, self.wait = waiting, wait


def sample(arch: str, name: str) -> str:
    """A shipped sample."""
    return str(SAMPLES / arch / name)


@cache
def moods(arch: str) -> str:
    """`tests/data/control/moods.c`, compiled; skips the test without a compiler."""
    compiler = archkit.compiler(arch)
    program = run_folder("moods") / f"moods.{arch}"
    words = [*_FLAGS.split(), f"-I{CHECKOUT / 'samples'}", "-fasynchronous-unwind-tables"]
    with locked(program):
        if not program.exists():
            source = _SOURCES / "moods.c"
            subprocess.run([compiler, *words, "-o", program, source], check=True)
    return str(program)


class Held:
    """A guest in hand.

    Attributes:
        control: it.
        said: everything that was told, but for views.
    """

    def __init__(
        self,
        guest: str,
        *args: str,
        clock: str = "guest",
        mode: Mode = Mode.STRICT,
        technique: str = "auto",
        returns: str = "auto",
        follow: bool = True,
        history: bool = False,
        opened: OpenedProgram | None = None,
    ) -> None:
        config = GuestConfig(
            guest,
            args,
            clock=clock,
            technique=technique,
            returns=returns,
            follow=follow,
            history=history,
        )
        if opened is not None:
            config = replace(opened.config, args=args, technique=technique, returns=returns)
            opened = replace(opened, config=config)
        self._hold(config, mode, opened)

    @classmethod
    def of(cls, config: GuestConfig) -> "Held":
        """One of any configuration."""
        found = cls.__new__(cls)
        found._hold(config, Mode.STRICT, None)
        return found

    def _hold(self, config: GuestConfig, mode: Mode, opened: OpenedProgram | None) -> None:
        self.said: list[ev.SessionEvent] = []
        self.terminal = GuestTerminal()
        self._out = b""
        self.control = Control(
            config, self._tell, mode=mode, terminal=self.terminal, opened=opened
        )

    def _tell(self, event: ev.SessionEvent) -> None:
        if not isinstance(event, ev.Viewed):
            self.said.append(event)

    def do(self, *commands: cmd.Command) -> GuestView:
        """Carry commands out, none of which may fail."""
        for command in commands:
            failure = self.fail(command)
            assert failure is None, failure
        return self.view

    def fail(self, command: cmd.Command) -> ev.Failed | None:
        """Carry a command out: how it failed."""
        before = len(self.said)
        self.control.loop.execute(command)
        return next((e for e in self.said[before:] if isinstance(e, ev.Failed)), None)

    @property
    def view(self) -> GuestView:
        """How things are."""
        return self.control.view()

    def probe(self, number: int) -> ProbeView:
        """A probe by its id."""
        return next(probe for probe in self.view.probes if probe.row.id == number)

    def all(self, kind: type[Told]) -> list[Told]:
        """What was told of a kind."""
        return [event for event in self.said if isinstance(event, kind)]

    @property
    def _this_run(self) -> list[ev.SessionEvent]:
        begun = max((i for i, e in enumerate(self.said) if isinstance(e, ev.Restarted)), default=0)
        return self.said[begun:]

    @property
    def table(self) -> dict[int, EventInfo]:
        """What kinds of events this run has."""
        return {
            info.id: info
            for event in self._this_run
            if isinstance(event, ev.Declared)
            for info in event.infos
        }

    @property
    def events(self) -> list[Event]:
        """The recorded events of this run."""
        table = self.table
        found = []
        for event in self._this_run:
            if isinstance(event, ev.Rows):
                at = 0
                while at < len(event.data):
                    found.append(decode(table, event.data, at))
                    at += HEAD.unpack_from(event.data, at)[1] * 8
        return found

    @property
    def out(self) -> str:
        """What the guest has written so far."""
        while data := self.terminal.read():
            self._out += data
        return self._out.decode().replace("\r\n", "\n")

    def address(self, symbol: str) -> int:
        """Guest address of a function of the program itself."""
        module = self.control.session.modules.main
        assert module is not None
        found = module.symbols.find(symbol)
        assert found is not None
        return found.address + module.bias

    def registers(self) -> dict[str, int]:
        """All registers now."""
        return {item.name: item.value for item in self.view.registers}


@contextmanager
def held(
    guest: str,
    *args: str,
    clock: str = "guest",
    technique: str = "auto",
    returns: str = "auto",
    follow: bool = True,
    history: bool = False,
    opened: OpenedProgram | None = None,
) -> Iterator[Held]:
    """A loaded guest that is given back at the end."""
    found = Held(
        guest,
        *args,
        clock=clock,
        technique=technique,
        returns=returns,
        follow=follow,
        history=history,
        opened=opened,
    )
    try:
        yield found
    finally:
        found.control.close()
        found.terminal.close()


def script(control: Control, *steps: cmd.Command | Callable[[], cmd.Command | None]) -> None:
    """Answers to a blocked guest, one after the other; then it is given up."""
    queue = list(steps)

    def following() -> cmd.Command | None:
        if not queue:
            return None
        step = queue.pop(0)
        return step() if callable(step) else step

    control.queue.source = Given(control.queue.source.waiting, following)
