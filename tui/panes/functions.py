"""The functions pane: those of the program or the kernel image, with verdicts."""

import re
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from engine.session.browse import Browser, FunctionList
from engine.session.protocol.views import GuestView
from tui.messages import Located
from tui.render import grouped, harmless
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_PART = re.compile(r"^__(pfx|cfi)_|\.(cold|part|isra|constprop)\b|@")
"""Names of padding, parts and stubs of functions, which stand among them by the hundred."""
_SIGNS = {"ftrace": ("F", "accent"), "jump": ("J", "good"), "breakpoint": ("B", "name")}
"""The letter of a verdict, and its look."""
_KEPT = 4096


def _is_part(name: str) -> bool:
    """True for the name of padding, a part or a stub."""
    quick = "." in name or "@" in name or name.startswith("__")  # of a kernel's many names few
    return quick and _PART.search(name) is not None


class FunctionRows(LineSource):
    """Functions, a line each; all of them, or those that match.

    Attributes:
        folded: paddings, parts and stubs are left out.
        hidden: the number of those that are, of what matches.
    """

    empty = "no function matches"

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.folded = browser.kernel is not None  # where every second symbol may be padding
        self.hidden = 0
        self._functions: FunctionList | None = None
        self.shown: Sequence[int] = ()
        self._verdicts: dict[int, str] = {}
        self._digits = 1

    @property
    def loaded(self) -> bool:
        """True once the functions have been looked for."""
        return self._functions is not None

    def load(self) -> None:
        """Look for them; once."""
        if self._functions is None:
            self._functions = self._browser.functions
            total = len(self._functions)
            last = self._functions[total - 1].address if total else 0
            self._digits = len(f"{last:x}")
            self.filter("")

    def filter(self, text: str) -> None:
        """Show those that match, all for ""; without parts where these are folded."""
        self.load()
        assert self._functions is not None, "they are loaded"
        found, names = self._functions.matching(text), self._functions.names
        self.shown = [n for n in found if not _is_part(names[n])] if self.folded else found
        self.hidden = len(found) - len(self.shown)

    @property
    def total(self) -> int:
        """All that there are."""
        return len(self._functions) if self._functions is not None else 0

    @property
    def count(self) -> int:
        """The number of functions that are shown."""
        return len(self.shown)

    def key(self, index: int) -> Hashable:
        """A function never changes."""
        return self.shown[index]

    def address(self, index: int) -> int:
        """The guest address of a function."""
        assert self._functions is not None, "there are lines"
        return self._functions[self.shown[index]].address + self._browser.main_bias()

    def _sign(self, number: int, address: int) -> str:
        """The kind of a probe at the entry, "" where none may stand."""
        found = self._verdicts.get(number)
        if found is None:
            if len(self._verdicts) > _KEPT:
                self._verdicts.clear()
            found = self._verdicts[number] = self._browser.kind_at(address)
        return found

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """Verdict and name; module, section, size and address as far as there is room."""
        assert self._functions is not None, "there are lines"
        number = self.shown[index]
        row = self._functions[number]
        address = row.address + self._browser.main_bias()
        letter, look = _SIGNS.get(self._sign(number, address), ("x", "bad"))
        text = Text(no_wrap=True)
        text.append(f"{letter} ", looks(look))
        look = "dim" if _is_part(row.name) else "name"
        text.append(harmless(row.shown, looks.ascii_only), looks(look))
        places = [f"{address:x}", f"{row.size or '':>6} {address:>{self._digits}x}"]
        notes = [f"[{harmless(row.module, looks.ascii_only)}]"] if row.module else []
        if row.section != ".text":
            notes.append(harmless(row.section, looks.ascii_only))
        for note in notes:
            if text.cell_len + len(note) + len(places[0]) + 4 <= width:
                text.append(f"  {note}", looks("note"))
        for place in reversed(places):  # with the size, if there is room for both
            room = width - text.cell_len
            if room > len(place):
                text.append(place.rjust(room), looks("dim"))
                break
        return text

    def plain(self, index: int, looks: Looks) -> str:
        """The name, for a copy."""
        assert self._functions is not None, "there are lines"
        return self._functions[self.shown[index]].name

    def searchable(self, index: int, looks: Looks) -> str:
        """The name alone: no verdict is made for a search."""
        assert self._functions is not None, "there are lines"
        row = self._functions[self.shown[index]]
        return f"{row.address:x} {row.name} {row.shown if row.shown != row.name else ''}"


class FunctionsPane(ListPane[FunctionRows]):
    """The pane of functions; the code pane goes along with its cursor."""

    TITLE = "Functions"
    HELP = """\
# Functions

Verdict on a probe at the entry, name, module and section, size, address. Paddings, cold parts
and stubs are dim. Static probes (USDT) stand among the functions as `sdt_PROVIDER:NAME`;
`& in:sdt` shows them alone, `p` probes one, its arguments included.

| letter | does |
|---|---|
| `F` | served by ftrace, without a breakpoint (kernel images) |
| `J` | a breakpoint that becomes a jump |
| `B` | a breakpoint |
| `x` | refused |

The verdict on a kernel image is by its own kernel's rules.

| key | does |
|---|---|
| `Space` | fold or show paddings, parts and stubs; those of a kernel image are folded at first |
| `&` | show some: parts of names or patterns, `in:.init.text`, `mod:crc16`; empty: all |
| `/` `n` `N` | find text, next, previous |
| `Enter` | show the code |
| `p` `b` `y` `t` | probe, break at, explain, trace the function |
| `Y` | copy the name |
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ampersand", "filter", "filter", key_display="&", id="functions.filter"),
        Binding("space", "fold", "fold/show parts", key_display="space", id="functions.fold"),
    ]

    def __init__(self, browser: Browser) -> None:
        super().__init__(VirtualLines(FunctionRows(browser)))
        self._filter = ""

    def show(self, view: GuestView) -> None:
        """Functions do not change."""

    def on_descendant_focus(self) -> None:
        """The user has come here: look for the functions, once."""
        if not self.source.loaded:
            self.source.load()
            self._refreshed()

    def _refreshed(self) -> None:
        self.lines.changed()
        self.lines.refresh_size()
        self.lines.refresh()
        shown, total = self.source.count, self.source.total
        some = f"{grouped(shown)} of {grouped(total)}" if shown != total else grouped(total)
        hidden = f"{grouped(self.source.hidden)} folded" if self.source.hidden else ""
        self.retitle(f"& {self._filter}" if self._filter else hidden, count=some)

    def action_fold(self) -> None:
        """Leave paddings, parts and stubs out, or show them; the cursor stays at its function."""
        lines, source = self.lines, self.source
        source.load()
        at = source.shown[lines.cursor] if lines.cursor < source.count else 0
        source.folded = not source.folded
        source.filter(self._filter)
        self._refreshed()
        lines.move_to(min(bisect_left(source.shown, at), max(source.count - 1, 0)))

    def action_filter(self) -> None:
        """Ask what to show."""

        def answer(text: str) -> None:
            self.prompt.close()
            self.set_filter(text)

        self.prompt.ask("functions", "& functions", answer, self._filter)

    def set_filter(self, text: str) -> None:
        """Show functions that match, all for ""."""
        self._filter = text.strip()
        self.source.filter(self._filter)
        self.lines.move_to(0)
        self._refreshed()

    def on_virtual_lines_moved(self, event: VirtualLines.Moved) -> None:
        """The code pane shows the function, if this pane is where the user is."""
        event.stop()
        if self.lines.has_focus:
            self._locate(event.index, focus=False)

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the function."""
        event.stop()
        self._locate(event.index, focus=True)

    def _locate(self, index: int, focus: bool) -> None:
        if 0 <= index < self.source.count:
            self.post_message(Located(self.source.address(index), focus=focus))
