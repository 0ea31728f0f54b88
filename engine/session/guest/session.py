"""A guest from its start to its end: loaded, probed, run, reported on."""

import os
import select
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.cpu.base import Borrows
from engine.errors import TIMED_OUT, CommandError, CutOff, GuestFaultError
from engine.linux import signals as sig
from engine.linux.ending import Exit
from engine.linux.fs.stdio import FeedStream, SinkStream, restore_terminals
from engine.linux.fs.vfs import OpenFile
from engine.linux.machine import Machine
from engine.linux.space import AddressSpace
from engine.linux.turns import PLAIN, Replay
from engine.session.guest.loading import LoadedGuest
from engine.session.guest.outputs import OutputFile, OutputFiles
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports

if TYPE_CHECKING:
    from engine.language.user_printers import UserPrinters
    from engine.session.guest.called_frames import CalledFrame
    from engine.session.guest.probing import Probing
    from engine.session.guest.schedule_file import ScheduleFile
    from engine.session.guest.watchpoints import Watchpoints

_QUIET: Final = frozenset({sig.SIGINT, sig.SIGTERM, sig.SIGPIPE, sig.SIGHUP, sig.SIGQUIT})
_SHOWN: Final = 10
ENOUGH: Final = 20_000_000
"""Guest blocks that a second guest may take to its program's entry."""


class Figures(Struct, frozen=True):
    """The engine's own figures of a run.

    Attributes:
        system_calls: made by the guest.
        blocks: counted by its clock.
        fills: of the translation look-aside buffer.
        touched: bytes of memory.
        lent: instructions that the host has executed for the guest (AVX, FMA, BMI).
    """

    system_calls: int
    blocks: int
    fills: int
    touched: int
    lent: int


class Session(LoadedGuest):
    """A guest from its start to its end.

    `interrupt`, `attend`, `stop`, `end_by`, `progress` and `abandon` may be called from any
    thread, everything else from one.

    Attributes:
        probing: its probes; None as long as nobody has asked for them.
        printers: functions of the user's that print values; None for none.
        remarks: for the report.
        at_end: called when it has run.
        end: how it has ended; None before.
        outputs: files of the host's that the run writes.
        lent: give back what was opened for this run alone; called when it is closed.
        standstill: says more of a guest in which all threads wait for each other.
        tasks: says where the tasks of a guest are that is a kernel.
        trace: the backtrace of the thread that runs, in lines; none where nobody takes any.
        calls: functions that a debugger has called in the program, for backtraces over them.
    """

    def __init__(
        self,
        config: GuestConfig,
        stdio: tuple[OpenFile | None, ...] | None = None,
        opened: OpenedProgram | None = None,
    ) -> None:
        """Load the program; see `LoadedGuest`."""
        super().__init__(config, stdio, opened)
        self.probing: Probing | None = None
        self.printers: UserPrinters | None = None
        if config.printers is not None:
            from engine.language import user_printers  # few runs have any

            self.printers = user_printers.UserPrinters(config.printers)
        self._watchpoints: Watchpoints | None = None
        self.remarks: list[Report] = []
        self.at_end: list[Callable[[], object]] = []
        self.end: Exit | None = None
        self.tasks: Callable[[], Report | None] = lambda: None
        self.standstill: Callable[[], Report] = lambda: Report(
            ("stopped: deadlock: every thread waits for another one, and nothing can wake any",)
        )
        self.trace: Callable[[], Iterable[str]] = lambda: ()
        self.calls: list[CalledFrame] = []
        self._written = [0, 0]
        self._running = False
        self.outputs = OutputFiles(self.opened.paths.host)
        self.lent: list[Callable[[], object]] = []
        self._schedule: ScheduleFile | None = None
        path = config.record_schedule
        self._schedule_target: OutputFile | None = None
        if path is not None:
            from engine.session.guest.schedule_file import OPTION  # few runs write one

            self._schedule_target = self.outputs.add(OPTION, path)
        if isinstance(self.turns, Replay):
            self.at_end.append(self._rest_of_schedule)

    def probes(self, mode: Mode = Mode.STRICT) -> "Probing":
        """The probes of this guest; the first call, before it runs, says how strictly."""
        if self.probing is None:
            from engine.session.guest.probing import Probing  # a run without probes has no use

            self.probing = Probing(self, mode)
            self._serve(self.probing)
            if self.kernel_stacks is not None:
                self.modules.copies = self.user_files
                from engine.session.guest.kernel_tasks import KernelTasks  # few are kernels

                KernelTasks(self, self.kernel_stacks, self.probing)
        return self.probing

    def another(self) -> "Session":
        """The same guest once more, before its first instruction.

        What it does reaches nobody: its output goes nowhere, and it changes no file of the host's.
        """
        config = replace(
            self.config,
            shares=tuple((path, False) for path, _ in self.config.shares),
            max_blocks=ENOUGH,
            record_schedule=None,
            turns=PLAIN,
            history=False,
            tty="",
        )
        feed = FeedStream(ended=True)
        nowhere = SinkStream(lambda data: None)
        return Session(config, (feed, nowhere, nowhere), self.opened)

    def _serve(self, probing: "Probing") -> None:
        """Serve functions of a kernel image what they lack; its calls are told of."""
        kernel, supervisor = self.opened.kernel, self.supervisor
        if kernel is None or supervisor is None:
            return
        from engine.session.guest.called_functions import CalledFunctions  # few guests are kernels

        called = CalledFunctions(kernel, supervisor, probing.manager)
        called.speak(self.thread)
        called.end_with(self.thread, self._call_failed)

    def _call_failed(self, why: str) -> None:
        self.remarks.append(Report((f"a call did not return: {why}", *self.trace())))

    @property
    def watchpoints(self) -> "Watchpoints":
        """The watched bytes of this guest."""
        if self._watchpoints is None:
            from engine.session.guest.watchpoints import Watchpoints  # few runs have any

            self._watchpoints = Watchpoints(self)
        return self._watchpoints

    def _record_schedule(self, target: OutputFile) -> None:
        """Write the schedule to a file from now on."""
        from engine.session.guest.schedule_file import ScheduleFile  # few runs write one

        config = self.config
        self._schedule = file = ScheduleFile(target, config, config.seed, str(config.turns))
        self.kernel.scheduler.chosen = file.add
        self.at_end.append(lambda: self.remarks.extend(file.end()))

    def _rest_of_schedule(self) -> None:
        """Tell of choices of a schedule that the guest never came to."""
        end = self.end
        if isinstance(self.turns, Replay) and end is not None:
            rest = self.turns.rest()
            if rest and not end.by_user and end.limit in ("", "deadlock"):
                self.remarks.append(Report((rest,)))

    def run(self, begin: Callable[[], object] = lambda: None) -> Reports:
        """Run the program to its end.

        Args:
            begin: goes before its first instruction; limits of the run hold there, too.

        Raises:
            CommandError: a file that the run writes cannot be created; a kernel image without
                calls.
        """
        if self.supervisor is not None:
            if not self.supervisor.calls:
                raise CommandError(
                    f"{self.config.guest}: a kernel image, of which functions are called as its"
                    " arguments say: 'gcd(48, 180)'; check and disasm say what is in it"
                )
            self.probes()  # they serve what functions of a kernel lack
        self._running = True
        try:
            begin()
            self.outputs.create()
            if self._schedule_target is not None:
                self._record_schedule(self._schedule_target)
            end = self.kernel.run()
        except CutOff as cut:
            end = self._cut(cut)
        finally:
            self._running = False
            restore_terminals()
        self.end = end
        try:
            for call in self.at_end:
                call()
        except CutOff as cut:
            self.end = end = self._cut(cut)
        return self.report(end)

    def _cut(self, cut: CutOff) -> Exit:
        """The end of a run that was cut off."""
        self.kernel.hear()
        end = self.machine.exit
        if end is None or not (end.limit or end.by_user):
            end = Exit(signal=cut.code - 128, by_user=True)
        self.kernel.stop(end)
        return end

    def report(self, end: Exit) -> Reports:
        """Report on a run that has ended."""
        pc = end.crash.pc if end.crash else self.cpu.read_register(self.arch.roles.pc)
        ending = _some(
            _ending(end, lambda: self.describe(self.seen.hooks.original_pc(pc))),
            self.standstill() if end.limit == "deadlock" else None,
            self.tasks() if end.limit == "max-blocks" else None,
        )
        troubles = _some(
            _crashes(self.machine.crashes, self.machine.crash_count),
            _failures(self.machine.failures.values()),
            _missing(self.machine.missing),
            _limited(self.machine, end),
            _refused(
                [(item.path, item.option) for item in self.view.refused.listed()],
                self.view.refused.dropped,
                f"{self.view.refused.why} to the guest ({self.view.refused.way}):",
            ),
        )
        links = _some(_planted(self.view.links.listed()))
        remarks = (*self.remarks, *ending, *troubles, *links)
        damage = self.opened.damage()
        return Reports(_exit_code(end), _reason(end), remarks, damage, troubles, end.limit)

    def figures(self) -> Figures:
        """The engine's own figures so far."""
        return Figures(
            self.machine.syscall_count,
            self.cpu.blocks(),
            self.ram.control.fills,
            self.ram.used(),
            self.cpu.lent if isinstance(self.cpu, Borrows) else 0,
        )

    def describe(self, pc: int) -> str:
        """An instruction's address, symbol, source line or file, and text, in one line."""
        location = self.seen.modules.locate(pc)
        parts = [f"{pc:#x}"]
        if location.module is not None:
            line = location.module.line_at(pc)
            where = f"{line[0]}:{line[1]}" if line else location.module.name
            parts.append(f"{location} ({where})")
        insn = next(iter(self.disassembler.decode(pc, self.code_at(pc))), None)
        if insn is not None:
            parts.append(insn.text)
        return ": ".join((" ".join(parts[:2]), *parts[2:]))

    def code_at(self, pc: int, space: AddressSpace | None = None) -> bytes:
        """Original bytes of the instruction at an address; fewer where the memory ends.

        Where several share a bundle they are all of its bytes.

        Args:
            pc: the address.
            space: the address space; that of the thread that runs if not given.
        """
        pc &= -self.arch.code_unit
        users, seen = self.user_programs, space or self.seen
        read: Callable[[int, int], bytes] = seen.memory.read
        if users is not None and users.knows(seen):
            read = partial(users.code, seen)
        for size in range(self.arch.insn_max, 0, -1):
            try:
                return seen.hooks.original(pc, read(pc, size))
            except GuestFaultError:
                continue
        return b""

    def interrupt(self, number: int) -> None:
        """Send the guest a signal, as a user at a terminal does; from any thread."""
        self.kernel.host_signal(number)

    def attend(self) -> None:
        """Have `hooks.attention` called soon; from any thread."""
        self.kernel.host_attention()

    def stop(self, limit: str) -> None:
        """End the run for a limit; from any thread."""
        self.kernel.host_stop(limit)

    def end_by(self, number: int) -> None:
        """End the run for a signal to the tool; from any thread."""
        self.kernel.host_end(number)

    @property
    def left_standing(self) -> bool:
        """True if a limit or a deadlock has ended the run with threads that can be looked at."""
        end = self.machine.exit
        cut_short = end is not None and bool(end.limit) and not end.by_user
        return cut_short and bool(self.machine.threads) and not self.machine.current.ended

    def check_ended(self) -> None:
        """Let nothing follow a run that the user has ended.

        Raises:
            CutOff: this one was.
        """
        end = self.machine.exit
        if end is not None and end.by_user:
            raise CutOff(_exit_code(end))

    def written(self, *, file: bool) -> None:
        """A piece of a trace is written, to a file or to a stream."""
        self._written[not file] += 1

    def progress(self) -> tuple[int, int]:
        """Pieces of a trace that were written to files and to streams; from any thread."""
        return self._written[0], self._written[1]

    def abandon(self, code: int) -> NoReturn:
        """End the process at once, with the terminal as it was; from any thread.

        What a trace to a file has recorded is in the file beside it (`kprobe-tui recover`).
        """
        restore_terminals()
        text = (
            b"kprobe-tui: ended at once; events not yet written are in the FILE.ring of -o FILE\n"
        )
        if select.select([], [2], [], 0)[1]:
            with suppress(OSError):
                os.write(2, text)
        os._exit(code)

    def waiting(self) -> bool:
        """True if the engine has not yet seen the last `interrupt`, `attend` or `stop`."""
        return self.kernel.attention.is_set()

    def nudge(self) -> None:
        """Ask again: a stop that reaches the emulator between two runs is lost."""
        self.cpu.halt()

    def close(self) -> None:
        """Give back what belongs to the host.

        Raises:
            CommandError: from a handler, while the guest runs in what would be given back.
        """
        if self._running:
            raise CommandError("a guest cannot be closed while it runs")
        if self._schedule is not None:
            self._schedule.end()
        self.outputs.close()
        self.machine.close()
        self.ram.close()
        for give_back in self.lent:
            give_back()


Attach = Callable[[Session], AbstractContextManager[None]]
"""Connects a session with the host while it runs: with its signals, with a limit of time."""


def _some(*remarks: Report | None) -> tuple[Report, ...]:
    """Return the remarks that are not None."""
    return tuple(remark for remark in remarks if remark is not None)


def _ending(end: Exit, place: Callable[[], str]) -> Report | None:
    """The remark about how the guest ended; None if it needs none.

    `place` describes the instruction it ended at: it costs a disassembler and symbols.
    """
    if end.limit == "timeout":
        return Report((TIMED_OUT, f"at {place()}"))
    if end.limit == "max-blocks":
        return Report(("stopped: the block limit (--max-blocks) ran out", f"at {place()}"))
    name = sig.name(end.signal)
    if end.crash is not None:
        return Report((f"guest killed by {name}: {end.crash.why}", f"at {place()}"))
    if end.signal and end.signal not in _QUIET:
        return Report((f"guest killed by {name}", f"at {place()}"))
    return None


def _exit_code(end: Exit) -> int:
    """The process exit code that stands for an end."""
    if end.limit and not end.first_has:
        return 124
    if end.signal:
        return 128 + end.signal
    return end.code or 0


def _reason(end: Exit) -> str:
    """The end of the guest in a few words on one line."""
    if end.limit:
        return "stopped in a deadlock" if end.limit == "deadlock" else f"stopped by --{end.limit}"
    if end.signal:
        why = f": {end.crash.why}" if end.crash is not None else ""
        return f"killed by {sig.name(end.signal)}{why}"
    return f"exited with {_exit_code(end)}"


def _failures(found: Iterable[tuple[str, int]]) -> Report | None:
    """The remark about system calls in which the engine failed."""
    lines = [f"{what} ({count} times)" if count > 1 else what for what, count in found]
    if not lines:
        return None
    more = len(lines) - _SHOWN
    tail = (f"and {more} more",) if more > 0 else ()
    head = "the engine failed in system calls, which gave the guest EIO; please report:"
    return Report((head, *lines[:_SHOWN], *tail))


def _planted(links: list[tuple[str, str]]) -> Report | None:
    """The remark about symlinks that the guest leaves on the host."""
    if not links:
        return None
    lines = [f"{path} -> {target}" for path, target in links]
    more = len(lines) - _SHOWN
    tail = (f"and {more} more",) if more > 0 else ()
    head = f"symlinks that the guest left in writable shares ({len(links)}):"
    return Report((head, *lines[:_SHOWN], *tail))


def _crashes(lines: list[str], count: int) -> Report | None:
    """The remark about faults that have ended other processes than the first."""
    if not lines:
        return None
    more = count - min(len(lines), _SHOWN)
    tail = (f"and {more} more",) if more > 0 else ()
    return Report(("processes of the guest were killed:", *lines[:_SHOWN], *tail))


def _missing(counts: dict[str, int]) -> Report | None:
    """The remark about calls that the guest made in vain."""
    if not counts:
        return None
    lines = [f"{what} ({count} times)" if count > 1 else what for what, count in counts.items()]
    more = len(lines) - _SHOWN
    tail = (f"and {more} more",) if more > 0 else ()
    return Report(("not supported, the guest got an error:", *lines[:_SHOWN], *tail))


def _limited(machine: Machine, end: Exit) -> Report | None:
    """The remark about a guest that got errors because its memory was used up."""
    told = end.crash is not None and machine.memory_used_up in end.crash.why
    if told or not machine.memory_limit.reached:
        return None
    return Report((machine.memory_used_up,))


def _refused(paths: list[tuple[str, str]], dropped: int, head: str) -> Report | None:
    """The remark about paths that were kept from the guest."""
    if not paths:
        return None
    lines = [f"{path}  (allow it with {option})" for path, option in paths]
    more = len(lines) - _SHOWN + dropped
    tail = (f"and {more} more",) if more > 0 else ()
    return Report((head, *lines[:_SHOWN], *tail))
