"""Output formats of a trace. A new one is a class of `base.Format` and a line in `FORMATS`."""

from engine.trace.formats.base import Format, Names
from engine.trace.formats.folded import FoldedFormat
from engine.trace.formats.ftrace import FtraceFormat
from engine.trace.formats.function import FunctionFormat
from engine.trace.formats.graph import GraphFormat
from engine.trace.formats.jsonl import JsonLinesFormat
from engine.trace.formats.perfetto import PerfettoFormat

FORMATS: tuple[type[Format], ...] = (
    FtraceFormat,
    JsonLinesFormat,
    PerfettoFormat,
    FoldedFormat,
)

TRACER_FORMATS: tuple[type[Format], ...] = (GraphFormat, FunctionFormat)
"""Texts of the tracers of functions."""

__all__ = ["FORMATS", "TRACER_FORMATS", "Format", "Names"]
