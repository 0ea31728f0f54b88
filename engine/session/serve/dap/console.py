"""Requests that evaluate expressions, and carry out lines that the user types."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from engine.errors import CommandError
from engine.session.debugger.command_table import split_word
from engine.session.debugger.output import TROUBLE
from engine.session.serve.dap import bodies, requests
from engine.session.serve.dap.announcer import Announcer
from engine.session.serve.dap.debuggee import Debuggee
from engine.session.serve.dap.editor import Editor
from engine.session.serve.dap.handlers import Handler, Handlers, NotStoppedError, SessionProgress
from engine.session.serve.dap.streams import ConsoleStreams

_NOTHING: Final = bodies.EvaluateBody(result="", variables_reference=0)


class ConsoleRequests:
    """Carries them out; while the guest runs, lines are typed into it."""

    def __init__(
        self,
        guest: Debuggee,
        editor: Editor,
        announcer: Announcer,
        progress: SessionProgress,
        streams: ConsoleStreams | None,
    ) -> None:
        """Carry them out on this guest; `streams` are None where it has a terminal."""
        self._guest, self._editor = guest, editor
        self._announcer, self._progress = announcer, progress
        self._streams = streams

    def handlers(self) -> Handlers:
        """Return the handlers of console requests."""
        return {
            "evaluate": Handler(
                requests.EvaluateArguments,
                self._evaluate,
                any_time=True,
                moves=self._moves,
                answer=_NOTHING,
                unforeseen=True,
                then=self._announcer.tell_typed,
            ),
            "completions": Handler(
                requests.CompletionsArguments, self._completions, any_time=True
            ),
        }

    def _moves(self, wanted: requests.EvaluateArguments) -> bool:
        """True for a line that lets the guest move."""
        if wanted.context != "repl" or self._progress.running:
            return False
        text = wanted.expression.strip()
        if self._is_variable(text, wanted) or self._guest.lines.is_own(text):
            return False
        try:
            return self._guest.lines.moves(text)
        except CommandError:
            return False

    def _evaluate(self, wanted: requests.EvaluateArguments) -> object:
        guest, text = self._guest, wanted.expression.strip()
        if wanted.context == "repl":
            if self._progress.running:
                return self._typed(wanted.expression)
            return self._move(text, wanted) if self._moves(wanted) else self._line(text, wanted)
        if self._progress.running:
            raise NotStoppedError("evaluate: the program is running")
        return guest.stopped.evaluate(text, wanted.frame_id, as_hex=wanted.format.hex)

    def _typed(self, text: str) -> object:
        """A line for the program, which runs."""
        if self._streams is None:
            raise CommandError("the program has a terminal of its own to be typed at")
        self._streams.write(f"{text}\n".encode(errors="surrogateescape"))
        return _NOTHING

    def _is_variable(self, text: str, wanted: requests.EvaluateArguments) -> bool:
        """True for the name of a variable, unless it is also that of a word."""
        if not text.isidentifier() or self._guest.lines.is_name(text):
            return False
        try:
            self._guest.stopped.evaluate(text, wanted.frame_id, as_hex=False)
        except TROUBLE:
            return False
        return True

    def _line(self, text: str, wanted: requests.EvaluateArguments) -> object:
        """A line of words for a guest that stays where it is, or an expression."""
        guest = self._guest
        guest.stopped.select(wanted.frame_id)
        told = guest.lines.told(text)
        if told is not None:
            return bodies.EvaluateBody(result="\n".join(told), variables_reference=0)
        trouble: CommandError | None = None
        try:
            is_word = not self._is_variable(text, wanted) and not guest.lines.moves(text)
        except CommandError as error:
            is_word, trouble = False, error
        if not is_word:
            try:
                return guest.stopped.evaluate(text, wanted.frame_id, as_hex=wanted.format.hex)
            except CommandError as error:
                raise trouble or error from None
        printed: list[str] = []
        with self._printing(printed.append):
            guest.interpreter.line(text)
        if guest.interpreter.ended:
            self._announcer.finish()
        return bodies.EvaluateBody(result="".join(printed).rstrip("\n"), variables_reference=0)

    def _move(self, text: str, wanted: requests.EvaluateArguments) -> str:
        """A line of words that lets the guest move: what it prints comes on the way."""
        guest = self._guest
        guest.stopped.select(wanted.frame_id)
        with self._printing(lambda shown: self._editor.output.add("console", shown)):
            guest.interpreter.line(text)
        return "step"

    @contextmanager
    def _printing(self, put: Callable[[str], object]) -> Iterator[None]:
        self._guest.printed = put
        try:
            yield
        finally:
            self._guest.printed = None

    def _completions(self, wanted: requests.CompletionsArguments) -> object:
        before = wanted.text[: max(wanted.column - self._editor.first_column, 0)]
        name, _ = split_word(before.lstrip())
        if before.strip() != name.strip() and not before.lstrip().startswith("info "):
            return bodies.CompletionsBody([])
        typed = before.lstrip()
        start = len(before) - len(typed)
        found = [
            bodies.CompletionItem(label=names[0], detail=text, start=start, length=len(typed))
            for names, text in self._guest.interpreter.words.listed()
            if names[0].startswith(typed)
        ]
        return bodies.CompletionsBody(found)
