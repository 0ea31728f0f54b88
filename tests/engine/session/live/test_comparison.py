"""Two logs of one program, compared: what is the same, and the reasons of what is not."""

from collections.abc import Sequence

import pytest

from engine.arch.program import Base, FetchArg, FieldType, Source, ValueKind
from engine.session.live.comparison import (
    EventFacts,
    LiveComparison,
    Reason,
    compare_logs,
)
from engine.session.live.eventlog import EventLog, SpotOf, memory_spot, region_spots
from engine.trace.rows import Column, EventInfo, pack_row

WORD = FieldType(ValueKind.HEX, 8)
BYTE = FieldType(ValueKind.UNSIGNED, 1)
TEXT = FieldType(ValueKind.STRING, 0)
HALVES = FieldType(ValueKind.HEX, 4, count=2)
REGISTER = FetchArg("r", "%di:x64", Base(Source.REGISTER, "di"), (), WORD)
READ = FetchArg("m", "+0(%di):x64", Base(Source.REGISTER, "di"), (0,), WORD)
FLAGS = FetchArg("f", "%flags:x64", Base(Source.REGISTER, "flags"), (), WORD)

Events = Sequence[tuple[int, str, int, list[int | bytes]]]
GUEST = region_spots(
    [
        (0x400000, 0x401000, 0, "/bin/prog"),
        (0x7F0000, 0x7F1000, 0, "/lib/libx.so"),
        (0x10000, 0x20000, 0, "[heap]"),
        (0x7FFF0000, 0x7FFF8000, 0, "[stack]"),
    ]
)
MACHINE = region_spots(
    [
        (0x400000, 0x401000, 0, "/bin/prog"),
        (0x6F0000, 0x6F1000, 0, "/lib/libx.so"),
        (0x30000, 0x40000, 0, "[heap]"),
        (0x7FFE0000, 0x7FFE8000, 0, "[stack]"),
        (0x5000, 0x6000, 0, "[uprobes]"),
    ]
)


def log(spot: SpotOf, *args: FetchArg, events: Events) -> EventLog:
    """A log of events: thread, name, address, values."""
    names = sorted({name for _, name, _, _ in events})
    table = {}
    for number, name in enumerate(names, 1):
        word, columns = 3, []
        for arg in args:
            columns.append(Column(arg.name, arg.type, word))
            word += columns[-1].words
        table[number] = EventInfo(number, "g", name, tuple(columns), word)
    found = EventLog(table)
    for time, (thread, name, address, values) in enumerate(events):
        info = table[names.index(name) + 1]
        found.add(
            pack_row(info, thread, time, address, values),
            lambda thread, time: spot,
            lambda thread: thread - thread % 10,
        )
    return found


def compared(
    arg: FetchArg, left: int | bytes, right: int | bytes, *more: tuple[int | bytes, int | bytes]
) -> LiveComparison:
    """One argument of events that differ in it."""
    pairs = [(left, right), *more]
    guest = log(GUEST, arg, events=[(1000, "e", 0x400010, [a]) for a, _ in pairs])
    machine = log(MACHINE, arg, events=[(5550, "e", 0x400010, [b]) for _, b in pairs])
    return compare_logs(guest, machine, {("g", "e"): EventFacts((arg,))})


@pytest.mark.parametrize(
    ("arg", "left", "right", "reason"),
    [
        (REGISTER, 7, 7, None),
        (REGISTER, 0x7F0123, 0x6F0123, None),  # the same place of a library
        (REGISTER, 0x7F0123, 0x6F0124, Reason.UNKNOWN),
        (REGISTER, 0x7FFF0010, 0x7FFE0058, Reason.ADDRESS),
        (REGISTER, 0x10010, 0x30010, Reason.ADDRESS),
        (REGISTER, 0x10010, 0x7FFE0058, Reason.UNKNOWN),
        (READ, 0x400020, 0x5000, Reason.TRAMPOLINE),
        (REGISTER, 1000, 5550, Reason.IDS),
        (REGISTER, 7, 8, Reason.UNKNOWN),
        (READ, 0, 8, Reason.STALE),
        (READ, 8, 0, Reason.UNKNOWN),
        (REGISTER, 0, 8, Reason.UNKNOWN),
        (FLAGS, 0x246, 0x10246, Reason.KERNELS_FLAGS),
        (FLAGS, 0x246, 0x242, Reason.UNKNOWN),
    ],
)
def test_numbers(arg: FetchArg, left: int, right: int, reason: Reason | None) -> None:
    found = compared(arg, left, right)
    assert found.counts == ({} if reason is None else {reason: 1})
    assert found.same == (reason is None)
    assert found.explained == (reason not in (Reason.UNKNOWN, Reason.STALE))


def test_what_follows_from_other_differences() -> None:
    known = (0x7FFF0010, 0x7FFE0058)  # on the stack, 0xffb8 away from each other
    found = compared(REGISTER, 0xFFB8 + 5, 5, known)
    assert found.counts == {Reason.ADDRESS: 1, Reason.DERIVED: 1}
    part = FetchArg("m", "+2(%sp):u8", Base(Source.STACK_POINTER), (2,), BYTE)
    guest = log(GUEST, REGISTER, part, events=[(1, "e", 0x400010, [known[0], 0xFF])])
    machine = log(MACHINE, REGISTER, part, events=[(1, "e", 0x400010, [known[1], 0xFE])])
    found = compare_logs(guest, machine, {("g", "e"): EventFacts((REGISTER, part))})
    assert found.counts == {Reason.ADDRESS: 1, Reason.PARTS: 1}  # a byte of it
    kind = FieldType(ValueKind.BITFIELD, 8, width=4, offset=2)
    bits = FetchArg("b", "%sp:b4@2/64", Base(Source.STACK_POINTER), (), kind)
    guest = log(GUEST, REGISTER, bits, events=[(1, "e", 0x400010, [known[0], 4])])
    machine = log(MACHINE, REGISTER, bits, events=[(1, "e", 0x400010, [known[1], 6])])
    found = compare_logs(guest, machine, {("g", "e"): EventFacts((REGISTER, bits))})
    assert found.counts == {Reason.ADDRESS: 1, Reason.PARTS: 1}  # some bits of it
    found = compared(FLAGS, 0x246, 0x242)
    assert found.counts == {Reason.UNKNOWN: 1}
    guest = log(GUEST, REGISTER, FLAGS, events=[(1, "e", 0x400010, [known[0], 0x246])])
    machine = log(MACHINE, REGISTER, FLAGS, events=[(1, "e", 0x400010, [known[1], 0x242])])
    found = compare_logs(guest, machine, {("g", "e"): EventFacts((REGISTER, FLAGS))})
    assert found.counts == {Reason.ADDRESS: 1, Reason.DERIVED_FLAGS: 1}


def test_strings_and_arrays() -> None:
    text = FetchArg("s", "+0(%di):string", Base(Source.REGISTER, "di"), (0,), TEXT)
    assert compared(text, b"one\0", b"one\0").same == 1
    assert compared(text, b"one\0", b"two\0").counts == {Reason.UNKNOWN: 1}
    assert compared(text, b"one\0", b"").counts == {Reason.FAULT: 1}
    address = b"\x11\x22\xff\x7f\0", b"\x58\x01\xfe\x7f\0"  # of the stack, read as a string
    assert compared(text, *address).counts == {Reason.ADDRESS: 1}
    halves = FetchArg("h", "+0(%di):x32[2]", Base(Source.REGISTER, "di"), (0,), HALVES)
    guest = log(GUEST, halves, events=[(1, "e", 0x400010, [0x7FFF0010, 0])])
    machine = log(MACHINE, halves, events=[(1, "e", 0x400010, [0x7FFE0058, 0])])
    found = compare_logs(guest, machine, {("g", "e"): EventFacts((halves,))})
    assert found.counts == {Reason.ADDRESS: 1}  # one word in two halves


def test_events_that_one_side_lacks() -> None:
    guest = log(
        GUEST, events=[(1, "a", 0x400010, []), (1, "b", 0x400020, []), (1, "a", 0x400010, [])]
    )
    machine = log(MACHINE, events=[(9, "a", 0x400010, []), (9, "a", 0x400010, [])])
    found = compare_logs(guest, machine, {})
    assert (found.pairs, found.same, found.counts) == (2, 2, {Reason.UNKNOWN: 1})
    assert found.examples[Reason.UNKNOWN] == [
        "g/b at 0x400020 (prog+0x20) of thread 1: in the guest only"
    ]
    repeated = {("g", "b"): EventFacts((), repeated=True)}
    assert compare_logs(machine, guest, repeated).counts == {Reason.REPEATED: 1}
    nothing = log(MACHINE, events=[])
    assert compare_logs(guest, nothing, {}).counts == {Reason.UNKNOWN: 3}


def test_threads_are_paired_by_how_they_begin() -> None:
    events: Events = [(1, "a", 0x400010, []), (2, "b", 0x400020, []), (3, "c", 0x400030, [])]
    guest = log(GUEST, events=events)
    others: Events = [(21, "b", 0x400020, []), (22, "a", 0x400010, []), (23, "d", 0x400040, [])]
    found = compare_logs(guest, log(MACHINE, events=others), {})
    assert (found.pairs, found.same) == (2, 2)
    assert found.counts == {Reason.UNKNOWN: 2}


def test_the_order_of_events_of_one_hit_does_not_count() -> None:
    def events(*names: str) -> list[tuple[int, str, int, list[int | bytes]]]:
        return [(1, name, 0x400010, []) for name in names]

    guest = log(GUEST, events=events(*"abcabc"))
    machine = log(MACHINE, events=events(*"cbabca"))
    assert compare_logs(guest, machine, {}).same == 6


def test_what_is_said() -> None:
    found = compared(REGISTER, 0x7FFF0010, 0x7FFE0058, (1, 2))
    assert list(found.lines()) == [
        "2 events of both compared, 0 are the same",
        "addresses (1: both of the same kind of memory, which the two have in other places)",
        "  g/e: r=%di:x64: 0x7fff0010 ([stack]) in the guest, 0x7ffe0058 ([stack])",
        "not explained (1)",
        "  g/e: r=%di:x64: 0x1 in the guest, 0x2",
    ]
    assert str(memory_spot("/no/such/file", 16)) == "file+0x10"
    assert str(memory_spot("//anon", 16)) == str(memory_spot("", 0))


def test_one_that_is_missing_among_many_of_its_name() -> None:
    def numbered(spot: SpotOf, numbers: Sequence[int]) -> EventLog:
        events: Events = [(1, "e", 0x400010, [number]) for number in numbers]
        return log(spot, REGISTER, events=events)

    facts = {("g", "e"): EventFacts((REGISTER,))}
    numbers = list(range(3000))
    for left, right in ((numbers, numbers[:1500] + numbers[1501:]), (numbers, [*numbers, 7])):
        found = compare_logs(numbered(GUEST, left), numbered(MACHINE, right), facts)
        assert found.pairs == found.same == min(len(left), len(right))
        assert found.counts == {Reason.UNKNOWN: 1}
    changed = [*numbers[:10], 99999, *numbers[11:]]
    found = compare_logs(numbered(GUEST, numbers), numbered(MACHINE, changed), facts)
    assert (found.pairs, found.same) == (3000, 2999)
    found = compare_logs(numbered(GUEST, numbers), numbered(MACHINE, changed[:2999]), facts)
    assert (found.pairs, found.same) == (2999, 2998)


def test_implementations_of_indirect_functions_are_left_aside() -> None:
    def events(*names: str) -> Events:
        return [(1, name, 0x400010, []) for name in names]

    facts = {("g", name): EventFacts(indirect=name != "e") for name in ("e", "sse2", "avx2")}
    guest = log(GUEST, events=events("sse2", "e", "sse2", "sse2", "e"))
    machine = log(MACHINE, events=events("e", "avx2", "e"))
    found = compare_logs(guest, machine, facts)
    assert (found.pairs, found.same, found.explained) == (2, 2, True)
    assert found.counts == {Reason.IMPLEMENTATION: 4}
    assert not compare_logs(guest, machine, {}).explained
