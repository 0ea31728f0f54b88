"""Two branches side by side: the first thing that was not the same, in words."""

from collections.abc import Sequence

from engine.history.comparing import explained, parting, shown_op
from engine.history.journal import Journal, Op
from engine.session.control.branches import KeptRun


def compared(sides: tuple[str, str], runs: tuple[KeptRun, KeptRun]) -> list[str]:
    """The place at which two branches part, in words.

    Args:
        sides: names of the branches, of one width.
        runs: the runs of the two branches.
    """
    left, right = runs
    for run in runs:
        run.travel.recorder.sync()
    journals = left.travel.recorder.journal, right.travel.recorder.journal
    ends = [run.travel.present().clock for run in runs]
    over = [run.travel.is_over for run in runs]
    changed = [_changes(run) for run in runs]
    found = parting(*journals, *changed)
    if found is None:
        lines = ["they do the same"]
    elif any(
        at >= len(journal) and not done
        for at, journal, done in zip(found, journals, over, strict=True)
    ):
        lines = [f"they do the same up to tick {min(ends)}, to which one of them has come"]
    else:
        clocks = [
            journal[at].clock if at < len(journal) else end
            for at, journal, end in zip(found, journals, ends, strict=True)
        ]
        lines = [f"they part at tick {min(clocks)}:"]
        lines += [
            f"  {name}: {_entry(journal, at, edits)}"
            for name, journal, edits, at in zip(sides, journals, changed, found, strict=True)
        ]
    lines += _outputs(sides, *journals, over)
    lines += _edits(sides, journals, changed)
    lines.append("they have come to:")
    lines += [
        f"  {name}: tick {end}, {_end(run)}"
        for name, end, run in zip(sides, ends, runs, strict=True)
    ]
    return lines


def _changes(run: KeptRun) -> set[int]:
    inputs = run.travel.recorder.inputs
    return (
        {act.moment.at for act in inputs.acts if act.makes_entry} if inputs is not None else set()
    )


def _entry(journal: Journal, at: int, edits: set[int]) -> str:
    if at >= len(journal):
        return "nothing more has happened"
    entry = journal[at]
    if at in edits:
        return f"a change by the user at tick {entry.clock}"
    return explained(entry)


def _edits(
    sides: tuple[str, str], journals: tuple[Journal, Journal], changed: list[set[int]]
) -> list[str]:
    """Changes by the user in one of the runs only."""
    shown = []
    for name, journal, edits, others, theirs in zip(
        sides, journals, changed, journals[::-1], changed[::-1], strict=True
    ):
        known = {others.raw[at] for at in theirs if at < len(others)}
        for at in sorted(edits):
            if at < len(journal) and journal.raw[at] not in known:
                entry = journal[at]
                what = ", ".join(
                    shown_op(op)
                    for op in entry.ops
                    if op[0] in (Op.REGISTER, Op.WRITE, Op.POKE, Op.SIGNAL)
                )
                shown.append(f"  {name}: at tick {entry.clock}: {what or 'a signal'}")
    return ["the user has changed:", *shown] if shown else []


def _outputs(
    sides: tuple[str, str], ours: Journal, theirs: Journal, over: Sequence[bool]
) -> list[str]:
    """The first output that is not the same.

    Args:
        sides: names.
        ours: journal of one.
        theirs: of the other.
        over: which of them have ended: another one may still write what the other has.
    """
    written = [_OutputReader(journal) for journal in (ours, theirs)]
    while True:
        for one in written:
            one.fill()
        size = min(len(one.rest) for one in written)
        if size and written[0].rest[:size] == written[1].rest[:size]:
            for one in written:
                one.drop(size)
            continue
        if not any(one.rest for one in written):
            return []
        if any(not one.rest and not done for one, done in zip(written, over, strict=True)):
            return []
        first = next((n for n in range(size) if written[0].rest[n] != written[1].rest[n]), size)
        lines = ["the first output that differs:"]
        for name, one in zip(sides, written, strict=True):
            line = one.line(first)
            text = f"{line!r} at tick {one.clock}" if one.rest else "nothing more"
            lines.append(f"  {name}: {text}")
        return lines


class _OutputReader:
    """All that a run has written to the host, piece by piece."""

    def __init__(self, journal: Journal) -> None:
        self._pieces = journal.outputs()
        self.rest = b""
        self.clock = 0
        self._line = b""

    def fill(self) -> None:
        """Have a piece at hand, if there is any left."""
        while not self.rest:
            piece = next(self._pieces, None)
            if piece is None:
                return
            self.clock, _, self.rest = piece

    def drop(self, size: int) -> None:
        """So many bytes are dealt with."""
        self._line = (self._line + self.rest[:size]).rpartition(b"\n")[2]
        self.rest = self.rest[size:]

    def line(self, first: int) -> str:
        """The line that a byte of the piece is in."""
        before = (self._line + self.rest[:first]).rpartition(b"\n")[2]
        return (before + self.rest[first:].partition(b"\n")[0])[:80].decode(errors="replace")


def _end(run: KeptRun) -> str:
    running = run.place.present.running
    return running.reason
