"""The names of addresses, threads and programs in the rows of a session's trace."""

from engine.arch.plan import Mode
from engine.guest.modules import Location
from engine.probes.kretprobe import Kretprobe
from engine.session.guest.probing import Probing
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import TRAMPOLINE_NAME
from engine.session.tracing.programs import Programs
from engine.trace.formats.base import Names, with_idle


class RowNames:
    """Names what rows have numbers of."""

    def __init__(
        self, session: Session, probing: Probing, programs: Programs, mode: Mode, *, exact: bool
    ) -> None:
        """Take the guest.

        Args:
            session: the guest.
            probing: its probes.
            programs: those that it has run, in which rows are named.
            mode: whose rules hold.
            exact: texts of the guest come out byte for byte.
        """
        self._session = session
        self._probing = probing
        self._programs = programs
        self._mode = mode
        self._exact = exact

    def made(self) -> Names:
        """The names for a format."""
        machine, programs = self._session.machine, self._programs
        comms, pids = machine.comms, machine.pids
        return Names(
            self.symbol,
            with_idle(lambda thread: comms.get(thread, b"")),
            self.returning,
            self._exact,
            lambda thread: pids.get(thread, thread),
            programs.file,
            programs.line,
            self._session.arch.name,
            self._mode is not Mode.KERNEL,
        )

    def symbol(self, address: int) -> str:
        """An address as the kernel's `%pS` prints it, in the program that a row is from."""
        return self._named(self._programs.locate(address))

    def symbol_now(self, address: int) -> str:
        """The same in the program that runs now."""
        return self._named(self._session.seen.modules.locate(address))

    def returning(self, address: int) -> bool:
        """True if a return event is recorded for the function at an address."""
        point = self._probing.manager.points.get(address)
        if point is None:
            return False
        return any(
            isinstance(probe, Kretprobe) and probe.record_return is not None
            for probe in point.probes
        )

    def _named(self, location: Location) -> str:
        address = location.address
        if location.symbol is None:
            start, end = self._probing.manager.returns.trampoline or (0, 0)
            if start <= address < end:
                return f"{TRAMPOLINE_NAME}+{address - start:#x}/{end - start:#x}"
            return f"{address:#x}"
        return f"{location.symbol.name}+{location.offset:#x}/{location.symbol.size:#x}"
