"""Memory that a front end has been told of."""

from engine.session.browse.memory_pages import PAGE, MemoryPages


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
