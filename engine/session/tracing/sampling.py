"""Samples of a guest's clock as events of its trace: every N ticks, what runs, and its callers.

No probe stands anywhere: the processor stops in front of the block that executes in a tick whose
number N divides, whichever thread of whichever process has it. So a sample is a tick of the
thread that runs, and shares of samples are shares of executed blocks.
"""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial

from engine.errors import ProbeError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.session.guest.session import Session
from engine.session.protocol.report import Report
from engine.trace.rows import EventInfo, pack_row
from engine.trace.sample import GROUP, NAME, sample_info
from engine.trace.staging import put_row


class SampleEvents:
    """The samples of a trace; a `KernelEvents`.

    Attributes:
        missed: samples that were not taken, as a debugger in the guest had code executed in
            single steps; the next one counts for them.
    """

    def __init__(self, session: Session) -> None:
        """Nothing is sampled, yet."""
        self._session = session
        self._info: EventInfo | None = None
        self._record: Recorder | None = None
        self._silent = False
        self._apart = self._next = self.missed = 0

    @property
    def infos(self) -> list[EventInfo]:
        """The event, if it is on."""
        return [] if self._info is None else [self._info]

    def choose(
        self, glob: str, number: Callable[[], int], known: Callable[[str], bool]
    ) -> list[EventInfo]:
        """Take samples; the event.

        Args:
            glob: ticks between two of them.
            number: the next free event id.
            known: whether an event of that name is there already.

        Raises:
            ProbeError: it is no such number, or samples are taken already.
        """
        if not (glob.isascii() and glob.isdigit() and int(glob)):
            raise ProbeError(f"{GROUP}/{glob}: not a number of blocks between two samples")
        if known(NAME):
            raise ProbeError(f"{GROUP}/{glob}: every {self._apart} blocks are sampled already")
        self._apart = int(glob)
        self._info = sample_info(number())
        return [self._info]

    def is_mine(self, info: EventInfo) -> bool:
        """True if an event is this one."""
        return info is self._info

    def make(self, info: EventInfo, context: FetchContext) -> Recorder:
        """Compile the recorder of the event."""
        return partial(self._write, info, context)

    def install(self, info: EventInfo, record: Recorder) -> None:
        """Have the event recorded by a function of (thread, period, place)."""
        begins, self._record = self._record is None, record
        if begins:
            kernel = self._session.kernel
            self._next = self._after(self._session.cpu.blocks())
            before = kernel.going
            kernel.going = self._going if before is None else partial(self._both, before)

    def record_only(self, globs: Sequence[str]) -> None:
        """Record samples from now on only if a pattern matches them."""
        self._silent = not any(fnmatchcase(NAME, one) for one in globs)

    def remarks(self) -> list[Report]:
        """The remark at the end about samples that could not be taken."""
        if not self.missed:
            return []
        text = f"{self.missed} samples came late: a debugger had code executed in single steps"
        return [Report((f"{text}; the next ones count for them",))]

    # -- while the guest runs -------------------------------------------------------------

    def _after(self, now: int) -> int:
        """The first tick behind `now` that is sampled."""
        return (now // self._apart + 1) * self._apart

    def _both(self, other: Callable[[], int]) -> int:
        return min(self._going(), other())

    def _going(self) -> int:
        """A thread is about to go on: ticks that it may take before it is asked again."""
        cpu = self._session.cpu
        now = cpu.blocks()
        if now >= self._next:
            if cpu.coming() == now:
                return 0  # in the middle of a block: up to the next one
            missed = (now - self._next) // self._apart
            self.missed += missed
            self._take(1 + missed)
            self._next = self._after(now)
        return self._next - now

    def _take(self, periods: int) -> None:
        thread, record = self._session.machine.current, self._record
        if record is not None and not self._silent:
            pc = self._session.cpu.read_register(self._session.arch.roles.pc)
            record(thread.tid, periods * self._apart, thread.hooks.original_pc(pc))

    @staticmethod
    def _write(
        info: EventInfo, context: FetchContext, thread: int, period: int, place: int
    ) -> None:
        put_row(context.sink, pack_row(info, thread, context.cpu.now(), place, (period,)))
