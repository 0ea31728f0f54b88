"""Requests that say where, and at what, a guest is to stop."""

from collections.abc import Sequence

from msgspec.structs import replace

from engine.errors import CommandError
from engine.linux import signals as sig
from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.signal_rules import signal_name, signal_text
from engine.session.serve.dap import bodies, requests
from engine.session.serve.dap.debuggee import Debuggee
from engine.session.serve.dap.editor import Editor
from engine.session.serve.dap.handlers import Handler, Handlers, SessionProgress
from engine.session.serve.dap.sources import address_of

_UNUSED = "the program runs without debugging"


class StopRequests:
    """Carries them out, while the guest runs, too."""

    def __init__(self, guest: Debuggee, editor: Editor, progress: SessionProgress) -> None:
        """Stop this guest."""
        self._guest, self._editor, self._progress = guest, editor, progress

    def handlers(self) -> Handlers:
        """Return the handlers of requests that place stops."""
        r = requests
        return {
            "setBreakpoints": Handler(r.SetBreakpointsArguments, self._lines, any_time=True),
            "setFunctionBreakpoints": Handler(
                r.SetFunctionBreakpointsArguments, self._functions, any_time=True
            ),
            "setInstructionBreakpoints": Handler(
                r.SetInstructionBreakpointsArguments, self._instructions, any_time=True
            ),
            "setDataBreakpoints": Handler(r.SetDataBreakpointsArguments, self._data),
            "dataBreakpointInfo": Handler(r.DataBreakpointInfoArguments, self._data_info),
            "setExceptionBreakpoints": Handler(
                r.SetExceptionBreakpointsArguments, self._exceptions, any_time=True
            ),
            "exceptionInfo": Handler(r.ThreadArguments, self._exception_info),
            "breakpointLocations": Handler(
                r.BreakpointLocationsArguments, self._locations, any_time=True
            ),
        }

    # -- breakpoints --------------------------------------------------------------------------

    def _placed(
        self, kind: str, group: str, wanted: Sequence[requests.WantedBreakpoint]
    ) -> object:
        if self._guest.launched.no_debug:
            unused = bodies.DapBreakpoint(verified=False, message=_UNUSED)
            return bodies.BreakpointsBody([unused for _ in wanted])
        found = self._guest.breakpoints.place(kind, group, wanted, runs=self._progress.running)
        return bodies.BreakpointsBody(
            [one.at_line(self._editor.line_out(one.line)) for one in found]
        )

    def _lines(self, wanted: requests.SetBreakpointsArguments) -> object:
        path = wanted.source.path
        if not path:
            raise CommandError("setBreakpoints: source.path is missing")
        lines = [replace(one, line=self._editor.line_in(one.line)) for one in wanted.breakpoints]
        return self._placed("source", path, lines)

    def _functions(self, wanted: requests.SetFunctionBreakpointsArguments) -> object:
        return self._placed("function", "", wanted.breakpoints)

    def _instructions(self, wanted: requests.SetInstructionBreakpointsArguments) -> object:
        return self._placed("instruction", "", wanted.breakpoints)

    def _data(self, wanted: requests.SetDataBreakpointsArguments) -> object:
        return self._placed("data", "", wanted.breakpoints)

    def _data_info(self, wanted: requests.DataBreakpointInfoArguments) -> object:
        guest = self._guest
        try:
            if wanted.as_address:
                at, size = address_of(wanted.name), wanted.bytes or 1
            else:
                at, size = guest.stopped.place_of(
                    wanted.variables_reference, wanted.name, wanted.frame_id
                )
                size = wanted.bytes or size
        except TROUBLE as error:
            return bodies.DataBreakpointInfoBody(None, message(error))
        many = "byte" if size == 1 else "bytes"
        return bodies.DataBreakpointInfoBody(
            f"{at:#x}/{size}",
            f"{wanted.name}: {size} {many} at {at:#x}",
            ["read", "write", "readWrite"],
        )

    def _locations(self, wanted: requests.BreakpointLocationsArguments) -> object:
        editor = self._editor
        first, last = editor.line_in(wanted.line), editor.line_in(wanted.end_line or wanted.line)
        lines = self._guest.sources.lines(wanted.source.path, first, last)
        return bodies.BreakpointLocationsBody(
            [bodies.BreakpointLocation(editor.line_out(line)) for line in lines]
        )

    # -- exceptions ---------------------------------------------------------------------------

    def _exceptions(self, wanted: requests.SetExceptionBreakpointsArguments) -> object:
        chosen = dict.fromkeys(wanted.filters, "")
        chosen.update((one.filter_id, one.condition) for one in wanted.filter_options)
        guest = self._guest
        if guest.launched.no_debug:
            guest.exceptions.choose({}, runs=self._progress.running)
            unused = bodies.DapBreakpoint(verified=False, message=_UNUSED)
            return bodies.BreakpointsBody([unused for _ in chosen])
        found = guest.exceptions.choose(chosen, runs=self._progress.running)
        return bodies.BreakpointsBody(found)

    def _exception_info(self, wanted: requests.ThreadArguments) -> object:
        guest = self._guest
        core = guest.control.session.core
        number = core.signal if core is not None else guest.debugger.signal
        if not number:
            reached = [stop for stop in guest.debugger.stops.reached if stop.number]
            if not reached:
                raise CommandError("exceptionInfo: nothing of that kind has stopped the program")
            return bodies.ExceptionInfoBody(
                exception_id=reached[0].event or reached[0].what, break_mode="always"
            )
        name, text = signal_name(number), signal_text(number)
        deadly = number in (sig.SIGSEGV, sig.SIGABRT, sig.SIGILL)
        return bodies.ExceptionInfoBody(
            exception_id=name,
            break_mode="unhandled" if deadly else "always",
            description=text,
            details=bodies.ExceptionDetails(message=text, type_name=name),
        )
