"""The list of probes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from engine.session.protocol import commands
from engine.session.protocol.views import ProbeView
from tui.messages import Ask, Located
from tui.render import grouped, harmless, mark
from tui.widgets.list_pane import ListPane
from tui.widgets.virtual_lines import VirtualLines

_LETTERS = {"emulated": "E", "boosted": "B"}
"""What is not told by a technique alone."""
_WIDE = 60
"""Cells from which on the definition is shown as well."""
_MEDIUM = 34
"""Cells from which on hits and misses are shown."""


def technique_letter(probe: ProbeView) -> str:
    """J jump, B boosted, S single-stepped in a slot, X the same for a uprobe, E emulated.

    A space for a probe that is not armed.
    """
    if not probe.how or not probe.addresses:
        return " "
    if probe.technique == "jump":
        return "J"
    uprobe = ":/" in probe.definition or probe.place.startswith("/")
    return _LETTERS.get(probe.how, "X" if uprobe else "S")


def state_mark(probe: ProbeView, ascii_only: bool = False) -> str:
    """The sign of a probe: gone, pending, off, return, or armed."""
    if probe.gone:
        name = "gone"
    elif probe.pending:
        name = "pending"
    elif not probe.enabled:
        name = "off"
    else:
        name = "return" if probe.kind == "r" else "armed"
    return mark(name, ascii_only)


class ProbeList(VirtualLines):
    """The probes as a list.

    Attributes:
        probes: those of the newest view.
    """

    EMPTY = "no probes yet: p places one"
    HELP = """\
# Probes

Sign, kind (`p` entry, `r` return, `b` breakpoint), technique, place, hits, misses, definition.

| sign | means | letter | technique |
|---|---|---|---|
| `\N{BLACK CIRCLE}` `*` | armed | `J` | jump, no trap |
| `\N{WHITE CIRCLE}` `o` | armed, at returns | `B` | slot, resumed by a jump |
| `\N{DOTTED CIRCLE}` `-` | off | `S` `X` | single step in a slot (`X`: uprobe) |
| `?` | its file is not mapped yet | `E` | emulated |
| `\N{BALLOT X}` `x` | its code is gone | | |

`\N{BLACK SQUARE}` (`#`): the guest stops there.

| key | does |
|---|---|
| `e` | on or off (also for what `J` `K` select) |
| `x` | delete; `U` takes it back |
| `b` | stop the guest when it is hit, or no longer; a return probe's call and its return |
| `E` | edit the definition |
| `F` | set the filter of its event, in the kernel's language; empty: record all hits |
| `Enter` | show its place in the other panes |
| `Y` | copy the definitions, as `kprobe_events` takes them |
"""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "ask('enable')", "on/off", id="probes.enable"),
        Binding("x", "ask('delete')", "delete", id="probes.delete"),
        Binding("b", "ask('stop')", "stops", id="probes.stop"),
        Binding("E", "ask('edit')", "Edit", show=False, id="probes.edit"),
        Binding("F", "ask('filter')", "Filter", show=False, id="probes.filter"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.probes: Sequence[ProbeView] = ()
        self._place_width = 8

    @property
    def line_count(self) -> int:
        """One line a probe."""
        return len(self.probes)

    def line_key(self, index: int) -> Hashable:
        """A view never changes, but there is a new one for each change."""
        return self.probes[index]

    def show(self, probes: Sequence[ProbeView]) -> None:
        """Show these probes; the cursor stays on its probe if it is still there."""
        if probes is self.probes:
            return
        here = self.probes[self.cursor].id if self.probes else None
        self.probes = probes
        widest = max((len(probe.place) for probe in probes[:1000]), default=8)
        if widest != self._place_width:
            self._place_width = widest
            self.changed()
        self.refresh_size()
        if self.cursor >= len(probes) or probes[self.cursor].id != here:
            for index, probe in enumerate(probes):
                if probe.id == here:
                    self.move_to(index)
                    break
        self.refresh()

    def selected(self) -> list[ProbeView]:
        """The probes that keys act on."""
        return [self.probes[index] for index in self.selection_range]

    def line(self, index: int, width: int) -> Strip:
        """Sign, kind, technique, place, hits, misses, definition."""
        probe = self.probes[index]
        ascii_only = self.ascii_only
        dim = self.look("dim")
        alive = probe.enabled and not probe.gone and not probe.pending
        stop = mark("stop", ascii_only) if probe.stops else " "
        place = harmless(probe.place, ascii_only)
        pieces: list[tuple[str, Style | None]] = [
            (state_mark(probe, ascii_only), self.look("good" if alive else "warn")),
            (stop, self.look("bad")),
            (f" {probe.kind} ", None),
            (technique_letter(probe) + " ", self.look("accent")),
        ]
        if width >= _MEDIUM:
            room = min(self._place_width, max(width - 28, 8))
            if len(place) > room:
                place = place[: room - 1] + mark("more", ascii_only)
            pieces.append((place.ljust(room), self.look("name") if alive else dim))
            pieces.append((grouped(probe.hits).rjust(11), None))
            misses = f" {grouped(probe.misses)} missed" if probe.misses else ""
            pieces.append((misses, self.look("bad")))
        else:
            pieces.append((place, self.look("name") if alive else dim))
            pieces.append((f" {grouped(probe.hits)}", None))
        if width >= _WIDE:
            pieces.append(("  " + harmless(probe.definition, ascii_only), dim))
            only = f"  if {harmless(probe.filter, ascii_only)}" if probe.filter else ""
            pieces.append((only, self.look("accent")))
        return Strip([Segment(text, style) for text, style in pieces])

    def plain(self, index: int) -> str:
        """The definition, for a copy."""
        return self.probes[index].definition

    def searchable(self, index: int) -> str:
        """What the search looks at: all words of a probe."""
        probe = self.probes[index]
        words = (probe.kind, probe.place, probe.event, probe.definition, probe.filter)
        return " ".join((*words, *probe.triggers, probe.reason))


class ProbesPane(ListPane[ProbeList]):
    """The pane of the probes: `show` takes them, keys come out as messages."""

    TITLE = "Probes"
    NUMBER = 8

    @dataclass
    class Edit(Message):
        """The user wants to change a definition."""

        probe: ProbeView

    def __init__(self, *, number: int | None = None, id: str | None = None) -> None:
        super().__init__(ProbeList(), number=number, id=id)
        self._filtered = ""

    def show(self, probes: Sequence[ProbeView]) -> None:
        """Show the probes of a view."""
        self.lines.show(probes)
        off = sum(not probe.enabled for probe in probes)
        pending = sum(probe.pending for probe in probes)
        missed = sum(probe.misses for probe in probes)
        self.retitle(
            grouped(len(probes)),
            f"{grouped(off)} off" if off else "",
            f"{grouped(pending)} pending" if pending else "",
            f"{grouped(missed)} missed" if missed else "",
        )

    def ask(self, what: str) -> None:
        """Keys that act on the probe at the cursor, or on those selected."""
        probes = self.lines.selected()
        if what == "search":
            super().ask(what)
            return
        if not probes:
            return
        ids = tuple(probe.id for probe in probes)
        if what == "enable":
            on = not all(probe.enabled for probe in probes)
            self.post_message(Ask(commands.Enable(ids, on)))
        elif what == "delete":
            self.post_message(Ask(commands.Delete(ids)))
        elif what == "stop":
            on = not all(probe.stops for probe in probes)
            self.post_message(Ask(commands.StopOnHit(ids, on)))
        elif what == "edit":
            self.post_message(self.Edit(probes[-1]))
        elif what == "filter" and probes[-1].event:
            self._filtered = probes[-1].event
            self.prompt.ask(what, f"{self._filtered} only if", probes[-1].filter)

    def answer(self, what: str, text: str) -> None:
        """A filter, or what every list is asked."""
        if what == "filter":
            self.prompt.close()
            self.focus_inside()
            self.post_message(Ask(commands.SetFilter(self._filtered, text)))
        else:
            super().answer(what, text)

    def on_virtual_lines_moved(self, event: VirtualLines.Moved) -> None:
        """The other panes show the place, if this pane is where the user is."""
        event.stop()
        if self.lines.has_focus:
            self._locate(event.index, focus=False)

    def on_virtual_lines_chosen(self, event: VirtualLines.Chosen) -> None:
        """Go to the place."""
        event.stop()
        self._locate(event.index, focus=True)

    def _locate(self, index: int, focus: bool) -> None:
        if 0 <= index < len(self.lines.probes) and self.lines.probes[index].addresses:
            self.post_message(Located(self.lines.probes[index].addresses[0], focus=focus))
