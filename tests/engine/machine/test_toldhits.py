"""An execution is told once to each who asks, however often a machine runs it again."""

from types import SimpleNamespace

from engine.machine.toldhits import ToldHits

RUN = [(1, 0x100), (1, 0x108), (2, 0x100), (3, 0x40), (4, 0x100), (4, 0x110)]


def told(hits: ToldHits, count: SimpleNamespace, run: list[tuple[int, int]]) -> list[bool]:
    found = []
    for blocks, address in run:
        count.blocks = blocks
        found.append(not hits.was_told(address, "probe"))
    return found


def test_what_runs_again_is_told_no_more() -> None:
    count = SimpleNamespace(blocks=0)
    hits = ToldHits(count)
    assert told(hits, count, RUN) == [True] * 6
    assert told(hits, count, RUN) == [False] * 6
    assert told(hits, count, [*RUN[3:], (5, 0x8)]) == [False, False, False, True]


def test_each_is_told_of_one_execution() -> None:
    count = SimpleNamespace(blocks=7)
    hits = ToldHits(count)
    assert [hits.was_told(0x100, who) for who in "aabba"] == [False, True, False, True, True]
    assert not hits.was_told(0x101, "a")
    assert hits.was_told(0x100, "c")


def test_what_lies_in_front_of_a_stand_is_over() -> None:
    """A probe that is placed where the machine stands is told from there on."""
    count = SimpleNamespace(blocks=0)
    hits = ToldHits(count)
    hits.come_to(3, 0x100)
    assert told(hits, count, [(3, 0x500), (4, 0xFF)]) == [False, False]
    assert told(hits, count, [(4, 0x100), (4, 0x100), (5, 0x10)]) == [True, False, True]
    hits.come_to(2, 0)
    assert told(hits, count, [(5, 0x10)]) == [False]
