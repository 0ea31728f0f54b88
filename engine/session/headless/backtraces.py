"""Runs up to the Nth time that a place is reached, for a backtrace there."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, ProbeRejectedError
from engine.escaping import escaped
from engine.linux import signals as sig
from engine.linux.ending import Exit
from engine.linux.fs.stdio import host_stdio
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session.guest.session import Attach, Session
from engine.session.guest.wanted_probes import Wanted
from engine.session.inspect.backtrace import Backtrace as Backtrace
from engine.session.inspect.backtrace import Backtraces
from engine.session.program.marker_places import counter_of
from engine.session.program.places import Place
from engine.session.protocol.report import Report, Reports
from engine.session.protocol.requests import ALL_TASKS, BacktraceRequest, TaskChoice, TraceOptions
from engine.session.tracing.tasks import Tasks
from engine.session.tracing.tracing import Tracing
from engine.unwind.compare import UNWINDERS
from engine.unwind.unwinder import LIMIT

UNWINDER_NAMES: Final = tuple(unwinder.name for unwinder in UNWINDERS)


class Stopped(Struct, frozen=True):
    """The outcome of a run up to a place.

    Attributes:
        backtrace: None if the guest ended before.
        hits: times the place was reached.
        reports: the end of the run.
        others: of the other threads that were alive, where they were asked for.
        indirect: what indirect functions were found to stand for, in words.
    """

    backtrace: Backtrace | None
    hits: int
    reports: Reports
    others: tuple["ThreadBacktrace", ...] = ()
    indirect: tuple[str, ...] = ()


class ThreadBacktrace(Struct, frozen=True):
    """The backtrace of a thread that did not reach the place.

    Attributes:
        thread: its id.
        process: that of its process.
        comm: its name.
        waits_in: the system call that it waits in, "" if it could run.
        backtrace: its frames; None where it runs another program than the first process.
        gone: it is a core file's.
    """

    thread: int
    process: int
    comm: str
    waits_in: str
    backtrace: Backtrace | None
    gone: bool = False

    def as_json(self) -> dict[str, object]:
        """The thread and its backtrace, for JSON."""
        found = {} if self.backtrace is None else self.backtrace.as_json()
        who = {"thread": self.thread, "process": self.process, "comm": self.comm}
        return {**who, "waits_in": self.waits_in, **found}

    def title(self) -> str:
        """A line about the thread."""
        state = f" waits in {self.waits_in}" if self.waits_in else " can run"
        text = f"thread {self.thread} ({self.comm}) of process {self.process}"
        text += "" if self.gone else state
        return text if self.backtrace is not None else f"{text}, in another program"


Told = Callable[[Backtrace | ThreadBacktrace], None]
"""Is given each backtrace as soon as it is known: those of many threads can take long."""


def backtrace_at(request: BacktraceRequest, attach: Attach) -> Stopped:
    """Run a guest up to a place, take the backtrace, and end it there.

    Its standard output goes to stderr.

    Args:
        request: the guest and the place.
        attach: connects the run with the host.

    Raises:
        ImageError: the guest cannot be run.
        ProbeError: there is no such place, or no probe can stand there.
        CommandError: there is no such system call.
    """
    inputs = host_stdio()
    session = Session(request.config, (inputs[0], inputs[2], inputs[2]))
    try:
        with session.opened.explained():
            session.probes(request.mode)
            tracing = Tracing(session, TraceOptions(output="/dev/null", mode=request.mode))
            tracing.definitions.place(request.probes)
            stopped = StoppedRun(
                session,
                hit=request.hit,
                unwinder=request.unwinder,
                limit=request.limit,
                everybody=request.all_threads,
                tasks=request.tasks,
            )
            if request.place is not None:
                stopped.at_place(request.place)
            elif request.syscall is not None:
                stopped.in_syscall(request.syscall)
        tracing.start()
        with attach(session):
            try:
                reports = session.run()
            finally:
                remarks = tracing.finish()
        session.check_ended()
        reports = reports.behind(*remarks, *stopped.tasks.remarks())
        indirect = tuple(session.probes().indirect)
        return Stopped(stopped.backtrace, stopped.hits, reports, tuple(stopped.others), indirect)
    finally:
        session.close()


def backtrace_of_core(request: BacktraceRequest, tell: Told) -> Reports:
    """Tell the backtrace of a core's first thread, and of the others where they are asked for.

    Args:
        request: the core.
        tell: see `Told`.

    Raises:
        ImageError: the core or its program cannot be opened.
    """
    session = Session(request.config)
    try:
        with session.opened.explained():
            stopped = StoppedRun(
                session,
                hit=1,
                unwinder=request.unwinder,
                limit=request.limit,
            )
            tell(stopped.take_now())
            for other in stopped.taken_of_others() if request.all_threads else ():
                tell(other)
        remarks = (*core_remarks(session), *session.opened.damage())
        return Reports(0, "", remarks, (), ())
    finally:
        session.close()


def core_remarks(session: Session) -> tuple[Report, ...]:
    """The remark about how a core's process ended, and those about what is missing of it."""
    core = session.core
    if core is None:
        return ()
    signal = core.signal
    ended = f"ended by {sig.name(signal)}" if signal else "alive when it was written"
    head = f"core of process {core.pid} ({escaped(core.arguments)}), {ended}"
    return Report((head,)), *(Report((text,)) for text in session.core_remarks)


class StoppedRun:
    """Takes one backtrace in the middle of a run and ends the guest there.

    Attributes:
        backtrace: None until the place was reached often enough.
        hits: times it was reached.
        others: the backtraces of the other threads, where they are wanted.
        tasks: the threads that count.
    """

    def __init__(
        self,
        session: Session,
        *,
        hit: int,
        unwinder: str,
        limit: int | None = None,
        everybody: bool = False,
        tasks: TaskChoice = ALL_TASKS,
    ) -> None:
        """Nothing is placed yet.

        Args:
            session: loaded, not running.
            hit: the number of the time that counts, from 1.
            unwinder: of `engine.unwind.compare.UNWINDERS`.
            limit: of frames.
            everybody: all threads' backtraces are taken then.
            tasks: who has to reach the place.
        """
        self.others: list[ThreadBacktrace] = []
        self._everybody = everybody
        self.tasks = Tasks(session.machine, tasks)
        self.backtrace: Backtrace | None = None
        self.hits = 0
        self._session = session
        self._hit = hit
        self._unwinder = unwinder
        self._limit = limit or LIMIT
        self._backtraces = Backtraces(session)

    def at_place(self, text: str) -> None:
        """Stop where a probe at PLACE is hit.

        Raises:
            PlaceError: there is no such place.
            ProbeRejectedError: no probe can stand there.
        """
        probing = self._session.probes()
        places = probing.verdicts.places.resolve(text)
        for place in places:  # also in files that are not mapped yet
            judged = probing.verdicts.judge(place, brief=True).judgement
            if not judged.ok:
                raise ProbeRejectedError(place.link, judged.reason, judged.errno)
        probing.place(Wanted(place, self._probe(place), anywhere=True) for place in places)

    def _probe(self, place: Place) -> Kprobe:
        probe = Kprobe(pre_handler=self._reached, rules=place.rules)
        probe.reference = counter_of(place)
        return probe

    def in_syscall(self, name: str) -> None:
        """Stop in a system call.

        Raises:
            CommandError: there is none of that name.
        """
        if name not in self._session.arch.linux.syscalls.values():
            raise CommandError(
                f"--syscall {name}: {self._session.arch.name} has none of that name"
            )

        def entered(number: int, called: str, arguments: tuple[int, ...]) -> None:
            if called == name and self.backtrace is None:
                self._count(called)

        self._session.hooks.syscall_enter = entered

    def _reached(self, probe: Kprobe, regs: PtRegs) -> None:
        if self.backtrace is None:
            self._count("")

    def _count(self, syscall: str) -> None:
        chosen = self.tasks.chosen
        if chosen is not None and not chosen(self._session.machine.task):
            return
        self.hits += 1
        if self.hits == self._hit:
            self._take(syscall)
            self._session.kernel.stop(Exit(limit="bt"))
            if self._everybody:
                self.others.extend(self.taken_of_others())

    def _take(self, syscall: str) -> None:
        self.backtrace = self._backtraces.take(
            syscall=syscall, unwinder=self._unwinder, limit=self._limit
        )

    def take_now(self) -> Backtrace:
        """Take the backtrace of a guest that does not run."""
        self._take("")
        assert self.backtrace is not None, "it was taken"
        return self.backtrace

    def taken_of_others(self) -> Iterator[ThreadBacktrace]:
        """Look at each other thread; the guest must not go on afterwards."""
        session = self._session
        kernel, current = session.kernel, session.machine.current
        for thread in list(session.machine.threads.values()):
            if thread is current:
                continue
            call = "" if thread.wait is None and thread.answer is None else thread.call.name
            kernel.look_at(thread)
            found = self._backtraces.take(syscall=call, unwinder=self._unwinder, limit=self._limit)
            comm = thread.comm.decode(errors="replace")
            gone = session.core is not None
            yield ThreadBacktrace(thread.tid, thread.pid, comm, call, found, gone)
        kernel.look_at(current)
