"""Guests that run and are recorded, and run again from what was recorded."""

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.history.journal import Journal
from engine.history.livecheckpoints import LiveCheckpoints
from engine.linux.fs.stdio import FeedStream, SinkStream
from engine.session import GuestConfig, Session
from engine.session.guest.past import PastSession, record

_PAGE = 4096
_CHUNK = 1 << 16
_EMPTY = bytes(_PAGE)


@dataclass(frozen=True)
class State:
    """All that a guest's next instructions depend on."""

    clock: int
    thread: int
    registers: tuple[int, ...]
    memory: str


def state_of(session: Session, left_out: Collection[str] = ()) -> State:
    """The state of the thread that runs but for some registers, and of its memory."""
    digest = hashlib.blake2b(digest_size=16)
    memory, ram = session.seen.memory, session.ram
    for mapping in memory.mappings:
        if mapping.reserved or mapping.physical is None:
            continue
        digest.update(repr((mapping[:3], mapping.name, mapping.offset, mapping.shared)).encode())
        for low in range(mapping.start, mapping.end, _CHUNK):
            place = mapping.physical + low - mapping.start
            chunk = ram.read(place, min(_CHUNK, mapping.end - low))
            if not chunk.strip(b"\0"):
                continue
            for at in range(0, len(chunk), _PAGE):
                page = chunk[at : at + _PAGE]
                if page != _EMPTY:
                    original = session.seen.hooks.original(low + at, page)
                    digest.update((low + at).to_bytes(8, "little") + original)
    cpu = session.cpu
    pc = session.arch.roles.pc
    return State(
        cpu.coming(),
        session.machine.tid,
        tuple(
            session.seen.hooks.original_pc(cpu.read_register(register.name))
            if register.name == pc
            else cpu.read_register(register.name)
            for register in session.arch.registers
            if register.name not in left_out
        ),
        digest.hexdigest(),
    )


@dataclass
class Ran:
    """A run that was recorded."""

    session: Session
    journal: Journal
    exit: int
    live: LiveCheckpoints | None = None

    def past(self) -> PastSession:
        """The same run again, before its first instruction."""
        config = self.session.config
        return PastSession(config, self.journal, self.session.ram.size, self.session.opened)


@contextmanager
def recorded(
    path: Path | str,
    *args: str,
    stdin: bytes = b"",
    live: bool = False,
    begins: Callable[[Session], object] = lambda session: None,
    **config: object,
) -> Iterator[Ran]:
    """A guest that has run to its end.

    Args:
        path: the program.
        args: its arguments.
        stdin: what it reads.
        live: it keeps checkpoints meanwhile.
        begins: called before its first instruction.
        config: how it is started.
    """
    config.setdefault("isolated", True)
    sink = SinkStream(lambda data: None)
    session = Session(
        GuestConfig(
            guest=str(path),
            args=args,
            history=True,
            count_blocks=True,
            **config,  # type: ignore[arg-type]
        ),
        stdio=(FeedStream(stdin, ended=True), sink, sink),
    )
    try:
        recording = record(session)
        kept = LiveCheckpoints(session.kernel, recording) if live else None
        begins(session)
        exit_code = session.run().exit_code
        yield Ran(session, recording.journal, exit_code, kept)
    finally:
        session.close()


@contextmanager
def past(ran: Ran) -> Iterator[PastSession]:
    """A recorded run again, before its first instruction."""
    session = ran.past()
    try:
        yield session
    finally:
        session.close()
