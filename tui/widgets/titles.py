"""The line above a pane: its name, or those of the panes that take turns with it, and remarks."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from textual.content import Content

from tui.render import harmless, mark

_LEAST: Final = 8
"""Cells of remarks below which they are left out."""
_ENOUGH: Final = 24
"""Cells of remarks for which names make room."""


class Tab(NamedTuple):
    """A pane in a title.

    Attributes:
        pane: its id.
        key: goes to it; None without one.
        name: what it is called.
        holds: how much there is in it, "" for nothing to tell.
    """

    pane: str
    key: str | None
    name: str
    holds: str = ""


class Title(NamedTuple):
    """A title that is as wide as it has to be.

    Attributes:
        content: the text with its looks.
        spans: first cell, cell behind the last one, and pane of each tab.
    """

    content: Content
    spans: tuple[tuple[int, int, str], ...]


def title(
    tabs: Sequence[Tab], active: str, remarks: Sequence[str], width: int, ascii_only: bool
) -> Title:
    """Names at the left, remarks at the right, a rule between; short names where room is scarce.

    Args:
        tabs: the panes that take turns, at least one.
        active: id of the one that is seen.
        remarks: of that pane on itself, "" for none.
        width: cells there are.
        ascii_only: draw with ASCII only.
    """
    rule, more = mark("rule", ascii_only), mark("more", ascii_only)
    noted = f" {rule} ".join(harmless(text, ascii_only) for text in remarks if text)
    wanted = min(len(noted), _ENOUGH) + 3 if noted else 0
    for detail in (2, 1, 0):
        names = [harmless(_name(tab, active, len(tabs), detail), ascii_only) for tab in tabs]
        if sum(map(len, names)) + len(names) + wanted <= width:
            break
    parts: list[str | tuple[str, str]] = []
    spans: list[tuple[int, int, str]] = []
    at = 0
    for tab, name in zip(tabs, names, strict=True):
        spans.append((at, at + len(name), tab.pane))
        parts += [(name, "bold" if tab.pane == active and len(tabs) > 1 else ""), " "]
        at += len(name) + 1
    room = width - at - 2  # a space in front, and one behind
    if len(noted) > room:
        noted = noted[: room - 1] + more if room > min(_LEAST, len(noted)) else ""
    if noted:
        parts += [(rule * (room - len(noted)), "dim"), f" {noted} "]
    return Title(Content.assemble(*parts), tuple(spans))


def _name(tab: Tab, active: str, tabs: int, detail: int) -> str:
    """A tab's text; the seen one of several in brackets."""
    if tab.pane == active:
        name = f"{tab.key} {tab.name}" if tab.key is not None else tab.name
        return f"[{name}]" if tabs > 1 else name
    words = [tab.key, tab.name if detail else "", tab.holds if detail > 1 else ""]
    return " ".join(filter(None, words))
