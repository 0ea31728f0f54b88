"""Hits as they are drawn: one drawing for each way of carrying one out, and the pen they share.

A further way is a function here and a line in `DRAWINGS`.
"""

from collections.abc import Callable
from textwrap import wrap
from typing import Final

from msgspec import Struct
from rich.style import Style
from rich.text import Text

from engine.session.protocol.views import (
    DetourPart,
    HitView,
    PhaseView,
    UnitDrawing,
    UnitPart,
)
from tui.render import mark

_LABEL: Final = 8
_NARROWEST: Final = 16
_SHOWN: Final = 6
"""Instructions of a part of a detour that are shown."""
_ROLE_LOOKS: Final = {
    "": "",
    "break": "bad",
    "other": "note",
    "step": "accent",
    "run": "good",
    "idle": "dim",
    "jump": "warn",
}
_ROLE_TEXTS: Final = {"step": "stepped", "run": "runs on at full speed", "idle": "not executed"}
"""Words for a part of a copy, by its role."""


class Pen(Struct, frozen=True):
    """Makes the rows of a drawing.

    Attributes:
        look: name of a look to its style.
        ascii_only: whether only ASCII may be drawn.
        width: columns that there are.
    """

    look: Callable[[str], Style]
    ascii_only: bool
    width: int

    def labelled(self, label: str, value: str, look: str = "") -> Text:
        """A row with a label in front."""
        text = Text(no_wrap=True)
        text.append(f"{label:<{_LABEL}}", self.look("name"))
        text.append(value, self.look(look) if look else "")
        return text

    def wrapped(self, label: str, value: str, look: str = "") -> list[Text]:
        """The same over as many rows as the words need."""
        lines = wrap(value, max(self.width - _LABEL, _NARROWEST)) or [""]
        return [
            self.labelled("" if number else label, line, look) for number, line in enumerate(lines)
        ]

    def packed(self, pieces: list[str], look: str) -> list[Text]:
        """Pieces in as few rows as they need, without labels; none is broken."""
        lines: list[str] = []
        for piece in pieces:
            if lines and len(lines[-1]) + len(piece) + 3 <= self.width - _LABEL:
                lines[-1] += f"   {piece}"
            else:
                lines.append(piece)
        return [self.labelled("", line, look) for line in lines]

    @property
    def arrow(self) -> str:
        """From old to new."""
        return mark("arrow", self.ascii_only)

    def done(self, hit: HitView) -> list[Text]:
        """The rows of the last phase: registers and memory it changed."""
        if not hit.done:
            return []
        phase: PhaseView = hit.done[-1]
        sign, look = ("*", "good") if phase.by_guest else ("!", "warn")
        rows = self.wrapped("now", phase.text)
        moved = []
        if phase.before != phase.after:
            moved.append(f"{sign} pc  {phase.before:x} {self.arrow} {phase.after:x}")
        for name, old, new in phase.registers:
            moved.append(f"{sign} {name}  {old:#x} {self.arrow} {new:#x}")
        rows += self.packed(moved, look)
        for change in phase.changes:
            if change.old != change.new:
                shown = (
                    f"{sign} {change.what} {change.address:x}  {change.old.hex(' ')} "
                    f"{self.arrow} {change.new.hex(' ')}"
                )
                rows.append(self.labelled("", shown, look))
        return rows

    def site(self, hit: HitView, original: bytes, text: str) -> Text:
        """The row of the site: planted bytes, and those they stand for."""
        row = self.labelled("site", f"{hit.address:x}  ")
        if hit.planted:
            row.append(hit.planted.hex(" "), self.look("bad"))
            rest = original[len(hit.planted) :].hex(" ")
            row.append(f" {rest}" if rest else "", self.look("dim"))
            row.append("  for  ", self.look("dim"))
        row.append(original.hex(" "))
        row.append(f"  {text}" if text else "", self.look("accent"))
        return row


def draw_slot(hit: HitView, pen: Pen) -> list[Text]:
    """A breakpoint's hit: the site, the slot, what is put right afterwards."""
    rows = [pen.site(hit, hit.original, hit.insn)]
    if hit.returns_to is not None:
        rows.append(pen.labelled("return", f"goes on at {hit.returns_to:x}", "accent"))
    if hit.how == "emulated":
        rows.append(pen.labelled("slot", "none: software carries the instruction out", "dim"))
    elif hit.slot is None:
        rows.append(pen.labelled("slot", "one is taken when the step begins", "dim"))
    else:
        rows.append(pen.labelled("slot", f"{hit.slot:x}  {hit.slot_bytes.hex(' ')}", "warn"))
        rows += [pen.labelled("", line, "accent") for line in hit.slot_text]
    rows += pen.done(hit)
    if hit.fixups and hit.next:
        rows.append(pen.labelled("fix-up", "; ".join(hit.fixups), "note"))
    return rows


def draw_return(hit: HitView, pen: Pen) -> list[Text]:
    """A return that a kernel has caught itself: its trampoline, and where the call came from."""
    rows = [pen.site(hit, hit.original, hit.insn)]
    if hit.returns_to is not None:
        rows.append(pen.labelled("return", f"goes on at {hit.returns_to:x}", "accent"))
    return rows + pen.done(hit)


def draw_detour(hit: HitView, pen: Pen) -> list[Text]:
    """A jump's hit: the site with its window, the parts of the detour, where the guest is."""
    detour = hit.detour
    assert detour is not None, "drawn for hits with one"
    rows = [pen.site(hit, detour.window, detour.jump), *pen.done(hit)]
    at = -1 if detour.at is None else detour.at
    inside = None
    for number, part in enumerate(detour.parts):
        here = part.start <= at < part.start + part.size
        rows.append(_detour_part(part, pen, here, "" if number else detour.what))
        inside = part if here else inside
    if inside is not None and len(inside.code) > 1:
        for number, (address, text) in enumerate(inside.code[:_SHOWN]):
            rows.append(pen.labelled("" if number else inside.name, f"{address:x}  {text}", "dim"))
        if len(inside.code) > _SHOWN:
            rows.append(pen.labelled("", f"and {len(inside.code) - _SHOWN} more", "dim"))
    return rows


def _detour_part(part: DetourPart, pen: Pen, here: bool, label: str) -> Text:
    """A part of a detour."""
    row = pen.labelled(label, "")
    row.append(f"{mark('cursor', pen.ascii_only) if here else ' '} ")
    row.append(f"{part.name + ' ':<10}", pen.look("accent" if here else "name"))
    row.append(f"{part.start:x}", pen.look("warn"))
    if part.original is not None:
        address, text = part.original
        row.append(f"  {text}", pen.look("accent"))
        row.append(f"  of {address:x}", pen.look("dim"))
        moved = " ".join(f"{line};" for _, line in part.code).rstrip(";")
        if moved != text:
            row.append(f", here {moved}", pen.look("dim"))
    elif len(part.code) == 1:
        row.append(f"  {part.code[0][1]}", pen.look("accent"))
    else:
        row.append(f"  {part.size} bytes, {len(part.code)} instructions", pen.look("dim"))
    return row


def draw_units(hit: HitView, pen: Pen) -> list[Text]:
    """A hit where several instructions share a unit of code.

    The site's unit with its break, the copy's with what is stepped, what is put right.
    """
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


def _unit(unit: UnitDrawing, pen: Pen) -> list[Text]:
    head = pen.labelled(unit.what, f"{unit.address:x}", "" if unit.what == "site" else "warn")
    head.append(f"  {unit.form}", pen.look("dim"))
    return [head, *(_unit_part(part, pen) for part in unit.parts)]


def _unit_part(part: UnitPart, pen: Pen) -> Text:
    """The row of a part: its text, what it stands for or what becomes of it, its bits."""
    pointed = part.role in ("break", "step")
    row = pen.labelled("", f"{mark('cursor', pen.ascii_only) if pointed else ' '} ", "accent")
    look = _ROLE_LOOKS[part.role]
    row.append(f"{part.name}  ", pen.look("name"))
    row.append(part.text, pen.look(look) if look else "")
    if part.instead:
        row.append("  for  ", pen.look("dim"))
        row.append(part.instead, pen.look("accent"))
    elif _ROLE_TEXTS.get(part.role):
        row.append(f"  {_ROLE_TEXTS[part.role]}", pen.look("dim"))
    row.append(f"  {part.word}", pen.look("dim"))
    return row


Drawing = Callable[[HitView, Pen], list[Text]]

DRAWINGS: Final[tuple[tuple[Callable[[HitView], bool], Drawing], ...]] = (
    (lambda hit: hit.detour is not None, draw_detour),
    (lambda hit: bool(hit.units), draw_units),
    (lambda hit: hit.how == "returns", draw_return),
    (lambda hit: True, draw_slot),
)
"""Drawings, each with a test of the hits it is for; the first that fits draws."""


def draw(hit: HitView, pen: Pen) -> list[Text]:
    """The rows of a hit."""
    return next(drawing for fits, drawing in DRAWINGS if fits(hit))(hit, pen)
