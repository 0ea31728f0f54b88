"""The console: lines that were typed in gdb's words, and what they have printed."""

from collections import deque
from collections.abc import Hashable
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from engine.session.protocol.views import GuestView
from tui.render import grouped, harmless
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_KEPT: Final = 20_000
"""Lines kept."""
_SCREEN: Final = 60
_INDENT: Final = "    "
"""In front of a line that goes on, as gdb has it."""
_NARROWEST: Final = 16
_EDGES: Final = 3
"""Cells beside a line: the cursor's two, and the scroll bar."""


class _Piece(Struct, frozen=True):
    """A line as it is shown, or what fits of a longer one.

    Attributes:
        text: the line's text.
        look: of it.
        goes_on: the line in front of it goes on here.
        asked: the first of what was typed at once.
    """

    text: str
    look: str
    goes_on: bool = False
    asked: bool = False


class ConsoleRows(LineSource):
    """Typed lines and printed ones, in order, folded where they are longer than the pane."""

    empty = "type : and one of gdb's words: break main, print n, x/4i $pc, bt, info locals"
    follows = True

    def __init__(self) -> None:
        self._lines: deque[_Piece] = deque(maxlen=_KEPT)
        self._dropped = 0
        self._width = 80 - _EDGES

    def add(self, text: str, look: str = "", *, asked: bool = False) -> None:
        """Take another line."""
        for number, piece in enumerate(folded(text.expandtabs(8), self._width)):
            self._dropped += len(self._lines) == _KEPT
            self._lines.append(_Piece(piece, look, number > 0, asked and not number))

    @property
    def asked_last(self) -> int:
        """The line with which what was typed last begins; 0 where that is gone."""
        last = len(self._lines) - 1
        return next((last - n for n, piece in enumerate(reversed(self._lines)) if piece.asked), 0)

    @property
    def last_text(self) -> str:
        """The last lines, a screen of them."""
        last = islice(reversed(self._lines), _SCREEN)
        return "\n".join(piece.text for piece in reversed([*last]))

    def arrange(self, size: Size) -> bool:
        """Fold the lines for another width."""
        width = max(size.width - _EDGES, _NARROWEST)
        if width == self._width:
            return False
        self._width = width
        whole: list[_Piece] = []
        for piece in self._lines:
            if piece.goes_on and whole:
                whole[-1] = replace(whole[-1], text=whole[-1].text + piece.text)
            else:
                whole.append(piece)
        self._lines.clear()
        for piece in whole:
            self.add(piece.text, piece.look, asked=piece.asked)
        return True

    def whole(self, index: int) -> int:
        """The number of the text a line is of: how many begin in front of it."""
        return max(sum(not piece.goes_on for piece in islice(self._lines, index + 1)) - 1, 0)

    def piece(self, whole: int) -> int:
        """The first line of a text, the last line where there is no such text any more."""
        starts = (at for at, piece in enumerate(self._lines) if not piece.goes_on)
        return next(islice(starts, whole, None), max(self.count - 1, 0))

    @property
    def count(self) -> int:
        """Lines that are kept."""
        return len(self._lines)

    @property
    def origin(self) -> int:
        """Lines that were dropped."""
        return self._dropped

    def key(self, index: int) -> Hashable:
        """A line never changes."""
        return self._dropped + index

    def line(self, index: int, width: int, looks: Looks) -> Strip:
        """A line."""
        piece = self._lines[index]
        shown = harmless(self.plain(index, looks), looks.ascii_only)
        return Strip([Segment(shown, looks(piece.look) if piece.look else None)])

    def plain(self, index: int, looks: Looks) -> str:
        """The line alone."""
        piece = self._lines[index]
        return _INDENT * piece.goes_on + piece.text


def folded(text: str, width: int) -> list[str]:
    """A line in pieces that fit, those behind the first with room for their indent.

    It is cut behind a blank, if there is one in the second half of a piece.
    """
    pieces, room = [], width
    while cell_len(text) > room:
        cut = len(chop_cells(text, room)[0]) or 1
        blank = text.rfind(" ", cut // 2, cut)
        cut = blank + 1 if blank >= 0 else cut
        pieces.append(text[:cut])
        text, room = text[cut:], max(width - len(_INDENT), _NARROWEST)
    return [*pieces, text]


class ConsolePane(ListPane[ConsoleRows]):
    """The pane of gdb's words."""

    TITLE = "Console"
    HELP = """\
# Console

What was typed behind `:` in gdb's words, and what they have printed. Short results stand in the
message line, too.

| key | does |
|---|---|
| `:` | type a line; `Tab` completes, `Up` and `Down` go through those before |
| `/` `n` `N` | find text, next, previous |
| `G` | go to the end and follow it |
| `Y` | copy the line, or what `J` `K` select |
"""

    def __init__(self) -> None:
        super().__init__(VirtualLines(ConsoleRows()))

    def show(self, view: GuestView) -> None:
        """Take a new view: nothing that was printed changes."""

    def typed(self, line: str) -> None:
        """A line was typed."""
        self.lines.set_follow(True)
        for number, each in enumerate(line.splitlines()):
            self.source.add(f"{'>' if number else ':'}{each}", "accent", asked=not number)
        self._renew()

    def show_answer(self) -> None:
        """Show what the last line has printed from its beginning on."""
        self.lines.move_to(self.source.count - 1)
        self.lines.move_to(self.source.asked_last)

    def printed(self, text: str) -> None:
        """Words have printed something."""
        for line in text.removesuffix("\n").split("\n"):
            self.source.add(line)
        self._renew()

    def failed(self, text: str) -> None:
        """A line could not be carried out, and did not get as far as to print that."""
        self.source.add(text, "bad")
        self._renew()

    def _renew(self) -> None:
        self.lines.refresh_size()
        gone = self.source.origin
        dropped = f"{grouped(gone)} older lines dropped" if gone else ""
        self.retitle(dropped, count=grouped(self.source.count))
