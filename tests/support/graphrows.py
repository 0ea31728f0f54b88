"""Rows of a function graph, made by hand."""

from engine.arch.program import row_head
from engine.trace.formats.base import Names
from engine.trace.graph import ENTRY_ROW, EXIT_ROW, entry_info, exit_info

ENTRY, EXIT = entry_info(1), exit_info(2)
TABLE = {1: ENTRY, 2: EXIT}
NAMES = Names(symbol=lambda at: f"f{at:x}+0x0/0x10", comm=lambda thread: b"prog")


def call(time: int, function: int, depth: int, thread: int = 7) -> bytes:
    """An entry."""
    head, more = row_head(ENTRY.id, ENTRY.words)
    return ENTRY_ROW.pack(head, more | thread, time, function, depth, 0)


def back(time: int, function: int, depth: int, thread: int = 7, began: int = 0) -> bytes:
    """A return."""
    head, more = row_head(EXIT.id, EXIT.words)
    return EXIT_ROW.pack(head, more | thread, time, function, 0, depth, began, 0, 0)
