"""Text that can be read on its background, in every theme.

Themes mix their shades from a few colors, and some mixtures come out too close: a muted name on
the row of the cursor. What is painted has a contrast of 4.5 at least, as WCAG 2.2 asks of text of
this size (1.4.3, level AA); the hue stays.
"""

import re
from functools import lru_cache
from typing import Final

from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.color import Color as Background
from textual.filter import LineFilter

LEAST: Final = 4.5
_STEPS: Final = 32
_WORDS: Final = re.compile(r"\w")
_WHITE, _BLACK = ColorTriplet(255, 255, 255), ColorTriplet(0, 0, 0)


def luminance(color: ColorTriplet) -> float:
    """The relative luminance of a color, 0 to 1 (WCAG 2.2)."""
    red, green, blue = (_linear(part / 255) for part in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    """The contrast of two colors, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@lru_cache(maxsize=4096)
def readable(text: ColorTriplet, behind: ColorTriplet) -> ColorTriplet:
    """A color, or the next one towards white or black that can be read on another."""
    if contrast(text, behind) >= LEAST:
        return text
    end = max((_WHITE, _BLACK), key=lambda color: contrast(color, behind))
    for step in range(1, _STEPS):
        mixed = ColorTriplet(
            *(round(a + (b - a) * step / _STEPS) for a, b in zip(text, end, strict=True))
        )
        if contrast(mixed, behind) >= LEAST:
            return mixed
    return end


class ContrastFilter(LineFilter):
    """Changes the color of words that their background swallows; lines and bars stay."""

    def __init__(self) -> None:
        """Nothing was painted yet."""
        super().__init__()
        self._styles: dict[tuple[Style, Background], Style] = {}

    def apply(self, segments: list[Segment], background: Background) -> list[Segment]:
        """Return segments that can be read.

        Args:
            segments: of a line.
            background: of those that have none of their own.
        """
        found = list(segments)
        for at, segment in enumerate(segments):
            text, style, control = segment
            if style is not None:
                changed = self._style(style, background)
                if changed is not style and _WORDS.search(text):
                    found[at] = Segment(text, changed, control)
        return found

    def _style(self, style: Style, background: Background) -> Style:
        key = style, background
        found = self._styles.get(key)
        if found is None:
            if len(self._styles) > 10_000:
                self._styles.clear()
            found = self._styles[key] = _changed(style, background)
        return found


def _changed(style: Style, background: Background) -> Style:
    """A style with another color of its text, if need be; colors of the terminal's own stay."""
    if style.color is None or style.color.triplet is None:
        return style
    own = background.rich_color.triplet if style.bgcolor is None else style.bgcolor.triplet
    if own is None:
        return style
    if style.reverse:
        changed = readable(own, style.color.triplet)
        return style if changed == own else style + Style(bgcolor=Color.from_triplet(changed))
    changed = readable(style.color.triplet, own)
    if changed == style.color.triplet:
        return style
    return style + Style(color=Color.from_triplet(changed))
