"""Every action of the interface, once: its key, its words, what does it.

Bindings, help, palette and the key table of the README are made from `ACTIONS`. Users change
keys by id in the settings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.binding import Binding

from engine.session.protocol import commands as cmd

if TYPE_CHECKING:  # settings and help need the table without all that it acts on
    from tui.controls import Controls


@dataclass(frozen=True, slots=True)
class Action:
    """Something a user can do.

    Attributes:
        id: names it in settings.
        keys: comma-separated, as Textual spells them.
        label: for the footer, short.
        help: for the palette and the help, one sentence without its full stop.
        do: does it.
        show: whether the footer shows it.
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
    "question_mark": "?",
    "full_stop": ".",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "greater_than_sign": ">",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}


def spelled(keys: str) -> str:
    """Comma-separated keys as people write them."""
    return " ".join(_SPELLED.get(key, key) for key in keys.split(","))


ACTIONS: Final[tuple[Action, ...]] = (
    Action(
        "probe",
        "p",
        "probe",
        "Place a probe: by name, or at the cursor",
        lambda on: on.probes.place(),
        show=True,
    ),
    Action(
        "breakpoint",
        "b,f9",
        "break",
        "Set or clear a breakpoint at the cursor",
        lambda on: on.probes.toggle_breakpoint(),
    ),
    Action(
        "go_on",
        "c,f5",
        "run",
        "Continue to the next stop",
        lambda on: on.motions.run(cmd.Continue()),
        show=True,
        shown="c",
    ),
    Action(
        "step",
        "i,f7",
        "step",
        "Execute one instruction",
        lambda on: on.motions.run(cmd.StepInsn()),
        show=True,
        shown="i",
    ),
    Action(
        "step_over",
        "o,f8",
        "over",
        "Execute one instruction, calls as a whole",
        lambda on: on.motions.run(cmd.StepOver()),
    ),
    Action(
        "step_line",
        "s",
        "line",
        "Run on to another source line",
        lambda on: on.motions.run(cmd.StepLine()),
    ),
    Action(
        "next_line",
        "n",
        "next",
        "Run on to another source line, calls as a whole",
        lambda on: on.motions.run(cmd.StepLine(over=True)),
    ),
    Action(
        "finish",
        "f",
        "finish",
        "Run until the function has returned",
        lambda on: on.motions.run(cmd.Finish()),
    ),
    Action(
        "run_to",
        "greater_than_sign,f4",
        "to here",
        "Run to the cursor",
        lambda on: on.motions.run_to_cursor(),
        shown=">",
    ),
    Action(
        "restart",
        "r",
        "restart",
        "Start the program afresh with the same probes",
        lambda on: on.motions.run(cmd.Restart()),
    ),
    Action(
        "phase",
        "full_stop",
        "phase",
        "The next phase of a probe's hit",
        lambda on: on.motions.phase(),
        show=True,
        shown=".",
    ),
    Action(
        "play",
        "P",
        "play",
        "Slow motion: play the phases of hits, or stop playing",
        lambda on: on.slow_motion.toggle(),
    ),
    Action(
        "faster",
        "plus",
        "faster",
        "Play faster",
        lambda on: on.slow_motion.change_speed(1),
        shown="+",
    ),
    Action(
        "slower",
        "minus",
        "slower",
        "Play slower",
        lambda on: on.slow_motion.change_speed(-1),
        shown="-",
    ),
    Action(
        "why",
        "y",
        "why",
        "Why here, why this way: the rules for a probe at the cursor",
        lambda on: on.probes.explain(),
        show=True,
    ),
    Action(
        "graph",
        "t",
        "trace",
        "Trace functions, or no longer: their calls make the graph",
        lambda on: on.functions.toggle(),
    ),
    Action(
        "assemble",
        "A",
        "assemble",
        "Assemble an instruction over the one at the cursor",
        lambda on: on.guest.assemble(),
    ),
    Action("undo", "U", "undo", "Take the last change back", lambda on: on.desk.post(cmd.Undo())),
    Action(
        "redo",
        "ctrl+r",
        "redo",
        "Do again what was taken back",
        lambda on: on.desk.post(cmd.Redo()),
    ),
    Action(
        "go_to",
        "g",
        "go to",
        "Go to an address, a symbol, a source line, an event (#N)",
        lambda on: on.navigator.ask(),
    ),
    Action("up_frame", "u", "up", "To the caller's frame", lambda on: on.motions.walk(1)),
    Action("down_frame", "d", "down", "To the called frame", lambda on: on.motions.walk(-1)),
    Action(
        "copy", "Y", "copy", "Copy the row at the cursor as text", lambda on: on.body.copy_row()
    ),
    Action(
        "copy_definition",
        "ctrl+k",
        "copy def",
        "Copy the probe as a line for a kernel",
        lambda on: on.probes.copy_definition(),
    ),
    Action(
        "zoom",
        "z",
        "zoom",
        "The focused pane alone, or all of them",
        lambda on: on.body.zoom(),
        show=True,
    ),
    Action(
        "next_tab",
        "right_square_bracket",
        "tab",
        "The next pane of this group",
        lambda on: on.body.show_neighbour(1),
        shown="]",
    ),
    Action(
        "previous_tab",
        "left_square_bracket",
        "tab",
        "The pane before",
        lambda on: on.body.show_neighbour(-1),
        shown="[",
    ),
    Action(
        "command",
        "colon",
        "command",
        "The command line",
        lambda on: on.desk.open_command_line(),
        shown=":",
    ),
    Action(
        "help",
        "question_mark,f1",
        "help",
        "Keys of the focused pane",
        lambda on: on.desk.help(),
        show=True,
        shown="?",
    ),
    Action(
        "interrupt",
        "ctrl+c",
        "stop",
        "Copy a selection; without one, stop the guest",
        lambda on: on.motions.interrupt(),
        priority=True,
    ),
    Action(
        "suspend_process",
        "ctrl+z",
        "suspend",
        "Back to the shell; fg comes back",
        lambda on: on.desk.to_background(),
    ),
    Action("leave", "q", "quit", "Quit", lambda on: on.quitting.ask()),
)
"""All of them, in the order of the help."""

PANE_KEYS: Final = "1234567890T"
"""The keys of panes."""

BY_ID: Final = {action.id: action for action in ACTIONS}
"""The same by id."""


def bindings() -> list[Binding]:
    """For the app: the actions, and the panes by their keys."""
    panes = [
        Binding(key, f"pane('{key}')", f"pane {key}", show=False, id=f"pane_{key}")
        for key in PANE_KEYS
    ]
    # Who has stopped a terminal with ctrl+s types ctrl+q: that must not end anything.
    calm = Binding("ctrl+q", "stay", show=False, priority=True)
    return [action.binding for action in ACTIONS] + panes + [calm]
