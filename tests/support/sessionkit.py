"""Sessions in the test's own process: their output in memory, their trace as text."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sysroot import CHECKOUT

from engine.cpu.base import Stop, StopKind
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Reports, Session
from engine.session.protocol.requests import TraceOptions
from engine.session.tracing.tracing import Tracing

SAMPLES = CHECKOUT / "samples" / "bin"


class Guest:
    """A loaded guest.

    Attributes:
        session: it.
        text: of its trace, once it has run.
    """

    def __init__(self, session: Session, written: list[bytes]) -> None:
        self.session = session
        self._written = written
        self._stream = io.BytesIO()

    def tracing(self, options: TraceOptions | None = None) -> Tracing:
        """A trace that goes to memory unless the options name a file."""
        return Tracing(self.session, options or TraceOptions(), self._stream)

    def run(self, tracing: Tracing | None = None) -> Reports:
        """Run to the end; the remarks are the trace's, then the session's."""
        if tracing is None:
            return self.session.run()
        tracing.start()
        try:
            reports = self.session.run()
        finally:
            remarks = tracing.finish()
        return reports.behind(*remarks)

    @property
    def out(self) -> str:
        """What the guest wrote."""
        return self.output.decode()

    @property
    def output(self) -> bytes:
        """The same as bytes."""
        return b"".join(self._written)

    @property
    def written(self) -> bytes:
        """The whole trace."""
        return self._stream.getvalue()

    @property
    def text(self) -> str:
        """The whole trace."""
        return self.written.decode()

    @property
    def events(self) -> list[str]:
        """The rows of the trace without task, CPU and time."""
        return events(self.text)


def events(text: str) -> list[str]:
    """The rows of an ftrace text without task, CPU and time."""
    return re.findall(r"\] \.{5} +\d+: (.*)", text)


@contextmanager
def loaded(path: Path | str, *args: str, **config: object) -> Iterator[Guest]:
    """A guest that stands before its first instruction; more words are `GuestConfig`'s."""
    written: list[bytes] = []
    sink = SinkStream(written.append)
    config.setdefault("isolated", True)
    session = Session(
        GuestConfig(guest=str(path), args=args, **config),  # type: ignore[arg-type]
        stdio=(FeedStream(b"", ended=True), sink, sink),
    )
    try:
        yield Guest(session, written)
    finally:
        session.close()


def heads(reports: Reports) -> list[str]:
    """The remarks, each as one text."""
    return ["\n".join(remark.lines) for remark in reports.remarks]


def system_call(session: Session, number: int, *arguments: int) -> int:
    """The result of a system call by number as the program gets it; -errno for an error."""
    linux, cpu = session.arch.linux, session.cpu
    cpu.write_register(linux.number, number)
    for register, value in zip(linux.arguments, arguments, strict=False):
        cpu.write_register(register, value)
    session.kernel.take(Stop(StopKind.SYSCALL))
    session.kernel.wait()
    result = cpu.read_register(linux.result)
    if linux.error and cpu.read_register(linux.error):
        return -result
    return result - (1 << 64) if result >> 63 else result
