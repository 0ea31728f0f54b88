"""Logs of recorded runs, as they are told."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controlkit import Held, held, sample

from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import RunState
from engine.trace.rows import Event
from tui.store import EventStore

FIELDS = ("%di", "+0(%di):u8", "$stack0", "$comm", "%sp", "+8(%sp):x64", "%ip:x64", "$stack")
"""Values for definitions."""

Row = tuple[Any, ...]


def log(guest: Held) -> list[Row]:
    """The log as it is told: rows by names of events, in order."""
    store = EventStore()
    for event in guest.said:
        match event:
            case ev.Restarted():
                store.clear()
            case ev.Declared(infos):
                store.declare(infos)
            case ev.Rows(data, _, None):
                store.append(data)
            case ev.Rows(data, _, int() as stretch):
                store.append_past(data, stretch)
            case ev.StretchBegun(stretch):
                store.begin_stretch(stretch)
            case ev.Refilling(0, _):
                store.begin_refill()
            case ev.Refilled(before):
                store.end_refill(before)
            case ev.Erased(ids):
                store.erase(ids)
    return [_row(store.event(number)) for number in range(store.first, store.end)]


def _row(event: Event) -> Row:
    return (
        *(event.group, event.name, event.time, event.thread_id),
        *(event.address, event.returned_to, event.values),
    )


@contextmanager
def recorded(arch: str, name: str, *args: str, technique: str = "auto") -> Iterator[Held]:
    with held(sample(arch, name), *args, history=True, technique=technique) as guest:
        guest.control.loop.refills = True
        yield guest


def from_the_start(
    arch: str, name: str, *commands: cmd.Command, technique: str = "auto"
) -> tuple[list[Row], Held]:
    """The log of a run that records from its start on."""
    with recorded(arch, name, technique=technique) as guest:
        guest.do(*commands, cmd.Continue())
        assert guest.control.state is RunState.ENDED
        assert not guest.all(ev.Refilling)
        return log(guest), guest
