"""Source text around the code that is looked at, for those who think in lines."""

from collections.abc import Hashable, Mapping
from typing import ClassVar

from rich.text import Text

from engine.session.browse import Browser
from engine.session.protocol.views import GuestView
from tui.panes.code_lines import Sign, signs_of
from tui.render import harmless, mark
from tui.source_files import SourceFiles
from tui.widgets.line_source import LineSource
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_PROBES = 1000
"""Places of probes that are looked up at the most."""


class SourceRows(LineSource):
    """The lines of one source file, with pc and probes beside them.

    Attributes:
        path: of the file, "" for none.
        addresses: number of a line from 1 to the guest address of its code.
    """

    empty = "no source"

    def __init__(self, browser: Browser) -> None:
        """No file is shown yet."""
        self._browser = browser
        self._files = SourceFiles()
        self._lines: tuple[str, ...] = ()
        self._signs: dict[int, Sign] = {}
        self._pc = 0
        self.path = ""
        self.addresses: Mapping[int, int] = {}

    def fill(self, address: int, view: GuestView) -> int:
        """Take the file that an address comes from.

        Returns:
            The number of its line, 0 where there is no source to be read.
        """
        row = self._browser.row_at(address)
        if row is None or row.line is None:
            return 0
        path, number = row.line
        if path != self.path:
            lines = self._files.lines(path)
            if not lines:
                return 0
            self.path, self._lines = path, lines
        self.addresses = self._browser.source_addresses(address, path)
        self._pc = self._line_of(view.pc)
        places = list(signs_of(view).items())[:_PROBES]
        found = ((self._line_of(place), sign) for place, sign in places)
        self._signs = {line: sign for line, sign in found if line}
        return number

    def _line_of(self, address: int) -> int:
        """The line of this file that an address belongs to, 0 for none."""
        row = self._browser.row_at(address)
        return row.line[1] if row and row.line and row.line[0] == self.path else 0

    @property
    def count(self) -> int:
        """Lines of the file."""
        return len(self._lines)

    def key(self, index: int) -> Hashable:
        """A line and what stands beside it."""
        return self.path, index, self._signs.get(index + 1), self._pc == index + 1

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """Probe, pc, number, text; numbers of lines without code are dim."""
        number, plain = index + 1, looks.ascii_only
        text = Text(no_wrap=True)
        sign = self._signs.get(number)
        text.append(mark(sign.name, plain) if sign else " ", looks("bad"))
        here = number == self._pc
        text.append(mark("arrow", plain)[:1] if here else " ", looks("warn"))
        coded = number in self.addresses
        text.append(f"{number:>5} ", looks("name" if coded else "dim"))
        shown = harmless(self._lines[index].rstrip().expandtabs(4), plain)
        text.append(shown, looks("warn") if here else "")
        return text

    def plain(self, index: int, looks: Looks) -> str:
        """The text alone."""
        return self._lines[index]


class SourceView(VirtualLines[SourceRows]):
    """The lines of a source file."""

    HELP: ClassVar[str] = """
### Source

| key | does |
|---|---|
| `j` `k` arrows, PgDn PgUp, `gg` `G` | move; the code's cursor goes with it |
| `b` | breakpoint on this line |
| `p` | place a probe here |
| `>` | run to this line |
| `s` `n` `f` | step a line, over calls, to the return |
| `/` | search |
| `S` | assembly with source lines, assembly, source |

Marks: `●` armed probe, `◌` disabled, `■` stops here, `→` pc. Lines with a bright number have code.
"""

    def __init__(self, browser: Browser) -> None:
        super().__init__(SourceRows(browser))
