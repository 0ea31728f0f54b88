"""A fuzzy search in short texts: letters in their order, in time linear in the text.

Textual's own matcher tries all ways to find the letters, which grow exponentially with them.
"""

import re
from itertools import groupby, pairwise
from typing import Final

from msgspec import Struct

_WORD: Final = re.compile(r"\w+")
_SAME: Final = 2.0
_PART: Final = 1.5
"""Factors for a text that is what is looked for, or holds it in one piece."""


class Prepared(Struct, frozen=True):
    """A text to search in.

    Attributes:
        text: as it is shown.
        folded: the same in lower case, as long as the text.
        starts: where its words begin.
    """

    text: str
    folded: str
    starts: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "Prepared":
        """Prepare a text."""
        folded = "".join(small if len(small := each.lower()) == 1 else each for each in text)
        return cls(text, folded, frozenset(word.start() for word in _WORD.finditer(text)))


class Match(Struct, frozen=True):
    """A text that fits.

    Attributes:
        score: how well, comparable between the texts of one search.
        at: the place of each letter, ascending.
    """

    score: float
    at: tuple[int, ...]

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """The (start, end) of letters that stand side by side."""
        runs = groupby(enumerate(self.at), key=lambda pair: pair[1] - pair[0])
        found = [[place for _, place in run] for _, run in runs]
        return [(run[0], run[-1] + 1) for run in found]


def match(wanted: str, prepared: Prepared) -> Match | None:
    """Find letters in a text, in their order; None where they are not in it.

    A text with all of them in one piece comes before one where they are apart, letters at the
    beginnings of words before others.

    Args:
        wanted: in lower case, not empty.
        prepared: where to look.
    """
    folded = prepared.folded
    at = folded.find(wanted)
    if at >= 0:
        places = tuple(range(at, at + len(wanted)))
        factor = _SAME if len(wanted) == len(folded) else _PART
        return Match(_score(places, prepared.starts) * factor, places)
    found = _scattered(wanted, prepared)
    return None if found is None else Match(_score(found, prepared.starts), found)


def _scattered(wanted: str, prepared: Prepared) -> tuple[int, ...] | None:
    """Places of letters that are not side by side, beginnings of words where that can be."""
    folded, end, latest = prepared.folded, len(prepared.folded), list[int]()
    for letter in reversed(wanted):
        end = folded.rfind(letter, 0, end)
        if end < 0:
            return None
        latest.append(end)
    places, at = list[int](), 0
    for letter, last in zip(wanted, reversed(latest), strict=True):
        here = folded.find(letter, at, last + 1)
        if here != at or not places:
            begins = here
            while begins >= 0 and begins not in prepared.starts:
                begins = folded.find(letter, begins + 1, last + 1)
            here = begins if begins >= 0 else here
        places.append(here)
        at = here + 1
    return tuple(places)


def _score(places: tuple[int, ...], starts: frozenset[int]) -> float:
    """The score of letters: more for those at beginnings of words, and for few gaps."""
    count = len(places)
    pieces = 1 + sum(after != place + 1 for place, after in pairwise(places))
    whole = (count - (pieces - 1)) / count
    return (count + len(starts.intersection(places))) * (1 + whole * whole)
