"""The terminal interface: panes over one guest that runs in the engine's thread."""

import gc
from collections.abc import Callable, Collection
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.containers import Horizontal, Vertical
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widget import Widget

from engine.errors import KprobeTuiError
from engine.session import GuestConfig
from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.rows import Names
from engine.session.protocol.views import GuestView, RunState
from tui.bridge import PERIOD, Bridge
from tui.function_trace import GraphActions
from tui.keymap import bindings
from tui.layout import PANES, TALL, WIDE, Layout, PaneSpec, by_number
from tui.messages import Ask, Copied, Located, Say
from tui.motions import Motions
from tui.palette import Everything
from tui.panes.backtrace import BacktracePane
from tui.panes.code import CodePane
from tui.panes.events import EventLogPane
from tui.panes.graph import GraphPane
from tui.panes.histogram import HistogramPane
from tui.panes.machinery import MachineryPane
from tui.panes.memory import MemoryPane
from tui.panes.output import OutputPane
from tui.panes.probes import ProbesPane
from tui.panes.registers import RegistersPane
from tui.probe_editor import PlacingActions
from tui.render import grouped
from tui.screens.help import HelpScreen
from tui.settings import Settings
from tui.store import EventStore
from tui.widgets.bars import MessageLine, StatusBar, TabStrip
from tui.widgets.hints import Hints
from tui.widgets.pane import Pane


class PlainScrollBar(ScrollBarRender):
    """Without eighths of a block at the ends."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


class KprobeApp(Motions, PlacingActions, GraphActions):
    """The interface for one guest.

    Attributes:
        view: the last view of the guest.
        ascii: draw with ASCII only.
    """

    CSS_PATH = "app.tcss"
    TITLE = "kprobe-tui"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Everything}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]

    def __init__(
        self,
        config: GuestConfig,
        *,
        definitions: tuple[str, ...] = (),
        kernel_rules: bool = False,
        settings: Settings | None = None,
        fresh: bool = True,
    ) -> None:
        """Load the guest.

        Args:
            config: what to run.
            definitions: lines of `kprobe_events` to place first.
            kernel_rules: place probes exactly as Linux would.
            settings: the user's, the usual ones if None.
            fresh: neither restore what was placed the last time nor remember it.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        super().__init__()
        self.config = config
        self.settings = Settings() if settings is None else settings
        self.ascii = self.settings.ascii
        ScrollBar.renderer = PlainScrollBar if self.ascii else ScrollBarRender
        self.fresh = fresh
        self.view = GuestView()
        self.browser = Browser(config)
        self.bridge = Bridge(config, self._deliver, lambda: self.typing, kernel_rules=kernel_rules)
        self._first = definitions
        self.layout_choice = Layout()
        self._status = StatusBar(id="status")
        self._tabs = {False: TabStrip(id="upper-tabs"), True: TabStrip(id="lower-tabs")}
        self.names = Names(self.browser.symbol_text, self._comm)
        self.store = EventStore(self.names)

    # -- parts ------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Bars, panes, and the line for messages and commands."""
        self._classify(update=False)  # before there is anything that has a style
        yield self._status
        with Vertical(id="body"):
            yield self._tabs[False]
            with Horizontal(id="upper"):
                with Vertical(id="left"):
                    yield CodePane(self.browser, id="code")
                    yield MachineryPane(self.browser, id="machinery")
                with Vertical(id="right"):
                    yield RegistersPane(id="registers")
                    yield BacktracePane(id="backtrace")
                    yield MemoryPane(self.browser, id="memory")
            yield self._tabs[True]
            with Horizontal(id="lower"):
                yield EventLogPane(self.store, id="events")
                with Vertical(id="aside"):
                    yield OutputPane(id="output")
                    yield ProbesPane(id="probes")
                    yield GraphPane(self.store, self.names, id="graph")
                    yield HistogramPane(id="histogram")
        yield MessageLine(id="message")
        yield Hints()

    def on_mount(self) -> None:
        """Begin."""
        if self.settings.theme:
            if self.settings.theme not in self.available_themes:
                self.say(f"there is no theme {self.settings.theme}", "warning")
            else:
                self.theme = self.settings.theme
        self.set_keymap(self.settings.keys)
        self.bridge.start()
        recalled = self.recall()
        for line in self._first:
            if line not in recalled:
                self.bridge.post(cmd.Define(line))
        self.set_interval(PERIOD, self.bridge.tick)
        self.arrange()
        self.pane("code").focus_inside()

    def _comm(self, thread: int) -> bytes | None:
        name = self.view.comms.get(thread)
        return None if name is None else name.encode(errors="surrogateescape")

    # -- layout -----------------------------------------------------------------------------

    @staticmethod
    def _is_wide(columns: int, seen: Collection[str]) -> bool:
        return columns >= WIDE and len(seen) > 2

    def _classify(self, *, update: bool = True) -> None:
        """The classes of this size, all at once: each update works every widget's style out."""
        columns, rows = self.size
        wide = self._is_wide(columns, self.layout_choice.seen(columns, rows))
        classes = {"-wide": wide, "-narrow": not wide, "-tall": rows >= TALL}
        self.update_classes(classes, update=update)

    def arrange(self) -> None:
        """Show the panes that belong on a terminal of this size."""
        columns, rows = self.size
        seen = self.layout_choice.seen(columns, rows)
        wide = self._is_wide(columns, seen)
        self._classify()
        for spec in PANES:
            self.pane(spec.id).display = spec.id in seen
        for box in ("left", "right", "aside", "upper", "lower"):
            widget = self.query_one(f"#{box}")
            widget.display = any(
                self.pane(spec.id).display and self._within(self.pane(spec.id), widget)
                for spec in PANES
            )
        tabs = not wide and rows >= 10
        for lower, name in ((False, "upper"), (True, "lower")):
            self._tabs[lower].display = tabs and self.query_one(f"#{name}").display
            self._show_tabs(lower)

    def _show_tabs(self, lower: bool) -> None:
        """The names of a group, where they are seen."""
        strip = self._tabs[lower]
        if strip.display and strip.is_attached:  # else the end has begun
            active = self.layout_choice.lower if lower else self.layout_choice.upper
            specs = [spec for spec in PANES if spec.lower is lower and self._has_tab(spec, active)]
            strip.show(specs, active, self.pane(active).noted)

    def _has_tab(self, spec: PaneSpec, active: str) -> bool:
        """Histograms need a tab only where there are any: a narrow terminal has little room."""
        return spec.id != "histogram" or active == spec.id or bool(self.view.histograms)

    def on_pane_retitled(self, message: Pane.Retitled) -> None:
        """A pane says something else of itself: without borders its tab shows it."""
        choice = self.layout_choice
        if message.pane.id in (choice.upper, choice.lower):
            self._show_tabs(message.pane.id == choice.lower)

    @staticmethod
    def _within(pane: Widget, box: Widget) -> bool:
        return box in pane.ancestors

    def on_resize(self) -> None:
        """Another size: another layout, perhaps."""
        self.call_next(self.arrange)  # Textual's own handler comes after this and sets `size`

    def show_pane(self, name: str) -> None:
        """Give a pane the focus, wherever it is."""
        self.layout_choice.focus(name)
        self.arrange()
        self.pane(name).focus_inside()

    def on_descendant_focus(self) -> None:
        """The focus has moved, by mouse or Tab."""
        if not self.screen_stack:
            return  # the end has begun
        for spec in PANES:
            if self._within_focus(spec.id) and self.layout_choice.focused != spec.id:
                self.layout_choice.focus(spec.id)
                self.arrange()

    def action_pane(self, number: int) -> None:
        """Go to a pane by its number."""
        spec = by_number(number)
        if spec is not None:
            self.show_pane(spec.id)

    def action_zoom(self) -> None:
        """The focused pane alone, or all."""
        self.layout_choice.zoomed = not self.layout_choice.zoomed
        self.arrange()

    def action_next_tab(self) -> None:
        """The next pane of the group."""
        self.show_pane(self.layout_choice.neighbour(1))

    def action_previous_tab(self) -> None:
        """The pane before."""
        self.show_pane(self.layout_choice.neighbour(-1))

    def action_help(self) -> None:
        """Keys of the focused pane."""
        help_text = "" if self.focused is None else self.focused.HELP or ""
        self.push_screen(HelpScreen(help_text, self.key_text))

    # -- from the engine --------------------------------------------------------------------

    def _deliver(self, events: list[ev.SessionEvent]) -> None:
        """A batch of what the engine has to say."""
        if not self._status.is_attached:
            return  # the end has begun, and the widgets are gone
        rows = output = False
        for event in events:
            match event:
                case ev.Viewed(view):
                    self._show(view)
                case ev.Rows(data, _):
                    self.store.append(data)
                    rows = True
                case ev.Declared(infos):
                    self.store.declare(infos)
                case ev.Output(data):
                    self.pane("output").feed(data)
                    output = True
                case ev.MemoryRead(_, pieces, _):
                    self.browser.remember(pieces)
                    self.pane("memory").remember(pieces)
                    self.pane("code").code.reload()
                case ev.Snapshot():
                    self.store.take_snapshot()
                    what = f"{grouped(len(self.store))} events up to #{self.store.end} are kept"
                    self.say(f"snapshot: {what}; :snapshot FILE writes them")
                case ev.Restarted():
                    self.pane("events").restarted()
                    self.pane("graph").restarted()
                    self.pane("output").restarted()
                    self.say("started afresh")
                case ev.Failed():
                    self.failed(event)
                case ev.Done(command, text):
                    self.done(command, text)
                case ev.Notice(text):
                    self.say(text, "warning")
                case ev.Crashed(text, trace):
                    self.exit(125, return_code=125, message=f"the engine failed: {text}\n{trace}")
        if rows:
            self.pane("events").drained()
            self.pane("graph").drained()
        if output:
            self.pane("output").drained()

    def _show(self, view: GuestView) -> None:
        """Another view for all panes."""
        old, self.view = self.view, view
        self.browser.update(view)
        self._status.show(view)
        self.pane("code").show(view)
        self.pane("registers").show(view)
        if view.state is not RunState.RUNNING or old.state is not view.state:
            self.pane("machinery").locate(self.pane("code").code.cursor)
            self.pane("machinery").show(view, self.playing_text)
        self.pane("probes").show(view.probes)
        self.pane("histogram").show(view.histograms)
        if bool(view.histograms) != bool(old.histograms):
            self._show_tabs(lower=True)
        self.show_returns(view.probes)
        if view.state not in (RunState.RUNNING, RunState.WAITING):
            self.pane("backtrace").show(view)
            self.pane("memory").show(view)
        if view.state is RunState.ENDED and old.state is not RunState.ENDED:
            self.pane("output").say(view.reason)
        self.moved(old, view)
        if not old.registers and not self.is_headless:
            self.call_after_refresh(self._up)

    @staticmethod
    def _up() -> None:
        """All is loaded and stays: collections need not look at it."""
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)  # a look at everything takes longer than a frame
        gc.enable()

    # -- from panes -------------------------------------------------------------------------

    def on_ask(self, message: Ask) -> None:
        """A pane wants something of the engine."""
        self.bridge.post(message.command)

    def on_say(self, message: Say) -> None:
        """A pane has something to say."""
        self.say(message.text, message.severity)

    def on_probes_pane_edit(self, message: ProbesPane.Edit) -> None:
        """A probe's definition is to be changed."""
        self.edit_probe(message.probe.id)

    def on_copied(self, message: Copied) -> None:
        """Text for the clipboard."""
        self.copy_to_clipboard(message.text)
        self.say(f"copied {message.text.count(chr(10)) + 1} line(s)")

    def on_located(self, message: Located) -> None:
        """The user looks at an address."""
        code = self.pane("code")
        if not self._within_focus("code"):
            if self.browser.row_at(message.address) is not None:
                code.code.jump(message.address)
                if message.focus:
                    self.show_pane("code")
            elif message.focus:
                self.show_pane("memory")
                self.pane("memory").locate(message.address)
        code.entitle()
        self.pane("machinery").locate(message.address)

    def _within_focus(self, name: str) -> bool:
        return self.focused is not None and self._within(self.focused, self.pane(name))

    def on_message_line_answered(self, message: MessageLine.Answered) -> None:
        """Something was typed into the line of messages."""
        try:
            self.answer(message.what, message.text)
        except KprobeTuiError as error:
            self.say(str(error), "error")

    def on_message_line_completing(self, message: MessageLine.Completing) -> None:
        """Tab in the line of messages."""
        message.line.completed(self.complete_line(message.what, message.text))

    def on_message_line_left(self) -> None:
        """The keys belong to the pane again."""
        self.pane(self.layout_choice.focused).focus_inside()

    def on_tab_strip_picked(self, message: TabStrip.Picked) -> None:
        """A pane's name was clicked."""
        self.show_pane(message.pane)

    # -- the end ----------------------------------------------------------------------------

    def on_unmount(self) -> None:
        """Remember what was placed, and end the guest."""
        self.remember()
        self.bridge.close()
