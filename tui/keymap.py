"""Every action of the interface, once: its key, its words, where it shows.

Bindings, help, palette and the key table of the README are made from `ACTIONS`. Users change
keys by id in the settings.
"""

from dataclasses import dataclass
from typing import Final

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Action:
    """Something a user can do.

    Attributes:
        id: names it in settings and in the palette; `action_ID` of the app does it.
        keys: comma-separated, as Textual spells them.
        label: for the footer, short.
        help: for the palette and the help, one sentence without its full stop.
        show: whether the footer shows it.
        shown: the key as people write it, "" for Textual's own spelling.
        priority: whether it works before the focused widget sees the key.
    """

    id: str
    keys: str
    label: str
    help: str
    show: bool = False
    shown: str = ""
    priority: bool = False

    @property
    def binding(self) -> Binding:
        """As Textual takes it."""
        return Binding(
            self.keys,
            self.id,
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
    Action("probe", "p", "probe", "Place a probe: by name, or at the cursor", show=True),
    Action("breakpoint", "b,f9", "break", "Set or clear a breakpoint at the cursor"),
    Action("go_on", "c,f5", "run", "Continue to the next stop", show=True, shown="c"),
    Action("step", "i,f7", "step", "Execute one instruction", show=True, shown="i"),
    Action("step_over", "o,f8", "over", "Execute one instruction, calls as a whole"),
    Action("step_line", "s", "line", "Run on to another source line"),
    Action("next_line", "n", "next", "Run on to another source line, calls as a whole"),
    Action("finish", "f", "finish", "Run until the function has returned"),
    Action("run_to", "greater_than_sign,f4", "to here", "Run to the cursor", shown=">"),
    Action("restart", "r", "restart", "Start the program afresh with the same probes"),
    Action("phase", "full_stop", "phase", "The next phase of a probe's hit", show=True, shown="."),
    Action("play", "P", "play", "Slow motion: play the phases of hits, or stop playing"),
    Action("faster", "plus", "faster", "Play faster", shown="+"),
    Action("slower", "minus", "slower", "Play slower", shown="-"),
    Action(
        "why", "y", "why", "Why here, why this way: the rules for a probe at the cursor", show=True
    ),
    Action("graph", "t", "trace", "Trace functions, or no longer: their calls make the graph"),
    Action("assemble", "A", "assemble", "Assemble an instruction over the one at the cursor"),
    Action("undo", "U", "undo", "Take the last change back"),
    Action("redo", "ctrl+r", "redo", "Do again what was taken back"),
    Action("go_to", "g", "go to", "Go to an address, a symbol, a source line, an event (#N)"),
    Action("up_frame", "u", "up", "To the caller's frame"),
    Action("down_frame", "d", "down", "To the called frame"),
    Action("copy", "Y", "copy", "Copy the row at the cursor as text"),
    Action("copy_definition", "ctrl+k", "copy def", "Copy the probe as a line for a kernel"),
    Action("zoom", "z", "zoom", "The focused pane alone, or all of them", show=True),
    Action("next_tab", "right_square_bracket", "tab", "The next pane of this group", shown="]"),
    Action("previous_tab", "left_square_bracket", "tab", "The pane before", shown="["),
    Action("command", "colon", "command", "The command line", shown=":"),
    Action("help", "question_mark,f1", "help", "Keys of the focused pane", show=True, shown="?"),
    Action(
        "interrupt",
        "ctrl+c",
        "stop",
        "Copy a selection; without one, stop the guest",
        priority=True,
    ),
    Action("suspend_process", "ctrl+z", "suspend", "Back to the shell; fg comes back"),
    Action("leave", "q", "quit", "Quit"),
)
"""All of them, in the order of the help."""


def bindings() -> list[Binding]:
    """For the app: the actions, and the panes by number."""
    panes = [
        Binding(str(number), f"pane({number})", f"pane {number}", show=False, id=f"pane_{number}")
        for number in range(10)
    ]
    # Who has stopped a terminal with ctrl+s types ctrl+q: that must not end anything.
    calm = Binding("ctrl+q", "stay", show=False, priority=True)
    return [action.binding for action in ACTIONS] + panes + [calm]
