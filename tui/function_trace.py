"""Tracing of functions, whose calls make the graph."""

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import ProbeView
from tui.body import Body
from tui.desk import Desk
from tui.widgets.bars import Question


class FunctionTrace:
    """Has functions traced, or no longer, and calls followed so deep.

    Attributes:
        traced: patterns of the functions that are traced.
    """

    def __init__(self, desk: Desk, body: Body) -> None:
        """Nothing is traced yet."""
        self._desk = desk
        self._body = body
        self._graph = body.panes.graph
        self.traced: tuple[str, ...] = ()

    def toggle(self) -> None:
        """Trace the probed functions, or all after a question; if some are traced, none."""
        if self.traced:
            self._trace((), on=False)
            return
        names = {_function(probe) for probe in self._desk.view.probes if probe.kind != "b"}
        text = " ".join(sorted(filter(None, names))) or "*"
        hint = "functions to trace, as GLOB or LIB:GLOB (* = all of the program)"
        self._desk.ask(Question("trace", hint, self._begin, text))

    def _begin(self, text: str) -> None:
        globs = tuple(text.split())
        if globs:
            self._trace(globs, on=True)

    def _trace(self, globs: tuple[str, ...], *, on: bool) -> None:
        self.traced = globs if on else ()
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

    def refused(self) -> None:
        """The engine could not: nothing is traced."""
        self.traced = ()


def _function(probe: ProbeView) -> str:
    """The name of the function that a probe stands in; "" where it has none."""
    place = probe.place.partition(",")[0]
    name, plus, _ = place.rpartition("+")
    return name if plus and "/" not in name and not name.startswith("0x") else ""
