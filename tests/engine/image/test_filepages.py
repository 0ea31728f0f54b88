"""Files found by the content of their pages."""

import pytest
from compiled import build

from engine.image import ElfImage
from engine.image.filepages import PAGE, FilePages

_SOURCE = """
#define TEN(x) x x x x x x x x x x
#define MANY(name, more) int name(int x) { TEN(TEN(TEN(x = x * 7 + more;))) return x; }
MANY(first, MORE)
MANY(second, 5)
MANY(last, MORE)
int _start(int x) { return first(x) + second(x) + last(x); }
"""
"""Code of which the middle does not depend on MORE."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ElfImage]:
    """Two files that differ at their beginning and at their end."""
    folder = tmp_path_factory.mktemp("files")
    options = ("-static", "-nostdlib", "-O0", "-fno-asynchronous-unwind-tables")
    return {
        f"/{name}": ElfImage.open(build(folder, name, _SOURCE, *options, f"-DMORE={more}"))
        for name, more in (("a", 1), ("b", 2))
    }


def test_each_page_is_found_by_what_is_in_it(images: dict[str, ElfImage]) -> None:
    pages = FilePages(images.items())
    found = 0
    for path, image in images.items():
        segment = next(one for one in image.load_segments if one.flags & 1)
        start = segment.vaddr & -PAGE

        def content(link: int, image: ElfImage = image) -> bytes:
            offset = image.file_offset(link)
            return b"" if offset is None else image.data(offset, PAGE).ljust(PAGE, b"\0")

        for link in range(start, segment.vaddr + segment.filesz, PAGE):
            beside = {by: content(link + by) for by in (-PAGE, PAGE)}
            page = pages.showing(content(link), beside.__getitem__)
            assert page is not None
            assert (page.link, page.content()) == (link, content(link))
            assert pages.at(page.path, page.offset) is page
            found += page.path == path
            if path == "/a":
                assert page.path == "/a"  # the first of equal ones
    assert found > 4
    assert pages.showing(b"\x90" * PAGE, lambda by: b"") is None
    assert pages.at("/a", 1) is None


def test_neighbours_decide_between_pages_that_are_equal(images: dict[str, ElfImage]) -> None:
    pages = FilePages(images.items())
    ours = {
        page.offset: page
        for offset in range(0, images["/b"].size, PAGE)
        if (page := pages.at("/b", offset)) is not None
    }
    alike = [
        page
        for page in ours.values()
        if (other := pages.at("/a", page.offset)) is not None
        and other.content() == page.content()
        and (other.content(-PAGE), other.content(PAGE))
        != (page.content(-PAGE), page.content(PAGE))
    ]
    assert alike
    for page in alike:
        assert pages.showing(page.content(), page.content) is page
