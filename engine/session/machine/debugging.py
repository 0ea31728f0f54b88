"""A booted machine in the hands of a debugger: it stands, moves to and fro, and is looked at."""

from collections.abc import Callable, Collection
from contextlib import suppress

from engine.cpu.unicorn_watches import DataAccess, DataRange
from engine.errors import CommandError, GuestFaultError
from engine.insn.disasm import Disassembler
from engine.machine.addresses import KernelAddresses
from engine.machine.consolelog import ConsoleLog
from engine.machine.currenttask import CurrentTask, TaskReader, task_members
from engine.machine.kernelmodules import ListedModules, ModuleReader, module_members
from engine.machine.machine import BareMachine, MachineEnd
from engine.machine.stepping import MachineMoment, SteppedMachine
from engine.session.kernel.opened import OpenedKernel
from engine.session.machine.past import MachinePast


class DebuggedMachine:
    """A machine that has not run, and what moves it.

    `interrupt` may be called from any thread, everything else from one.

    Attributes:
        addresses: its memory as what runs sees it.
        tasks: reads the task that runs; `addresses` must not know of old page tables.
        modules: of its kernel; None where the image does not tell where they are.
        why_no_past: why there is no way back; "" where there is one.
    """

    def __init__(
        self, machine: BareMachine, console: ConsoleLog, opened: OpenedKernel, *, past: bool
    ) -> None:
        """Stand in front of the first instruction.

        Args:
            machine: the machine.
            console: its console.
            opened: the kernel in it.
            past: keep what is needed to go back.
        """
        self._machine, self._cpu = machine, machine.cpu
        self.addresses = KernelAddresses(machine.cpu)
        self._instructions = Disassembler(opened.arch)
        self._stepped = SteppedMachine(machine, self._count)
        self.tasks = TaskReader(machine.cpu, self.addresses, task_members(opened.image))
        members = module_members(opened.image)
        self.modules: ListedModules | None = None
        if members is not None:
            self.modules = ListedModules(ModuleReader(self.addresses, members))
        self._past: MachinePast | None = None
        self.why_no_past = "nothing is kept to go back with"
        if past:
            self._past, self.why_no_past = MachinePast(self._stepped, console), ""

    @property
    def end(self) -> MachineEnd | None:
        """The end of the boot; None while it goes on."""
        return self._stepped.end

    @property
    def moment(self) -> MachineMoment:
        """The moment at which the machine stands."""
        return self._stepped.moment

    @property
    def nanoseconds(self) -> int:
        """The machine's time."""
        return self._machine.clock.now

    @property
    def pc(self) -> int:
        """The address of the instruction that comes next."""
        return self._cpu["rip"]

    @property
    def stopped_at(self) -> bool:
        """True if the machine stands at a place where it was to stop."""
        return self._stepped.stopped_at

    @property
    def is_past(self) -> bool:
        """True where the machine has been further already."""
        return self._past is not None and self.moment < self._past.newest

    @property
    def newest(self) -> MachineMoment:
        """The latest moment that the machine has come to."""
        return self.moment if self._past is None else max(self.moment, self._past.newest)

    @property
    def time_of_newest(self) -> int:
        """The machine's time at the latest moment that it has come to, in nanoseconds."""
        return self.nanoseconds if self._past is None else self._past.newest_time

    @property
    def oldest(self) -> MachineMoment:
        """The first moment that there is a way back to."""
        return self.moment if self._past is None else self._past.oldest

    def task(self) -> CurrentTask:
        """The task that runs."""
        self.addresses.forget()
        return self.tasks.now()

    def task_address(self) -> int:
        """The address of the task that runs, 0 where that is not known."""
        return self.tasks.address()

    # -- motions ----------------------------------------------------------------------------

    def stop_at(self, places: set[int]) -> None:
        """Stop in front of these instructions from now on, and of no others.

        Raises:
            CommandError: there were too many in the machine's life.
        """
        try:
            self._stepped.stop_at(places)
        except ValueError as error:
            raise CommandError(str(error)) from None

    def watch(self, ranges: Collection[DataRange]) -> None:
        """Stop at accesses to these data from now on, and to no others.

        The addresses are those that instructions use, whatever is mapped there at the time. A
        motion stops behind the instruction; backwards it stops in front of it.

        Raises:
            CommandError: these are too many, or no data can be watched here.
        """
        try:
            self._stepped.watch(ranges)
        except ValueError as error:
            raise CommandError(str(error)) from None

    @property
    def accessed(self) -> DataAccess | None:
        """The access to watched data at which the last motion has stopped; None elsewhere."""
        return self._stepped.accessed

    def interrupt(self) -> None:
        """Stop a machine that moves, or the one that moves next, soon; from any thread."""
        self._machine.interrupt()

    def go(self) -> bool:
        """Run on; True at a place, or behind an access, where the machine was to stop."""
        try:
            return self._stepped.go() if self._past is None else self._past.go()
        except ValueError as error:
            self._give_up(str(error))
            return False

    def step(self) -> None:
        """Execute one instruction; an interrupt that is due is delivered instead."""
        if self._past is None:
            self._stepped.step()
        else:
            self._past.step()

    def step_back(self) -> bool:
        """Go back by one instruction; False at the beginning.

        Raises:
            CommandError: there is no way back.
        """
        return self._kept().step_back()

    def go_back(self) -> bool:
        """Go back to the last place or access where the machine was to stop; False for none.

        Raises:
            CommandError: there is no way back.
        """
        return self._kept().go_back()

    def seek(self, moment: MachineMoment) -> None:
        """Go to a moment that the machine has come to.

        Raises:
            CommandError: it has not, or there is no way back.
        """
        past = self._kept()
        if not past.oldest <= moment <= past.newest:
            raise CommandError(
                f"block {moment.blocks} is not between {past.oldest.blocks} and"
                f" {past.newest.blocks}, where the machine has been"
            )
        past.seek(moment)

    def run_to(self, moment: MachineMoment, goes_on: Callable[[], bool]) -> None:
        """Run on to a moment that may be a new one, whatever stops there are.

        Args:
            moment: the moment; or the end of the boot.
            goes_on: asked now and then; False ends the run.

        Raises:
            CommandError: nothing of the past is kept.
        """
        self._kept().run_to(moment, goes_on)

    def run_to_time(self, time: int, goes_on: Callable[[], bool]) -> None:
        """Run on to a time that may be a new one, in nanoseconds; see `run_to`."""
        self._kept().run_to_time(time, goes_on)

    def seek_time(self, time: int) -> None:
        """Go to the block in which a time comes, or to the newest moment; in nanoseconds.

        Raises:
            CommandError: there is no way back.
        """
        self._kept().seek_time(time)

    def _kept(self) -> MachinePast:
        if self._past is not None and not self._past.whole:
            self._give_up("more was typed than is kept")
        if self._past is None:
            raise CommandError(self.why_no_past)
        return self._past

    def _give_up(self, why: str) -> None:
        """Keep no past any more."""
        self._past, self.why_no_past = None, f"there is no way back any more: {why}"

    def _count(self, start: int, end: int) -> int:
        """Instructions between two addresses of a block."""
        self.addresses.forget()
        count = 0
        while start < end:
            decoded = self._instructions.decode(start, self.addresses.read(start, end - start))
            if not decoded:
                break
            for each in decoded:
                start += each.size
                count += 1
        return count

    # -- looking and changing ---------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Memory as what runs sees it, up to the first page that is not there."""
        self.addresses.forget()
        found = b""
        with suppress(GuestFaultError):
            while len(found) < size:
                _, left = self.addresses.physical(address + len(found))
                found += self.addresses.read(address + len(found), min(left, size - len(found)))
        return found

    def write(self, address: int, data: bytes) -> None:
        """Change memory; what was recorded ends here.

        Raises:
            GuestFaultError: not all of it is there; none is changed then.
        """
        self.addresses.forget()
        pieces, at = [], 0
        while at < len(data):
            place, left = self.addresses.physical(address + at)
            pieces.append((place, data[at : at + left]))
            at += left

        def store() -> None:
            for piece in pieces:
                self._cpu.store(*piece)

        self._change(store)

    def register(self, name: str) -> int:
        """A register; 0 where the emulator has none of the name."""
        try:
            return self._cpu.register(name)
        except KeyError:
            return 0

    def has_register(self, name: str) -> bool:
        """True if the emulator has a register of the name."""
        try:
            self._cpu.register(name)
        except KeyError:
            return False
        return True

    def set_register(self, name: str, value: int) -> None:
        """Change a register; what was recorded ends here.

        Raises:
            CommandError: it cannot be changed.
        """
        try:
            self._change(lambda: self._cpu.set_register(name, value))
        except KeyError:
            raise CommandError(f"{name} of a machine cannot be changed") from None

    def _change(self, change: Callable[[], object]) -> None:
        before = self.pc
        change()
        if self.pc != before or not self.moment.steps:
            self._stepped.moved()
        if self._past is not None:
            try:
                self._past.changed()
            except ValueError as error:
                self._give_up(str(error))
