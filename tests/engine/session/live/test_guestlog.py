"""A guest's events as a log: the same as the ones that a kernel has recorded."""

import struct

from livekit import DATA, FORMATS, LAYOUT, LINES, PROGRAM, formats, pages
from sessionkit import loaded

from engine.session.live.comparison import EventFacts, compare_logs
from engine.session.live.eventlog import EventLog, MemorySpot, region_spots
from engine.session.live.guestlog import GuestLogFormat
from engine.trace.kernel_rows import row_maker


def test_a_guest_against_what_a_kernel_has_recorded() -> None:
    with loaded(PROGRAM) as guest:
        tracing = guest.tracing()
        for line in LINES:
            tracing.definitions.define(line)
        mine, theirs = EventLog(tracing.table), EventLog(tracing.table)
        form = GuestLogFormat(mine, guest.session)
        tracing.print_as(lambda events, names, options: form, ())
        events = formats(FORMATS)
        makers = {
            events[name].number: row_maker(info, events[name])
            for (_, name), info in tracing.infos.items()
        }
        definitions = [one.definition for one in tracing.definitions.defined]
        facts = {(one.group, one.event): EventFacts(one.args) for one in definitions}
        guest.run(tracing)

    memory = region_spots([(0x400000, 0x402000, 0, str(PROGRAM))])
    (page,) = pages((DATA / "pages.bin").read_bytes())
    for record in LAYOUT.decode(page).records:
        (number,) = struct.unpack_from("<H", record.data)
        row = makers[number](record.time, record.data)
        theirs.add(row, lambda thread, time: memory, lambda thread: thread)

    found = compare_logs(mine, theirs, facts)
    assert (mine.count, found.pairs, found.same) == (19, 19, 19), found.examples
    (first,) = list(mine.threads.values())
    sp = first[0].spot(0x400780)
    assert sp == MemorySpot(str(PROGRAM.resolve()), 0x780)
