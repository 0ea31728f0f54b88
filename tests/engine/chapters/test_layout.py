"""Chapters fitted to a width: what is filled, what stays, and how tables stand."""

import pytest

from engine.chapters import all_chapters
from engine.chapters.layout import TextLook, find_links, lay_out, plain_text


def shown(text: str, width: int = 40) -> list[str]:
    return [plain_text(line) for line in lay_out(text, width)]


def test_paragraphs_and_lists_are_filled() -> None:
    text = "# A title\n\nOne two three four\nfive six seven eight nine.\n"
    text += "\n- an item that is\n  long enough for two\n- b\n"
    assert shown(text, 24) == [
        "A title",
        "",
        "One two three four five",
        "six seven eight nine.",
        "",
        "- an item that is long",
        "  enough for two",
        "- b",
    ]


def test_blocks_stay_as_they_are() -> None:
    text = (
        "A:\n\n```console\n$ a  line that is longer than all others\n\n\tb | c\n# no title\n```\n"
    )
    assert shown(text, 20) == [
        "A:",
        "",
        "  $ a  line that is longer than all others",
        "",
        "          b | c",
        "  # no title",
    ]


def test_looks() -> None:
    (line,) = lay_out("A `code`, **bold words**, [a link](races.md) `,` here.", 80)
    assert line == [
        *[
            ("A", TextLook.PLAIN),
            (" ", TextLook.PLAIN),
            ("code", TextLook.CODE),
            (",", TextLook.PLAIN),
        ],
        *[
            (" ", TextLook.PLAIN),
            ("bold", TextLook.BOLD),
            (" ", TextLook.BOLD),
            ("words", TextLook.BOLD),
        ],
        *[
            (",", TextLook.PLAIN),
            (" ", TextLook.PLAIN),
            ("a", TextLook.LINK),
            (" ", TextLook.PLAIN),
        ],
        *[
            ("link", TextLook.LINK),
            (" ", TextLook.PLAIN),
            ("[help", TextLook.PLAIN),
            (" ", TextLook.PLAIN),
        ],
        *[
            ("races]", TextLook.PLAIN),
            (" ", TextLook.PLAIN),
            ("`,`", TextLook.CODE),
            (" ", TextLook.PLAIN),
        ],
        ("here.", TextLook.PLAIN),
    ]


def test_a_table_in_columns() -> None:
    text = "| key | does |\n|---|---|\n| `a\\|b` | one two three four |\n| `c` | x |\n"
    assert shown(text, 16) == ["key  does", "a|b  one two", "     three four", "c    x"]


def test_a_row_of_long_cells_is_a_list() -> None:
    text = (
        f"| what | here | there |\n|---|---|---|\n| a | {'long ' * 40}| no |\n| b | yes | no |\n"
    )
    lines = shown(text, 40)
    assert lines[:2] == ["what  here                         there", "a"]
    assert lines[2].startswith("    here: long long")
    assert lines[-2:] == ["    there: no", "b     yes                          no"]
    terms = f"| term | meaning |\n|---|---|\n| a | {'long ' * 50}|\n| b | yes |\n"
    lines = shown(terms, 40)
    assert (lines[0], lines[-2:]) == ("a", ["b", "    yes"])
    assert lines[1] == "    long long long long long long long"


@pytest.mark.parametrize("width", [20, 36, 80, 100])
def test_no_word_of_a_chapter_is_lost(width: int) -> None:
    for chapter in all_chapters():
        assert chapter.title
        whole = "".join("".join(shown(chapter.text, 100_000)).split())
        lines = shown(chapter.text, width)
        fitted = "".join("".join(lines).split())
        if "\n|" not in chapter.text:
            assert fitted == whole
        assert len(fitted) >= len(whole) * 0.98  # titles of columns may go


def test_links_are_found_outside_of_blocks() -> None:
    text = "[a](b.md) and `[c](d.md)`\n\n```\n[e](f.md)\n```\n\n| [g](h.md) |\n"
    assert list(find_links(text)) == ["b.md", "h.md"]
