"""Contents of pages come back as they were, whatever they were packed with."""

import os
import random
from itertools import pairwise

from engine.cpu.ram import PAGE
from engine.history.pagestore import PageContent, PageStore


def _changed(data: bytes, choose: random.Random, words: int) -> bytes:
    page = bytearray(data)
    for _ in range(words):
        at = choose.randrange(PAGE // 8) * 8
        page[at : at + 4] = choose.randbytes(4)
    return bytes(page)


def _sums(choose: random.Random) -> bytes:
    """Words of which five bytes are used."""
    return b"".join(choose.randrange(1 << 40).to_bytes(8, "little") for _ in range(PAGE // 8))


def test_contents_come_back() -> None:
    choose = random.Random(1)
    store = PageStore()
    kept: list[tuple[PageContent, bytes]] = []
    data, content = b"", None
    for number in range(600):
        match choose.randrange(12):
            case 0:
                data = b""
            case 1:
                data = choose.randbytes(PAGE)
            case 2:
                data = _sums(choose)
            case 3 if kept:
                data = choose.choice(kept)[1]
            case 4:
                data = bytes(choose.randrange(1, 9)) * 9 + os.urandom(1) + bytes(PAGE)
                data = data[:PAGE]
            case _:
                data = _changed(data or bytes(PAGE), choose, choose.choice((1, 5, 60, 500)))
        made = store.keep_whole(data) if number % 7 == 0 else store.keep(data, content)
        if number % 14 == 0:
            store.packed(made)
        if made is content:
            assert kept[-1][1] == data
            made.users += 1
        content = made
        kept.append((content, data))
        if choose.random() < 0.2:  # what others are told by stays as long as they do
            gone, _ = kept.pop(choose.randrange(len(kept)))
            if gone is not content:
                store.give_up(gone)
            else:
                kept.append((gone, data))
        assert all(store.bytes_of(one) == known for one, known in kept[-5:])
    assert all(store.bytes_of(one) == known for one, known in kept)
    choose.shuffle(kept)
    for one, _ in kept:
        store.give_up(one)
    assert store.size == 0


def test_what_is_the_same_is_kept_once() -> None:
    choose = random.Random(2)
    store = PageStore()
    for data in (_sums(choose), choose.randbytes(PAGE), bytes(range(256)) * 16, b""):
        content = store.keep(data, None)
        assert store.keep(data, content) is content
        later = store.keep(_changed(data or bytes(PAGE), choose, 3), content)
        assert store.keep(store.bytes_of(later), later) is later


def test_what_changes_little_takes_little() -> None:
    choose = random.Random(3)
    store = PageStore()
    pages = [_sums(choose)]
    for _ in range(50):
        pages.append(_changed(pages[-1], choose, 2))
    contents = [store.keep(pages[0], None)]
    for page in pages[1:]:
        contents.append(store.keep(page, contents[-1]))
    assert store.size < len(pages) * PAGE / 5
    assert all(one is not other for one, other in pairwise(contents))
    few = PageStore()
    few.keep(pages[0], None)
    assert few.size < PAGE * 3 // 4
