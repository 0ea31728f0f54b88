"""Actions that trace functions, and what the graph pane asks for."""

from collections.abc import Iterable

from engine.session.protocol import commands as cmd
from engine.session.protocol.views import ProbeView
from tui.base import AppBase
from tui.panes.graph import GraphPane
from tui.widgets.bars import MessageLine


class GraphActions(AppBase):
    """Part of the app: function tracing on and off, and how deep."""

    def action_graph(self) -> None:
        """Trace the probed functions, or all after a question; if some are traced, none."""
        if self.traced:
            self._trace((), on=False)
            return
        names = {_function(probe) for probe in self.view.probes if probe.kind != "b"}
        text = " ".join(sorted(filter(None, names))) or "*"
        self.query_one(MessageLine).ask(
            "trace", "functions to trace, as GLOB or LIB:GLOB (* = all of the program)", text
        )

    def trace_answer(self, text: str) -> None:
        """The patterns that were typed."""
        globs = tuple(text.split())
        if globs:
            self._trace(globs, on=True)

    def _trace(self, globs: tuple[str, ...], *, on: bool) -> None:
        self.traced = globs if on else ()
        self.bridge.post(cmd.TraceFunctions(globs, on, self.pane("graph").depth))
        if on:
            self.show_pane("graph")

    def show_returns(self, probes: Iterable[ProbeView]) -> None:
        """The graph pane has to know which functions have return probes."""
        found = {at for probe in probes if probe.kind == "r" for at in probe.addresses}
        self.pane("graph").returns_of(found)

    def on_graph_pane_deeper(self, message: GraphPane.Deeper) -> None:
        """Other calls are to be followed from now on."""
        pane = self.pane("graph")
        pane.depth = max(pane.depth + message.by, 0)
        pane.refresh_title()
        if self.traced:
            self.bridge.post(cmd.TraceFunctions(self.traced, True, pane.depth))

    def on_graph_pane_event_chosen(self, message: GraphPane.EventChosen) -> None:
        """Show an event in the log."""
        self.pane("events").goto(message.number + 1)


def _function(probe: ProbeView) -> str:
    """The name of the function that a probe stands in; "" where it has none."""
    place = probe.place.partition(",")[0]
    name, plus, _ = place.rpartition("+")
    return name if plus and "/" not in name and not name.startswith("0x") else ""
