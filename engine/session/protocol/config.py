"""The guest that a user has asked for."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine import arch
from engine.arch.plan import Mode as Mode
from engine.errors import CommandError
from engine.linux.schedule import parse
from engine.linux.turns import PLAIN as PLAIN
from engine.linux.turns import Recorded
from engine.linux.turns import TurnKind as TurnKind
from engine.linux.turns import turns_of as turns_of
from engine.session.protocol.kernels import BootRequest, KernelChoice

AUTO: Final = "auto"
"""The name of what is usual, of techniques and of what catches returns."""

USUAL_CPU: Final = "v2"
GUEST_CPUS: Final = (USUAL_CPU, "v3")
"""The levels of processors of x86-64 (psABI) that a guest may have; others have the usual one."""

DEFAULT_MEMORY: Final = 1 << 30
_ELF: Final = b"\x7fELF"


class GuestConfig(Struct, frozen=True):
    """A guest and how it is started; paths are the host's unless said otherwise.

    Attributes:
        guest: the ELF file.
        args: its arguments without argv[0]; of a kernel image: calls of its functions.
        argv0: argv[0]; the program's path in the guest, as typed where that is one, if None.
        root: a tree that is the guest's whole file system.
        shares: (path, writable) shown at the same path in the guest.
        isolated: show the guest, its loader and shared libraries only: neither the current
            directory nor the system's program directories.
        host_order: list directories in the order of the host, which another host may not have,
            instead of sorted.
        tty: a terminal or file of the host's that is the guest's standard streams; "" for none.
        env: environment entries "K=V".
        cwd: guest path of the working directory; the host's if None.
        seed: of everything random, the turns of threads included.
        random_seed: of everything random but those turns; `seed` if None.
        turns: the kind of turns that threads take.
        record_schedule: a file to write the schedule to, None for none.
        max_blocks: stop after so many guest blocks.
        memory: bytes of memory the guest may touch.
        cpus: processors that the guest is told of; it runs on one.
        guest_cpu: the kind of them, one of `GUEST_CPUS`.
        clock: "guest" (deterministic) or "host".
        start: the guest's clock when it starts, in nanoseconds since 1970; 2026-01-01 if None.
        technique: of probes, one of `engine.probes.techniques.technique_names()`.
        returns: the catcher of returns, one of `engine.probes.return_catchers.RETURNS`.
        follow: probes are in the guest's new processes and programs, too.
        count_blocks: keep the block clock running even if nothing else needs it.
        kernel: choices for a guest that is a kernel image.
        history: the run can be recorded.
        recording: a file of a recorded run, which is lived through again; None for none.
        core: a core file of a process that ran the guest, to be looked at; None for none.
        printers: a file with functions of the user's that print values; None for none.
        called: the guest is a kernel image even if it could run as a program, as user-mode Linux
            could: its functions are called.
        boot: the guest is a kernel image that is booted as a machine; None for another guest.
    """

    guest: str
    args: tuple[str, ...] = ()
    argv0: str | None = None
    root: str | None = None
    shares: tuple[tuple[str, bool], ...] = ()
    isolated: bool = False
    host_order: bool = False
    tty: str = ""
    env: tuple[str, ...] = ()
    cwd: str | None = None
    seed: int = 0
    random_seed: int | None = None
    turns: TurnKind = PLAIN
    record_schedule: str | None = None
    max_blocks: int | None = None
    memory: int = DEFAULT_MEMORY
    cpus: int = 1
    guest_cpu: str = USUAL_CPU
    clock: str = "guest"
    start: int | None = None
    technique: str = AUTO
    returns: str = AUTO
    follow: bool = True
    count_blocks: bool = False
    kernel: KernelChoice = KernelChoice()
    history: bool = False
    recording: str | None = None
    core: str | None = None
    printers: str | None = None
    called: bool = False
    boot: BootRequest | None = None

    @property
    def is_lived_again(self) -> bool:
        """True if all of it has been already: a recorded run, or a recorded boot."""
        return self.recording is not None or self.boots_again

    @property
    def boots_again(self) -> bool:
        """True if a recorded boot goes again."""
        return self.boot is not None and is_recorded_boot(self.boot.kernel)

    @property
    def randomness(self) -> int:
        """The seed of the guest's random numbers."""
        return self.seed if self.random_seed is None else self.random_seed


def core_config(config: GuestConfig) -> GuestConfig:
    """GUEST CORE: the one argument is a core file, which is opened instead of run.

    GUEST -- CORE passes it to the guest.
    """
    from engine.image.corefile import is_core  # most guests have none

    if len(config.args) == 1 and is_core(config.args[0]):
        return replace(config, args=(), core=config.args[0])
    if len(config.args) == 2 and config.args[0] == "--" and is_core(config.args[1]):
        return replace(config, args=config.args[1:])
    return config


def is_recorded_boot(path: str) -> bool:
    """True if a file begins as a recorded boot does; False where it cannot be read."""
    from engine.history.pieces import is_boot_record  # few commands are given one

    return is_boot_record(path)


def recording_config(config: GuestConfig) -> GuestConfig:
    """The guest of a configuration may be a recording: then that is opened.

    Raises:
        CommandError: there are arguments besides.
    """
    try:
        with open(config.guest, "rb") as file:
            if file.read(len(_ELF)) == _ELF:
                return config
    except OSError:
        return config
    from engine.history.recordfile import is_recording  # most guests are none

    if is_recorded_boot(config.guest):
        raise CommandError(
            f"{config.guest}: a recorded boot: kprobe-tui replay, or --boot as with its kernel"
        )
    if not is_recording(config.guest):
        return config
    if config.args:
        raise CommandError(f"{config.guest}: a recording; it has its own arguments")
    return replace(config, recording=config.guest, history=True)


def recorded_turns(path: str) -> Recorded:
    """The turns of a schedule that a run has written.

    Raises:
        CommandError: the file cannot be read.
        ScheduleError: it is no schedule.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return Recorded(parse(file, path))
    except OSError as error:
        raise CommandError(f"--schedule {path}: {error.strerror}") from error


def architectures() -> tuple[str, ...]:
    """Names of the architectures that a guest may be of, in the order in which to offer them."""
    return arch.names()
