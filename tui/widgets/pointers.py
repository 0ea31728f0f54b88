"""Draws where a value leads: the places on the way and what stands at the end."""

from typing import Final

from rich.text import Text

from engine.session.protocol.views import PointerHop
from tui.render import harmless, mark
from tui.widgets.looks import Looks

_LOOKS: Final = {"code": "good", "stack": "warn", "heap": "accent", "data": "note", "": "dim"}
"""Looks by the kind of memory."""


def append_hops(text: Text, hops: tuple[PointerHop, ...], looks: Looks) -> None:
    """Add the way that a value leads, whose digits stand in front already."""
    plain = looks.ascii_only
    arrow = mark("arrow", plain)
    for number, hop in enumerate(hops):
        look = looks(_LOOKS[hop.region])
        alone = number == len(hops) - 1 and not hop.text  # else what follows says more
        place = hop.place if alone or not hop.place.startswith("[") else ""
        going_on = hop.text == "..."
        if number:
            text.append(f" {arrow} ", looks("dim"))
            text.append("" if going_on else f"{hop.value:#x}", look)
        elif place or hop.text:
            text.append(f"  {arrow}", looks("dim"))
        if place:
            text.append(f" {harmless(place, plain)}", look)
        if hop.text:
            gap = "" if number and going_on else " "
            text.append(f"{gap}{harmless(hop.text, plain)}", looks("name" if number else "dim"))


def fitted(text: Text, room: int, ascii_only: bool) -> Text:
    """A text that has no more room than this; a mark says that it was cut."""
    if text.cell_len > room:
        text.truncate(max(room - 1, 0))
        text.append(mark("more", ascii_only))
    return text
