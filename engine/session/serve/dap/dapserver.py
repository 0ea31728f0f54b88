"""A guest in the hands of an editor: requests of the Debug Adapter Protocol, one after the other.

Those that come while the guest runs are answered in the middle of the run if they can be, or stop
it first.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from engine.errors import CommandError, KprobeTuiError
from engine.session.control.control import Control
from engine.session.debugger.output import TROUBLE, message
from engine.session.protocol import commands as cmd
from engine.session.protocol.config import GuestConfig
from engine.session.serve.attention import AttentionTimer
from engine.session.serve.commandline import RecordedEvents
from engine.session.serve.dap import bodies, requests
from engine.session.serve.dap.announcer import Announcer
from engine.session.serve.dap.console import ConsoleRequests
from engine.session.serve.dap.debuggee import Debuggee
from engine.session.serve.dap.editor import Editor
from engine.session.serve.dap.exceptions import FILTERS
from engine.session.serve.dap.framing import (
    BadRequestError,
    DapRequest,
    EditorGoneError,
    FramingError,
    MessageWriter,
    request_of,
)
from engine.session.serve.dap.handlers import Handler, Handlers, NotStoppedError, SessionProgress
from engine.session.serve.dap.inspection import InspectionRequests
from engine.session.serve.dap.launching import Configure, words_of
from engine.session.serve.dap.motions import MotionRequests
from engine.session.serve.dap.stops import StopRequests
from engine.session.serve.dap.streams import ConsoleStreams

_NOT_STOPPED: Final = "notStopped"


class DapServer:
    """Answers the requests of one front end."""

    def __init__(
        self,
        writer: MessageWriter,
        configure: Configure,
        options: Sequence[str] = (),
        guest: Sequence[str] = (),
    ) -> None:
        """No guest is there yet.

        Args:
            writer: takes answers and events.
            configure: gives the guest that words of the command line stand for.
            options: words that stand in front of those of `launch`.
            guest: GUEST ARGS for a `launch` that names none.
        """
        self._configure = configure
        self._options, self._words = options, guest
        self._writer = writer
        self._editor = Editor(writer)
        self._progress = SessionProgress()
        self._events = RecordedEvents()
        self._announcer = Announcer(self._editor, self._progress, self._events)
        self._guest: Debuggee | None = None
        self._streams: ConsoleStreams | None = None
        self._messages: deque[bytes] = deque()
        self._later: deque[DapRequest] = deque()
        self._unanswered: tuple[DapRequest, Handler] | None = None
        self._gone = False
        self._attention = AttentionTimer(self._unheard, self._call)
        none = requests.NoArguments
        self._handlers: Handlers = {
            "initialize": Handler(requests.InitializeArguments, self._initialize),
            "launch": Handler(requests.LaunchArguments, self._launch, then=self._launched),
            "attach": Handler(none, self._attach),
            "disconnect": Handler(none, self._disconnect, halts=True),
        }

    @property
    def over(self) -> bool:
        """The front end has said goodbye, or is gone."""
        return self._progress.over

    def close(self) -> None:
        """Give back what belongs to the host."""
        self._attention.close()
        self._editor.output.close()
        guest, self._guest = self._guest, None
        if guest is not None:
            guest.control.close()
        if self._streams is not None:
            self._streams.close()

    # -- messages ---------------------------------------------------------------------------

    def arrived(self, body: bytes) -> None:
        """A message has come; from any thread. The guest listens if it runs."""
        self._messages.append(body)
        self._attention.wanted()

    def vanished(self) -> None:
        """Nothing more will come; from any thread."""
        self._gone = True
        self._attention.wanted()

    def _unheard(self) -> bool:
        """True for messages that a guest that runs is to answer."""
        news = bool(self._messages) or (self._gone and not self.over)
        return self._progress.running and news

    def _call(self) -> None:
        guest = self._guest
        if guest is not None:
            guest.control.sight.attention()
            guest.control.sight.nudge()

    def damaged(self, error: FramingError) -> None:
        """Nothing that comes can be understood any more."""
        self._editor.say(str(error))

    def work(self) -> None:
        """Answer all that has come, and what it leads to.

        Raises:
            EditorGoneError: nobody reads the answers.
        """
        while not self.over and (self._later or self._messages):
            if self._later:
                request = self._later.popleft()
                self._progress.interrupted = bool(self._later)
                self._carry_out(request)
            else:
                self._message(self._messages.popleft())
        self._progress.over = self.over or self._gone
        self._editor.output.flush()

    def _message(self, body: bytes) -> bool:
        """Answer a message; True if the guest has to stop for it."""
        try:
            request = request_of(body)
        except BadRequestError as error:
            if error.seq is not None:
                self._writer.refuse(error.seq, error.command, str(error))
            else:
                self._editor.say(str(error))
            return False
        return request is not None and self._carry_out(request)

    def _carry_out(self, request: DapRequest) -> bool:
        handler = self._handlers.get(request.command)
        running = self._progress.running
        if running and handler is not None and handler.halts:
            self._later.append(request)
            self._progress.interrupted = True
            return True
        try:
            if handler is None:
                known = self._guest is not None
                why = "there is no such request" if known else "launch comes first"
                raise CommandError(f"{request.command[:60]}: {why}")
            if running and not handler.any_time:
                raise NotStoppedError(f"{request.command}: the program is running")
            arguments = msgspec.convert(request.arguments, handler.arguments)
            if handler.moves(arguments):
                self._move(request, handler, arguments)
            else:
                self._writer.answer(request, handler.carry(arguments))
            if handler.then is not None:
                handler.then()
        except msgspec.ValidationError as error:
            self._refuse(request, f"{request.command}: {error}")
        except NotStoppedError as error:
            self._refuse(request, str(error), _NOT_STOPPED)
        except TROUBLE as error:
            self._refuse(request, message(error))
        except EditorGoneError:
            raise
        except OSError as error:  # of a file of the host's that the request has named
            self._refuse(request, f"{request.command}: {error}")
        return running and request.command == "pause"

    def _refuse(self, request: DapRequest, text: str, why: str = "") -> None:
        self._writer.refuse(request.seq, request.command, text, why)

    # -- while the guest moves --------------------------------------------------------------

    def _move(self, request: DapRequest, handler: Handler, arguments: Any) -> None:
        """Carry a motion out; it is answered before the guest moves, and a stop is told."""
        assert self._guest is not None
        self._unanswered = request, handler
        try:
            reason = handler.carry(arguments)
        except TROUBLE as error:
            if self._unanswered is not None:  # it has not moved: all numbers hold
                self._unanswered = None
                raise
            self._editor.say(message(error))
            reason = "step"
        self._guest.stopped.forget()
        self._answer()
        self._announcer.tell_stop(str(reason))

    def _answer(self) -> None:
        unanswered, self._unanswered = self._unanswered, None
        if unanswered is not None:
            request, handler = unanswered
            self._writer.answer(request, handler.answer)

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """The guest may move: who has asked for it gets an answer first."""
        if self._unanswered is not None:
            _, handler = self._unanswered
            self._answer()
            if handler.unforeseen and self._guest is not None:
                going = bodies.ContinuedBody(self._guest.control.thread)
                self._editor.event("continued", going)
        before, self._progress.running = self._progress.running, True
        self._attention.wanted()  # what has come before may be heard now
        try:
            yield
        finally:
            self._progress.running = before

    def waiting(self) -> cmd.Command | None:
        """Answer the messages that have come while the guest runs.

        Returns:
            A halt if one of them asks for it; else, behind an answer, a question for what else
            the editor may want to know by now. None if nothing has come.
        """
        halts, came = False, bool(self._messages)
        while self._messages:
            halts = self._message(self._messages.popleft()) or halts
        if self._gone and not self.over:
            self._progress.over = halts = True
        return cmd.Halt() if halts else cmd.Refresh() if came else None

    def wait(self) -> cmd.Command | None:
        """Give the run up: what stands in a blocked call is not waited for."""
        return None

    # -- a session's begin and end ----------------------------------------------------------

    def _initialize(self, wanted: requests.InitializeArguments) -> object:
        self._editor.greeted(wanted)
        return bodies.AdapterCapabilities(
            supports_configuration_done_request=True,
            supports_function_breakpoints=True,
            supports_conditional_breakpoints=True,
            supports_hit_conditional_breakpoints=True,
            supports_evaluate_for_hovers=True,
            exception_breakpoint_filters=FILTERS,
            supports_step_back=self._records_anyway,
            supports_set_variable=True,
            supports_goto_targets_request=True,
            supports_completions_request=True,
            supports_modules_request=True,
            supports_restart_request=True,
            supports_value_formatting_options=True,
            supports_exception_info_request=True,
            supports_delayed_stack_trace_loading=True,
            supports_loaded_sources_request=True,
            supports_log_points=True,
            supports_set_expression=True,
            supports_terminate_request=True,
            supports_data_breakpoints=True,
            supports_data_breakpoint_bytes=True,
            supports_read_memory_request=True,
            supports_write_memory_request=True,
            supports_disassemble_request=True,
            supports_breakpoint_locations_request=True,
            supports_clipboard_context=True,
            supports_stepping_granularity=True,
            supports_instruction_breakpoints=True,
            supports_exception_filter_options=True,
        )

    @property
    def _records_anyway(self) -> bool:
        return "--record" in self._options

    def _launch(self, wanted: requests.LaunchArguments) -> None:
        if self._guest is not None:
            raise CommandError("launch: there is a guest; restart starts it again")
        config, mode = self._configure(words_of(wanted, self._options, self._words))
        streams = None if config.tty else ConsoleStreams(self._editor.output)
        editor, announcer, progress = self._editor, self._announcer, self._progress
        try:
            control = Control(
                config,
                announcer.told,
                mode=mode,
                terminal=streams,
                source=self,
                is_shown=False,  # a client asks for frames and registers itself
            )
        except KprobeTuiError:
            if streams is not None:
                streams.close()
            raise
        self._streams = streams
        self._guest = guest = Debuggee(control, wanted, self._events, editor, self._moving)
        announcer.debuggee = guest
        self._handlers = {
            **self._handlers,
            "terminate": Handler(
                requests.NoArguments, self._terminate, halts=True, then=announcer.finish
            ),
            **MotionRequests(guest, editor, self._again).handlers(),
            **StopRequests(guest, editor, progress).handlers(),
            **InspectionRequests(guest, editor, progress).handlers(),
            **ConsoleRequests(guest, editor, announcer, progress, streams).handlers(),
        }

    def _launched(self) -> None:
        assert self._guest is not None
        if self._guest.control.config.history and not self._records_anyway:
            capable = bodies.AdapterCapabilities(supports_step_back=True)
            self._editor.event("capabilities", bodies.CapabilitiesBody(capable))
        self._editor.event("initialized")
        self._announcer.tell_changes()

    def _again(self, wanted: requests.LaunchArguments) -> GuestConfig:
        """The guest that is asked for when it starts again."""
        config, _ = self._configure(words_of(wanted, self._options, self._words))
        return config

    def _attach(self, wanted: requests.NoArguments) -> None:
        raise CommandError("attach: a guest is launched here; there is no process to attach to")

    def _disconnect(self, wanted: requests.NoArguments) -> None:
        self._progress.over = True

    def _terminate(self, wanted: requests.NoArguments) -> None:
        """The guest does not move any more."""
