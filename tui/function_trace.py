"""Tracing of functions, whose calls make the graph."""

from fnmatch import fnmatchcase

from engine.session.browse import Browser
from engine.session.protocol import commands as cmd
from engine.session.protocol.probes import ProbeView
from tui.body import Body
from tui.desk import Desk
from tui.widgets.bars import Question


class FunctionTrace:
    """Has functions traced, or no longer, and calls followed so deep.

    Attributes:
        traced: patterns of the functions that are traced.
    """

    def __init__(self, desk: Desk, browser: Browser, body: Body) -> None:
        """Nothing is traced yet."""
        self._desk = desk
        self._browser = browser
        self._left_out: set[str] = set()
        self._body = body
        self._graph = body.panes.graph
        self.traced: tuple[str, ...] = ()

    def toggle(self) -> None:
        """Trace the probed functions, or all after a question.

        If some are traced: in the code the function at the cursor as well, or no longer; in other
        panes none at all.
        """
        if self.traced:
            name = self._name()
            if self._body.focused is not self._body.panes.code or not name:
                self._trace((), on=False)
            elif self._is_traced(name):
                self.shrink((name,))
            else:
                self.grow((name,))
            return
        names = {_function(probe) for probe in self._desk.view.probes if probe.kind != "b"}
        text = " ".join(sorted(filter(None, names)))
        hint = "functions to trace, as GLOB or MODULE:GLOB"
        if not self._browser.is_booted:  # whose kernel makes some 30 million calls
            text, hint = (
                text or "*",
                "functions to trace, as GLOB or LIB:GLOB (* = all of the program)",
            )
        self._desk.ask(Question("trace", hint, self._begin, text, old=True))

    def _begin(self, text: str) -> None:
        globs = tuple(text.split())
        if globs:
            self._trace(globs, on=True)

    def _name(self) -> str:
        """The name of the function at the cursor of the code, "" for none."""
        place = self._browser.place_text(self._body.panes.code.code.cursor)
        name = place.partition("+")[0]
        return "" if name.startswith("0x") or "/" in name else name

    def _is_traced(self, name: str) -> bool:
        traced = any(fnmatchcase(name, glob) for glob in self.traced)
        return traced and name not in self._left_out

    def grow(self, globs: tuple[str, ...]) -> None:
        """Trace more functions, whether the guest runs or stands."""
        self._left_out.difference_update(globs)
        self.traced = tuple(dict.fromkeys((*self.traced, *globs)))
        self._desk.post(cmd.TraceFunctions(globs, True, self._graph.depth))

    def shrink(self, globs: tuple[str, ...]) -> None:
        """Trace some functions no longer; without patterns none."""
        if not globs:
            self._trace((), on=False)
            return
        self._left_out.update(globs)
        self.traced = tuple(glob for glob in self.traced if glob not in globs)
        self._desk.post(cmd.TraceFunctions(globs, False, self._graph.depth))

    def _trace(self, globs: tuple[str, ...], *, on: bool) -> None:
        self.traced = globs if on else ()
        self._left_out.clear()
        self._desk.post(cmd.TraceFunctions(globs, on, self._graph.depth))
        if on:
            self._body.show_pane("graph")

    def deepen(self, by: int) -> None:
        """Follow calls so much deeper from now on."""
        pane = self._graph
        pane.depth = max(pane.depth + by, 0)
        pane.refresh_title()
        if self.traced:
            self._desk.post(cmd.TraceFunctions(self.traced, True, pane.depth))

    def refused(self, globs: tuple[str, ...]) -> None:
        """The engine could not trace these."""
        self.traced = tuple(glob for glob in self.traced if glob not in globs)


def _function(probe: ProbeView) -> str:
    """The name of the function that a probe stands in; "" where it has none."""
    place = probe.place.partition(",")[0]
    name, plus, _ = place.rpartition("+")
    return name if plus and "/" not in name and not name.startswith("0x") else ""
