"""Lines of code around an instruction, and their looks."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from itertools import chain, islice
from typing import Final, TypeAlias

from msgspec import Struct
from rich.style import Style
from rich.text import Text

from engine.session.browse import Browser, CodeRow
from engine.session.protocol.views import GuestView
from tui.render import harmless, mark
from tui.source_files import SourceFiles

Look: TypeAlias = Callable[[str], Style]
"""Gives the style of a name."""

_NARROW: Final = 64
"""Width below which bytes are left out."""
_ROOMY: Final = 90
"""Width from which on eight bytes of an instruction are shown, not six."""
_OFTEN: Final = 64
"""Rows that a search looks at before the clock is asked."""


class Bytes(Enum):
    """Bytes in front of an instruction."""

    PLANTED = 0
    ORIGINAL = 1
    NONE = 2

    @property
    def following(self) -> "Bytes":
        """The next one when the user goes through them."""
        return Bytes((self.value + 1) % 3)


class CodeLine(Struct, frozen=True):
    """One line on the screen.

    Attributes:
        row: the instruction; of a heading, the one it belongs to.
        heading: text of a label or source line, "" for the instruction itself.
        source: whether the heading is a line of the source.
    """

    row: CodeRow
    heading: str = ""
    source: bool = False


class Sign(Struct, frozen=True):
    """A probe in the margin: its hits, which change all the time, are not in it."""

    kind: str
    enabled: bool

    @property
    def name(self) -> str:
        """Of its mark."""
        if not self.enabled:
            return "off"
        return {"b": "stop", "r": "return"}.get(self.kind, "armed")


def signs_of(view: GuestView) -> dict[int, Sign]:
    """Guest address to what stands in the margin there; of several probes, the last."""
    return {
        address: Sign(probe.kind, probe.row.enabled)
        for probe in view.probes
        for address in probe.addresses
    }


class CodeWindow:
    """Decodes the lines around an instruction; there is no list of all lines.

    Attributes:
        with_source: whether lines of the source are shown.
    """

    def __init__(self, browser: Browser) -> None:
        """A window on the code that a browser knows."""
        self.with_source = True
        self._browser = browser
        self._sources = SourceFiles()

    def headings(self, row: CodeRow) -> list[CodeLine]:
        """Lines above an instruction: its label, its source line."""
        found = []
        if row.label:
            found.append(CodeLine(row, f"{harmless(row.label)}:"))
        if row.line is not None and self.with_source:
            file, number = row.line
            text = self._sources.line(file, number)
            name = harmless(file.rsplit("/", 1)[-1])
            found.append(CodeLine(row, f"{name}:{number}  {harmless(text)}".rstrip(), source=True))
        return found

    def lines(self, cursor: int, above: int, height: int) -> tuple[list[CodeLine], int]:
        """The lines of a window: so many above an instruction, the rest from there on.

        Returns:
            The lines, and how many of them are above: fewer where the code begins.
        """
        before: list[CodeLine] = []
        for row in self._browser.backward(cursor):
            before = [*self.headings(row), CodeLine(row), *before]
            if len(before) >= above:
                break
        after: list[CodeLine] = []
        for row in self._browser.forward(cursor):
            headings = self.headings(row)
            if row.address <= cursor:
                before += headings
                headings = []
            after += [*headings, CodeLine(row)]
            if len(after) >= height:
                break
        first = max(len(before) - above, 0)
        return [*before[first:], *after][:height], len(before) - first


class CodePainter(Struct, frozen=True):
    """Makes the text of a line.

    Attributes:
        look: its styles by name.
        plain: draw with ASCII only.
        width: cells there are.
        insn_max: bytes of the architecture's longest instruction.
        pcs: guest addresses of the current instruction: the program's, and the processor's where
            it is in a slot or a detour instead.
        planted: guest address to bytes that stand there instead of the original.
        signs: what stands in the margin.
        bytes: which bytes are shown.
    """

    look: Look
    plain: bool
    width: int
    insn_max: int
    pcs: frozenset[int]
    planted: Mapping[int, bytes]
    signs: Mapping[int, Sign]
    bytes: Bytes

    def text(self, line: CodeLine, *, at_cursor: bool, targeted: bool) -> Text:
        """A line.

        Args:
            line: the line that is drawn.
            at_cursor: whether it is the instruction at the cursor.
            targeted: whether the branch at the cursor leads there.
        """
        if line.heading:
            return Text("   " + line.heading, self.look("source" if line.source else "label"))
        row, look = line.row, self.look
        text = Text(no_wrap=True)
        left = mark("cursor", self.plain) if at_cursor else " "
        if targeted:
            left = mark("branch", self.plain)[:1]
        sign = self.signs.get(row.address)
        if sign is None:
            text.append(left + " ", look("address"))
        else:
            text.append(
                left + mark(sign.name, self.plain), look("probe" if sign.enabled else "off")
            )
        pc = row.address in self.pcs
        text.append(mark("arrow", self.plain)[:1] if pc else " ", look("pc"))
        text.append(f"{row.address:x} ", look("pc" if pc else "address"))
        if self.bytes is not Bytes.NONE and self.width >= _NARROW:
            self._append_bytes(text, row)
        text.append(
            f"{row.mnemonic:<7} ", look("branch" if row.target is not None else "mnemonic")
        )
        text.append(row.operands)
        notes = [harmless(row.note, self.plain)] if row.note else []
        planted = self.planted.get(row.address)
        if row.was:
            notes.append(f"was {row.was}")
        elif planted is not None and self.bytes is Bytes.PLANTED and self.width >= _NARROW:
            notes.append(f"was {row.raw[: len(planted)].hex(' ')}")
        if notes:
            text.append("  ; " + "; ".join(notes), look("note"))
        return text

    def _append_bytes(self, text: Text, row: CodeRow) -> None:
        """The bytes of an instruction, those that are planted first."""
        planted = self.planted.get(row.address, b"") if self.bytes is Bytes.PLANTED else b""
        room = min(self.insn_max, 8 if self.width >= _ROOMY else 6)
        shown, planted = row.raw[:room], planted[:room]
        if planted:
            text.append(planted.hex(" "), self.look("planted"))
        rest = shown[len(planted) :].hex(" ")
        text.append((" " if planted and rest else "") + rest, self.look("bytes"))
        text.append(" " * (3 * max(room - max(len(shown), len(planted)), 0) + 1))
        if len(row.raw) > room:
            text.right_crop(1)
            text.append(mark("more", self.plain), self.look("bytes"))


def find_row(browser: Browser, start: int, pattern: str, backwards: bool) -> Iterator[int | None]:
    """Look for text in instructions and labels, around the end of the file and back.

    Args:
        browser: knows the code.
        start: address of the instruction to begin at; it comes last backwards.
        pattern: text; without capitals in it, capitals do not matter.
        backwards: towards lower addresses.

    Yields:
        None after each bit of work, then the address; nothing more without one.
    """
    folded = pattern.islower()
    look = partial(browser.backward if backwards else browser.forward, asks=False)
    span = browser.span(start)
    around: Iterator[CodeRow] = iter(())  # from the other end up to where it began
    if span is not None:
        around = look(span[1] - 1 if backwards else span[0])
    for number, row in enumerate(chain(islice(look(start), not backwards, None), around)):
        seen_all = number and row.address == start
        text = f"{row.address:x} {row.label} {row.mnemonic} {row.operands} {row.note}"
        if pattern in (text.lower() if folded else text):
            yield row.address
            return
        if seen_all:
            return
        if number % _OFTEN == _OFTEN - 1:
            yield None
