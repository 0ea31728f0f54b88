"""The entries of the palette: actions, commands, panes, probes, functions, themes.

All but functions is prepared once when the palette opens; nothing is asked of the engine and no
definition is made before an entry is chosen.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import nsmallest
from typing import Final

from msgspec import Struct

from engine.session.protocol import commands as cmd
from tui.command_line import COMMANDS, command_question
from tui.controls import Controls
from tui.fuzzy import Match, Prepared, match
from tui.keymap import ACTIONS
from tui.panes.registry import PANES
from tui.render import harmless

_FUNCTIONS: Final = 30
"""Functions that are looked for with a letter."""
ROWS: Final = 40
"""Rows that a letter leaves at the most."""
_PROBES: Final = 1000
_WEAK: Final = 0.1
"""The score of a function whose name as it is shown does not hold what was typed."""


class Entry(Struct, frozen=True):
    """Something that can be chosen.

    Attributes:
        name: its text, prepared for a search.
        do: does it.
    """

    name: Prepared
    do: Callable[[], object]


class Found(Struct, frozen=True):
    """An entry that fits what was typed.

    Attributes:
        text: as it is shown.
        do: does it.
        score: how well it fits.
        stretches: the (start, end) of letters that were looked for.
    """

    text: str
    do: Callable[[], object]
    score: float = 0.0
    stretches: Sequence[tuple[int, int]] = ()


def _copy_as(form: str, on: Controls) -> None:
    on.desk.post(cmd.ListDefinitions(form))


def _typed(begin: str, on: Controls) -> None:
    on.desk.ask(command_question(on, begin.rstrip()))


def _place(name: str, on: Controls) -> None:
    on.desk.post(cmd.Define(on.browser.default_definition(name)))


_MORE: Final[tuple[tuple[str, Callable[[Controls], object]], ...]] = (
    ("Screenshot: the screen as an SVG file", lambda on: on.desk.take_picture()),
    ("Copy as text: the row at the cursor", lambda on: on.body.copy_row()),
    ("Copy as a line for gdb: the place at the cursor", lambda on: on.probes.copy_for_gdb()),
    (
        "Copy as a line for a kernel: the probe at the cursor",
        lambda on: on.probes.copy_definition(),
    ),
    *(
        (f"Copy all probes for a real machine: {form}", partial(_copy_as, form))
        for form in ("tracefs", "perf", "bpftrace")
    ),
    (
        "Where from, again: the links of the value that was followed last",
        lambda on: on.history.links(),
    ),
    *(
        (text, partial(_typed, f"{word} "))
        for text, word in (
            ("Who wrote: the last write of a variable, a field or a register", "last-write"),
            ("Where from: follow the value of EXPR back to an input or a computation", "origin"),
            ("First time: the first moment of the run at which EXPR is true", "first-time"),
            ("Last time: the last moment before now at which EXPR became true", "last-time"),
        )
    ),
    (
        "Branches: the runs that go on from moments of the past, with what each takes",
        lambda on: on.desk.type("info branches"),
    ),
    (
        "Export events: those that are shown, to a file",
        partial(_typed, "export "),
    ),
)
"""Entries that have no key of their own, or are looked for under another name."""


class Everything:
    """All that the palette finds."""

    def __init__(self, on: Controls) -> None:
        """Prepare the entries.

        Args:
            on: what they act on.
        """
        self._on = on
        first = [Entry(Prepared.of(text), do) for text, do in self._actions()]
        more = [Entry(Prepared.of(text), do) for text, do in self._more()]
        self._first, self._entries = first, first + more

    def at_first(self) -> list[Found]:
        """The actions, before anything is typed."""
        return [Found(entry.name.text, entry.do) for entry in self._first]

    def find(self, typed: str, *, functions: bool) -> list[Found]:
        """Find the entries that fit, the best first.

        Args:
            typed: not empty.
            functions: whether functions are looked for, too.
        """
        wanted, found = typed.lower(), list[Found]()
        for entry in self._entries:
            fits = match(wanted, entry.name)
            if fits is not None:
                found.append(_found(entry.name.text, entry.do, fits))
        if functions:
            found += self._functions(typed)
        return nsmallest(ROWS, found, key=lambda each: -each.score)

    def read_names(self) -> None:
        """Read the names of functions, which takes a moment the first time."""
        self._on.browser.complete("", 0)

    def _actions(self) -> Iterator[tuple[str, Callable[[], object]]]:
        on = self._on
        for action in ACTIONS:
            yield f"{action.help}  ({on.desk.key_text(action)})", partial(action.do, on)
        for text, do in _MORE:
            yield text, partial(do, on)

    def _more(self) -> Iterator[tuple[str, Callable[[], object]]]:
        on = self._on
        for spec in COMMANDS:
            text = f":{spec.names[0]} {spec.usage}  {spec.help}"
            yield text, partial(_typed, f"{spec.names[0]} ", on)
        for name in on.history.branches():
            yield f"switch to branch {name}", partial(on.history.switch, name)
            yield f"diff with branch {name}", partial(on.desk.type, f"diff {name}")
        for pane in PANES:
            yield f"pane {pane.key}: {pane.tab}", partial(on.body.show_pane, pane.id)
        for probe in on.desk.view.probes[:_PROBES]:
            if probe.addresses:
                go = partial(on.navigator.go_to, f"{probe.addresses[0]:#x}")
                yield f"probe {probe.row.id}: {harmless(probe.row.line)}", go
        for theme in on.desk.themes:
            yield f"theme {theme}", partial(on.desk.use_theme, theme)

    def _functions(self, typed: str) -> Iterable[Found]:
        """Functions to go to and to probe."""
        on = self._on
        wanted = typed.removeprefix("go to ").removeprefix("probe ").strip()
        for fits in on.browser.complete(wanted, _FUNCTIONS) if wanted else ():
            name = harmless(fits.name)
            how = match(wanted.lower(), Prepared.of(name))
            score = how.score if how is not None else _WEAK
            if not typed.startswith("probe "):
                yield Found(f"go to {name}", partial(on.navigator.go_to, fits.name), score)
            if not typed.startswith("go to "):
                yield Found(f"probe {name}", partial(_place, fits.name, on), score * 0.9)


def _found(text: str, do: Callable[[], object], fits: Match) -> Found:
    return Found(text, do, fits.score, fits.stretches)
