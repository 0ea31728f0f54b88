"""Boots up to the Nth time that the kernel comes to a place, or to their end, for a backtrace."""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.session.booted.frames import BootFrames
from engine.session.booted.stacks import BootStacks
from engine.session.booted.tasks import BootTasks
from engine.session.headless.bootable import bootable
from engine.session.headless.booting import Booted, BootEnd, MachineEnd
from engine.session.inspect.backtrace import Backtrace
from engine.session.kernel.definition_answers import placed_lines
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.catches import KernelCatches
from engine.session.machine.debugging import DebuggedMachine
from engine.session.protocol.kernels import BootRequest, KernelChoice
from engine.session.protocol.report import Report
from engine.session.protocol.requests import TaskChoice
from engine.session.tracing.tasks import Tasks
from engine.unwind.unwinder import LIMIT

_PLACE: Final = re.compile(r"(?:(0x[0-9a-f]+)|([^+]+?)(?:\+(0x[0-9a-f]+|\d+))?)", re.IGNORECASE)


class BootBacktraceRequest(Struct, frozen=True):
    """A boot, and where its backtrace is taken.

    Attributes:
        boot: what is booted.
        place: SYM[+OFF], 0xADDR or FILE:LINE; "" for where the boot goes wrong.
        hit: at which time.
        limit: of frames.
        tasks: only where one of these runs.
        kernel: where names and lines are found.
        catches: stop at these, of `CATCHES`, besides the place.
    """

    boot: BootRequest
    place: str = ""
    hit: int = 1
    limit: int | None = None
    tasks: TaskChoice = TaskChoice()
    kernel: KernelChoice = KernelChoice()
    catches: tuple[str, ...] = ()


class BootStopped(Struct, frozen=True):
    """The outcome.

    Attributes:
        backtrace: None if the boot has ended before.
        hits: times the place was reached.
        end: how the boot has ended; None where it was stopped at the place.
        task: name and id of the task that runs.
        moment: the blocks and the time, in words.
        remarks: about tasks that were never there.
        caught: what the kernel tells there, in words; "" for nothing.
    """

    backtrace: Backtrace | None
    hits: int
    end: MachineEnd | None
    task: str
    moment: str
    remarks: tuple[Report, ...] = ()
    caught: str = ""


class StoppedBoot:
    """A boot in front of its first instruction that stops at a place.

    Attributes:
        booted: the machine.
    """

    def __init__(
        self, request: BootBacktraceRequest, put: Callable[[bytes], None], stdin: int | None
    ) -> None:
        """Lay the kernel out, and find the place.

        Args:
            request: what is booted, and the place.
            put: takes what the console writes.
            stdin: the descriptor of the console's input; None for none.

        Raises:
            ImageError: the kernel cannot be booted.
            CommandError: there is no such place, or this host boots no machine.
        """
        self._request = request
        self.booted = Booted(bootable(request.boot), put, stdin)
        opened = OpenedKernel(self.booted.kernel, request.kernel)
        machine = self._machine = DebuggedMachine(
            self.booted.machine, self.booted.log, opened, past=False
        )
        stacks = BootStacks(
            *(opened, self.booted.machine.cpu, machine.addresses, machine.modules),
            machine.task_address,
        )
        self._frames = BootFrames(machine, stacks, opened)
        self._tasks = BootTasks(machine.tasks)
        self._choice = Tasks(self._tasks, request.tasks)
        self._catches = KernelCatches(opened, machine)
        self._catches.choose(request.catches)
        places = _places(opened, request.place) if request.place else set()
        if places or request.catches:
            machine.stop_at(places | self._catches.places)

    def run(self) -> BootStopped:
        """Boot up to the place, or to the end."""
        machine, request = self._machine, self._request
        hits = 0
        try:
            while hits < request.hit and machine.go():
                hits += self._is_chosen()
        finally:
            self.booted.flush()
        end, taken = machine.end, None
        plain = not (request.place or request.catches)
        if hits == request.hit or (plain and _is_wrong(end)):
            taken = self._frames.take(LIMIT if request.limit is None else request.limit)
        task = machine.task()
        name = f"{task.comm.decode(errors='backslashreplace')} {task.pid}" if task.address else ""
        remarks = tuple(self._choice.remarks()) if taken is None else ()
        caught = self._catches.caught() if end is None else ""
        return BootStopped(taken, hits, end, name, self.booted.progress, remarks, caught)

    def _is_chosen(self) -> bool:
        chosen = self._choice.chosen
        if chosen is None:
            return True
        self._machine.addresses.forget()
        return chosen(self._tasks.running())


def _is_wrong(end: MachineEnd | None) -> bool:
    """True if something is to be seen where a boot has ended."""
    return end is not None and end.reason not in (BootEnd.OFF, BootEnd.RESET)


def _places(opened: OpenedKernel, text: str) -> set[int]:
    """The addresses that a place means.

    Raises:
        CommandError: it means none.
    """
    found, tables = set(), opened.tables
    for line in placed_lines(opened, f"p {text}"):
        match = _PLACE.fullmatch(line.partition(" ")[2])
        if match is None:
            raise CommandError(f"--at {text}: no place; SYM[+OFF], 0xADDR or FILE:LINE")
        address, symbol, offset = match.groups()
        at = int(address, 16) if address else opened.names.find(symbol)
        if at is None:
            raise CommandError(f"--at {text}: the kernel's image has no {symbol}")
        place = at + int(offset or "0", 0)
        bounds = opened.names.bounds(place)
        is_text = any(low <= place < high for low, high in (*tables.text, *tables.gone))
        if not is_text or bounds is None or (symbol and bounds != opened.names.bounds(at)):
            raise CommandError(f"--at {text}: {place:#x} is not in the kernel's text")
        found.add(place)
    return found
