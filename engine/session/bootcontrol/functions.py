"""The functions of a booted kernel whose calls a front end has traced, boot after boot."""

from engine.session.booted.graph import BootGraph
from engine.session.booted.tracing import BootTracing
from engine.session.protocol.requests import GraphOptions


class BootFunctions:
    """The functions that are traced."""

    _tracing: BootTracing
    _graph: BootGraph | None

    def __init__(self) -> None:
        """None is traced, and there is no boot yet."""
        self._asked: list[tuple[bool, tuple[str, ...]]] = []
        self._depth = 0

    def begin(self, tracing: BootTracing) -> None:
        """Trace in a boot that begins what was traced in the last one.

        Raises:
            ProbeError: no function matches.
        """
        self._tracing, self._graph = tracing, None
        for is_on, globs in self._asked:
            if is_on:
                self._made().add(globs)
            else:
                self._made().remove(globs)

    def trace(self, globs: tuple[str, ...], depth: int) -> str:
        """Trace more functions; in words what was done.

        Raises:
            ProbeError: no function matches.
        """
        graph = self._made()
        graph.add(globs)
        graph.follow(depth)
        self._depth = depth
        self._ask(globs, is_on=True)
        deep = f", {depth} deep" if depth else ""
        return f"{graph.functions} functions traced{deep}"

    def leave(self, globs: tuple[str, ...]) -> str:
        """Trace functions no longer, all of them without patterns; in words what was done."""
        count = self._made().remove(globs)
        if globs:
            self._ask(globs, is_on=False)
        else:
            self._asked.clear()
        return f"{count} functions are no longer traced"

    def _ask(self, globs: tuple[str, ...], *, is_on: bool) -> None:
        """Keep what was asked for, for other boots; the last word on a pattern counts."""
        asked = [(each, tuple(one for one in of if one not in globs)) for each, of in self._asked]
        self._asked = [*(one for one in asked if one[1]), (is_on, globs)]

    def _made(self) -> BootGraph:
        if self._graph is None:
            self._graph = BootGraph(
                self._tracing, GraphOptions(depth_max=self._depth, retval=True)
            )
        return self._graph
