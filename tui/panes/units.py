"""A hit where several instructions share a unit of code: the unit, its copy, what is behind."""

from typing import TYPE_CHECKING, Final

from rich.text import Text

from engine.session.protocol.views import HitView, UnitDrawing, UnitPart
from tui.render import mark

if TYPE_CHECKING:
    from tui.panes.drawing import Pen

_LOOKS: Final = {
    "": "",
    "break": "bad",
    "other": "note",
    "step": "accent",
    "run": "good",
    "idle": "dim",
    "jump": "warn",
}
_SAID: Final = {"step": "stepped", "run": "runs on at full speed", "idle": "not executed"}
"""What is said of a part of a copy, by its role."""


def draw_units(hit: HitView, pen: "Pen") -> list[Text]:
    """The site's unit with its break, the copy's with what is stepped, what is put right."""
    rows: list[Text] = []
    for unit in hit.units:
        if unit.what == "boost" and all(part.role == "idle" for part in unit.parts):
            continue
        rows += _unit(unit, pen)
    if hit.returns_to is not None:
        rows.append(pen.labelled("return", f"goes on at {hit.returns_to:x}", "accent"))
    if hit.how == "emulated":
        rows.append(pen.labelled("slot", "none: it is carried out where it stands", "dim"))
    elif hit.slot is None:
        rows.append(pen.labelled("slot", "one is taken when the step begins", "dim"))
    if hit.fixups and hit.next:  # in front: a call changes many registers
        rows.append(pen.labelled("fix-up", "; ".join(hit.fixups), "note"))
    return rows + pen.done(hit)


def _unit(unit: UnitDrawing, pen: "Pen") -> list[Text]:
    head = pen.labelled(unit.what, f"{unit.address:x}", "" if unit.what == "site" else "warn")
    head.append(f"  {unit.form}", pen.look("dim"))
    return [head, *(_part(part, pen) for part in unit.parts)]


def _part(part: UnitPart, pen: "Pen") -> Text:
    """What stands there, what it stands for or what becomes of it, and its bits."""
    pointed = part.role in ("break", "step")
    row = pen.labelled("", f"{mark('cursor', pen.ascii_only) if pointed else ' '} ", "accent")
    look = _LOOKS[part.role]
    row.append(f"{part.name}  ", pen.look("name"))
    row.append(part.text, pen.look(look) if look else "")
    if part.instead:
        row.append("  for  ", pen.look("dim"))
        row.append(part.instead, pen.look("accent"))
    elif _SAID.get(part.role):
        row.append(f"  {_SAID[part.role]}", pen.look("dim"))
    row.append(f"  {part.word}", pen.look("dim"))
    return row
