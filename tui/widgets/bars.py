"""One-line widgets: the status, messages and prompts."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static
from textual.widgets.input import Selection

from engine.errors import KprobeTuiError
from engine.message_text import bare_place
from engine.session.protocol.views import GuestView, RunState
from tui.render import cut, grouped, harmless, is_ascii
from tui.widgets.line_help import LineInput, LineSought, beginning, columns, common_front
from tui.widgets.state_lines import TextRow

_STATES = {
    RunState.READY: "bold",
    RunState.RUNNING: "bold $text-success",
    RunState.STOPPED: "bold $text-warning",
    RunState.WAITING: "bold $text-accent",
    RunState.ENDED: "bold $text-error",
}
_OFFERED: Final = 8
"""Rows of what a line may become."""
_NOWHERE: Final = "?"
"""The location of what is in no function of no file."""
_LEAST: Final = 20
"""Characters that each part of the status may have at any width."""


class StatusBar(TextRow):
    """The guest's name and state, and how much was recorded.

    A narrow terminal shows what matters most: the state and its reason are the last to go.
    """

    DEFAULT_CSS = """
    StatusBar { height: 1; background: $panel; color: $foreground; text-wrap: nowrap; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = GuestView()
        self._work = ""

    def show(self, view: GuestView) -> None:
        """Show a new view."""
        self._view = view
        self._renew()

    def work(self, text: str) -> None:
        """Say what the engine works on; "" for nothing."""
        self._work = text
        self._renew()

    @property
    def works(self) -> bool:
        """True while it is shown that the engine works on something."""
        return bool(self._work)

    def on_resize(self) -> None:
        """Show more or fewer parts for another width."""
        self._renew()

    def _renew(self) -> None:
        self.draw(self._content())

    def _content(self) -> Content:
        """The parts that there is room for, in their order."""
        room = self.size.width - 1
        most = max(2 * room // 3, _LEAST)  # one long name does not push all others out
        parts = [
            (order, cut(text, most, is_ascii(self.app)), look)
            for order, text, look in self._parts()
            if text
        ]
        while len(parts) > 1 and sum(len(text) + 2 for _, text, _ in parts) > room + 2:
            parts.remove(max(parts, key=lambda part: part[0]))
        shown: list[str | tuple[str, str]] = [" "]
        for number, (_, text, look) in enumerate(parts):
            if number:
                shown.append("  ")
            if text.startswith(state := self._view.state.value):
                shown += [(state, look), text.removeprefix(state)]
            else:
                shown.append((text, look))
        return Content.assemble(*shown)

    def _parts(self) -> list[tuple[int, str, str]]:
        """All parts: how soon each may go (the highest first), its text, its look."""
        view, plain = self._view, is_ascii(self.app)
        misses = sum(probe.misses for probe in view.probes)
        if view.waiting_in and view.state is not RunState.ENDED:
            doing = f"{view.state.value} in {view.waiting_in}()"
        else:
            reason = harmless(view.reason, plain)
            doing = f"{view.state.value}: {reason}" if reason else view.state.value
        look = _STATES[view.state]
        if self._work and view.state not in (RunState.RUNNING, RunState.WAITING):
            doing, look = harmless(self._work, plain), "bold $text-accent"
        thread = f"{view.comms.get(view.thread, '')}-{view.thread}"
        of_all = f"{harmless(thread, plain)} of {view.threads} threads"
        where = "" if view.waiting_in else harmless(bare_place(view.location), plain)
        if where == _NOWHERE:  # of a kernel image, while no function is called, pc is no place
            where = f"{view.pc:#x}" if view.frames else ""
        line = f"{view.line[0].rsplit('/', 1)[-1]}:{view.line[1]}" if view.line and where else ""
        return [
            (2, harmless(view.program.rsplit("/", 1)[-1], plain), "bold"),
            (7, view.arch, ""),
            (0, doing, look),
            (3, where, ""),
            (5, harmless(line, plain), ""),
            (3, of_all if view.threads > 1 else "", ""),
            (1, harmless(view.troubles, plain), "bold $text-error"),
            (1, f"missed {grouped(misses)}" if misses else "", "bold $text-error"),
            (6, f"t={grouped(view.time)}", ""),
        ]


def _nothing(text: str) -> list[str]:
    return []


class Question(Struct, frozen=True):
    """Something to be typed.

    Attributes:
        what: is asked, in front of the line; its first word names the history.
        hint: shown while the line is empty.
        answer: takes what was typed.
        text: to begin with.
        complete: what a line that is being typed may become; None: it is offered later.
        old: `text` is what holds now: it is selected, and what is typed takes its place.
        empty: an empty line is an answer, too.
        kept: characters in front of `text` that stay while the rest of the old one is selected.
    """

    what: str
    hint: str
    answer: Callable[[str], object]
    text: str = ""
    complete: Callable[[str], list[str] | None] = _nothing
    old: bool = False
    empty: bool = False
    kept: int = 0


class MessageLine(Vertical):
    """The last message; while something is asked, the line to type it in.

    It has a row of its own. A longer message lies above the panes, which stay as they are, and
    goes with the next key.
    """

    DEFAULT_CSS = """
    MessageLine {
        layer: above; dock: bottom; margin: 0 0 1 0;
        height: auto; min-height: 1; max-height: 9; background: $background;
    }
    MessageLine.-long { background: $panel; }
    MessageLine Static { width: 1fr; height: auto; max-height: 9; }
    MessageLine > .offered { display: none; background: $panel; }
    MessageLine.-offering > .offered { display: block; }
    MessageLine > .line { display: none; height: 1; }
    MessageLine.-asking > .line { display: block; }
    MessageLine.-asking > .said { display: none; }
    MessageLine .asked { width: auto; color: $text-accent; }
    MessageLine Input { border: none; height: 1; padding: 0; width: 1fr; }
    MessageLine Input:focus { border: none; }
    MessageLine > .said.-error { color: $text-error; text-style: bold; }
    MessageLine > .said.-warning { color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("up", "recall(-1)", "Earlier", show=False),
        Binding("down", "recall(1)", "Later", show=False),
        Binding("tab", "complete", "Complete", show=False, priority=True),
        Binding("ctrl+r", "search", "Search", show=False, priority=True),
    ]

    def __init__(self, left: Callable[[], object], *, id: str | None = None) -> None:
        """`left` is called when the keys belong to somebody else again."""
        super().__init__(id=id)
        self._left = left
        self._question = Question("", "", _nothing)
        self._place = 0
        self._choices: list[str] = []
        self._listed_for = ""
        self._sought: LineSought | None = None
        self._passing = False
        self._told = "", "information", False
        self.histories: dict[str, list[str]] = {}

    def compose(self) -> ComposeResult:
        """The message, or label and line."""
        yield Static(classes="said", markup=False)
        yield Static(classes="offered", markup=False)
        with Horizontal(classes="line"):
            yield Static(classes="asked", markup=False)
            yield LineInput(self._pasted)

    def say(self, text: str, severity: str = "information") -> None:
        """Show a message."""
        lines = text.split("\n")
        long = len(lines) > 1 or len(text) > max(self.app.size.width, 1)
        self._passing = long or severity != "information"
        if (text, severity, long) == self._told:
            return
        self._told = text, severity, long
        said = self.query_one(".said", Static)
        said.set_class(severity == "error", "-error")
        said.set_class(severity == "warning", "-warning")
        lines = [harmless(line, is_ascii(self.app)) for line in lines]
        rows = long or self.has_class("-long")
        self.set_class(long, "-long")
        said.update("\n".join(lines), layout=rows)  # a row is a row: all panes stay as they are

    def pass_by(self) -> None:
        """A key was pressed: what is long or went wrong has been read."""
        if self._passing:
            self.say("")

    def ask(self, question: Question) -> None:
        """Have something typed."""
        self._question = question
        self._place = len(self._history)
        self._end_search()
        text = question.text
        line = self.query_one(Input)
        line.placeholder, line.value = question.hint, text
        line.cursor_position = len(text)
        if question.old:
            line.selection = Selection(question.kept, len(text))
        self.add_class("-asking")
        line.focus()

    @property
    def _history(self) -> list[str]:
        return self.histories.setdefault(self._question.what.partition(" ")[0], [])

    def _label(self) -> None:
        """Show the words in front of the line: the question, or that the history is searched."""
        what = self._question.what
        if self._sought is not None:
            what = "search"
        self.query_one(".asked", Static).update(f"{what}: " if what != ":" else ":")

    def _show_offered(self, lines: Iterable[str]) -> None:
        """Show lines above the one that is being typed; none hides them."""
        text = "\n".join(harmless(line, is_ascii(self.app)) for line in lines)
        self.set_class(bool(text), "-offering")
        self.query_one(".offered", Static).update(text)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand it on; what is wrong with it takes its place."""
        event.stop()
        value = event.value
        if self._sought is not None:
            value = self._sought.line or value
            self._end_search()
        self._submit(value)

    def _submit(self, value: str) -> None:
        if value and value not in self._history[-1:]:
            self._history.append(value)
            del self._history[:-500]
        self._leave()
        if value or self._question.empty:
            try:
                self._question.answer(value)
            except KprobeTuiError as error:
                self.say(str(error), "error")

    def _pasted(self, lines: list[str], more: bool) -> None:
        """Submit lines that were pasted at once, each as if Enter were pressed behind it.

        Args:
            lines: of them the first one goes on where the cursor is.
            more: the last one has no newline: it is left to be gone on with.
        """
        question, line = self._question, self.query_one(Input)
        line.insert_text_at_cursor(lines[0])
        for text in lines[1:]:
            self._submit(line.value)
            if not self.has_class("-asking"):  # nobody asks for the lines of a block
                self.ask(question)
            line.value = text
            line.cursor_position = len(text)
        if not more:
            self._submit(line.value)

    def action_leave(self) -> None:
        """Back to the line from a search, and to the message from a line."""
        if self._sought is not None:
            line, text = self.query_one(Input), self._sought.before
            self._end_search()
            line.value = text
            line.cursor_position = len(text)
        else:
            self._leave()

    def _leave(self) -> None:
        self._end_search()
        self.remove_class("-asking")
        self._left()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tab and Ctrl-R are for a line that is being typed."""
        if action in ("complete", "search"):
            return self.has_class("-asking")
        return super().check_action(action, parameters)

    # -- completion --------------------------------------------------------------------------

    def action_complete(self) -> None:
        """As much as is clear, and the list of the rest; then one after the other of the list."""
        line = self.query_one(Input)
        if self._sought is not None:
            text = self._sought.line or line.value
            self._end_search()
            line.value = text
            line.cursor_position = len(text)
            return
        if self._choices and line.value in self._choices:
            at = self._choices.index(line.value) + 1
            self._choose(at % len(self._choices))
            return
        if self._choices and line.value == self._listed_for:
            self._choose(0)
            return
        found = self._question.complete(line.value)
        if found is not None:
            self.offer(line.value, found)

    def offer(self, typed: str, lines: Sequence[str]) -> None:
        """Complete a line that is being typed; where several fit, all are shown.

        Args:
            typed: the line that they are for; nothing is done if it is another one by now.
            lines: what it may become.
        """
        line = self.query_one(Input)
        if line.value != typed or not self.has_class("-asking"):
            return
        self._choices = [one for one in lines if one != typed] if len(lines) == 1 else list(lines)
        if not self._choices:
            self._show_offered(() if lines else ("nothing completes this",))
            return
        common = beginning(self._choices)
        if len(self._choices) == 1 or (len(common) > len(typed) and common.startswith(typed)):
            line.value = common
            line.cursor_position = len(common)
            if len(self._choices) == 1:
                self._show_offered(())
                return
        # Of several none is chosen yet: a name must not turn into another one by one key.
        self._listed_for = line.value
        self._show_choices(None)

    def _choose(self, at: int) -> None:
        line = self.query_one(Input)
        line.value = self._choices[at]
        line.cursor_position = len(line.value)
        self._show_choices(at)

    def _show_choices(self, chosen: int | None) -> None:
        width = max(self.app.size.width, 1)
        front = common_front(self._choices)
        words = [line[front:] for line in self._choices]
        self._show_offered(columns(words, chosen, width, _OFFERED))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Other lines may be offered for what is typed now."""
        event.stop()
        if self._sought is not None:
            self._sought = LineSought(self._history, event.value, self._sought.before)
            self._show_offered(self._sought.rows)
        elif not self._choices or event.value not in (*self._choices, self._listed_for):
            self._choices = []
            self._show_offered(())

    # -- lines typed before ------------------------------------------------------------------

    def action_search(self) -> None:
        """Search what was typed before, as a shell does: the next older line that fits."""
        if self._sought is None:
            before = self.query_one(Input).value
            self._sought = LineSought(self._history, before, before)
        else:
            self._sought.older()
        self._label()
        self._show_offered(self._sought.rows)

    def _end_search(self) -> None:
        self._sought, self._choices = None, []
        self._show_offered(())
        self._label()

    def action_recall(self, step: int) -> None:
        """Go through what was typed before."""
        if self._sought is not None:
            if step < 0:
                self._sought.older()
                self._show_offered(self._sought.rows)
            return
        history, line = self._history, self.query_one(Input)
        self._place = max(min(self._place + step, len(history)), 0)
        line.value = history[self._place] if self._place < len(history) else ""
        line.cursor_position = len(line.value)
