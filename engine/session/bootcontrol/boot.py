"""One boot under control: the machine that stands or moves, its trace, its stacks."""

import os
from collections.abc import Callable, Sequence

from engine.arch.plan import Mode
from engine.errors import CommandError
from engine.escaping import escaped
from engine.machine.records import KernelRecords
from engine.machine.stepping import MachineMoment
from engine.machine.toldhits import ToldHits
from engine.session.bootcontrol.script import BootScript
from engine.session.booted.frames import BootFrames
from engine.session.booted.kernel_events import EventCatalog, enabling_words
from engine.session.booted.stacks import BootStacks
from engine.session.booted.tracing import BootTracing
from engine.session.guest.outputs import OutputFiles
from engine.session.headless.bootable import Bootable
from engine.session.headless.booting import Booted
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.debugging import DebuggedMachine
from engine.session.protocol.kernels import BootRequest
from engine.session.protocol.requests import TraceOptions
from engine.session.protocol.scripts import BootScriptRequest


def words_of(
    opened: OpenedKernel,
    request: BootRequest,
    lines: Sequence[str],
    script: BootScript | None,
) -> str:
    """The words that a kernel is told behind the usual ones, to enable those of its own events.

    Args:
        opened: the kernel.
        request: has words of the user's.
        lines: of all definitions.
        script: that is attached; None for none.

    Raises:
        ProbeError: these are too many.
    """
    events = EventCatalog(opened)
    wanted = (*events.of_lines(lines), *events.probed(lines))
    given = request.append if script is None else script.words(request.append)
    return enabling_words(wanted, given, lambda: events.groups)


class ControlledBoot:
    """A boot from its first instruction on.

    Attributes:
        opened: the kernel.
        booted: the machine with the kernel in it.
        machine: moves it.
        tracing: records events.
        stacks: walks the stack of what runs.
        frames: names the frames of that.
        records: structures in the kernel's memory.
        words: that the kernel is told behind the usual ones.
        script: that is attached; None for none.
    """

    def __init__(
        self,
        request: BootRequest,
        parts: Bootable,
        opened: OpenedKernel,
        lines: Sequence[str],
        put: Callable[[bytes], None],
        take: Callable[[bytes], None],
        *,
        past: bool,
        mode: Mode,
        script: BootScriptRequest | None,
    ) -> None:
        """Lay the kernel out.

        Args:
            request: what is booted.
            parts: what the machine is made of.
            opened: the kernel in it.
            lines: of the events that are recorded; the kernel is told to enable its own.
            put: takes what the console writes.
            take: takes rows.
            past: keep moments to go back to.
            mode: strictness of definitions.
            script: that is attached; None for none.

        Raises:
            KprobeTuiError: it cannot be booted.
        """
        self.script = BootScript(opened, script, parts.files) if script is not None else None
        self.words = words_of(opened, request, lines, self.script)
        self._typed, self._keys = os.pipe()
        try:
            self.booted = Booted(parts.with_words(self.words), put, self._typed, repeats=True)
        except BaseException:
            self._close_keys()
            raise
        self.opened = opened
        machine, cpu = self.booted.machine, self.booted.machine.cpu
        self._told = ToldHits(cpu.record)
        cpu.places.was_told = self._told.was_told
        self.machine = DebuggedMachine(machine, self.booted.log, opened, past=past)
        self.tracing = BootTracing(
            *(opened, machine, TraceOptions(output="/dev/null", mode=mode)),
            *(OutputFiles(request.kernel), None),
            files=parts.files,
            enabled=True,
            take=take,
        )
        addresses, modules = self.machine.addresses, self.machine.modules
        task = self.machine.task_address
        self.stacks = BootStacks(opened, cpu, addresses, modules, task)
        self.frames = BootFrames(self.machine, self.stacks, opened)
        self.records = KernelRecords(opened.image, addresses)
        if self.script is not None:
            self.script.attach(machine)

    @property
    def in_program(self) -> bool:
        """True if a program runs, not the kernel."""
        return bool(self.booted.machine.cpu.privilege)

    def need_changeable(self) -> None:
        """Refuse to change what the guest does; raises `CommandError`."""
        if self.booted.recorded is not None:
            raise CommandError("a recorded boot goes as it went: its probes can be changed")
        if self.machine.is_past:
            raise CommandError("the past cannot be changed; go to the present first")

    @property
    def has_run(self) -> bool:
        """True behind the first instruction."""
        return self.machine.newest > MachineMoment(0)

    @property
    def known_until(self) -> int:
        """The time at which a recorded boot ends, where it says so; 0 for any other."""
        recorded = self.booted.recorded
        return recorded.end.nanoseconds if recorded is not None and recorded.end else 0

    @property
    def comms(self) -> dict[int, str]:
        """The names of the tasks that rows are of, by id."""
        return {
            pid: escaped(comm.decode(errors="replace"))
            for pid, comm in self.tracing.tasks.comms.items()
        }

    @property
    def pids(self) -> dict[int, int]:
        """The processes of these tasks."""
        return dict(self.tracing.tasks.pids)

    def histograms(self) -> tuple[str, ...]:
        """The text of each histogram, and of the script."""
        found = tuple(
            b"\n".join(table).decode(errors="backslashreplace")
            for table in self.tracing.histograms()
        )
        return (*found, *self.script.texts()) if self.script is not None else found

    def begins_to_move(self) -> None:
        """Hits in front of here were told: in the past nobody is told of them again."""
        machine = self.machine
        if not machine.is_past:
            self._told.come_to(machine.moment.blocks, machine.pc)

    def type(self, data: bytes) -> None:
        """Type on the console.

        Raises:
            CommandError: a recorded boot has what was typed then.
        """
        if self.booted.recorded is not None:
            raise CommandError("a recorded boot has what was typed when it was recorded")
        if self._keys >= 0:
            os.write(self._keys, data)

    def end_input(self) -> None:
        """Type nothing any more: an idle kernel's time does not wait for the host's then."""
        if self._keys >= 0:
            os.close(self._keys)
            self._keys = -1

    def close(self) -> None:
        """Stop the machine, and give everything back."""
        self.booted.halt()
        self.tracing.discard()
        self._close_keys()

    def _close_keys(self) -> None:
        self.end_input()
        os.close(self._typed)
