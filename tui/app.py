"""The terminal interface: panes over one guest that runs in the engine's thread."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Event, Key
from textual.filter import Monochrome, NoColor
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.timer import Timer
from textual.widgets import Input

from engine.errors import CommandError, KprobeTuiError
from engine.escaping import escaped
from engine.message_text import counted
from engine.session import GuestConfig
from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.rows import Names
from engine.session.protocol.views import GuestView, RunState
from tui.body import Body
from tui.bridge import PERIOD, Bridge
from tui.contrast import ContrastFilter
from tui.controls import Controls
from tui.exploring import Exploring
from tui.guest_input import GuestInput
from tui.key_queue import NEWLINE, KeyQueue
from tui.keymap import ACTIONS, BY_ID, Action, Situation, bindings, spelled
from tui.lessons import Lesson
from tui.lessons.lesson_desk import LessonDesk
from tui.messages import Ask, Copied, Followed, Located, Say, Words, Written
from tui.panes.code_view import CodeView
from tui.panes.graph import GraphPane
from tui.panes.memory import MemoryPane
from tui.panes.output import GuestLine
from tui.panes.probes import ProbesPane
from tui.panes.registers import RegistersPane
from tui.panes.registry import PANES, Panes, PaneSources, chapter_of
from tui.panes.threads import ThreadsPane
from tui.programs import Programs
from tui.render import grouped
from tui.screens.compositor import keep_layouts
from tui.screens.main import MainScreen
from tui.session_restore import SessionRestore
from tui.settings import Settings
from tui.stop_messages import StopMessages
from tui.store import EventStore
from tui.widgets.bars import MessageLine, Question, StatusBar
from tui.widgets.hints import Hints
from tui.widgets.pane import Pane
from tui.widgets.timeline import Timeline
from tui.work_in_hand import WorkInHand

if TYPE_CHECKING:
    from tui.lessons.checks import Seen

Result = TypeVar("Result")

_SAID: Final = (
    cmd.Define,
    cmd.ToggleBreak,
    cmd.Delete,
    cmd.Enable,
    cmd.StopOnHit,
    cmd.Unwind,
    cmd.SetFilter,
    cmd.ChangeTrigger,
    cmd.TraceFunctions,
    cmd.TraceKernel,
    cmd.Undo,
    cmd.Redo,
    cmd.WriteMemory,
    cmd.WriteRegister,
    cmd.Assemble,
    cmd.Signal,
    cmd.LoadHandlers,
    cmd.LoadScript,
    cmd.ChooseThread,
    cmd.ChooseGoroutine,
    cmd.StepAlone,
    cmd.SetMark,
    cmd.DeleteMark,
    cmd.StartBranch,
    cmd.SwitchBranch,
    cmd.DeleteBranch,
)
"""Commands whose success is told: no view shows it by itself."""
_LAST: Final = 1 << 62
"""A tick behind all others."""
_SHORT: Final = 3
"""Lines that have room where messages stand."""


def _ticks(first: int, last: int) -> str:
    """A stretch of ticks, in words."""
    if last >= _LAST:
        return f"from tick {grouped(first)} on"
    return f"in ticks {grouped(first)} to {grouped(last)}"


class PlainScrollBar(ScrollBarRender):
    """Without eighths of a block at the ends."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


class KprobeApp(App[int]):
    """The interface for one guest: wires its parts and passes on what the engine says.

    Attributes:
        settings: what the user has set.
        view: the last view of the guest.
        words: names of gdb's words, and the whole one of each, once they were told.
        ascii: draw with ASCII only.
        browser: the program's files.
        bridge: the way to the engine.
        post: has the engine carry a command out.
        store: recorded events.
        panes: all panes.
        body: which of them is seen.
        controls: what keys and commands act on.
        key_queue: keys that are not dealt with yet.
        lessons: lists lessons, opens them, leads through one.
    """

    CSS_PATH = "app.tcss"
    TITLE = "kprobe-tui"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(spec.key for spec in PANES)]

    def __init__(
        self,
        config: GuestConfig,
        *,
        definitions: tuple[str, ...] = (),
        kernel_rules: bool = False,
        settings: Settings | None = None,
        fresh: bool = True,
        lesson: Lesson | None = None,
    ) -> None:
        """Load the guest.

        Args:
            config: what to run.
            definitions: lines of `kprobe_events` to place first.
            kernel_rules: place probes exactly as Linux would.
            settings: the user's, the usual ones if None.
            fresh: neither restore what was placed the last time nor remember it.
            lesson: a lesson that this is the guest of.

        Raises:
            ImageError: the file cannot be run.
            CommandError: an option cannot be carried out.
        """
        keep_layouts()
        super().__init__()
        self.settings = Settings() if settings is None else settings
        self.ascii = self.settings.ascii
        if self.no_color:  # Textual would send shades of grey
            self._filters = [NoColor() if type(f) is Monochrome else f for f in self._filters]
        else:
            self._filters.append(ContrastFilter())
        ScrollBar.renderer = PlainScrollBar if self.ascii else ScrollBarRender
        self.view = GuestView()
        self.words: dict[str, str] = {}
        self._stops = StopMessages(self)
        self._hinted_at: tuple[bool, ...] = ()
        self.key_queue = KeyQueue(self, super().on_event)
        self._early: list[Key] | None = []
        self._main = MainScreen()
        self.browser = Browser(config)
        self.bridge = Bridge(
            config,
            self._deliver,
            lambda: self.key_queue.typing,
            kernel_rules=kernel_rules,
            opened=self.browser.opened,
        )
        self.post = self._post
        self.browser.pages.want = lambda start, size: self.post(
            cmd.ReadMemory(start, size, original=True, kept=True)
        )
        naming = self.browser
        self.programs = Programs(naming.symbol_text, naming.mapped_file, naming.source_line)
        names = Names(
            self.programs.symbol,
            self._comm,
            self._returning,
            process=self._process,
            file=self.programs.file,
            line=self.programs.line,
            arch=self.browser.arch.name,
        )
        self.store = EventStore(names, programs=self.programs)
        self.panes = Panes(PaneSources(self.browser, self.store, names))
        roles = self.browser.arch.roles
        self.body = Body(self.panes, roles.pc, roles.sp)
        self.controls = Controls.of(self, self.browser, self.body)
        self._guest_input = GuestInput(self, self.body)
        self._hints = Hints(self._fits)
        self._status = StatusBar(id="status")
        self._in_hand = WorkInHand(self, self._status.work, self.bridge.how_far)
        self._messages = MessageLine(self.body.focus_pane, id="message")
        self._definitions = definitions
        self._recording = config.is_lived_again
        self._restore = None if fresh else self._restoring()
        self.lessons = LessonDesk(lesson, self, self.body)
        self._exploring = Exploring(config, self, self.panes.console)

    def _post(self, command: cmd.Command) -> None:
        """Have the engine carry a command out."""
        self._stops.sent(command)
        self._in_hand.sent(command)
        self.bridge.post(command)

    @property
    def works(self) -> bool:
        """True while the engine has not answered a command that may take long."""
        return self._in_hand.is_there

    def type(self, line: str) -> None:
        """Have the engine carry a line of gdb's words out."""
        self.panes.console.typed(line)
        self.post(cmd.TypedLine(line))

    def _restoring(self) -> SessionRestore:
        histories = self._messages.histories
        return SessionRestore(self, self.browser.build_id, self.body.choice, histories)

    def _comm(self, thread: int) -> bytes | None:
        name = self.view.comms.get(thread) if thread else "<idle>"
        return None if name is None else name.encode(errors="surrogateescape")

    def _returning(self, address: int) -> bool:
        """True if returns of a function are recorded."""
        return any(
            probe.kind == "r" and probe.row.enabled and address in probe.addresses
            for probe in self.view.probes
        )

    def _process(self, thread: int) -> int:
        return self.view.pids.get(thread, thread)

    # -- beginning and end ------------------------------------------------------------------

    def get_default_screen(self) -> MainScreen:
        """The screen that the panes are on."""
        return self._main

    def compose(self) -> ComposeResult:
        """Bars, panes, and the line for messages and commands."""
        yield self._status
        if self.lessons.guide is not None:
            yield self.lessons.guide.panel
        yield self.body
        yield self._messages
        yield self._hints

    def on_mount(self) -> None:
        """Begin."""
        if self.settings.theme:
            if self.settings.theme in self.available_themes:
                self.theme = self.settings.theme
            else:
                self.say(f"there is no theme {self.settings.theme}", "warning")
        self.set_keymap(self.settings.keys)
        self._main.renew_keys()
        self.bridge.start()
        recalled = self._restore.recall() if self._restore is not None else set()
        for line in self._definitions:
            if line not in recalled:
                self.post(cmd.Define(line))
        if self._recording:  # all of it is the past, which can be looked at then
            self.post(cmd.Continue())
        self.set_interval(PERIOD, self.bridge.tick)
        self.body.fit()
        if self.lessons.guide is not None:
            self.lessons.guide.begin()
        if self.browser.kernel is not None and not self.browser.is_booted:
            self.body.show_pane("functions")
        else:
            self.panes.code.focus_inside()

    @staticmethod
    def _up() -> None:
        """All is loaded and stays: collections need not look at it."""
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)  # a look at everything takes longer than a frame
        gc.enable()

    def on_unmount(self) -> None:
        """Remember what was placed, and end the guest."""
        self.controls.slow_motion.stop()
        self.body.end_is_over()
        if self._restore is not None:
            self._restore.remember()
        self.bridge.close()

    # -- keys -------------------------------------------------------------------------------

    async def on_event(self, event: Event) -> None:
        """Keep keys in line, the first ones until the guest is seen; all else is as ever."""
        if isinstance(event, Key) and not event.is_forwarded:
            self._messages.pass_by()
            if event.key == NEWLINE:
                event = Key("enter", "\r")
            if self._early is not None:
                self._early.append(event)
                return
            if event.key == "escape" and self._gives_up:
                self.controls.motions.run(cmd.Halt())
                return
            await self.key_queue.take(event)
        else:
            await super().on_event(event)

    @property
    def _gives_up(self) -> bool:
        """True where Escape ends what is worked on: nothing is open that it would close."""
        typing = isinstance(self.focused, Input)
        return self._status.works and not typing and len(self.screen_stack) == 1

    def action_do(self, action: str) -> None:
        """Do an action of `tui.keymap`."""
        BY_ID[action].do(self.controls)

    def action_pane(self, key: str) -> None:
        """Go to a pane by its key."""
        self.body.show_key(key)

    def action_go_to(self, text: str) -> None:
        """Ask for a place, of which some was typed as the end of a chord that was none."""
        self.controls.navigator.ask(text)

    def action_command_palette(self) -> None:
        """Show everything by its name."""
        from tui.palette import Everything  # all of these for a key, not for the first screen
        from tui.screens.palette import PaletteScreen

        if not isinstance(self.screen, PaletteScreen):
            self.push_screen(PaletteScreen(Everything(self.controls)), self._chosen)

    def _chosen(self, do: Callable[[], object] | None) -> None:
        """Do what was chosen in the palette."""
        if do is not None:
            try:
                do()
            except KprobeTuiError as error:
                self.say(str(error), "error")

    def action_stay(self) -> None:
        """A key that means something to terminals only."""
        self.say("q quits")

    def on_resize(self) -> None:
        """Lay the panes out again for another size."""
        # Textual's own handler comes after this, sets `size`
        guide = self.lessons.guide
        self.call_next(self.body.fit if guide is None else guide.fit)

    # -- from the engine --------------------------------------------------------------------

    def _deliver(self, events: list[ev.SessionEvent]) -> None:
        """A batch of what the engine has to say."""
        if not self._status.is_attached:
            return  # the end has begun, and the widgets are gone
        panes = self.panes
        rows = output = False
        for event in events:
            match event:
                case ev.Viewed(view):
                    self._show(view)
                case ev.Rows(data, _, None):
                    self.store.append(data)
                    rows = True
                case ev.Rows(data, _, int() as stretch):
                    self.store.append_past(data, stretch)
                case ev.StretchBegun(stretch):
                    self.store.begin_stretch(stretch)
                case ev.Refilling() | ev.Refilled() | ev.Erased():
                    self._refill(event)
                    rows = True
                case ev.Declared(infos):
                    self.store.declare(infos)
                case ev.ProgramBegan():
                    self.programs.began(event)
                case ev.FileRead(path, data):
                    self.browser.carry(path, data)
                case ev.FileMapped():
                    self.programs.mapped(event)
                case ev.OutputLines(data, moments=moments):
                    panes.output.feed_lines(data, moments)
                    output = True
                case ev.Output(data, time, pc):
                    panes.output.feed(data, (time, pc) if time else None)
                    output = True
                case ev.MemoryRead(cmd.ReadMemory(address, size, original), pieces, kept=kept):
                    if original:
                        if self.browser.pages.remember(address, size, pieces, kept=kept):
                            panes.code.remembered()
                    else:
                        panes.memory.remember(address, pieces)
                case ev.WordsRead(cmd.ReadWords(first), words):
                    panes.memory.remember_words(first, words)
                case ev.LayoutRead(cmd.ReadLayout(text, again), layout):
                    if again:
                        panes.memory.remember_layout(layout)
                    else:
                        self.body.show_pane("memory")
                        panes.memory.examine(text, layout)
                case ev.PartsRead(cmd.ReadParts() as asked, found):
                    panes.backtrace.remember(asked, found)
                case ev.OriginFound():
                    self.controls.history.found_links(event)
                case ev.Printed(text):
                    panes.console.printed(text)
                case ev.WordsKnown(words):
                    self.words = {name: names[0] for names, _ in words for name in names}
                case ev.LineCompleted(line, lines):
                    self._messages.offer(line, lines)
                case ev.Listed(form, lines):
                    self._copy_listed(form, lines)
                case ev.Snapshot():
                    self.store.take_snapshot()
                    what = f"{grouped(len(self.store))} events up to #{self.store.end} are kept"
                    self.say(f"snapshot: {what}; :snapshot FILE writes them")
                case ev.Restarted():
                    for pane in panes:
                        pane.restarted()
                    self.body.end_is_over()
                    self.controls.history.restarted()
                    self.say("started afresh")
                case ev.Branched():
                    for pane in panes:
                        pane.restarted()
                case ev.Failed():
                    self._failed(event)
                case ev.Done(command, text):
                    self._done(command, text)
                case ev.Remark(lines):
                    panes.output.report(lines)
                    self.say("\n".join(lines), "warning")
                case ev.Notice(text):
                    self.say(text, "warning")
                case ev.Crashed(text, trace):
                    message = escaped(f"the engine failed: {text}\n{trace}", keep="\n")
                    self.exit(125, return_code=125, message=Text(message))
        if self.store.merges:
            panes.events.rearranged(self.store.merge)
            panes.graph.rearranged()
            self.body.timeline.renew()
            rows = True
        if rows:
            self.body.end_is_over()
            panes.events.drained()
            panes.graph.drained()
        if output:
            panes.output.drained()

    def _refill(self, event: ev.Refilling | ev.Refilled | ev.Erased) -> None:
        """The log of the recorded run is made anew."""
        events, store = self.panes.events, self.store
        match event:
            case ev.Erased(ids):
                events.rearranged(lambda: store.erase(ids))
                events.rests()
            case ev.Refilling(done, end):
                if not done:
                    events.rearranged(store.begin_refill)
                events.refilling(100 * done // max(end, 1))
                if done:
                    self.body.timeline.renew()
                    return
            case ev.Refilled(before):
                events.rearranged(lambda: store.end_refill(before))
                if before:
                    rest = "its rows are those of before; :refill fills in the rest"
                    ticks = ", ".join(_ticks(*one) for one in before[:3])
                    more = ", ..." if before[3:] else ""
                    self.say(f"the log is not filled in {ticks}{more}; {rest}", "warning")
                events.refilling(None)
                events.rests()
        self.panes.graph.rearranged()
        self.body.timeline.renew()

    def _copy_listed(self, form: str, lines: tuple[str, ...]) -> None:
        """Put the definitions into the clipboard, as another tool takes them."""
        if lines:
            self.copy("\n".join(lines))
        else:
            self.say(f"there is no probe to copy for {form}", "warning")

    def _show(self, view: GuestView) -> None:
        """Give all panes a new view."""
        old, self.view = self.view, view
        if view != old:  # else a question was answered
            self._show_panes(view, old)
        self.lessons.look()
        if view.state is not RunState.RUNNING:
            self.controls.motions.stands()
        self._guest_input.show(view)
        hinted = self._hinted()
        if hinted != self._hinted_at:
            self._hinted_at = hinted
            self._hints.renew()
        if old.state is not view.state and view.state is RunState.ENDED:
            self.body.show_end(view)
        if view.frame != old.frame and view.frame < len(view.frames):
            self.controls.navigator.show_code(view.frames[view.frame].pc)
        self._stops.show(view, old)
        if not old.registers and not self.is_headless:
            self.call_after_refresh(self._up)
        if self._early is not None:
            self._serve()
            self._main.paint()

    def _serve(self) -> None:
        """Serve the keys that were typed before there was anything that they could mean."""
        early, self._early = self._early, None
        for key in early or ():
            self.post_message(key)

    def _show_panes(self, view: GuestView, old: GuestView) -> None:
        self.browser.update(view)
        self._status.show(view)
        code, machinery = self.panes.code, self.panes.machinery
        for pane in self.panes:
            if pane is machinery and (
                view.state is not RunState.RUNNING or old.state is not view.state
            ):
                machinery.locate(code.code.cursor)
            pane.date(view.state)
            pane.show(view)
        self.body.show(view)

    def _done(self, command: cmd.Command, text: str) -> None:
        """A command was carried out: say what it did, unless the view shows it anyway."""
        self._in_hand.answered(command)
        self._stops.done(command, text)
        self.controls.slow_motion.done(command)
        if isinstance(command, _SAID):
            self.say(text)
            if isinstance(command, cmd.ChangeTrigger) and command.text.startswith("hist:"):
                self.body.show_pane("histogram")
        elif isinstance(command, cmd.TypedLine):
            self._answer(text)
        elif isinstance(command, cmd.Restore) and self._restore is not None:
            self._restore.recalled()

    def _answer(self, text: str) -> None:
        """A line of gdb's words was carried out: what is short is said, what is long is shown."""
        lines = [line.expandtabs() for line in text.split("\n") if line]
        if len(lines) <= _SHORT:
            self.say("\n".join(lines))
        else:
            if isinstance(self.focused, Input):  # the next line is being typed already
                self.body.reveal("console")
            else:
                self.body.show_pane("console")
            self.call_after_refresh(self.panes.console.show_answer)
            self.say(f"{lines[0]}\n{counted(len(lines), 'line')} in the console; 1 is the code")
        self._stops.answered()

    def _failed(self, event: ev.Failed) -> None:
        """A command was not carried out; a definition can be put right."""
        command = event.command
        self._in_hand.answered(command)
        if isinstance(command, cmd.StepPhase | cmd.ContinueToHit | cmd.PhaseBack):
            self.controls.slow_motion.stop()
        if isinstance(command, cmd.TraceFunctions):
            self.controls.functions.refused(command.globs)
        if isinstance(command, cmd.ReadLayout) and self._only_bytes(command, event.text):
            return
        if isinstance(command, cmd.TypedLine):
            self._stops.answered()
            if event.hint:  # it did not get as far as to print that
                self.panes.console.failed(event.text)
        hint = f" ({event.hint})" if event.hint else ""
        if isinstance(command, cmd.Define) and event.column is not None:
            self.controls.probes.refused(command)
            hint += f"\n{self.key_text(BY_ID['correct'])} edits it"
        self.say(f"{event.text}{hint}", "error")

    def _only_bytes(self, command: cmd.ReadLayout, why: str) -> bool:
        """Show a place without a type that is known as bytes; False if it is no place."""
        if command.again:
            self.say(f"{command.text}: {why}", "warning")
            return True
        try:
            place = command.text.removeprefix("&")
            self.controls.navigator.examine(self.browser.address_of(place))
        except KprobeTuiError:
            return False
        self.say(f"{why}: bytes alone", "warning")
        return True

    # -- from panes -------------------------------------------------------------------------

    def on_ask(self, message: Ask) -> None:
        """A pane wants something of the engine."""
        self.post(message.command)

    def on_words(self, message: Words) -> None:
        """A pane asks in gdb's words."""
        self.type(message.line)

    def on_say(self, message: Say) -> None:
        """A pane has something to say."""
        self.say(message.text, message.severity)

    def on_copied(self, message: Copied) -> None:
        """Text for the clipboard."""
        self.copy(message.text)

    def on_located(self, message: Located) -> None:
        """The user looks at an address; the panes can show those of the program in sight."""
        program = message.program
        if program is not None and program != self.view.program_in_sight:
            if message.focus:
                path = self.programs.main(program)
                self.say(f"that is in {path}; T chooses a thread that runs it", "warning")
            return
        self.controls.navigator.look_at(message.address, focus=message.focus)

    def on_written(self, message: Written) -> None:
        """The user wants to know what has written a register or memory last."""
        self.controls.history.who_wrote(message.register, message.address, message.size)

    def on_followed(self, message: Followed) -> None:
        """The user wants to know where a value came from."""
        self.controls.history.where_from(message.register, message.address, message.size)

    def on_timeline_picked(self, message: Timeline.Picked) -> None:
        """A moment of the run was clicked."""
        self.controls.history.go_to(message.clock, None)

    def on_code_view_margin_clicked(self, message: CodeView.MarginClicked) -> None:
        """A breakpoint is to be set or cleared."""
        self.controls.probes.toggle_breakpoint()

    def on_probes_pane_edit(self, message: ProbesPane.Edit) -> None:
        """A probe's definition is to be changed."""
        self.controls.probes.change(message.probe.row.id)

    def on_registers_pane_editing(self, message: RegistersPane.Editing) -> None:
        """A register is to be set."""
        self.controls.guest.set_register(message.name, message.value)

    def on_memory_pane_editing(self, message: MemoryPane.Editing) -> None:
        """Memory is to be set."""
        self.controls.guest.set_memory(message.address, message.data, message.how, message.what)

    def on_graph_pane_deeper(self, message: GraphPane.Deeper) -> None:
        """Other calls are to be followed from now on."""
        self.controls.functions.deepen(message.by)

    def on_graph_pane_event_chosen(self, message: GraphPane.EventChosen) -> None:
        """Show an event in the log."""
        self.panes.events.goto(message.number + 1)

    def on_threads_pane_events_of(self, message: ThreadsPane.EventsOf) -> None:
        """Show a thread's events alone, or all."""
        self.panes.events.set_filter(f"tid=={message.tid}" if message.tid else "")
        self.say(f"events of thread {message.tid} alone" if message.tid else "all events")

    def on_guest_line_used(self, message: GuestLine.Used) -> None:
        """The user types for the guest, or no longer."""
        match message.how:
            case "entered":
                self._guest_input.entered()
            case "typed":
                self._guest_input.typed()
            case "left":
                self._guest_input.leave()

    def _fits(self, binding: Binding) -> bool:
        """True if a key does something as the guest is now: others need not be hinted at."""
        action = BY_ID.get(binding.id or "")
        return action is None or action.is_hinted(self._situation)

    def _hinted(self) -> tuple[bool, ...]:
        """Which keys of the footer work, by the order of the actions."""
        now = self._situation
        return tuple(action.is_hinted(now) for action in ACTIONS if action.show)

    @property
    def _situation(self) -> Situation:
        view = self.view
        return Situation(view, nowhere=self.browser.rests(view.pc))

    # -- the desk ---------------------------------------------------------------------------

    def say(self, text: str, severity: str = "information") -> None:
        """Show something short: "information", "warning" or "error"."""
        self._messages.say(text, severity)

    def ask(self, question: Question) -> None:
        """Have something typed."""
        self._messages.ask(question)

    def open_command_line(self, word: str = "", rest: str = "") -> None:
        """Have a line of commands typed."""
        from tui.command_line import command_question

        self.ask(command_question(self.controls, word, rest))

    def key_text(self, action: Action) -> str:
        """The keys of an action as the user has set them."""
        return spelled(self.settings.keys.get(action.id) or action.keys)

    def open(self, dialog: Screen[Result], done: Callable[[Result | None], None]) -> None:
        """Show a dialog; `done` takes its result."""
        self.push_screen(dialog, done)

    def every(self, seconds: float, do: Callable[[], None]) -> Timer:
        """Do something again and again, until the timer is stopped."""
        return self.set_interval(seconds, do)

    def copy(self, text: str) -> None:
        """Put text into the clipboard, and say so."""
        self.copy_to_clipboard(text)
        self.say(f"copied {counted(text.count(chr(10)) + 1, 'line')}")

    def take_picture(self) -> None:
        """Write the screen to an SVG file in the current directory."""
        text = self.export_screenshot(title=self.TITLE)
        for number in range(1, 1000):
            path = Path(f"kprobe-tui-{number}.svg")
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                continue
            except OSError as error:
                self.say(f"{path}: {error.strerror}", "error")
            else:
                self.say(f"the screen is in {path.absolute()}")
            return

    def copy_selection(self) -> bool:
        """Copy what is selected with the mouse or in a line; False if nothing is."""
        focused = self.focused
        typed = focused.selected_text if isinstance(focused, Input) else ""
        selected = typed or self.screen.get_selected_text()
        if not selected:
            return False
        self.copy_to_clipboard(selected)
        self.screen.clear_selection()
        return True

    @property
    def themes(self) -> list[str]:
        """Names of the themes there are."""
        return sorted(self.available_themes)

    def use_theme(self, name: str) -> None:
        """Change the theme.

        Raises:
            CommandError: there is none of that name.
        """
        if name not in self.available_themes:
            raise CommandError(f"there is {', '.join(sorted(self.available_themes))}")
        self.theme = name

    def help(self) -> None:
        """Show the chapter of the focused pane, and behind it the keys."""
        from tui.screens.handbook import HandbookScreen
        from tui.screens.help import HelpScreen

        focused = self.focused
        nodes = () if focused is None else focused.ancestors_with_self
        text = next((node.HELP for node in nodes if node.HELP), "")
        pane = next((node.id or "" for node in nodes if isinstance(node, Pane)), "")
        chapter = chapter_of(pane)

        def keys() -> HelpScreen:
            return HelpScreen(text or "", self.key_text, self._situation)

        self.push_screen(HandbookScreen(chapter, keys))

    def explore(self, text: str) -> None:
        """Search the schedules of the guest's threads for one that ends in another way.

        Raises:
            CommandError: it cannot be searched.
        """

        def done() -> None:
            self.body.show_pane("console")
            self.call_after_refresh(self.panes.console.show_answer)
            self.say("the schedules are tried; 1 is the code")

        self._exploring.begin(text, done)

    def seen(self) -> "Seen":
        """Return what a lesson checks."""
        from tui.lessons.checks import Seen

        dialog = type(self.screen).__name__ if len(self.screen_stack) > 1 else ""
        pane = self.body.focused
        return Seen(
            view=self.view,
            place=self.browser.locate(self.panes.code.code.cursor),
            pane=(pane.id or "") if pane is not None else "",
            dialog=dialog,
            typed=tuple(self._messages.histories.get(":", ())),
            copied=self.clipboard,
            printed=self.panes.console.source.last_text,
        )

    def to_background(self) -> None:
        """Go back to the shell for a while."""
        self.action_suspend_process()

    def leave(self) -> None:
        """End the interface."""
        self.exit(0)
