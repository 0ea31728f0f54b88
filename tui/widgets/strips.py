"""Lines of text as Textual's strips."""

from itertools import pairwise
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip
from textual.widget import Widget

_MORE: Final = Style(bold=True)


def to_strip(line: Strip | Text, console: Console) -> Strip:
    """A strip of what a list gives for a line."""
    if isinstance(line, Strip):
        return line
    if not line.spans:
        # Rich gives a text of one piece no style at all, not even its own.
        look = line.style if isinstance(line.style, Style) else console.get_style(line.style)
        return Strip([Segment(line.plain, look)])
    return Strip(line.render(console, end=""))


def fitted(strip: Strip, width: int, more: str, left: int = 0) -> Strip:
    """A strip, or as much of it as there is room for, with a sign where more follows.

    Args:
        strip: the line.
        width: cells there are.
        more: the sign, one cell; "" for none.
        left: cells of the line that are scrolled out of sight.
    """
    if not left and strip.cell_length <= width:
        return strip
    shown = strip.crop(left, left + width)
    if not more or strip.cell_length <= left + width:
        return shown
    shown = shown.crop(0, width - 1).adjust_cell_length(width - 1)  # half of a wide character
    return Strip([*shown, Segment(more, _MORE)], width)


def partial_look(widget: Widget, component: str) -> Style:
    """A component's style where it differs from the widget's."""
    return widget.get_component_rich_style(component, partial=True)


def own_look(widget: Widget, component: str) -> Style:
    """A component's weight and colour without its background; no colour where it sets none.

    Unlike `get_component_rich_style(partial=True)` this knows colours that depend on the
    background they stand on, `$text-muted` for one.
    """
    look = widget.get_component_rich_style(component)
    coloured = widget.get_component_styles(component).has_rule("color")
    return Style(
        color=look.color if coloured else None,
        bold=look.bold,
        dim=look.dim,
        italic=look.italic,
        underline=look.underline,
        reverse=look.reverse,
    )


def highlight(strip: Strip, pattern: str, style: Style) -> Strip:
    """A strip with each occurrence of a pattern in a style.

    Capitals do not matter unless the pattern has some.
    """
    text = strip.text
    haystack = text.lower() if pattern.islower() else text
    if len(haystack) != len(text) or pattern not in haystack:
        return strip
    cuts: list[int] = []
    at = haystack.find(pattern)
    while at >= 0:
        start = cell_len(text[:at])
        cuts += [start, start + cell_len(text[at : at + len(pattern)])]
        at = haystack.find(pattern, at + len(pattern))
    ends = [0, *cuts, strip.cell_length]
    return Strip.join(
        _over(strip.crop(start, end), style) if number % 2 else strip.crop(start, end)
        for number, (start, end) in enumerate(pairwise(ends))
    )


def _over(strip: Strip, style: Style) -> Strip:
    """A strip with a style on top of its own."""
    return Strip(
        [
            Segment(text, style if own is None else own + style, control)
            for text, own, control in strip
        ],
        strip.cell_length,
    )
