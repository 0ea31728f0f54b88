"""IA-64 guests with return probes on their functions, whichever way returns are caught."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ia64replay import DATA
from sysroot import CHECKOUT

from engine.arch.plan import Mode
from engine.linux.ending import Exit
from engine.linux.fs.stdio import SinkStream
from engine.probes.kretprobe import Kretprobe
from engine.probes.manager import ProbeManager
from engine.probes.return_catchers import CATCHERS
from engine.session import GuestConfig, Session
from engine.session.guest.probing import Probing

WAYS = tuple(kind.name for kind in CATCHERS)
GUESTS = DATA / "guests"
SAMPLES = CHECKOUT / "samples" / "bin" / "ia64"
RETURNS = GUESTS / "returns.elf"
SET_JUMP = "set_jump"
"""A function of it whose caller's return address is kept: it does not survive trampolines."""


@dataclass
class Guest:
    """A loaded guest.

    Attributes:
        session: it.
        out: what it has written.
        probes: by function.
        rows: (function, address returned to, r8) of each return that was caught.
    """

    session: Session
    out: bytearray
    probes: dict[str, Kretprobe] = field(default_factory=dict)
    rows: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def probing(self) -> Probing:
        assert self.session.probing is not None
        return self.session.probing

    @property
    def manager(self) -> ProbeManager:
        return self.probing.manager

    def functions(self) -> dict[str, int]:
        """Address of each function that takes a probe."""
        main = self.session.modules.main
        assert main is not None
        return {
            placed.place.symbol or "": placed.place.link + main.bias
            for placed in self.probing.verdicts.of_functions("*")
            if placed.judgement.ok
        }

    def hook(self, names: Iterable[str], maxactive: int = 0) -> None:
        """Return probes on functions."""
        where = self.functions()
        for name in names:
            probe = self.probes[name] = Kretprobe(addr=where[name], name=name, maxactive=maxactive)
            probe.record_return = self._note(name)
        self.manager.register_all(list(self.probes.values()))

    def _note(self, name: str) -> Callable[..., None]:
        read = self.session.cpu.read_register

        def record(thread: int, ret_addr: int, entry: tuple[int, ...] = ()) -> None:
            self.rows.append((name, ret_addr, read("r8")))

        return record

    def hook_all(self, *but: str) -> None:
        """Return probes on all functions but some."""
        self.hook([name for name in self.functions() if name not in but])

    def run(self) -> Exit:
        self.session.run()
        end = self.session.process.exit
        assert end is not None
        return end

    def registers(self) -> dict[str, int]:
        cpu = self.session.cpu
        return {r.name: cpu.read_register(r.name) for r in self.session.arch.registers}


@contextmanager
def guest(path: Path, way: str = "auto", mode: Mode = Mode.STRICT) -> Iterator[Guest]:
    """A loaded guest without probes, its clock running."""
    out = bytearray()
    sink = SinkStream(lambda data: out.extend(data))
    streams = (SinkStream(lambda data: None), sink, sink)
    session = Session(
        GuestConfig(os.fspath(path), env=(), count_blocks=True, returns=way), streams
    )
    try:
        session.probes(mode)
        yield Guest(session, out)
    finally:
        session.close()
