"""Rows of recorded events, as front ends keep, read, filter and print them.

An `events.Rows` carries whole rows as they were recorded, `events.Declared` the events they may
be of. `engine.trace.rows` describes their bytes.
"""

from engine.trace.formats.base import MappedFile, Names
from engine.trace.formats.event_text import EventLines, EventText
from engine.trace.graph import is_entry, is_exit
from engine.trace.program_times import ProgramTimes
from engine.trace.ring import Ring
from engine.trace.rowfilter import CompiledFilter
from engine.trace.rowfilter import compile_filter as compile_row_filter
from engine.trace.rows import (
    HEAD,
    TIME,
    Event,
    EventInfo,
    EventSource,
    EventTable,
    Value,
    decode,
    whole,
)

__all__ = [
    "HEAD",
    "TIME",
    "CompiledFilter",
    "Event",
    "EventInfo",
    "EventLines",
    "EventSource",
    "EventTable",
    "EventText",
    "MappedFile",
    "Names",
    "ProgramTimes",
    "Ring",
    "Value",
    "compile_row_filter",
    "decode",
    "is_entry",
    "is_exit",
    "whole",
]
