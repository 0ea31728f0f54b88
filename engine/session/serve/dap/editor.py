"""The front end at the other end of a session, as events reach it."""

from engine.session.serve.dap import bodies
from engine.session.serve.dap.framing import MessageWriter
from engine.session.serve.dap.requests import DapSource, InitializeArguments
from engine.session.serve.dap.streams import OutputEvents


class Editor:
    """Takes events.

    Attributes:
        writer: takes answers, too.
        output: gathers texts for it.
        settings: what it has said of itself.
    """

    def __init__(self, writer: MessageWriter) -> None:
        """Wait for the editor's first message."""
        self.writer = writer
        self.output = OutputEvents(self._put)
        self.settings = InitializeArguments()

    def greeted(self, settings: InitializeArguments) -> None:
        """Take what the editor says of itself in `initialize`."""
        self.settings = settings
        self.output.styled = settings.supports_styling

    @property
    def first_line(self) -> int:
        """Number of the first line of a file, as it counts."""
        return 1 if self.settings.lines_start_at1 else 0

    @property
    def first_column(self) -> int:
        """Number of the first character of a line, as it counts."""
        return 1 if self.settings.columns_start_at1 else 0

    def line_in(self, line: int) -> int:
        """A line that it names, as debug information counts."""
        return line + 1 - self.first_line

    def line_out(self, line: int) -> int:
        """A line of debug information as it counts; 0 for none."""
        return line - 1 + self.first_line if line else 0

    def event(self, name: str, body: object = None) -> None:
        """Tell it something; the texts gathered so far come first.

        Raises:
            EditorGoneError: nobody listens.
        """
        self.output.flush()
        self.writer.event(name, body)

    def say(self, text: str) -> None:
        """A line for the user."""
        self.output.add("console", f"{text}\n")

    def log(self, text: str, source: DapSource | None, line: int) -> None:
        """A line of a logpoint, and where that is."""
        shown = self.line_out(line) if source is not None else 0
        body = bodies.OutputBody(category="console", output=f"{text}\n", source=source, line=shown)
        self.event("output", body)

    def _put(self, category: str, text: str) -> None:
        self.writer.event("output", bodies.OutputBody(category=category, output=text))
