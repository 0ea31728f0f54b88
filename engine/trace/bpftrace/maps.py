"""The maps of a script: keys, values and aggregates, as BPF's hash maps hold them.

`entries` is a plain dict, so that generated code can update it in place. What it holds for a map
whose values are ...

| values | key of `entries` | value of `entries` |
|---|---|---|
| not an aggregate | the key | the value |
| `count`, `sum` | the key | the sum, not wrapped |
| `min`, `max` | the key | the number; None after `zero()` |
| `avg`, `stats` | the key | [count, total], not wrapped |
| `hist`, `lhist` | (the key, number of the bucket) | the count of the bucket |
| `tseries` | (the key, epoch modulo the number of epochs) | [epoch, value, meta] |

The key of a map that is one value (`@x`) is SCALAR. A histogram takes an entry for each of its
buckets, as in bpftrace, where `max_map_keys` limits these, too. An update in one step, which
leaves the limit to `add`:

    try: entries[key] += 1
    except KeyError: counted.add(key, 1)

A full map loses what is new and counts it (`lost`); one of an "lru" kind drops what was used the
longest ago, and has to be read and written by methods (`is_plain` is False then).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.arithmetic import MASK64, signed64, truncated_quotient
from engine.trace.bpftrace.histograms import hist_bucket, linear_bucket
from engine.trace.bpftrace.timeseries import update_epoch
from engine.trace.bpftrace.values import default_value

DEFAULT_KEYS: Final = 4096
"""Entries of a map at most, if nothing else is said (`max_map_keys`)."""
SCALAR: Final = 0
"""The key of the one value of a map without keys."""
BUCKETED: Final = ("hist", "lhist", "tseries")
"""Aggregates that take several entries for a key."""
AVERAGED: Final = ("avg", "stats")
_LEAST_USED: Final = ("lruhash", "percpulruhash")


class ScriptMap:
    """A map.

    Attributes:
        name: without the sign; "" for `@`.
        key: the type of its keys; None for a map that is one value.
        value: the type of its values.
        most: entries that it has room for.
        kind: "hash", "lruhash", "percpuhash", "percpulruhash".
        entries: what is in it, see above.
        lost: updates for which there was no room.
    """

    __slots__ = ("entries", "key", "kind", "lost", "most", "name", "value")

    def __init__(
        self,
        name: str,
        key: kinds.Type | None,
        value: kinds.Type,
        most: int = DEFAULT_KEYS,
        kind: str = "hash",
    ) -> None:
        self.name = name
        self.key = key
        self.value = value
        self.most = most
        self.kind = kind
        self.entries: dict[Any, Any] = {}
        self.lost = 0

    @property
    def title(self) -> str:
        """The name as scripts and output have it: `@x`."""
        return f"@{self.name}"

    @property
    def is_plain(self) -> bool:
        """Generated code may read and write `entries` itself."""
        return self.kind not in _LEAST_USED

    @property
    def aggregate(self) -> kinds.Aggregate | None:
        """The aggregate that its values are; None where they are plain values."""
        return self.value if isinstance(self.value, kinds.Aggregate) else None

    @property
    def is_bucketed(self) -> bool:
        """Several entries belong to one key."""
        return self.aggregate is not None and self.aggregate.kind in BUCKETED

    def __len__(self) -> int:
        return len(self.entries)

    # -- entries ------------------------------------------------------------------------------

    def add(self, key: Any, value: Any) -> bool:
        """Set an entry, if it is there or there is room for it; else the update is lost.

        Returns:
            True if it is set. False: a warning is due (`faults.MAP_FULL`).
        """
        entries = self.entries
        if not self.is_plain:
            entries.pop(key, None)
            if len(entries) >= self.most:
                del entries[next(iter(entries))]
        elif len(entries) >= self.most and key not in entries:
            self.lost += 1
            return False
        entries[key] = value
        return True

    def get(self, key: Any) -> Any:
        """The value of an entry, zeros where there is none; of an aggregate its number."""
        found = self.entries.get(key)
        if found is None:
            return default_value(self.value)
        if not self.is_plain:  # it is used now
            self.entries[key] = self.entries.pop(key)
        return aggregate_number(self.value, found) if self.aggregate else found

    def has(self, key: Any) -> bool:
        """There is an entry: `has_key()`."""
        return key in self.entries

    def delete(self, key: Any) -> bool:
        """Take an entry away; False if there is none."""
        if self.is_bucketed:
            found = [one for one in self.entries if one[0] == key]
            for one in found:
                del self.entries[one]
            return bool(found)
        return self.entries.pop(key, self) is not self

    def clear(self) -> None:
        """Take all entries away."""
        self.entries.clear()

    def zero(self) -> None:
        """Set all values to zero; their keys stay."""
        aggregate, entries = self.aggregate, self.entries
        if aggregate is None:
            zeros: Any = default_value(self.value)
            for key in entries:
                entries[key] = zeros
            return
        for key in entries:
            if aggregate.kind in AVERAGED:
                entries[key] = [0, 0]
            elif aggregate.kind == "tseries":
                entries[key] = [0, 0, 0]
            else:
                entries[key] = None if aggregate.kind in ("min", "max") else 0

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values for a loop over them, in the order in which keys came first."""
        for key in tuple(self.entries):
            if key in self.entries:
                yield key, self.get(key)

    # -- aggregates -----------------------------------------------------------------------------

    # These give False where there was no room for a new entry, as `add`.

    def count(self, key: Any) -> bool:
        """Count one more."""
        return self.sum(key, 1)

    def sum(self, key: Any, value: int) -> bool:
        """Add to a sum."""
        return self.add(key, self.entries.get(key, 0) + value)

    def minimum(self, key: Any, value: int) -> bool:
        """Keep the smallest value."""
        old = self.entries.get(key)
        return (old is not None and value >= old) or self.add(key, value)

    def maximum(self, key: Any, value: int) -> bool:
        """Keep the greatest value."""
        old = self.entries.get(key)
        return (old is not None and value <= old) or self.add(key, value)

    def average(self, key: Any, value: int) -> bool:
        """Count one more and add, for `avg()` and `stats()`."""
        cell = self.entries.get(key)
        if cell is None:
            return self.add(key, [1, value])
        cell[0] += 1
        cell[1] += value
        return True

    def histogram(self, key: Any, value: int) -> bool:
        """Count one more in the bucket of a value, for `hist()`."""
        assert self.aggregate is not None
        bits = self.aggregate.parameters[0] if self.aggregate.parameters else 0
        return self.count((key, hist_bucket(value, bits)))

    def linear(self, key: Any, value: int) -> bool:
        """The same in buckets of one width, for `lhist()`."""
        assert self.aggregate is not None
        least, most, step = self.aggregate.parameters
        return self.count((key, linear_bucket(value, least, most, step)))

    def series(self, key: Any, value: int, now: int) -> bool:
        """Take a value at a time in nanoseconds, for `tseries()`."""
        assert self.aggregate is not None
        interval, epochs, function = self.aggregate.parameters
        epoch = now // interval
        slot = (key, epoch % epochs)
        cell = self.entries.get(slot)
        if cell is None:
            cell = [epoch, 0, 0]
            if not self.add(slot, cell):
                return False
        update_epoch(cell, kinds.AGGREGATES[function], value, epoch, now)
        return True

    # -- moments --------------------------------------------------------------------------------

    def copy(self) -> "ScriptMap":
        """The map as it is now; what comes later does not change it."""
        other = ScriptMap(self.name, self.key, self.value, self.most, self.kind)
        other.lost = self.lost
        aggregate = self.aggregate
        if aggregate is not None and aggregate.kind in (*AVERAGED, "tseries"):
            other.entries = {key: list(cell) for key, cell in self.entries.items()}
        else:
            other.entries = dict(self.entries)
        return other

    def restore(self, other: "ScriptMap") -> None:
        """Become what a copy is; `entries` stays the same dict, which generated code holds."""
        copied = other.copy()
        self.entries.clear()
        self.entries.update(copied.entries)
        self.lost = other.lost


def aggregate_number(aggregate: kinds.Type, cell: Any) -> int:
    """The number that an aggregate is read as: `if (@x > 5)`, `print(@x[1])`."""
    assert isinstance(aggregate, kinds.Aggregate)
    if aggregate.kind in AVERAGED:
        return average_of(aggregate, cell)
    return number_of(aggregate, cell or 0)


def number_of(aggregate: kinds.Aggregate, number: int) -> int:
    """A number in the range of an aggregate, which is one of 64 bits."""
    signed = aggregate.signed and aggregate.kind != "count"
    return signed64(number) if signed else number & MASK64


def average_of(aggregate: kinds.Aggregate, cell: list[int]) -> int:
    """The average of a cell of `avg` or `stats`, rounded towards zero."""
    count, total = cell
    return truncated_quotient(number_of(aggregate, total), count) if count else 0


def copies(maps: Iterable[ScriptMap]) -> tuple[ScriptMap, ...]:
    """All maps as they are now."""
    return tuple([each.copy() for each in maps])
