"""Rows of text that are painted when they differ; those that stand for panes without room."""

from collections.abc import Callable
from typing import Final

from textual.content import Content
from textual.widgets import Static

from engine.session.protocol.views import GuestView, RegisterView, RunState
from tui.render import harmless, is_ascii, mark

_SIGNS: Final = {"insn": "*", "machinery": "!"}
"""Who changed a register to its mark."""
_LOOKS: Final = {"insn": "$text-success", "machinery": "$text-warning"}

Draw = Callable[[GuestView, int, bool], Content]
"""Draws a view in so many cells, with ASCII only or not."""


class TextRow(Static):
    """A row of text, which is painted with the next frame where it has become another one."""

    def __init__(self, *, id: str | None = None) -> None:
        """Nothing is shown yet; `id` is that of the widget."""
        super().__init__(id=id, markup=False)
        self._shown: Content | None = None

    def draw(self, content: Content) -> None:
        """Show a text."""
        if self._shown is None or not content.is_same(self._shown):
            self._shown = content
            self.update(content, layout=False)


class StateLine(TextRow):
    """A row of text that is made from views, and drawn anew where it is another one."""

    DEFAULT_CSS = """
    StateLine {
        height: 1; width: 1fr; text-wrap: nowrap; background: $boost;
        &.-past { text-opacity: 55%; }
    }
    """

    def __init__(self, draw: Draw, *, id: str | None = None) -> None:
        """Nothing is shown yet.

        Args:
            draw: makes the text.
            id: of the widget.
        """
        super().__init__(id=id)
        self._draw = draw
        self._view = GuestView()

    def show(self, view: GuestView) -> None:
        """Show a new view; while the guest runs the last stop's stays, dimmed."""
        past = view.state is RunState.RUNNING
        self.set_class(past, "-past")
        if not past or not self._view.registers:
            self._view = view
            self._renew()

    def on_resize(self) -> None:
        """Paint the lines again for another width."""
        self._renew()

    def _renew(self) -> None:
        if not self.display or not self.is_attached:
            return
        self.draw(self._draw(self._view, self.size.width, is_ascii(self.app)))


def registers_line(pc: str, sp: str) -> Draw:
    """Draws pc, stack pointer, flags, then what has changed, then the rest as far as it fits.

    Args:
        pc: name of the program counter.
        sp: name of the stack pointer.
    """

    def rank(register: RegisterView) -> int:
        first = (register.name == pc, register.name == sp, register.group == "flags")
        if any(first):
            return first.index(True)
        return 3 if register.origin else 4

    def draw(view: GuestView, width: int, ascii_only: bool) -> Content:
        usual = (one for one in view.registers if one.group in ("general", "flags"))
        parts: list[str | tuple[str, str]] = [" "]
        room = width - 1
        more = mark("more", ascii_only)
        for register in sorted(usual, key=rank):
            value = harmless(register.meaning, ascii_only) if register.group == "flags" else ""
            value = value or f"{register.value:#x}"
            size = len(register.name) + 1 + len(value) + 2
            if size > room - len(more):
                parts.append((more, "dim"))
                break
            parts.append((register.name, "$text-primary"))
            look = _LOOKS.get(register.origin, "")
            parts += [(_SIGNS.get(register.origin, " ") + value, look), "  "]
            room -= size
        return Content.assemble(*parts)

    return draw


def route_line(view: GuestView, width: int, ascii_only: bool) -> Content:
    """Draws the phases of a hit, the last one that was carried out in brackets."""
    hit = view.hit
    if hit is None:
        return Content("")
    at = len(hit.done)
    arrow = mark("arrow", ascii_only)
    names = [f"[{name}]" if at == number + 1 else name for number, name in enumerate(hit.route)]
    front = f" {harmless(hit.shown, ascii_only)} "
    first = 0
    while first < at - 1 and len(front) + len(arrow.join(names[first:])) + 3 > width:
        first += 1  # what is over goes first
    parts: list[str | tuple[str, str]] = [(front, "bold")]
    if first:
        parts.append((mark("more", ascii_only), "dim"))
    used = len(front) + bool(first)
    for number, name in enumerate(names[first:], first):
        piece = (arrow if number > first else "") + name
        if used + len(piece) + 1 > width:
            parts.append((mark("more", ascii_only), "dim"))
            break
        used += len(piece)
        look = "reverse $text-accent" if at == number + 1 else ""
        look = look or ("$text-success" if number < at else "dim")
        parts += [(piece.removesuffix(name), "dim"), (name, look)]
    return Content.assemble(*parts)
