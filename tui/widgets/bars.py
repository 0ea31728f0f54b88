"""One-line widgets: the status, the tabs of a narrow terminal, messages and prompts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from engine.session.views import GuestView, RunState
from tui.layout import PaneSpec
from tui.render import grouped, harmless, is_ascii, mark

_STATES = {
    RunState.READY: "bold",
    RunState.RUNNING: "bold green",
    RunState.STOPPED: "bold yellow",
    RunState.WAITING: "bold cyan",
    RunState.ENDED: "bold red",
}


class StatusBar(Static):
    """What the guest is, what it does, and how much was recorded."""

    DEFAULT_CSS = """
    StatusBar { height: 1; background: $panel; color: $foreground; text-wrap: nowrap; }
    """

    def show(self, view: GuestView) -> None:
        """Another view."""
        plain = is_ascii(self.app)
        name = harmless(view.program.rsplit("/", 1)[-1], plain)
        probes = sum(probe.kind != "b" for probe in view.probes)
        misses = sum(probe.misses for probe in view.probes)
        text = Text(f" {name} ", "bold", no_wrap=True)
        text.append(f"{view.arch}  ")
        text.append(view.state.value, _STATES[view.state])
        doing = f" in {view.waiting_in}()" if view.waiting_in else ""
        text.append(doing or (f": {harmless(view.reason, plain)}" if view.reason else ""))
        text.append(f"  {harmless(view.location, plain)}" if not doing else "")
        text.append(f"  t={grouped(view.time)}  probes {probes}  events {grouped(view.events)}")
        if misses:
            text.append(f"  missed {grouped(misses)}", "bold red")
        self.update(text)


class TabStrip(Static):
    """Names of the panes of a group; a click shows one."""

    DEFAULT_CSS = """
    TabStrip { height: 1; color: $text-muted; text-wrap: nowrap; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._spans: list[tuple[int, int, str]] = []

    @dataclass
    class Picked(Message):
        """A pane was clicked."""

        pane: str

    def show(self, panes: Sequence[PaneSpec], active: str) -> None:
        """The group, and which of it is seen."""
        text = Text(no_wrap=True)
        self._spans = []
        for spec in panes:
            shown = f"{spec.number} {spec.name}"
            shown = f"[{shown}]" if spec.id == active else f" {shown} "
            self._spans.append((len(text), len(text) + len(shown), spec.id))
            text.append(shown, Style(bold=spec.id == active))
        rule = mark("rule", is_ascii(self.app))
        text.append(rule * max(self.app.size.width - len(text), 0), Style(dim=True))
        self.update(text)

    def on_click(self, event: events.Click) -> None:
        """Show the pane whose name was clicked."""
        for start, end, pane in self._spans:
            if start <= event.x < end:
                self.post_message(self.Picked(pane))


class MessageLine(Horizontal):
    """The last message; while something is asked, the line to type it in."""

    DEFAULT_CSS = """
    MessageLine { height: auto; max-height: 4; }
    MessageLine > Static { width: 1fr; height: auto; max-height: 4; }
    MessageLine > .asked { width: auto; display: none; color: $text-accent; }
    MessageLine > Input { display: none; border: none; height: 1; padding: 0; width: 1fr; }
    MessageLine > Input:focus { border: none; }
    MessageLine.-asking > .said { display: none; }
    MessageLine.-asking > .asked { display: block; }
    MessageLine.-asking > Input { display: block; }
    MessageLine > .said.-error { color: $text-error; text-style: bold; }
    MessageLine > .said.-warning { color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("up", "recall(-1)", "Earlier", show=False),
        Binding("down", "recall(1)", "Later", show=False),
        Binding("tab", "complete", "Complete", show=False, priority=True),
    ]

    @dataclass
    class Completing(Message):
        """The user wants to know what the line may become; `completed` takes it."""

        line: "MessageLine"
        what: str
        text: str

    @dataclass
    class Answered(Message):
        """Something was typed."""

        what: str
        text: str

    @dataclass
    class Left(Message):
        """The user is done with the line."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._what = ""
        self._place = 0
        self._choices: list[str] = []
        self.histories: dict[str, list[str]] = {}

    def compose(self) -> ComposeResult:
        """The message, or label and line."""
        yield Static(classes="said", markup=False)
        yield Static(classes="asked", markup=False)
        yield Input(compact=True, select_on_focus=False)

    def say(self, text: str, severity: str = "information") -> None:
        """Show a message."""
        said = self.query_one(".said", Static)
        said.set_class(severity == "error", "-error")
        said.set_class(severity == "warning", "-warning")
        said.update("\n".join(harmless(line, is_ascii(self.app)) for line in text.split("\n")))

    def ask(self, what: str, hint: str, text: str) -> None:
        """Have something typed; `Answered` brings it."""
        self._what = what
        self._place = len(self._history)
        self.query_one(".asked", Static).update(f"{what}: " if what != ":" else ":")
        line = self.query_one(Input)
        line.placeholder, line.value = hint, text
        line.cursor_position = len(text)
        self.add_class("-asking")
        line.focus()

    @property
    def _history(self) -> list[str]:
        return self.histories.setdefault(self._what.partition(" ")[0], [])

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Hand it on."""
        event.stop()
        if event.value and event.value not in self._history[-1:]:
            self._history.append(event.value)
            del self._history[:-500]
        self.action_leave()
        if event.value:
            self.post_message(self.Answered(self._what, event.value))

    def action_leave(self) -> None:
        """Back to the message."""
        self.remove_class("-asking")
        self.post_message(self.Left())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tab completes only where something is typed."""
        if action == "complete":
            return self.has_class("-asking")
        return super().check_action(action, parameters)

    def action_complete(self) -> None:
        """The next thing the line may become."""
        line = self.query_one(Input)
        if self._choices and line.value in self._choices:
            at = self._choices.index(line.value) + 1
            line.value = self._choices[at % len(self._choices)]
            line.cursor_position = len(line.value)
        else:
            self.post_message(self.Completing(self, self._what, line.value))

    def completed(self, choices: list[str]) -> None:
        """What the line may become; Tab goes through it."""
        self._choices = choices
        if choices:
            line = self.query_one(Input)
            line.value = choices[0]
            line.cursor_position = len(line.value)

    def action_recall(self, step: int) -> None:
        """Go through what was typed before."""
        history, line = self._history, self.query_one(Input)
        self._place = max(min(self._place + step, len(history)), 0)
        line.value = history[self._place] if self._place < len(history) else ""
        line.cursor_position = len(line.value)
