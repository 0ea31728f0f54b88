"""Graphs of programs with their arguments and results, line by line."""

from contextlib import nullcontext
from io import BytesIO

from engine.session.headless.traces import opened_graph
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.requests import GraphOptions, GraphRequest, TraceOptions


def graph_lines(path: str, *globs: str, prototypes: str | None = None) -> list[str]:
    """The lines of a graph with arguments and results."""
    out = BytesIO()
    options = GraphOptions(args=True, retval=True)
    trace = TraceOptions(prototypes=prototypes)
    request = GraphRequest(GuestConfig(path), options=trace, functions=globs, graph=options)
    with opened_graph(request, out) as run:
        run.run(lambda session: nullcontext())
    lines = (line for line in out.getvalue().decode().splitlines() if line[0] != "#")
    return [line.partition("|  ")[2].strip() for line in lines]
