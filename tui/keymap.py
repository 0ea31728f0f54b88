"""Every action of the interface, once: its key, its words, what does it.

Bindings, help, palette and the table of the chapter `keys` are made from `ACTIONS`. Users change
keys by id in the settings.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from textual.binding import Binding

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import GuestView, RunState

if TYPE_CHECKING:  # settings and help need the table without all that it acts on
    from tui.controls import Controls


class When(Enum):
    """The moods of a guest in which an action works."""

    ALWAYS = frozenset(RunState)
    STANDS = frozenset({RunState.READY, RunState.STOPPED})
    RUNS = frozenset({RunState.RUNNING, RunState.WAITING})
    ENDED = frozenset({RunState.ENDED})
    HAS_RUN = frozenset({RunState.STOPPED, RunState.ENDED})

    def holds(self, state: RunState) -> bool:
        """True if a guest in this state is in the mood."""
        return state in self.value

    @property
    def text(self) -> str:
        """The mood in words, as what does not work now waits for it."""
        return _MOODS[self]


_MOODS: Final = {
    When.ALWAYS: "always",
    When.STANDS: "while the program stands",
    When.RUNS: "while the program runs",
    When.ENDED: "when the program has ended",
    When.HAS_RUN: "when the program has run",
}


class Need(Enum):
    """Something that an action does not work without, in words."""

    CODE = "where a function is called: `:call FUNC(ARGS)`"
    LINES = "where the code has source lines"
    CALLER = "in a function whose caller is known"
    CALLED = "in a caller's frame"
    HISTORY = "in a recorded run"
    EVENTS = "when events are recorded"
    PROBES = "when a probe is placed"
    UNDO = "when something can be undone"
    REDO = "when something was undone"


class Situation(Struct, frozen=True):
    """The facts that decide which actions work.

    Attributes:
        view: the guest.
        nowhere: no function of a kernel image is called: there is nothing to run or to step.
    """

    view: GuestView = GuestView()
    nowhere: bool = False

    def has(self, need: Need) -> bool:
        """True if something is there that an action needs."""
        view = self.view
        match need:
            case Need.CODE:
                return not self.nowhere
            case Need.LINES:
                return view.line is not None
            case Need.CALLER:
                return len(view.frames) > 1
            case Need.CALLED:
                return view.frame > 0
            case Need.HISTORY:
                return view.history is not None
            case Need.EVENTS:
                return view.events > 0
            case Need.PROBES:
                return bool(view.probes)
            case Need.UNDO:
                return bool(view.undo)
            case Need.REDO:
                return bool(view.redo)


class Action(Struct, frozen=True):
    """Something a user can do.

    Attributes:
        id: names it in settings.
        keys: comma-separated, as Textual spells them.
        label: for the footer, short.
        help: for the palette and the help, one sentence without its full stop.
        do: does it.
        show: whether the footer shows it.
        task: what people want when they do it: a heading of the help.
        when: how the guest is when it works.
        needs: what else it does not work without.
        hinted: how the guest is when the footer shows it, None: whenever it works.
        shown: the key as people write it, "" for Textual's own spelling.
        priority: whether it works before the focused widget sees the key.
    """

    id: str
    keys: str
    label: str
    help: str
    do: "Callable[[Controls], object]"
    show: bool = False
    shown: str = ""
    priority: bool = False
    task: str = ""
    when: When = When.ALWAYS
    needs: tuple[Need, ...] = ()
    hinted: When | None = None

    def lacks(self, now: Situation) -> str:
        """Say what the action waits for; "" if it works now."""
        if not self.when.holds(now.view.state):
            return self.when.text
        return next((need.value for need in self.needs if not now.has(need)), "")

    def is_hinted(self, now: Situation) -> bool:
        """True if the footer may show the action."""
        hinted = self.hinted is None or self.hinted.holds(now.view.state)
        return hinted and not self.lacks(now)

    @property
    def binding(self) -> Binding:
        """As Textual takes it."""
        return Binding(
            self.keys,
            f"do('{self.id}')",
            self.label,
            show=self.show,
            key_display=self.shown or None,
            priority=self.priority,
            id=self.id,
            tooltip=self.help,
        )

    @property
    def key_text(self) -> str:
        """The keys as people write them."""
        return spelled(self.keys)


_SPELLED: Final = {
    "colon": ":",
    "semicolon": ";",
    "question_mark": "?",
    "full_stop": ".",
    "comma": ",",
    "less_than_sign": "<",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "greater_than_sign": ">",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "apostrophe": "'",
    "at": "@",
    "ampersand": "&",
}


def spelled(keys: str) -> str:
    """Comma-separated keys as people write them."""
    return " ".join(_SPELLED.get(key, key) for key in keys.split(","))


def _interrupt(on: "Controls") -> None:
    if not on.export.cancel():
        on.motions.interrupt()


ACTIONS: Final[tuple[Action, ...]] = (
    Action(
        "go_on",
        "c,f5",
        "continue",
        "Run on to the next stop",
        lambda on: on.motions.run(cmd.Continue()),
        shown="c",
        task="Run and step",
        show=True,
        when=When.STANDS,
        needs=(Need.CODE,),
    ),
    Action(
        "step",
        "i,f7",
        "step",
        "Execute one instruction",
        lambda on: on.motions.run(cmd.StepInsn()),
        shown="i",
        task="Run and step",
        show=True,
        when=When.STANDS,
        needs=(Need.CODE,),
    ),
    Action(
        "next_line",
        "n",
        "next",
        "Run on to another source line, calls as a whole",
        lambda on: on.motions.run(cmd.StepLine(over=True)),
        task="Run and step",
        show=True,
        when=When.STANDS,
        needs=(Need.CODE, Need.LINES),
    ),
    Action(
        "finish",
        "f",
        "finish",
        "Run until the function has returned, and tell its value",
        lambda on: on.motions.run(cmd.Finish(tells=True)),
        task="Run and step",
        show=True,
        when=When.STANDS,
        needs=(Need.CODE, Need.CALLER),
    ),
    Action(
        "phase",
        "full_stop",
        "phase",
        "The next phase of a probe's hit",
        lambda on: on.motions.phase(),
        shown=".",
        task="Run and step",
        show=True,
        when=When.STANDS,
        needs=(Need.CODE,),
    ),
    Action(
        "phase_back",
        "comma",
        "phase back",
        "The phase of a probe's hit before, outside of one the last of the hit before",
        lambda on: on.motions.run(cmd.PhaseBack()),
        shown=",",
        task="Run and step",
        when=When.HAS_RUN,
        needs=(Need.HISTORY,),
    ),
    Action(
        "step_over",
        "o,f8",
        "over",
        "Execute one instruction, calls as a whole",
        lambda on: on.motions.run(cmd.StepOver()),
        task="Run and step",
        when=When.STANDS,
        needs=(Need.CODE,),
    ),
    Action(
        "step_line",
        "s",
        "line",
        "Run on to another source line",
        lambda on: on.motions.run(cmd.StepLine()),
        task="Run and step",
        when=When.STANDS,
        needs=(Need.CODE, Need.LINES),
    ),
    Action(
        "step_back",
        "I",
        "back",
        "Go back by one instruction",
        lambda on: on.motions.run(cmd.StepBack()),
        task="Run and step",
        when=When.HAS_RUN,
        needs=(Need.HISTORY,),
    ),
    Action(
        "over_back",
        "O",
        "back over",
        "Go back by one instruction, calls as a whole",
        lambda on: on.motions.run(cmd.StepBack(over=True)),
        task="Run and step",
        when=When.HAS_RUN,
        needs=(Need.HISTORY,),
    ),
    Action(
        "line_back",
        "less_than_sign",
        "line back",
        "Go back to the source line before, calls as a whole",
        lambda on: on.motions.run(cmd.LineBack(over=True)),
        shown="<",
        task="Run and step",
        when=When.HAS_RUN,
        needs=(Need.HISTORY,),
    ),
    Action(
        "finish_back",
        "F",
        "to the call",
        "Go back to the call of the function",
        lambda on: on.motions.run(cmd.FinishBack()),
        task="Run and step",
        when=When.HAS_RUN,
        needs=(Need.HISTORY,),
    ),
    Action(
        "continue_back",
        "R",
        "reverse",
        "Go back to the last stop, or to the first instruction",
        lambda on: on.motions.run(cmd.ContinueBack()),
        task="Run and step",
        when=When.HAS_RUN,
        needs=(Need.HISTORY,),
    ),
    Action(
        "run_to",
        "greater_than_sign,f4",
        "to here",
        "Run to the cursor",
        lambda on: on.motions.run_to_cursor(),
        shown=">",
        task="Run and step",
        when=When.STANDS,
        needs=(Need.CODE,),
    ),
    Action(
        "interrupt",
        "ctrl+c",
        "stop",
        "Copy a selection; without one, stop the guest",
        _interrupt,
        priority=True,
        task="Run and step",
        show=True,
        when=When.RUNS,
    ),
    Action(
        "restart",
        "r",
        "restart",
        "Start the program afresh with the same probes",
        lambda on: on.motions.run(cmd.Restart()),
        task="Run and step",
        show=True,
        hinted=When.ENDED,
    ),
    Action(
        "play",
        "P",
        "play",
        "Slow motion: run to the next hit and play its phases, then the next one's; again: stop",
        lambda on: on.slow_motion.play_hits(),
        task="Run and step",
        when=When.STANDS,
        needs=(Need.CODE, Need.PROBES),
    ),
    Action(
        "play_all",
        "M",
        "play all",
        "Slow motion of everything, instructions between hits included; again: stop",
        lambda on: on.slow_motion.play_everything(),
        task="Run and step",
        when=When.STANDS,
        needs=(Need.CODE,),
    ),
    Action(
        "play_back",
        "L",
        "play back",
        "Slow motion backwards: the phases of the hits before, the last one first; again: stop",
        lambda on: on.slow_motion.play_back(),
        task="Run and step",
        when=When.HAS_RUN,
        needs=(Need.HISTORY,),
    ),
    Action(
        "faster",
        "plus",
        "faster",
        "Play faster",
        lambda on: on.slow_motion.change_speed(1),
        shown="+",
        task="Run and step",
    ),
    Action(
        "slower",
        "minus",
        "slower",
        "Play slower",
        lambda on: on.slow_motion.change_speed(-1),
        shown="-",
        task="Run and step",
    ),
    Action(
        "to_moment",
        "at",
        "to moment",
        "Go to the moment of the row at the cursor: an event, a call, a line of output",
        lambda on: on.history.row(),
        shown="@",
        task="Times of the run",
        needs=(Need.HISTORY,),
    ),
    Action(
        "event_before",
        "left_curly_bracket",
        "event before",
        "Go back to the moment of the event before this one",
        lambda on: on.history.neighbour(-1),
        shown="{",
        task="Times of the run",
        needs=(Need.EVENTS, Need.HISTORY),
    ),
    Action(
        "event_behind",
        "right_curly_bracket",
        "event behind",
        "Go on to the moment of the next event",
        lambda on: on.history.neighbour(1),
        shown="}",
        task="Times of the run",
        needs=(Need.EVENTS, Need.HISTORY),
    ),
    Action(
        "earlier",
        "left_parenthesis",
        "earlier",
        "Go back by a fiftieth of the run; the mouse goes anywhere on the timeline",
        lambda on: on.history.leap(-1),
        shown="(",
        task="Times of the run",
        needs=(Need.HISTORY,),
    ),
    Action(
        "later",
        "right_parenthesis",
        "later",
        "The same forward",
        lambda on: on.history.leap(1),
        shown=")",
        task="Times of the run",
        needs=(Need.HISTORY,),
    ),
    Action(
        "mark",
        "m",
        "bookmark",
        "Make this moment of the run a bookmark",
        lambda on: on.history.mark(),
        task="Times of the run",
        needs=(Need.HISTORY,),
    ),
    Action(
        "branch",
        "H",
        "branch",
        "Continue from here: a branch of the run goes on from this moment",
        lambda on: on.history.branch(),
        task="Times of the run",
        needs=(Need.HISTORY,),
    ),
    Action(
        "go_to_moment",
        "apostrophe",
        "to bookmark",
        "Go to a moment: a bookmark, an event (#N), a percentage, a tick, start, end",
        lambda on: on.history.ask(),
        shown="'",
        task="Times of the run",
        needs=(Need.HISTORY,),
    ),
    Action(
        "probe",
        "p",
        "probe",
        "Place a probe: by name, or at the cursor",
        lambda on: on.probes.place(),
        task="Probes",
        show=True,
    ),
    Action(
        "breakpoint",
        "b,f9",
        "break",
        "Set or clear a breakpoint at the cursor",
        lambda on: on.probes.toggle_breakpoint(),
        task="Probes",
        show=True,
    ),
    Action(
        "why",
        "y",
        "why",
        "Why here, why this way: the rules for a probe at the cursor",
        lambda on: on.probes.explain(),
        task="Probes",
        show=True,
    ),
    Action(
        "correct",
        "E",
        "edit",
        "Edit the definition that was refused last",
        lambda on: on.probes.correct(),
        task="Probes",
    ),
    Action(
        "graph",
        "t",
        "trace",
        "Trace functions, or no longer: their calls make the graph",
        lambda on: on.functions.toggle(),
        task="Probes",
    ),
    Action(
        "copy_definition",
        "ctrl+k",
        "copy def",
        "Copy the probe as a line for a kernel",
        lambda on: on.probes.copy_definition(),
        task="Probes",
    ),
    Action(
        "go_to",
        "g",
        "go to",
        "Go to an address, a symbol, a source line, an event (#N)",
        lambda on: on.navigator.ask(),
        task="Look around",
    ),
    Action(
        "print",
        "e",
        "print",
        "Print an expression: the variable at the cursor of the backtrace, or what is typed",
        lambda on: on.motions.print_value(),
        task="Look around",
    ),
    Action(
        "filter_events",
        "ampersand",
        "filter",
        "Filter the log of events",
        lambda on: on.body.filter_events(),
        shown="&",
        task="Look around",
        needs=(Need.EVENTS,),
    ),
    Action(
        "up_frame",
        "u",
        "up",
        "To the caller's frame",
        lambda on: on.motions.walk(1),
        task="Look around",
        needs=(Need.CALLER,),
    ),
    Action(
        "down_frame",
        "d",
        "down",
        "To the called frame",
        lambda on: on.motions.walk(-1),
        task="Look around",
        needs=(Need.CALLED,),
    ),
    Action(
        "copy",
        "Y",
        "copy",
        "Copy the row at the cursor as text",
        lambda on: on.body.copy_row(),
        task="Look around",
    ),
    Action(
        "assemble",
        "A",
        "assemble",
        "Assemble an instruction over the one at the cursor",
        lambda on: on.guest.assemble(),
        task="Change the program",
    ),
    Action(
        "undo",
        "U",
        "undo",
        "Take the last change back",
        lambda on: on.desk.post(cmd.Undo()),
        task="Change the program",
        needs=(Need.UNDO,),
    ),
    Action(
        "redo",
        "ctrl+r",
        "redo",
        "Do again what was taken back",
        lambda on: on.desk.post(cmd.Redo()),
        task="Change the program",
        needs=(Need.REDO,),
    ),
    Action(
        "zoom",
        "z",
        "zoom",
        "The focused pane alone, or all of them",
        lambda on: on.body.zoom(),
        task="The screen",
        show=True,
    ),
    Action(
        "next_tab",
        "right_square_bracket",
        "tab",
        "The next pane of this group",
        lambda on: on.body.show_neighbour(1),
        shown="]",
        task="The screen",
    ),
    Action(
        "previous_tab",
        "left_square_bracket",
        "tab",
        "The pane before",
        lambda on: on.body.show_neighbour(-1),
        shown="[",
        task="The screen",
    ),
    Action(
        "bar_left",
        "ctrl+left",
        "bar left",
        "Move the bar beside the focused pane to the left; the mouse drags it",
        lambda on: on.body.move_bar(-2, 0),
        task="The screen",
    ),
    Action(
        "bar_right",
        "ctrl+right",
        "bar right",
        "The same to the right",
        lambda on: on.body.move_bar(2, 0),
        task="The screen",
    ),
    Action(
        "bar_up",
        "ctrl+up",
        "bar up",
        "Move the bar above or below the focused pane up",
        lambda on: on.body.move_bar(0, -1),
        task="The screen",
    ),
    Action(
        "bar_down",
        "ctrl+down",
        "bar down",
        "The same down",
        lambda on: on.body.move_bar(0, 1),
        task="The screen",
    ),
    Action(
        "bars",
        "ctrl+l",
        "bars",
        "All bars back to where they were at first",
        lambda on: on.body.reset_bars(),
        task="The screen",
    ),
    Action(
        "command",
        "colon",
        "command",
        "The command line",
        lambda on: on.desk.open_command_line(),
        shown=":",
        task="Commands and the rest",
        show=True,
    ),
    Action(
        "lesson",
        "semicolon",
        "lesson",
        "The lesson: then h hint, n next step, b the step before, f fold; :learn lists lessons",
        lambda on: on.desk.lessons.focus(),
        shown=";",
        task="Commands and the rest",
    ),
    Action(
        "suspend_process",
        "ctrl+z",
        "suspend",
        "Back to the shell; fg comes back",
        lambda on: on.desk.to_background(),
        task="Commands and the rest",
    ),
    Action(
        "leave", "q", "quit", "Quit", lambda on: on.quitting.ask(), task="Commands and the rest"
    ),
    Action(
        "help",
        "question_mark,f1",
        "help",
        "The chapter of the focused pane; again: its keys",
        lambda on: on.desk.help(),
        shown="?",
        task="Commands and the rest",
        show=True,
    ),
)
"""All of them, in the order of the help."""

BY_ID: Final = {action.id: action for action in ACTIONS}
"""The same by id."""


def bindings(pane_keys: Iterable[str]) -> list[Binding]:
    """Return the app's bindings: the actions, and the panes by their keys."""
    panes = [
        Binding(key, f"pane('{key}')", f"pane {key}", show=False, id=f"pane_{key}")
        for key in pane_keys
    ]
    # Who has stopped a terminal with ctrl+s types ctrl+q: that must not end anything.
    calm = Binding("ctrl+q", "stay", show=False, priority=True)
    return [action.binding for action in ACTIONS] + panes + [calm]
