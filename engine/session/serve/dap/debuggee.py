"""A guest that an editor debugs, and all that looks at it."""

from collections.abc import Callable, Iterable

from engine.errors import CommandError
from engine.session.control.control import Control
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import Interpreter
from engine.session.debugger.output import Guard
from engine.session.serve.commandline import PassedLines, RecordedEvents
from engine.session.serve.dap.breakpoints import FrontEndBreakpoints
from engine.session.serve.dap.code import CodeListing
from engine.session.serve.dap.editor import Editor
from engine.session.serve.dap.exceptions import ExceptionFilters
from engine.session.serve.dap.requests import LaunchArguments
from engine.session.serve.dap.sources import SourceNames
from engine.session.serve.dap.variables import StoppedGuest
from engine.session.serve.programmemory import ProgramMemory

_HELP = (
    "What is no word is taken for an expression. While the program runs, it reads what is typed."
)


class Debuggee:
    """A guest in the hands of gdb's words.

    Attributes:
        control: the guest under control.
        launched: the way in which it was asked for.
        debugger: what is known of it.
        interpreter: carries the words out.
        lines: lines that are no words.
        printed: takes what the words print; None where nobody asks for it.
        memory: its memory.
        sources: its source files.
        code: its instructions.
        breakpoints: the editor's.
        exceptions: filters that are on.
        stopped: frames and values in numbers.
    """

    def __init__(
        self,
        control: Control,
        launched: LaunchArguments,
        events: RecordedEvents,
        editor: Editor,
        moving: Guard,
    ) -> None:
        """Take a guest that stands at its first instruction.

        Args:
            control: the guest under control.
            launched: the way in which it was asked for.
            events: those that it records.
            editor: takes lines of logpoints.
            moving: held while the guest may move.
        """
        self.control, self.launched = control, launched
        self.printed: Callable[[str], object] | None = None
        self.debugger = debugger = Debugger(control, self._say, moving)
        debugger.confirm = False
        debugger.started = True
        self.interpreter = Interpreter(debugger, has_terminal=False)
        self.lines = PassedLines(control, self.interpreter, events, _HELP)
        self.memory = ProgramMemory(control)
        self.sources = SourceNames(lambda: debugger.files.modules())
        self.code = CodeListing(debugger, self.memory, self.sources)
        self.breakpoints = FrontEndBreakpoints(
            debugger, self.interpreter, self.sources, editor.log
        )
        self.exceptions = ExceptionFilters(debugger, self.interpreter)
        self.stopped = StoppedGuest(debugger, self.sources, lambda: editor.first_line)

    @property
    def threads(self) -> Iterable[int]:
        """Ids of its threads."""
        return self.control.session.machine.threads

    def word(self, line: str) -> None:
        """Carry a word out that moves the guest.

        Raises:
            CommandError: it cannot move so.
        """
        if self.control.session.core is not None:
            raise CommandError("a core file does not move")
        self.interpreter.line(line)

    def _say(self, text: str) -> None:
        if self.printed is not None:
            self.printed(text)
