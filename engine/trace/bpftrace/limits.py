"""Limits of the host's memory that a script may take, whoever wrote it.

bpftrace leaves this to the kernel, which refuses maps that are too large when they are made. Here
a script is refused before it runs, with a text that says what to make smaller.
"""

from collections.abc import Mapping
from typing import Final

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.checked import CheckedMap
from engine.trace.bpftrace.maps import BUCKETED
from engine.trace.bpftrace.type_rules import type_name, type_size

MOST_VALUE: Final = 1 << 24
"""Bytes of one value: a string, a structure, a tuple, a key of a map."""
MOST_MAPS: Final = 1024
MOST_MEMORY: Final = 4 << 30
"""Bytes that all maps take if they are full."""
_OVERHEAD: Final = 200  # of an entry: the dict's slot, a number, a tuple or the head of bytes


def value_error(kind: kinds.Type) -> str | None:
    """Why values of a type are refused; None if they are not."""
    size = type_size(kind)
    if size <= MOST_VALUE:
        return None
    return f"A value of type {type_name(kind)} is too large: {size} bytes of {MOST_VALUE} at most"


def maps_error(maps: Mapping[str, CheckedMap]) -> tuple[str, str] | None:
    """Why maps are refused, and which of them above all; None if they are not."""
    if not maps:
        return None
    taken = {name: _memory(each) for name, each in maps.items()}
    largest = max(taken, key=lambda name: taken[name])
    if len(taken) > MOST_MAPS:
        return f"Too many maps: {len(taken)} of {MOST_MAPS} at most", largest
    total = sum(taken.values())
    if total <= MOST_MEMORY:
        return None
    text = (
        f"Maps can take {total >> 20} MiB of {MOST_MEMORY >> 20} MiB at most; @{largest} takes "
        f"most of it: make max_map_keys, its declared size or its values smaller"
    )
    return text, largest


def _memory(of: CheckedMap) -> int:
    gathers = isinstance(of.value, kinds.Aggregate) and of.value.kind in BUCKETED
    entries = 1 if of.is_scalar and not gathers else of.entries
    return entries * (
        (0 if of.key is None else type_size(of.key)) + type_size(of.value) + _OVERHEAD
    )
