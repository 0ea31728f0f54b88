"""Memory that a front end has been told of."""

from engine.session.browse.memory_pages import PAGE, MemoryPages
from engine.session.protocol.commands import KEPT_READS


def asking() -> tuple[MemoryPages, list[tuple[int, int]]]:
    pages, asked = MemoryPages(), list[tuple[int, int]]()
    pages.want = lambda start, size: asked.append((start, size))
    return pages, asked


def test_each_page_is_asked_for_once_a_motion() -> None:
    pages, asked = asking()
    pages.ask(0x1FFF, 2)
    pages.ask(0x1000, PAGE)
    assert asked == [(0x1000, 2 * PAGE)]
    pages.ask(0x3000, PAGE)
    pages.ask(0x0, 6 * PAGE)
    assert asked[1:] == [(0x3000, PAGE), (0x0, PAGE), (0x4000, 2 * PAGE)]
    pages.age()
    pages.ask(0x1000, 1)
    assert asked[-1] == (0x1000, PAGE)


def test_what_was_told_stays_until_it_is_told_again() -> None:
    pages, _ = asking()
    pages.remember(0x1000, 2 * PAGE, ((0x1000, b"a" * PAGE),))
    before = pages.version
    assert pages.over(0x1FFE, b"filed") == b"aaled"
    assert pages.stretch(0x1FFE, 8) == b"aa", "the page behind it is not mapped"
    pages.age()
    assert pages.version > before
    assert pages.stretch(0x1000, 2) == b"aa"
    before = pages.version
    assert not pages.remember(0x1000, PAGE, ((0x1000, b"a" * PAGE),))
    assert pages.version == before, "the same again"
    assert pages.remember(0x1000, PAGE, ((0x1000, b"b" * PAGE),))
    assert pages.version > before
    pages.forget()
    assert pages.stretch(0x1000, 2) == b""
    assert pages.over(0x1000, b"file") == b"file"


def test_pages_that_nobody_looks_at_go_first() -> None:
    pages, asked = asking()
    pages.ask(0, PAGE)
    for number in range(1030):
        pages.remember(number * PAGE, PAGE, ((number * PAGE, bytes(PAGE)),))
    assert pages.stretch(0, 1) == b""
    pages.ask(0, PAGE)
    assert asked == [(0, PAGE)] * 2


def test_pages_that_are_told_again_are_not_asked_for_again() -> None:
    pages, asked = asking()

    def ask_all() -> list[int]:
        """Ask for a page of each range after a motion; the numbers of those that are wanted."""
        asked.clear()
        pages.age()
        for number in range(2 * KEPT_READS):
            pages.ask(number * PAGE, 1)
        return [start // PAGE for start, _ in asked]

    def tell(number: int, letter: bytes, *, kept: bool) -> bool:
        at = number * PAGE
        return pages.remember(at, PAGE, ((at, letter * PAGE),), kept=kept)

    for number in range(2 * KEPT_READS):
        tell(number, b"a", kept=True)
    assert ask_all() == list(range(KEPT_READS)), "the last ones are kept"
    assert tell(KEPT_READS, b"b", kept=False), "told again: it has changed"
    tell(0, b"a", kept=True)
    assert KEPT_READS in ask_all(), "and is the first to go as before"
    assert tell(1, b"b", kept=False)
    assert 1 in ask_all(), "what is told by itself and not kept is asked for"
    pages.forget()
    assert ask_all() == list(range(2 * KEPT_READS))
