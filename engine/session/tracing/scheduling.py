"""The scheduler's decisions in a session's guest as events of its trace."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from engine.errors import ProbeError
from engine.fetch.evaluate import FetchContext, Recorder
from engine.linux import signals as sig
from engine.linux.process import Process
from engine.linux.schedule import Why
from engine.linux.thread import Thread
from engine.session.guest.session import Session
from engine.trace.rows import EventInfo, pack_row
from engine.trace.sched import (
    BY_NAME,
    DEAD,
    GROUP,
    IDLE,
    RUNNING,
    SLEEPING,
    STOPPED,
    WAITING,
    ZOMBIE,
    matching,
)
from engine.trace.staging import put_row

_NORMAL: Final = 120
"""The priority of a thread that is not nice (MAX_RT_PRIO and NICE_WIDTH / 2)."""
_RUNNING: Final = frozenset({Why.PREEMPTED, Why.YIELDS})


class SchedulerEvents:
    """The scheduler's events that are on."""

    def __init__(self, session: Session, chosen: Callable[[int], bool] | None) -> None:
        """None is, yet.

        Args:
            session: the guest.
            chosen: whether a thread's events are taken, by its id: one of those that an event
                names has to be; None where all are.
        """
        self._session = session
        self._chosen = chosen
        self._infos: dict[int, EventInfo] = {}
        self._records: dict[str, Recorder] = {}
        self._silent: frozenset[str] = frozenset()
        self._hooked = self._idle = False

    @property
    def infos(self) -> list[EventInfo]:
        """The events in the order they were chosen."""
        return list(self._infos.values())

    def choose(
        self, glob: str, number: Callable[[], int], known: Callable[[str], bool]
    ) -> list[EventInfo]:
        """Take all events whose name matches; the new ones.

        Args:
            glob: of names as `sched_switch`.
            number: the next free event id.
            known: whether an event of that name is there already.

        Raises:
            ProbeError: no event matches.
        """
        matched = matching(glob)
        if not matched:
            raise ProbeError(f"{GROUP}/{glob}: no event matches; there are {', '.join(BY_NAME)}")
        found = [event.info(number()) for event in matched if not known(event.name)]
        self._infos.update((info.id, info) for info in found)
        return found

    def is_mine(self, info: EventInfo) -> bool:
        """True if an event is one of these."""
        return info.id in self._infos

    def make(self, info: EventInfo, context: FetchContext) -> Recorder:
        """Compile the recorder of one of the events."""
        return partial(self._write, info, context)

    def install(self, info: EventInfo, record: Recorder) -> None:
        """Have an event recorded by a function of (thread, values by field, place)."""
        self._records[info.name] = record
        if self._hooked:
            return
        self._hooked = True
        moments = self._session.machine.moments
        moments.switching.append(self._switching)
        moments.woken.append(self._woken)
        moments.started.append(self._started)
        moments.executed.append(self._executed)
        moments.leaving.append(self._leaving)

    def record_only(self, globs: Sequence[str]) -> None:
        """Of the chosen events only those that match are recorded from now on."""
        wanted = {event.name for glob in globs for event in matching(glob)}
        self._silent = frozenset(name for name in BY_NAME if name not in wanted)

    # -- what happens ---------------------------------------------------------------------

    def _switching(self, before: Thread | None, thread: Thread | None, why: Why) -> None:
        self._idle = thread is None
        state = RUNNING if before is None or why in _RUNNING else _state(before, why)
        values = {"prev_state": state, **_of(before, "prev_"), **_of(thread, "next_")}
        self._record("sched_switch", before, values, before, thread)

    def _woken(self, thread: Thread) -> None:
        waker = None if self._idle else self._session.machine.current
        for name in ("sched_waking", "sched_wakeup"):
            self._record(name, waker, {**_of(thread), "target_cpu": 0}, waker, thread)

    def _started(self, maker: Thread, thread: Thread) -> None:
        values: dict[str, int | bytes] = {"parent_comm": maker.comm, "child_comm": thread.comm}
        values |= {"parent_pid": maker.tid, "child_pid": thread.tid}
        self._record("sched_process_fork", maker, values, maker, thread)
        self._record("sched_wakeup_new", maker, {**_of(thread), "target_cpu": 0}, maker, thread)

    def _executed(self, thread: Thread, before: int, path: bytes) -> None:
        values: dict[str, int | bytes] = {"filename": path, "pid": thread.tid, "old_pid": before}
        self._record("sched_process_exec", thread, values, thread)

    def _leaving(self, thread: Thread, last: bool) -> None:
        values = {**_of(thread), "group_dead": int(last)}
        self._record("sched_process_exit", thread, values, thread)

    # -- rows -----------------------------------------------------------------------------

    def _record(
        self,
        name: str,
        where: Thread | None,
        values: dict[str, int | bytes],
        *about: Thread | None,
    ) -> None:
        """Record what has happened in a thread; None is the idle one."""
        record = self._records.get(name)
        if record is None or name in self._silent:
            return
        chosen = self._chosen
        if chosen is None or any(one is not None and chosen(one.tid) for one in about):
            record(0 if where is None else where.tid, values, self._place(where))

    def _place(self, thread: Thread | None) -> int:
        """The place in the program of the thread whose registers the processor holds."""
        session = self._session
        if thread is not session.machine.current:
            return 0
        return thread.hooks.original_pc(session.cpu.read_register(session.arch.roles.pc))

    @staticmethod
    def _write(
        info: EventInfo,
        context: FetchContext,
        thread: int,
        values: dict[str, int | bytes],
        place: int,
    ) -> None:
        given = (values[column.name] for column in info.columns)
        found = [value + b"\0" if isinstance(value, bytes) else value for value in given]
        put_row(context.sink, pack_row(info, thread, context.cpu.now(), place, found))


def _of(thread: Thread | None, prefix: str = "") -> dict[str, int | bytes]:
    """Name, id and priority of a thread, the idle one for None."""
    comm, tid, nice = (IDLE, 0, 0) if thread is None else (thread.comm, thread.tid, thread.nice)
    return {f"{prefix}comm": comm, f"{prefix}pid": tid, f"{prefix}prio": _NORMAL + nice}


def _state(thread: Thread, why: Why) -> int:
    """The state in which a thread gives the processor up, as `prev_state` has it."""
    if why is Why.ENDS:
        return ZOMBIE if thread.tid == thread.pid and _waited_for(thread.process) else DEAD
    if why is Why.STOPS:
        return STOPPED
    wait = thread.wait
    return WAITING if wait is not None and wait.uninterruptible else SLEEPING


def _waited_for(process: Process) -> bool:
    """True if somebody may wait for a process that has ended (exit_notify of kernel/exit.c)."""
    parent = process.parent
    if parent is None or process.exit_signal != sig.SIGCHLD:
        return True
    action = parent.hand.action(sig.SIGCHLD)
    return action.handler != sig.SIG_IGN and not action.flags & sig.SA_NOCLDWAIT
