"""Journals side by side: where two runs part, in words."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from engine.history.journal import Entry, Journal, Op

_SHOWN: Final = 32
"""Bytes of data that are shown."""


def same_entry(left: Journal, right: Journal, at: int) -> bool:
    """True if two runs have the same entry at a place."""
    return left.raw[at] == right.raw[at] or same(left[at], right[at])


def same(ours: Entry, theirs: Entry) -> bool:
    """True if the same happened to both guests at the same moment."""
    return ours[:4] == theirs[:4] and _guests(ours.ops) == _guests(theirs.ops)


def _guests(ops: Sequence[Any]) -> list[Any]:
    """All that concerns the guest: not the host's numbers of its streams."""
    return [[op[0], 0, *op[2:]] if op[0] == Op.OUTPUT else op for op in ops]


def what_differs(left: Journal, right: Journal, at: int) -> str:
    """Both sides of two entries that are not the same."""
    if at >= len(left):
        return f"recorded was nothing more; now it is {explained(right[at])}"
    if at >= len(right):
        return f"recorded was {explained(left[at])}; now it is nothing more"
    ours, theirs = left[at], right[at]
    if ours[:4] != theirs[:4]:
        return f"recorded was {explained(ours)}; now it is {explained(theirs)}"
    pairs = zip(_guests(ours.ops), _guests(theirs.ops), strict=False)
    number = next(
        (n for n, (one, other) in enumerate(pairs) if one != other),
        min(len(ours.ops), len(theirs.ops)),
    )
    sides = [
        shown_op(entry.ops[number], (ours, theirs)[1 - side].ops[number : number + 1])
        if number < len(entry.ops)
        else "nothing more"
        for side, entry in enumerate((ours, theirs))
    ]
    return f"at {ours}: recorded was {sides[0]}; now it is {sides[1]}"


def explained(entry: Entry) -> str:
    """An entry, and what the guest sees of it first."""
    told = next((op for op in entry.ops if op[0] in (Op.OUTPUT, Op.RETURN, Op.SIGNAL)), None)
    return f"{entry}" + (f" ({shown_op(told)})" if told is not None else "")


def shown_op(op: Sequence[Any], other: Sequence[Sequence[Any]] = ()) -> str:
    """Something that happened to a guest, in words.

    Args:
        op: the entry's operation: its number, and what belongs to it.
        other: what happened in its place elsewhere: bytes are shown from where they differ.
    """
    kind, rest = op[0], op[1:]
    if kind == Op.CONTENT:
        return f"a file's bytes (SHA-256 {rest[1].hex()[:16]}...) in memory"
    data = next((part for part in rest if isinstance(part, bytes)), None)
    if data is not None:
        first = 0
        for there in other[:1]:
            theirs = next((part for part in there[1:] if isinstance(part, bytes)), b"")
            pairs = enumerate(zip(data, theirs, strict=False))
            short = min(len(data), len(theirs))
            first = next((n for n, (one, two) in pairs if one != two), short)
        cut = data[first : first + _SHOWN]
        text = repr(bytes(cut))[1:] + ("..." if len(data) > first + len(cut) else "")
        behind = f" from byte {first} of {len(data)} on" if first else ""
        if kind == Op.OUTPUT:
            return f"output {text}{behind}"
        if kind in (Op.WRITE, Op.POKE):
            address = rest[0] if kind == Op.WRITE else rest[1]
            return f"{text}{behind} written to {address + first:#x}"
        return f"{text}{behind} in memory"
    if kind == Op.RETURN:
        return f"a call that returns {rest[0]}"
    if kind == Op.REGISTER:
        return f"{rest[0]} = {rest[1]:#x}"
    words = _WORDS.get(kind, f"a change of kind {kind}")
    return f"{words} {', '.join(map(str, rest))}".rstrip()


_WORDS: Final = {
    Op.SWITCH: "a switch to thread",
    Op.WAIT: "a call that waits",
    Op.SIGNAL: "signal",
    Op.NOTICE: "a change of mappings in space",
    Op.MAPPINGS: "mappings of space",
    Op.THREAD: "a new thread",
    Op.LEAVES: "the end of thread",
    Op.EXIT: "the exit of process",
    Op.END: "the end of the run",
    Op.WOKEN: "waking of thread",
    Op.SWITCHING: "a turn (from, to, why)",
    Op.ZERO: "pages of zeros at",
}


def parting(
    left: Journal, right: Journal, ours: Collection[int], theirs: Collection[int]
) -> tuple[int, int] | None:
    """The entries at which two runs part; None where they are the same.

    Args:
        left: journal of one.
        right: of the other.
        ours: entries of the first that are changes by its user: they are passed over, what comes
            of them is not.
        theirs: the same of the other.
    """
    at, there = 0, 0
    while True:
        ends = at >= len(left), there >= len(right)
        changes = at in ours and not ends[0], there in theirs and not ends[1]
        if all(changes) and same(left[at], right[there]):
            at, there = at + 1, there + 1
        elif any(changes):
            at, there = at + changes[0], there + (changes[1] and not changes[0])
        elif all(ends):
            return None
        elif any(ends) or (left.raw[at] != right.raw[there] and not same(left[at], right[there])):
            return at, there
        else:
            at, there = at + 1, there + 1
