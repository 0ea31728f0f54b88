"""Fits a chapter to a number of columns.

Of Markdown the chapters use headings (`#`, `##`), paragraphs, lists of one level (`-`), fenced
blocks, tables, `code`, **bold** and links. Paragraphs, lists and tables are filled anew, blocks
stay as they are. A row of a table whose cells would be narrow towers is shown as a list of them.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Final, TypeAlias


class TextLook(StrEnum):
    """Style of a piece of text."""

    PLAIN = ""
    HEADING = "heading"
    CODE = "code"
    BOLD = "bold"
    LINK = "link"


Piece: TypeAlias = tuple[str, TextLook]
"""A text within one line, and its look."""
Line: TypeAlias = list[Piece]
"""The pieces of a line; their texts have no newline."""

_INLINE: Final = re.compile(r"``(.+?)``|`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^)\s]+)\)")
_CELLS: Final = re.compile(r"(?<!\\)\|")
_RULE: Final = re.compile(r"\|(?: *:?-+:? *\|)+")
_GAP: Final = 2
"""Columns between the columns of a table."""
_TALLEST: Final = 6
"""Lines of the tallest cell of a row that still stands in columns."""
_NARROWEST: Final = 10
"""Columns that a long cell has at least."""


def plain_text(line: Line) -> str:
    """The text of a line without looks."""
    return "".join(text for text, _ in line).rstrip()


def lay_out(text: str, width: int) -> Iterator[Line]:
    """The lines of a chapter.

    Args:
        text: of the chapter's file.
        width: columns that filled lines may take; lines of blocks may be longer.
    """
    first = True
    for block in _blocks(text):
        if not first:
            yield []
        first = False
        yield from _laid_out(block, width)


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of a text, block by block: a fenced block, a heading, a table, a list item."""
    block: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if fenced:
            block.append(line)
            fenced = not line.startswith("```")
            if not fenced:
                yield block
                block = []
            continue
        new = line.startswith(("```", "#")) or not line
        if block and (new or (block[0][:1] == "|") != (line[:1] == "|")):
            yield block
            block = []
        fenced = line.startswith("```")
        if line:
            block.append(line)
    if block:
        yield block


def _laid_out(block: list[str], width: int) -> Iterator[Line]:
    head = block[0]
    if head.startswith("```"):
        for line in block[1:-1]:
            yield [("  " + line.expandtabs(), TextLook.CODE)] if line else []
    elif head.startswith("#"):
        yield [(head.lstrip("# "), TextLook.HEADING)]
    elif head.startswith("|"):
        yield from _table(block, width)
    else:
        yield from _paragraphs(block, width)


def _paragraphs(block: list[str], width: int) -> Iterator[Line]:
    """A paragraph, with the items of a list that follow it."""
    parts: list[list[str]] = []
    for line in block:
        if line.startswith("- ") or not parts:
            parts.append([])
        parts[-1].append(line)
    for part in parts:
        text = " ".join(line.strip() for line in part)
        if text.startswith("- "):
            yield from _filled(text[2:], width, "- ", "  ")
        else:
            yield from _filled(text, width)


def _pieces(text: str) -> Iterator[Piece]:
    """A text as pieces with their looks; a link to a chapter names the topic."""
    at = 0
    for found in _INLINE.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], TextLook.PLAIN
        at = found.end()
        code, bold, words, target = found[1] or found[2], found[3], found[4], found[5]
        if code is not None:
            # A sign alone would be taken for one of the sentence's.
            yield code if any(map(str.isalnum, code)) else f"`{code}`", TextLook.CODE
        elif bold is not None:
            yield bold.replace("`", ""), TextLook.BOLD
        else:
            yield words.replace("`", ""), TextLook.LINK
            name = target.removesuffix(".md")
            yield f" [help {name}]" if name != target else f" [{target}]", TextLook.PLAIN
    if at < len(text):
        yield text[at:], TextLook.PLAIN


def _words(text: str) -> Iterator[Line]:
    """The words of a text; a word whose parts look different has several pieces."""
    word: Line = []
    for piece, look in _pieces(text):
        for number, part in enumerate(piece.split(" ")):
            if number and word:
                yield word
                word = []
            if part:
                word.append((part, look))
    if word:
        yield word


def _filled(text: str, width: int, first: str = "", rest: str = "") -> Iterator[Line]:
    """A text in lines of a width.

    Args:
        text: with its marks.
        width: columns; a longer word stands alone.
        first: in front of the first line.
        rest: in front of the others.
    """
    line: Line = [(first, TextLook.PLAIN)] if first else []
    used, empty = len(first), True
    for word in _words(text):
        size = sum(len(part) for part, _ in word)
        if not empty and used + 1 + size > width:
            yield line
            line = [(rest, TextLook.PLAIN)] if rest else []
            used, empty = len(rest), True
        if not empty:
            same = line[-1][1] is word[0][1] is not TextLook.LINK
            line.append((" ", word[0][1] if same else TextLook.PLAIN))
            used += 1
        line += word
        used += size
        empty = False
    if not empty:
        yield line


def _table(block: list[str], width: int) -> Iterator[Line]:
    rows = [
        [cell.strip().replace("\\|", "|") for cell in _CELLS.split(line.strip())[1:-1]]
        for line in block
        if not _RULE.fullmatch(line)
    ]
    widths = _widths(rows, width)
    titles, body = rows[0], rows
    if len(block) > 1 and _RULE.fullmatch(block[1]):
        body = rows[1:]
    drawn = [(row, list(_columns(row, widths))) for row in body]
    # Terms and their meanings all look alike; of more columns only rows of long cells stand apart.
    apart = len(titles) == 2 and any(len(lines) > _TALLEST for _, lines in drawn)
    if body is not rows and any(titles) and not apart:
        yield from _columns([f"**{title}**" if title else "" for title in titles], widths)
    for row, lines in drawn:
        if apart or len(lines) > _TALLEST:
            yield from _listed(titles, row, width)
        else:
            yield from lines


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Columns of each column of a table: short ones as they are, long ones in equal shares."""
    natural = [
        max((_length(cell) for cell in column), default=0)
        for column in zip_longest(*rows, fillvalue="")
    ]
    room = width - _GAP * (len(natural) - 1)
    widths = dict.fromkeys(range(len(natural)), 0)
    waiting = sorted(widths, key=lambda at: natural[at])
    while waiting:
        share = max(room // len(waiting), _NARROWEST)
        at = waiting.pop(0)
        widths[at] = min(natural[at], share)
        room -= widths[at]
    return list(widths.values())


def _length(text: str) -> int:
    return sum(len(piece) for piece, _ in _pieces(text))


def _columns(row: Sequence[str], widths: Sequence[int]) -> Iterator[Line]:
    """The lines of a row in columns."""
    cells = [list(_filled(cell, size)) for cell, size in zip(row, widths, strict=False)]
    for parts in zip_longest(*cells, fillvalue=None):
        line: Line = []
        for part, size in zip(parts, widths, strict=False):
            used = sum(len(text) for text, _ in part or ())
            line += [*(part or ()), (" " * max(size - used + _GAP, 1), TextLook.PLAIN)]
        while line and not line[-1][0].strip():
            line.pop()
        yield line


def _listed(titles: Sequence[str], row: Sequence[str], width: int) -> Iterator[Line]:
    """A row as a list of its cells, each behind the title of its column."""
    yield from _filled(row[0], width)
    for title, cell in zip(titles[1:], row[1:], strict=False):
        if cell:
            text = f"{title}: {cell}" if title and len(row) > 2 else cell
            yield from _filled(text, width, "    ", "    ")


def find_links(text: str) -> Iterator[str]:
    """The targets of the links in a chapter, those within blocks left out."""
    for block in _blocks(text):
        if not block[0].startswith("```"):
            for found in _INLINE.finditer(" ".join(block)):
                if found[5]:
                    yield found[5]
