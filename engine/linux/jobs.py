"""Job control: process groups that are stopped, orphaned, or hung up (kernel/exit.c)."""

from engine.linux import signals as sig
from engine.linux.fs.terminal import Terminal
from engine.linux.machine import Machine
from engine.linux.process import Process
from engine.linux.signals import PendingSignal


def orphaned(machine: Machine, group: int) -> bool:
    """True if no member of a group has a parent in its session and outside of the group."""
    return not any(
        each.exit is None
        and each.group == group
        and each.parent is not None
        and each.parent.group != group
        and each.parent.session == each.session
        for each in machine.processes.values()
    )


def send(machine: Machine, group: int, number: int) -> None:
    """Send a signal of the kernel's to a process group."""
    item = PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0))
    for process in list(machine.processes.values()):
        if process.exit is None and process.group == group:
            process.post(item)


def stop(process: Process, number: int) -> None:
    """A stop signal without a handler; in an orphaned group only SIGSTOP has an effect."""
    if number == sig.SIGSTOP or not orphaned(process.machine, process.group):
        process.stop(number)


def group_left(process: Process, parent: Process | None) -> None:
    """A parent outside of a process's group is gone: an orphaned group that is stopped hangs up.

    Args:
        process: it ends, or its parent does.
        parent: the one that it had.
    """
    machine, group = process.machine, process.group
    if parent is None or parent.group == group or parent.session != process.session:
        return
    stopped = any(
        each.stopped and each.exit is None and each.group == group
        for each in machine.processes.values()
    )
    if stopped and orphaned(machine, group):
        send(machine, group, sig.SIGHUP)
        send(machine, group, sig.SIGCONT)


def leader_ends(process: Process) -> None:
    """A session's leader ends: its terminal's foreground hangs up (disassociate_ctty).

    The first process leads a session only here: elsewhere its user's shell does, which stays.
    """
    if process.session != process.pid or process is process.machine.first:
        return
    terminal, group = process.terminal, process.hung_up
    if terminal is not None:
        send(process.machine, _disowned(process.machine, terminal), sig.SIGHUP)
    elif group:
        send(process.machine, group, sig.SIGHUP)
        send(process.machine, group, sig.SIGCONT)


def _disowned(machine: Machine, terminal: Terminal) -> int:
    """Take a terminal from its session; the group that was in the foreground."""
    group = terminal.group
    terminal.session = terminal.group = 0
    for each in machine.processes.values():
        if each.terminal is terminal:
            each.terminal = None
    return group


class MachineJobs:
    """Implements `fs.terminal.Jobs` for the processes of a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def own(self) -> tuple[int, int, int]:
        """(process id, process group, session) of the caller."""
        process = self._machine.caller.process
        return process.pid, process.group, process.session

    def terminal(self) -> Terminal | None:
        """The caller's controlling terminal."""
        return self._machine.caller.process.terminal

    def may_take(self) -> bool:
        """True if a terminal that the caller opens becomes its own.

        The first process leads a session only here, see `leader_ends`.
        """
        process = self._machine.caller.process
        leads = process.pid == process.session and process is not self._machine.first
        return leads and process.terminal is None

    def attach(self, terminal: Terminal) -> None:
        """Make a terminal the caller's."""
        self._machine.caller.process.terminal = terminal

    def detach(self, terminal: Terminal) -> None:
        """The caller gives its terminal up, and with a session's leader the whole session."""
        process = self._machine.caller.process
        if process.pid == process.session:
            group = _disowned(self._machine, terminal)
            send(self._machine, group, sig.SIGHUP)
            send(self._machine, group, sig.SIGCONT)
        process.terminal = None

    def hang_up(self, terminal: Terminal) -> None:
        """A terminal is gone: its session loses it, and its leader is told."""
        leader = self._machine.processes.get(terminal.session)
        group = _disowned(self._machine, terminal)
        if leader is None or leader.exit is not None:
            return
        leader.hung_up = group
        for number in (sig.SIGHUP, sig.SIGCONT):
            leader.post(PendingSignal(number, sig.info_kill(number, sig.SI_KERNEL, 0, 0)))

    def session_of(self, group: int) -> int | None:
        """The session of a process group, None if nobody is in it."""
        for process in self._machine.processes.values():
            if process.group == group:
                return process.session
        return None

    def shielded(self, number: int) -> bool:
        """True if the caller blocks or ignores a signal."""
        state = self._machine.caller.signals
        return bool(state.blocked & sig.bit(number)) or state.ignored(number)

    def orphaned(self, group: int) -> bool:
        """True if nobody outside a group would continue it (POSIX: orphaned)."""
        return orphaned(self._machine, group)

    def signal(self, group: int, number: int) -> None:
        """Send a signal of the terminal's to a process group."""
        send(self._machine, group, number)
