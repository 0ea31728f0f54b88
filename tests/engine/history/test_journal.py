"""What is in a journal, and what is not."""

from historykit import recorded
from sessionkit import SAMPLES

from engine.history.comparing import same_entry, what_differs
from engine.history.journal import Entry, EntryCause, Journal, Op
from engine.linux.turns import Lengths


def test_entries_come_back() -> None:
    journal = Journal()
    entries = [
        Entry(1, 2, 3, EntryCause.SYSCALL, [[Op.WRITE, 4096, b"x"], [Op.RETURN, -5, False]])
    ]
    entries.append(Entry(7, (1 << 64) - 1, 3, EntryCause.QUANTUM, [[Op.SWITCH, 4]]))
    for entry in entries:
        journal.add(entry)
    other = Journal()
    other.extend(journal.raw)
    assert list(other) == entries
    assert (list(other.clocks), other.end, len(other)) == ([1, 7], 7, 2)
    other.clear()
    assert (len(other), other.end) == (0, 0)


def test_a_content_is_there_once() -> None:
    journal = Journal()
    (x, is_new), (y, _), (again, anew) = map(journal.content, (b"x", b"y", b"x"))
    assert (again, is_new, anew) == (x, True, False)
    assert journal.contents == {x: b"x", y: b"y"}
    journal.clear()
    z, _ = journal.content(b"z")
    assert journal.content(b"y") == (y, False)
    assert journal.contents == {z: b"z"}


def test_entries_of_other_bytes_are_others() -> None:
    """A file that was changed makes another run, however it is kept."""
    entries = []
    for fill in (b"a", b"b"):
        journal = Journal()
        digest, _ = journal.content(fill * 100_000)
        journal.add((1, 2, 3, EntryCause.SYSCALL, [(Op.CONTENT, 0, digest)]))
        entries.append(journal)
    left, right = entries
    assert not same_entry(left, right, 0)
    text = what_differs(left, right, 0)
    assert text.count("a file's bytes (SHA-256 ") == 2


def test_each_call_has_an_entry_and_its_time() -> None:
    with recorded(SAMPLES / "x86_64" / "words") as ran:
        calls = [entry for entry in ran.journal if entry.cause == EntryCause.SYSCALL]
        assert len(calls) == ran.session.machine.syscall_count
        clocks = list(ran.journal.clocks)
        assert clocks == sorted(clocks)
        assert ran.journal.complete
        last = ran.journal[len(ran.journal) - 1].ops[-1]
        assert last[:2] == [Op.END, ran.exit]


def test_nothing_is_recorded_where_nothing_happens() -> None:
    """The ends of turns that a thread keeps, and what the machinery does, are no entries."""
    with recorded(SAMPLES / "x86_64" / "race", turns=Lengths(10, 300)) as ran:
        assert all(entry.ops for entry in ran.journal)
        turns = [entry for entry in ran.journal if entry.cause == EntryCause.QUANTUM]
        assert turns
        assert all(any(op[0] == Op.SWITCH for op in entry.ops) for entry in turns)
