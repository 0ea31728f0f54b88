"""The guest that a user has asked for."""

from dataclasses import dataclass
from typing import Final

from engine import arch
from engine.arch.plan import Mode as Mode

DEFAULT_MEMORY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class GuestConfig:
    """A guest and how it is started; paths are the host's unless said otherwise.

    Attributes:
        guest: the ELF file.
        args: its arguments without argv[0].
        argv0: argv[0]; the program's path in the guest, as typed where that is one, if None.
        root: a tree that is the guest's whole file system.
        shares: (path, writable) shown at the same path in the guest.
        isolated: show the guest, its loader and shared libraries only: neither the current
            directory nor the system's program directories.
        env: environment entries "K=V".
        cwd: guest path of the working directory; the host's if None.
        seed: of everything random.
        max_blocks: stop after so many guest blocks.
        memory: bytes of memory the guest may touch.
        clock: "guest" (deterministic) or "host".
        start: the guest's clock when it starts, in nanoseconds since 1970; 2026-01-01 if None.
        technique: of probes, one of `engine.probes.techniques.technique_names()`.
        returns: the catcher of returns, one of `engine.probes.return_catchers.RETURNS`.
        count_blocks: keep the block clock running even if nothing else needs it.
    """

    guest: str
    args: tuple[str, ...] = ()
    argv0: str | None = None
    root: str | None = None
    shares: tuple[tuple[str, bool], ...] = ()
    isolated: bool = False
    env: tuple[str, ...] = ()
    cwd: str | None = None
    seed: int = 0
    max_blocks: int | None = None
    memory: int = DEFAULT_MEMORY
    clock: str = "guest"
    start: int | None = None
    technique: str = "auto"
    returns: str = "auto"
    count_blocks: bool = False


def architectures() -> tuple[str, ...]:
    """Names of the architectures that a guest may be of, in the order in which to offer them."""
    return arch.names()
