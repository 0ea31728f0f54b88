"""Output formats of a trace. A new one is a class of `base.Format` and a line in `_FORMATS`.

A format is imported when it is asked for: some need libraries that not everybody has.
"""

from importlib import import_module
from typing import Final, cast

from engine.trace.formats.base import Format, Names

_FORMATS: Final = {
    "ftrace": "ftrace.FtraceFormat",
    "jsonl": "jsonl.JsonLinesFormat",
    "perfetto": "perfetto.PerfettoFormat",
    "folded": "folded.FoldedFormat",
    "trace.dat": "tracedat.TraceDatFormat",
    "perf.data": "perfdata.PerfDataFormat",
    "ctf": "ctf.CtfFormat",
    "pprof": "pprof.PprofFormat",
    "parquet": "columns.ParquetFormat",
    "arrow": "columns.ArrowFormat",
}

_TRACER_FORMATS: Final = {
    "function_graph": "graph.GraphFormat",
    "function": "function.FunctionFormat",
    "report": "report.ReportFormat",
    "callgraph": "callgraph.CallGraphFormat",
    "calls": "calls.CallsFormat",
    "latency": "latency.LatencyFormat",
    "samples": "samples.SamplesFormat",
}
"""Texts of the tracers of functions, and reports in place of events."""

WEIGH_CALLS: Final = "weigh-calls"
"""The option that has folded and pprof weigh stacks by calls, not by time."""

FORMAT_NAMES: Final = tuple(_FORMATS)
TRACER_NAMES: Final = tuple(_TRACER_FORMATS)


def format_named(name: str) -> type[Format]:
    """The format of a name, of `FORMAT_NAMES` or `TRACER_NAMES`.

    Raises:
        KeyError: there is none.
    """
    module, _, found = {**_FORMATS, **_TRACER_FORMATS}[name].rpartition(".")
    return cast("type[Format]", getattr(import_module(f"{__name__}.{module}"), found))


__all__ = ["FORMAT_NAMES", "TRACER_NAMES", "WEIGH_CALLS", "Format", "Names", "format_named"]
