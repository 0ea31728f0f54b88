"""Random steps of a user of the interface: keys, text, words, the mouse, other sizes.

Steps are those of a tour (`tests/tui/test_painting.py`). Keys that leave the interface and words
that leave, open another program or write files are not among them.
"""

import random
from collections.abc import Iterator, Sequence

from tui.keymap import ACTIONS

_LEAVING = ("q", "ctrl+z", "ctrl+c", "ctrl+q")
_KEYS = [key for action in ACTIONS for key in action.keys.split(",") if key not in _LEAVING]
_LISTS = (
    *("j", "k", "G", "home", "end", "pagedown", "pageup", "space", "enter", "escape"),
    *("h", "l", "J", "K", "Y", "slash", "&", "a", "v", "tab", "up", "down", "left", "right"),
)
_TEXTS = (
    *("fib", "ackermann", "p:g/e_main", "print+1", "10%", "n==3", "0x4001c0", "rax"),
    "no_such_thing",
)
_WORDS = (
    *("b_main", "tbreak_main", "info_b", "info_registers", "info_probes", "info_threads"),
    *("bt", "print_$pc", "p_1/0", "x/4x_$sp", "x/3i_$pc", "list", "info_locals", "delete"),
    *("stepi", "next", "finish", "until", "up", "down", "frame_0", "continue", "run", "record"),
    *("reverse-step", "reverse-continue", "display/x_$sp", "undisplay", "watch_$sp", "disas"),
    *("theme_nord", "theme_textual-light", "theme_textual-dark", "theme_none_such", "help_break"),
    *("pane_memory", "pane_console", "examine_$sp", "vmmap", "wait_what", "p_main", "info_mod"),
    *("goto_50%", "goto_start", "goto_end", "mark", "set_$rax_=_1", "kretprobe_main", "bars"),
)
_SIZES = ((80, 24), (100, 30), (120, 40), (200, 50), (60, 18), (181, 36))
_MOUSE = ("click", "click", "double", "wheel", "back", "drag")
_DIALOGS = (
    ("p", "~{text}"),
    ("p", "~{text}", "tab", "enter"),
    ("y",),
    ("y", "enter"),
    ("question_mark", "question_mark"),
    ("question_mark", "slash", "~{text}", "enter"),
    ("ctrl+p", "~{text}"),
    ("ctrl+p", "~pane", "down", "enter"),
    ("g", "~{text}", "enter"),
    ("t", "~{text}", "enter"),
    ("E",),
    ("apostrophe", "~{text}", "enter"),
)
"""Beginnings of what is done in dialogs and prompts; what comes next meets them open."""


def random_steps(
    numbers: random.Random, sizes: Sequence[tuple[int, int]] = _SIZES
) -> Iterator[str]:
    """Steps without an end, as random numbers choose them."""
    while True:
        kind = numbers.random()
        if kind < 0.03:
            yield "={}x{}".format(*numbers.choice(sizes))
        elif kind < 0.13:
            yield numbers.choice("1234567890TCV")
        elif kind < 0.4:
            yield numbers.choice(_LISTS)
        elif kind < 0.47:
            yield "~" + numbers.choice(_TEXTS)
        elif kind < 0.56:
            yield numbers.choice(("escape", "enter"))
        elif kind < 0.6:
            yield from ("colon", "~" + numbers.choice(_WORDS), "enter")
        elif kind < 0.63:
            text = numbers.choice(_TEXTS)
            yield from (step.format(text=text) for step in numbers.choice(_DIALOGS))
        elif kind < 0.72:
            x, y = numbers.random(), numbers.random()
            yield f"^{numbers.choice(_MOUSE)},{x:.3f},{y:.3f}"
        else:
            yield numbers.choice(_KEYS)
