"""A recording by the running kernel: probes placed, rows read as they come, all of it removed."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Protocol

from engine.errors import CommandError
from engine.session.live.buffers import LiveBuffers, LiveRows
from engine.session.live.held_program import CommandStart, LiveCommand
from engine.session.live.instance import KernelInstance, own_instance
from engine.session.live.kernel_probes import KernelProbes
from engine.session.live.machine_files import ProcessRoot
from engine.session.live.processes import LiveProcesses
from engine.session.live.sideband import Sideband
from engine.session.live.stop_signals import EndingSignals, noted
from engine.session.live.tracefs import LiveKernelError, Tracefs, read_text
from engine.session.protocol.report import Report
from engine.trace.kernel_rows import KernelEvent, RowMaker, stack_maker
from engine.trace.rows import EventInfo

_OFTEN: Final = 0.05
"""Seconds between two looks at the buffers."""
_GRACE: Final = 2.0
"""Seconds that a program has to end by itself when the recording ends."""
_TRIES: Final = 20
_OTHERS_ONLY: Final = "set_event_notrace_pid"
"""The file of threads that are not recorded, since Linux 5.7."""
_SHARED: Final = re.compile(r"(/proc/\d+/root)?/(lib|usr/|bin|sbin|opt)")


class LiveConsumer(Protocol):
    """Takes what was recorded."""

    def begin(self) -> None:
        """The first rows are about to come."""

    def take(self, found: LiveRows) -> None:
        """Rows, in order."""


class LiveTarget:
    """Whose events are recorded.

    Attributes:
        command: a program to start; None for processes that run, or all.
        pids: those processes; none for all.
        seconds: for how long, None for no limit.
        root: the root directory of the (first) process.
    """

    def __init__(
        self,
        command: CommandStart | None = None,
        pids: Sequence[int] = (),
        seconds: float | None = None,
    ) -> None:
        """Set up.

        Raises:
            CommandError: there is no such process.
        """
        self.command = command
        self.pids = tuple(pids)
        self.seconds = seconds
        for pid in self.pids:
            if not os.path.isdir(f"/proc/{pid}"):
                raise CommandError(f"--pid {pid}: there is no such process")
        self.root = ProcessRoot(self.pids[0] if self.pids else 0)


class LiveRecording:
    """One recording.

    Attributes:
        processes: those whose events were recorded.
        lost: records that the kernel had no room for.
        exit_code: of the program, 128+N at the end by signal N; 0 without one.
        timed_out: the program had to be stopped, as the time was over.
        reports: what is to be said about it.
        profile: the kernel's counts of hits, once it is over.
    """

    def __init__(
        self,
        probes: KernelProbes,
        target: LiveTarget,
        buffer: int,
        stacks: EventInfo | None = None,
    ) -> None:
        """Set up; nothing is asked of the kernel yet.

        Args:
            probes: what is placed.
            target: whose events count.
            buffer: bytes of the kernel's buffer for each CPU.
            stacks: the event of call stacks, None for no stacks.
        """
        self.processes = LiveProcesses(root=target.root, probed=probes.code)
        self.lost = 0
        self.exit_code = 0
        self.timed_out = False
        self.reports: list[Report] = []
        self.profile: list[str] = []
        self._probes = probes
        self._target = target
        self._buffer = buffer
        self._stacks = stacks
        self._unknown = self._damaged = 0

    def run(self, consumer: LiveConsumer) -> None:
        """Record until the program ends, the time is over, or a signal comes.

        Raises:
            CommandError: the running kernel refuses something; nothing of ours stays in it.
        """
        over = False
        try:
            with ExitStack() as stack:
                sideband = self._recorded(consumer, stack)
                over = True
        except LiveKernelError as error:
            if not over:
                raise
            self.reports.append(Report((str(error),)))  # what was recorded is no worse for it
        self.reports += self._remarks(sideband)

    def _recorded(self, consumer: LiveConsumer, stack: ExitStack) -> Sideband:
        """Record; what is to be undone is on the stack."""
        ending = stack.enter_context(noted())
        instance = stack.enter_context(own_instance(Tracefs.found()))
        makers = self._prepared(instance)
        buffers = _opened(instance, makers)
        stack.callback(buffers.close)
        command = None
        if self._target.command is not None:
            command = LiveCommand(self._target.command)
            stack.callback(command.close)
        sideband = self._follow(instance, command)
        stack.callback(sideband.close)
        if command is not None:
            command.execute()
        consumer.begin()
        self._probes.enable(instance)
        instance.set("tracing_on", "1")

        def read(*, last: bool = False) -> None:
            rows = buffers.read(last=last)
            self.processes.hear(sideband.read())  # behind the rows: it is no less complete
            self.processes.place(rows.rows)
            self.lost += rows.lost
            if rows.rows or rows.lost:
                consumer.take(rows)

        if command is not None:
            command.go()
        self._wait(command, ending, read, buffers)
        instance.set("tracing_on", "0")
        read(last=True)
        untold = buffers.untold()
        if untold:
            self.lost += untold
            consumer.take(LiveRows(b"", untold))
        self._unknown, self._damaged = buffers.unknown, buffers.damaged
        self.profile += self._probes.profile(instance)
        if command is not None:
            command.close()
            self.exit_code = command.exit_code
        if ending.last and (command is None or ending.last != signal.SIGINT):
            # Ctrl-C is how a recording without a program of its own ends.
            self.exit_code = 0 if ending.last == signal.SIGINT else 128 + ending.last
        return sideband

    # -- setting up ------------------------------------------------------------------------

    def _prepared(self, instance: KernelInstance) -> dict[int, RowMaker]:
        """Have everything defined, and nothing recorded."""
        instance.set("tracing_on", "0")
        instance.set("trace_clock", "mono")
        instance.set("buffer_size_kb", str(max(self._buffer >> 10, 4)))
        makers = self._probes.define(instance)
        if self._stacks is not None:
            path = instance.path / "events" / "ftrace" / "user_stack" / "format"
            event = KernelEvent.of(read_text(path))
            makers[event.number] = stack_maker(self._stacks, event)
            instance.set("options/userstacktrace", "1")
        return makers

    def _follow(self, instance: KernelInstance, command: LiveCommand | None) -> Sideband:
        """Choose whose events are recorded, and have their names known."""
        pids = [command.pid] if command is not None else list(self._target.pids)
        if not pids:
            leave_out_ourselves(instance)
            return Sideband()
        instance.set("options/event-fork", "1")  # before: a new thread is either seen or followed
        threads: set[int] = set()
        for _ in range(_TRIES):
            found = {thread for pid in pids for thread in _threads(pid)}
            if found <= threads:
                break
            threads |= found
            instance.set("set_event_pid", " ".join(map(str, sorted(threads))))
        if not threads:
            raise LiveKernelError("the processes of --pid have ended")
        sideband = Sideband(sorted(threads))
        if command is None:
            for pid in pids:
                self.processes.look(pid)
        return sideband

    # -- while it lasts ----------------------------------------------------------------------

    def _wait(
        self,
        command: LiveCommand | None,
        ending: EndingSignals,
        read: Callable[[], None],
        buffers: LiveBuffers,
    ) -> None:
        """Read what comes until there is an end."""
        seconds = self._target.seconds
        limit = None if seconds is None else time.monotonic() + seconds
        others = [command.pidfd] if command is not None else []
        asked: float | None = None
        while True:
            now = time.monotonic()
            patience = _OFTEN if limit is None else min(_OFTEN, max(limit - now, 0))
            if buffers.more:
                patience = 0
            ending.wait(patience, others, patient=command is not None)
            read()
            if command is not None and command.poll():
                return
            over = ending.last or (limit is not None and time.monotonic() >= limit)
            if over and command is not None and asked is None:
                asked, limit = time.monotonic(), time.monotonic() + _GRACE
                self._say_over(ending)
                command.send(ending.last or signal.SIGTERM)
                continue
            if over and (command is None or time.monotonic() >= (limit or 0)):
                return
            if command is None and self._target.pids and not any(map(_lives, self._target.pids)):
                return

    def _say_over(self, ending: EndingSignals) -> None:
        if not ending.last:
            self.timed_out = True
            said = f"stopped: the time limit ({self._target.seconds:g} s) ran out"
            self.reports.append(Report((said,)))

    def _remarks(self, sideband: Sideband) -> Iterator[Report]:
        left_out = self._probes.left_out
        if left_out:
            yield Report((f"{len(left_out)} places take no probe, the first: {left_out[0]}",))
        if self.lost:
            yield Report(
                (
                    f"{self.lost} events lost: the kernel's buffer was full "
                    f"({self._buffer >> 10} KiB for each CPU)",
                    "--kernel-buffer SIZE makes it larger; --filter has less recorded",
                )
            )
        if self._damaged:
            yield Report((f"{self._damaged} records of the kernel's make no sense",))
        if self._unknown:
            yield Report((f"{self._unknown} records of events that are none of ours",))
        if sideband.failure:
            yield Report((f"files and names of processes are not known: {sideband.failure}",))
        if self.processes.missed:
            count = self.processes.missed
            yield Report((f"names may be wrong: {count} of the kernel's records are missing",))
        shared = [path for path in self._probes.files if _SHARED.match(path)]
        if shared and (self._target.command is not None or self._target.pids):
            yield Report(
                (
                    "other programs have paid for these probes, too, as they run the same files:",
                    *shared,
                )
            )


def _opened(instance: KernelInstance, makers: dict[int, RowMaker]) -> LiveBuffers:
    """The buffers of an instance.

    Raises:
        CommandError: they cannot be read.
    """
    try:
        return LiveBuffers(instance, makers)
    except OSError as error:
        raise LiveKernelError(f"tracefs cannot be read: {error}") from error


def leave_out_ourselves(instance: KernelInstance) -> None:
    """Have what this process does not recorded: where reading is probed, it would never end."""
    if (instance.path / _OTHERS_ONLY).exists():
        instance.set(_OTHERS_ONLY, " ".join(map(str, _threads(os.getpid()))))


def _threads(pid: int) -> list[int]:
    """The threads of a process; none if it has ended."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _lives(pid: int) -> bool:
    """True if a process has not ended."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False
