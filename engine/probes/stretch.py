"""Stretches of a file's code: places side by side that lie in the same of everything."""

from msgspec import Struct

from engine.image import Section, Segment, Symbol


class Stretch(Struct, eq=False):
    """Addresses between which nothing begins or ends: no symbol, section or segment.

    Addresses are those of the `ImageCode` that it is from.

    Attributes:
        start: the first one.
        end: behind the last one.
        segment: the loadable segment that they lie in: the last one, as mapped.
        section: the section, where there are sections.
        symbol: the one that covers them.
        silent: ids of the rules about what they lie in that find nothing there; None until
            somebody has asked them.
    """

    start: int
    end: int
    segment: Segment | None
    section: Section | None
    symbol: Symbol | None
    silent: frozenset[str] | None = None
