"""Values that open and fold: which are open, what is known to be in them, what has changed."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.session.protocol.commands import Branch
from engine.session.protocol.frames import VariableView
from engine.session.protocol.views import PartsView

PIECE: Final = 32
"""Parts of a value that are asked for at once."""
_REMEMBERED: Final = 20_000
"""Values of before that are kept, to see which ones have changed."""
_UNKNOWN: Final = VariableView("...", "", "")


class Node(Struct, frozen=True):
    """A value on the screen: a variable, or a part of one.

    Attributes:
        root: the variable.
        steps: number of a part of it, of a part of that, and so on; () for itself.
    """

    root: Hashable
    steps: tuple[int, ...] = ()

    def part(self, number: int) -> "Node":
        """A part of it."""
        return Node(self.root, (*self.steps, number))


class ValueRow(Struct, frozen=True):
    """A line of a value.

    Attributes:
        node: of which value; of the one that has more parts for the line that says so.
        view: the value.
        is_open: its parts stand below.
        changed: it is another one than at the stop before.
        note: in place of a value: why there is none, or that there is more; "" for a value.
        goes_on: the line stands for parts that can be asked for.
    """

    node: Node
    view: VariableView
    is_open: bool = False
    changed: bool = False
    note: str = ""
    goes_on: bool = False

    @property
    def place(self) -> tuple[Node, bool]:
        """Which line it is, whatever the values are."""
        return self.node, bool(self.note)

    @property
    def opens(self) -> bool:
        """True if the value can be opened or folded."""
        return self.view.opens or self.goes_on


class _Past(Struct):
    """The value of a node at two stops."""

    stop: int
    text: str
    changed: bool


class OpenValues:
    """The open values of a pane, from stop to stop."""

    def __init__(self) -> None:
        """Nothing is open."""
        self._counts: dict[Node, int] = {}
        self._known: dict[Node, PartsView] = {}
        self._past: dict[tuple[Node, Hashable], _Past] = {}
        self._stop = 0

    def forget(self) -> None:
        """Fold all values: another run begins."""
        self._counts.clear()
        self._known.clear()
        self._past.clear()

    def moved(self) -> None:
        """The guest stands at another moment."""
        self._stop += 1
        if len(self._past) > _REMEMBERED:
            self._past.clear()

    def toggle(self, node: Node) -> bool:
        """Open or fold a value; True if it is open now."""
        if node in self._counts:
            del self._counts[node]
            return False
        self._counts[node] = PIECE
        return True

    def show_more(self, node: Node) -> None:
        """Show more parts of an open value, twice as many."""
        self._counts[node] *= 2

    # -- between the engine and the screen --------------------------------------------------

    def branches(self, roots: Mapping[Hashable, tuple[int, int]]) -> dict[Node, Branch]:
        """The questions for what is in open values.

        Args:
            roots: those that are there, to number of frame and of variable.
        """
        found: dict[Node, Branch] = {}
        for node, count in self._counts.items():
            place = roots.get(node.root)
            if place is not None and self._is_seen(node):
                found[node] = Branch(*place, node.steps, count)
        return found

    def _is_seen(self, node: Node) -> bool:
        """True if all that a value is a part of is open, too."""
        above = (Node(node.root, node.steps[:end]) for end in range(len(node.steps)))
        return all(each in self._counts for each in above)

    def answer(self, node: Node, parts: PartsView | None) -> None:
        """Take an answer; None where there is no such value."""
        if parts is None:
            self._known.pop(node, None)
        else:
            self._known[node] = parts

    def rows(self, root: Hashable, view: VariableView, of: Hashable = None) -> Iterator[ValueRow]:
        """The lines of a variable.

        Args:
            root: the variable's key among those that are open.
            view: its value now.
            of: which one of its lives this is: another one's values are not those of before.
        """
        yield from self._rows(Node(root), view, of)

    def _rows(self, node: Node, view: VariableView, of: Hashable) -> Iterator[ValueRow]:
        is_open = node in self._counts and view.opens
        yield ValueRow(node, view, is_open, self._has_changed(node, view, of))
        if not is_open:
            return
        known = self._known.get(node)
        if known is None:
            yield ValueRow(node, _UNKNOWN, note="...")
            return
        for number, part in enumerate(known.parts):
            yield from self._rows(node.part(number), part, of)
        if known.trouble:
            yield ValueRow(node, _UNKNOWN, note=known.trouble)
        elif known.more:
            text = f"behind the first {len(known.parts)} there are more"
            yield ValueRow(node, _UNKNOWN, note=text, goes_on=True)

    def _has_changed(self, node: Node, view: VariableView, of: Hashable) -> bool:
        """True if a value is another one than at the stop before; noted for the next one."""
        text, past = view.value + view.leads, self._past.get((node, of))
        if past is None:
            self._past[node, of] = _Past(self._stop, text, False)
            return False
        if past.stop != self._stop:
            past.changed = past.text != text
            past.stop, past.text = self._stop, text
        elif past.text != text:  # what is in it came later than the stop
            past.changed, past.text = True, text
        return past.changed


def numbered(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Each name, and how many of the same there are in front of it."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, -1) + 1
        yield name, seen[name]
