"""Commands that change the list of probes."""

from collections.abc import Callable

from engine.session.control.entries import Row
from engine.session.control.event_rules import EventTexts
from engine.session.control.probe_list import ProbeBook
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev


def carry_out(
    book: ProbeBook, command: cmd.Command, tell: Callable[[ev.SessionEvent], object]
) -> str | None:
    """Carry a command out if it is one of these.

    Args:
        book: the list.
        command: any command.
        tell: takes what else is to be known.

    Returns:
        What was done, in words; None for another command.

    Raises:
        KprobeTuiError: it cannot be done.
    """
    match command:
        case cmd.Define(line, replaces, stops):
            return book.define(line, replaces, stops=stops)
        case cmd.Restore(probes):
            return _restore(book, probes, tell)
        case cmd.Break(place):
            return book.toggle_break(place)
        case cmd.Delete(ids):
            return book.delete(ids)
        case cmd.Enable(ids, on):
            return book.enable(ids, on=on)
        case cmd.StopOnHit(ids, on):
            return book.stop_on_hit(ids, on=on)
        case cmd.Filter(event, wanted):
            return book.set_filter(event, wanted)
        case cmd.Trigger(event, wanted):
            return book.add_trigger(event, wanted)
    return None


def _restore(
    book: ProbeBook,
    probes: tuple[cmd.SavedProbe, ...],
    tell: Callable[[ev.SessionEvent], object],
) -> str:
    rows = tuple(
        Row(
            number,
            probe.kind,
            probe.line,
            probe.enabled,
            probe.stops or probe.kind == "b",
            EventTexts(probe.filter, probe.triggers),
        )
        for number, probe in enumerate(probes, 1)
    )
    failures = book.restore(rows)
    for failure in failures:
        tell(ev.Notice(failure))
    return f"{len(rows) - len(failures)} probes of the last time"
