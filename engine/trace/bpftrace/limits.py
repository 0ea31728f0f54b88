"""How much of the host's memory a script may take, whoever wrote it.

bpftrace leaves this to the kernel, which refuses maps that are too large when they are made. Here
a script is refused before it runs, with a text that says what to make smaller.
"""

from collections.abc import Iterable
from typing import Final

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.layouts import size_of
from engine.trace.bpftrace.maps import ScriptMap
from engine.trace.bpftrace.type_rules import type_name

MOST_VALUE: Final = 1 << 20
"""Bytes of one value: a string, a structure, a tuple, a key of a map."""
MOST_MAPS: Final = 1024
MOST_MEMORY: Final = 4 << 30
"""Bytes that all maps take if they are full."""
_OVERHEAD: Final = 200  # of an entry: the dict's slot, a number, a tuple or the head of bytes


def value_error(kind: kinds.Type) -> str | None:
    """Why values of a type are refused; None if they are not."""
    size = size_of(kind)
    if size <= MOST_VALUE:
        return None
    return f"Value of type {type_name(kind)} is too large: {size} bytes of {MOST_VALUE} at most"


def maps_error(maps: Iterable[ScriptMap]) -> str | None:
    """Why maps are refused: there are too many, or too large ones; None if they are not."""
    taken = {each.title: _memory(each) for each in maps}
    if len(taken) > MOST_MAPS:
        return f"Too many maps: {len(taken)} of {MOST_MAPS} at most"
    total = sum(taken.values())
    if total <= MOST_MEMORY:
        return None
    largest = max(taken, key=lambda title: taken[title])
    return (
        f"Maps can take {total >> 20} MiB of {MOST_MEMORY >> 20} MiB at most, {largest} the "
        f"largest part of it: make max_map_keys or its declared size smaller"
    )


def _memory(of: ScriptMap) -> int:
    key = size_of(of.key) if of.key is not None else 0
    entries = of.most if of.key is not None or of.is_bucketed else 1
    return entries * (key + size_of(of.value) + _OVERHEAD)
