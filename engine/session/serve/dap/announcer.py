"""Tells an editor what becomes of a guest: stops, the end, threads, modules, recorded events."""

from typing import Final

from engine.session.debugger.output import TROUBLE
from engine.session.debugger.signal_rules import signal_name, signal_text
from engine.session.debugger.stops import Catchpoint, UserStop, UserWatchpoint
from engine.session.protocol import events as ev
from engine.session.protocol.views import ModuleView, RunState, StopCause
from engine.session.serve.commandline import RecordedEvents
from engine.session.serve.dap import bodies
from engine.session.serve.dap.debuggee import Debuggee
from engine.session.serve.dap.editor import Editor
from engine.session.serve.dap.handlers import SessionProgress

_AT_ONCE: Final = 100
"""Recorded events that are told at once, the others are counted."""


class Announcer:
    """Tells what happens.

    Attributes:
        debuggee: the guest, once there is one.
    """

    def __init__(self, editor: Editor, progress: SessionProgress, events: RecordedEvents) -> None:
        """Nothing has happened yet."""
        self._editor, self._progress = editor, progress
        self._events = events
        self.debuggee: Debuggee | None = None
        self._threads: set[int] = set()
        self._modules: dict[str, ModuleView] = {}
        self._told_end = False

    # -- while the guest moves ----------------------------------------------------------------

    def told(self, event: ev.SessionEvent) -> None:
        """Something that the guest's control tells."""
        count = self._events.told(event)
        if count:
            self._tell_events(count)
        elif isinstance(event, ev.Restarted | ev.Branched):
            self._threads.clear()
            self._progress.finished = self._told_end = False
        elif isinstance(event, ev.Notice):
            self._editor.say(event.text)
        elif isinstance(event, ev.Remark):
            for line in event.lines:
                self._editor.say(line)
        elif isinstance(event, ev.Viewed):
            self.tell_changes()

    def _tell_events(self, count: int) -> None:
        """Recorded events have come."""
        guest = self.debuggee
        if guest is None:
            return
        if count > _AT_ONCE:
            self._editor.say(f"[{count - _AT_ONCE} events more: events {count} shows them]")
        for line in self._events.last(guest.control, min(count, _AT_ONCE)):
            self._editor.say(line)

    def tell_changes(self) -> None:
        """Threads, modules and breakpoints that are others than the editor knows."""
        guest = self.debuggee
        if guest is None:
            return
        threads = set(guest.threads)
        for tid in sorted(threads ^ self._threads):
            reason = "started" if tid in threads else "exited"
            self._editor.event("thread", bodies.ThreadEventBody(reason, tid))
        self._threads = threads
        if not self._progress.running:
            self._tell_modules(guest)
        for reason, one in guest.breakpoints.changed():
            self._tell_breakpoint(reason, one)

    def tell_typed(self) -> None:
        """Breakpoints that a line of words has placed, and all that has changed."""
        guest = self.debuggee
        if guest is None:
            return
        for one in guest.breakpoints.typed(guest.exceptions.is_own):
            self._tell_breakpoint("new", one)
        self.tell_changes()

    def _tell_breakpoint(self, reason: str, one: bodies.DapBreakpoint) -> None:
        body = bodies.BreakpointEventBody(reason, one.at_line(self._editor.line_out(one.line)))
        self._editor.event("breakpoint", body)

    def _tell_modules(self, guest: Debuggee) -> None:
        now = {module.path: module for module in guest.control.view().modules}
        for path in dict.fromkeys((*self._modules, *now)):
            if self._modules.get(path) == now.get(path):
                continue
            reason = (
                "new" if path not in self._modules else "changed" if path in now else "removed"
            )
            module = now.get(path) or self._modules[path]
            body = bodies.ModuleEventBody(reason, module_body(guest, module))
            self._editor.event("module", body)
        self._modules = now

    # -- stops --------------------------------------------------------------------------------

    def tell_stop(self, reason: str) -> None:
        """Tell why the guest stands; `reason` if nothing has stopped it on the way."""
        guest = self.debuggee
        assert guest is not None
        if self._progress.over or self._progress.interrupted:
            return  # somebody has stopped it for what he wants next
        self.tell_changes()
        if guest.control.view().state is RunState.ENDED:
            self._tell_end(guest)
        elif not guest.debugger.started:
            self.finish()  # it was killed
        else:
            self._editor.event("stopped", self._stop(guest, reason))

    def _stop(self, guest: Debuggee, reason: str) -> bodies.StoppedBody:
        debugger, control = guest.debugger, guest.control
        view = control.view()
        body = bodies.StoppedBody(
            reason=reason, thread_id=control.thread, all_threads_stopped=True
        )
        body.hit_breakpoint_ids, kind = guest.breakpoints.reached()
        reached = [stop for stop in debugger.stops.reached if stop.number]
        if view.cause is StopCause.INTERRUPTED:
            body.reason = "pause"
        elif view.cause is StopCause.SIGNAL and debugger.signal:
            body.reason, body.text = "exception", signal_name(debugger.signal)
            body.description = f"{body.text}: {signal_text(debugger.signal)}"
        elif reached:
            _explain(body, guest, reached[0], kind)
        elif view.cause in (StopCause.CUT_SHORT, StopCause.FOUND):
            body.description = view.reason
        elif control.session.core is not None:
            core = control.session.core
            body.text = signal_name(core.signal) if core.signal else "core file"
            comm = core.comm.decode(errors="replace")
            body.description = f"the core file of {comm}: {body.text}"
        return body

    def _tell_end(self, guest: Debuggee) -> None:
        """The program is over; one that is recorded stands at its last instruction first.

        One that a deadlock or a limit has ended stands where it did.
        """
        self._editor.output.finish()
        if guest.control.session.left_standing and not guest.launched.no_debug:
            body = bodies.StoppedBody(
                reason="pause",
                thread_id=guest.control.thread,
                all_threads_stopped=True,
                description=f"The program cannot go on: {guest.control.view().reason}",
            )
            self._editor.event("stopped", body)
            return
        code = guest.control.view().exit_code or 0
        end = guest.control.session.machine.exit
        if end is not None and end.signal:
            name, text = signal_name(end.signal), signal_text(end.signal)
            self._editor.say(f"Program terminated with signal {name}, {text}.")
        elif end is not None and end.limit:
            self._editor.say(f"The program was stopped: {end.limit}.")
        if not self._told_end:
            self._told_end = True
            self._editor.event("exited", bodies.ExitedBody(code))
            walked = guest.control.config.history and not guest.launched.no_debug
            if walked and _last_moment(guest):
                body = bodies.StoppedBody(
                    reason="pause",
                    thread_id=guest.control.thread,
                    all_threads_stopped=True,
                    description=f"The program has ended with {code}; its past is there",
                )
                self._editor.event("stopped", body)
                return
        self.finish()

    def finish(self) -> None:
        """Tell that there is nothing more to debug."""
        if not self._progress.finished:
            self._progress.finished = True
            self._editor.event("terminated")


def _explain(body: bodies.StoppedBody, guest: Debuggee, stop: UserStop, kind: str) -> None:
    """Say which of the user's stops it is; `kind` is that of the editor's breakpoint."""
    body.reason, body.description = "breakpoint", stop.label.rstrip(", ")
    if isinstance(stop, UserWatchpoint):
        body.reason = "data breakpoint"
        body.description = body.text = " ".join(line for line in stop.story if line)
    elif isinstance(stop, Catchpoint) or guest.exceptions.is_own(stop):
        body.reason = "exception"
        body.description = body.text = stop.event or stop.what
    elif kind in ("function", "instruction"):
        body.reason = f"{kind} breakpoint"


def _last_moment(guest: Debuggee) -> bool:
    """Stand in front of the end of a recorded run; True if that is possible."""
    guest.debugger.started = True
    try:
        guest.interpreter.line("reverse-stepi")
    except TROUBLE:
        return False
    return guest.control.view().state is RunState.STOPPED


def module_body(guest: Debuggee, module: ModuleView) -> bodies.DapModule:
    """A file in the guest's memory."""
    found = guest.control.session.seen.modules.at(module.start)
    has_lines = found is not None and found.lines.debug_image is not None
    return bodies.DapModule(
        id=module.path,
        name=module.path.rpartition("/")[2],
        path=module.path,
        symbol_status="debug information" if has_lines else "symbols only",
        address_range=f"{module.start:#x}-{module.end:#x}",
    )
