"""The frame of every pane: a title above it, and a prompt at its bottom."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from engine.session.protocol.views import GuestView, RunState
from tui.messages import Moment
from tui.render import is_ascii
from tui.widgets.prompt import Prompt
from tui.widgets.titles import Tab, title

_MOMENTS: Final = {RunState.RUNNING: "last stop", RunState.ENDED: "at the end"}
"""States of a guest to the moment that panes show of it then; else it is that of now."""


class Pane(Vertical):
    """A pane around what it shows; the keys of its own work while that has the focus.

    Attributes:
        key: of the pane, shown in its title; None without one.
        content: has the keys when the pane is gone to.
        parts: of the title behind the name.
        count: how much there is in it, shown where only its name is seen; "" for nothing to tell.
    """

    ALLOW_MAXIMIZE = True
    TITLE: ClassVar[str] = ""
    OF_A_MOMENT: ClassVar[bool] = False
    """True of a pane that shows the guest as it stands; while that runs, as it stood before."""

    DEFAULT_CSS = """
    Pane {
        border-top: solid $foreground 25%;
        border-title-color: $foreground 80%;
        height: 1fr;
        width: 1fr;
        min-height: 1;
        &.-aside { border-left: solid $foreground 25%; }
        &:focus-within {
            border-top: solid $border;
            border-title-color: $text-accent;
            border-title-style: bold;
        }
        &.-aside:focus-within { border-left: solid $border; }
        &.-past > * { text-opacity: 55%; }
        &.-ascii { border-top: ascii $foreground 25%; }
        &.-ascii.-aside { border-left: ascii $foreground 25%; }
        &.-ascii:focus-within { border-top: ascii $border; }
        &.-ascii.-aside:focus-within { border-left: ascii $border; }
        &:ansi { border-top: solid ansi_bright_black; }
        &.-aside:ansi { border-left: solid ansi_bright_black; }
        &:ansi:focus-within { border-top: solid $border; }
        &.-aside:ansi:focus-within { border-left: solid $border; }
        &.-ascii:ansi { border-top: ascii ansi_bright_black; }
        &.-ascii.-aside:ansi { border-left: ascii ansi_bright_black; }
        &.-ascii:ansi:focus-within { border-top: ascii $border; }
        &.-ascii.-aside:ansi:focus-within { border-left: ascii $border; }
    }
    """

    @dataclass
    class Counted(Message):
        """There is more or less in a pane than before."""

        pane: "Pane"

    @dataclass
    class Picked(Message):
        """A pane's name was clicked in the title of this one."""

        pane: str

    def __init__(self, content: Widget) -> None:
        super().__init__()
        self.key: str | None = None
        self.content = content
        self.parts: tuple[str, ...] = ()
        self.count = ""
        self._prompt = Prompt(self.focus_inside)
        self._noted = self._moment = ""
        self._entitles = False
        self._others: tuple[Tab, ...] = ()
        self._titled: tuple[object, ...] = ()
        self._spans: tuple[tuple[int, int, str], ...] = ()

    def compose(self) -> ComposeResult:
        """The content; the prompt comes when something is asked."""
        yield self.content

    @property
    def prompt(self) -> Prompt:
        """For search and the like; a part of the pane from the first use on, as most have none."""
        if not self._prompt.is_attached:
            self.mount(self._prompt)
        return self._prompt

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """No key of the pane while something is typed in it."""
        return self.content.has_focus and super().check_action(action, parameters)

    @property
    def moment(self) -> Moment | None:
        """The moment of the run that the row at the cursor is of; None for none."""
        return None

    def show(self, view: GuestView) -> None:
        """Take a new view of the guest; a pane that shows nothing of it need not do anything."""

    def date(self, state: RunState) -> None:
        """Say of which moment the pane is; dimmed where the guest has gone on since."""
        if not self.OF_A_MOMENT:
            return
        moment = _MOMENTS.get(state, "")
        if moment != self._moment:
            self._moment = moment
            self.set_class(state is RunState.RUNNING, "-past")
            self.retitle(*self.parts)

    def restarted(self) -> None:
        """A new run has begun: forget the one before."""

    def on_mount(self) -> None:
        """Draw the border with what the terminal has."""
        self.set_class(is_ascii(self.app), "-ascii")
        self.retitle(*self.parts)

    def focus_inside(self) -> None:
        """Give the content the focus, at once.

        `Widget.focus` only asks for it: until then a pane that is hidden for this one loses the
        focus to whatever comes next, and that would be gone to as well.
        """
        self.screen.set_focus(self.content, scroll_visible=False)  # it is never out of sight

    # -- title ------------------------------------------------------------------------------

    def among(self, tabs: Sequence[Tab]) -> None:
        """Name all panes that take turns with this one, itself included."""
        self._others = tuple(tabs) if len(tabs) > 1 else ()
        self._entitle()

    def retitle(self, *parts: str, count: str = "") -> None:
        """Set the title: key and name, then parts that change.

        Args:
            parts: remarks of the pane on itself.
            count: how much there is in it.
        """
        self.parts = parts
        if count != self.count:
            self.count = count
            if self.is_attached:
                self.post_message(self.Counted(self))
        self._entitle()

    def note(self, text: str) -> None:
        """Show something short in the title; "" takes it away."""
        if text != self._noted:
            self._noted = text
            self._entitle()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Everything that the title says behind the name, where there is room; "" is nothing."""
        return self._moment, self.count, *self.parts, self._noted

    @property
    def _indent(self) -> int:
        """Cells in front of the title: an edge, the rule, a blank."""
        return 3 if self.has_class("-aside") else 2

    def _entitle(self) -> None:
        """Draw the title, if it is another one."""
        if not self.is_attached or not self.display:
            return
        tabs = self._others or (Tab(self.id or "", self.key, self.TITLE),)
        remarks = self.remarks
        width = self.outer_size.width - self._indent - 1
        shown = tabs, remarks, width
        if shown != self._titled and width > 0:
            self._titled = shown
            made = title(tabs, self.id or "", remarks, width, is_ascii(self.app))
            # Beside an edge the frame puts a blank in front.
            lead = Content("" if self.has_class("-aside") else " ")
            self._entitles = True
            self.border_title, self._spans = lead + made.content, made.spans
            self._entitles = False

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Have all painted, or some regions; of a pane with another title its row alone.

        Textual has the pane painted for that, and all that is in it.
        """
        if self._entitles and self._is_mounted:
            left, top = self.content_offset
            regions = (Region(-left, -top, self.outer_size.width, 1),)
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def on_resize(self) -> None:
        """Write the title again for another width."""
        self._entitle()

    def on_click(self, event: events.Click) -> None:
        """A name in the title was clicked: that pane is to be seen."""
        if event.widget is not self or event.y:
            return
        at = event.x - self._indent
        for start, end, pane in self._spans:
            if start <= at < end:
                self.post_message(self.Picked(pane))
