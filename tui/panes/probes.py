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
from engine.session.protocol.probes import ProbeView
from engine.session.protocol.views import GuestView
from tui.messages import Ask, Located
from tui.render import grouped, harmless, mark
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_LETTERS = {"emulated": "E", "boosted": "B"}
"""Letters that a technique alone does not tell."""
_WIDE = 60
"""Cells from which on the definition is shown as well."""
_MEDIUM = 34
"""Cells from which on hits and misses are shown."""


def technique_letter(probe: ProbeView) -> str:
    """J jump, B boosted, S single-stepped in a slot, X the same for a uprobe, E emulated.

    N is a call in place of a no-operation, a space a probe that is not armed.
    """
    if not probe.how or not probe.addresses:
        return " "
    if probe.technique == "jump":
        return "J"
    if probe.technique == "nop5":
        return "N"
    uprobe = ":/" in probe.row.line or probe.place.startswith("/")
    return _LETTERS.get(probe.how, "X" if uprobe else "S")


def state_mark(probe: ProbeView, ascii_only: bool = False) -> str:
    """The sign of a probe: gone, pending, off, return, or armed."""
    if probe.gone:
        name = "gone"
    elif probe.pending:
        name = "pending"
    elif not probe.row.enabled:
        name = "off"
    else:
        name = "return" if probe.kind == "r" else "armed"
    return mark(name, ascii_only)


class ProbeRows(LineSource):
    """The probes, one line each.

    Attributes:
        probes: those of the newest view.
    """

    empty = "no probes yet: p places one"

    def __init__(self) -> None:
        self.probes: Sequence[ProbeView] = ()
        self._place_width = 8

    @property
    def count(self) -> int:
        """One line a probe."""
        return len(self.probes)

    def key(self, index: int) -> Hashable:
        """A view never changes, but there is a new one for each change."""
        return self.probes[index]

    def fill(self, probes: Sequence[ProbeView]) -> bool:
        """Take these probes; True if all lines look different now."""
        self.probes = probes
        before = self._place_width
        self._place_width = max((len(probe.shown) for probe in probes[:1000]), default=8)
        return self._place_width != before

    def line(self, index: int, width: int, looks: Looks) -> Strip:
        """Sign, kind, technique, place, hits, misses, definition."""
        probe = self.probes[index]
        ascii_only = looks.ascii_only
        dim = looks("dim")
        alive = probe.row.enabled and not probe.gone and not probe.pending
        stop = mark("stop", ascii_only) if probe.row.stops else " "
        place = harmless(probe.shown, ascii_only)
        pieces: list[tuple[str, Style | None]] = [
            (state_mark(probe, ascii_only), looks("good" if alive else "warn")),
            (stop, looks("bad")),
            (f" {probe.kind} ", None),
            (technique_letter(probe) + " ", looks("accent")),
        ]
        if width >= _MEDIUM:
            room = min(self._place_width, max(width - 28, 8))
            if len(place) > room:
                place = place[: room - 1] + mark("more", ascii_only)
            pieces.append((place.ljust(room), looks("name") if alive else dim))
            pieces.append((grouped(probe.hits).rjust(11), None))
            misses = f" {grouped(probe.misses)} missed" if probe.misses else ""
            pieces.append((misses, looks("bad")))
        else:
            pieces.append((place, looks("name") if alive else dim))
            pieces.append((f" {grouped(probe.hits)}", None))
        if probe.refused:  # in front of what may take all of the room
            by_whom = " by its kernel" if width >= _WIDE else ""
            pieces.append((f"  {mark('no', ascii_only)} refused{by_whom}", looks("bad")))
        event = probe.event.rpartition("/")[2]
        if width >= _MEDIUM and event and event not in probe.row.line:
            pieces.append(("  " + harmless(event, ascii_only), looks("accent")))
        if width >= _WIDE:
            pieces.append(("  " + harmless(probe.row.line, ascii_only), dim))
            why = f"  {harmless(probe.refused, ascii_only)}" if probe.refused else ""
            pieces.append((why, looks("bad")))
        if probe.only:  # of the stop; what is recorded has a filter of its own
            pieces.append((f"  stops {harmless(probe.only, ascii_only)}", looks("warn")))
        if width >= _WIDE:
            passes = harmless(probe.row.rules.filter, ascii_only)
            only = f"  if {passes}" if passes else ""
            pieces.append((only, looks("accent")))
        return Strip([Segment(text, style) for text, style in pieces])

    def plain(self, index: int, looks: Looks) -> str:
        """The definition, for a copy."""
        return self.probes[index].row.line

    def searchable(self, index: int, looks: Looks) -> str:
        """All words of a probe."""
        probe = self.probes[index]
        words = (
            *(probe.kind, probe.place, probe.shown, probe.event, probe.row.line),
            *(probe.row.rules.filter, probe.only, probe.refused),
        )
        return " ".join((*words, *probe.row.rules.triggers, probe.reason))


class ProbesPane(ListPane[ProbeRows]):
    """The pane of the probes; keys come out as messages."""

    TITLE = "Probes"
    HELP = """\
# Probes

Sign, kind (`p` entry, `r` return, `b` breakpoint), technique, place, hits, misses, definition.

| sign | does |
|---|---|
| `\N{BLACK CIRCLE}` `*` | armed |
| `\N{WHITE CIRCLE}` `o` | armed, at returns |
| `\N{DOTTED CIRCLE}` `-` | off |
| `?` | its file is not mapped yet |
| `\N{BALLOT X}` `x` | its code is gone; before a reason: the image's own kernel refuses it |

| technique | does |
|---|---|
| `J` | jump, no trap |
| `B` | slot, resumed by a jump |
| `S` `X` | single step in a slot (`X`: uprobe) |
| `E` | emulated |

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
        Binding("e", "enable", "on/off", id="probes.enable"),
        Binding("x", "delete", "delete", id="probes.delete"),
        Binding("b", "stop", "stops", id="probes.stop"),
        Binding("E", "edit", "Edit", show=False, id="probes.edit"),
        Binding("F", "filter", "Filter", show=False, id="probes.filter"),
    ]

    @dataclass
    class Edit(Message):
        """The user wants to change a definition."""

        probe: ProbeView

    def __init__(self) -> None:
        super().__init__(VirtualLines(ProbeRows()))

    def show(self, view: GuestView) -> None:
        """Show the probes of a view; the cursor stays on its probe if it is still there."""
        probes = view.probes
        if probes is not self.source.probes:
            self._fill(probes)
        off = sum(not probe.row.enabled for probe in probes)
        pending = sum(probe.pending for probe in probes)
        missed = sum(probe.misses for probe in probes)
        self.retitle(
            f"{grouped(off)} off" if off else "",
            f"{grouped(pending)} pending" if pending else "",
            f"{grouped(missed)} missed" if missed else "",
            count=grouped(len(probes)) if probes else "",
        )

    def _fill(self, probes: Sequence[ProbeView]) -> None:
        lines, source = self.lines, self.source
        here = source.probes[lines.cursor].row.id if source.probes else None
        if source.fill(probes):
            lines.changed()
        lines.refresh_size()
        if lines.cursor >= len(probes) or probes[lines.cursor].row.id != here:
            for index, probe in enumerate(probes):
                if probe.row.id == here:
                    lines.move_to(index)
                    break
        lines.refresh()

    # -- keys ---------------------------------------------------------------------------------

    def _selected(self) -> list[ProbeView]:
        """The probes that keys act on: at the cursor, or those selected."""
        return [self.source.probes[index] for index in self.lines.selection_range]

    def action_enable(self) -> None:
        """On, or off if all are on."""
        if probes := self._selected():
            on = not all(probe.row.enabled for probe in probes)
            self.post_message(Ask(commands.Enable(_ids(probes), on)))

    def action_delete(self) -> None:
        """Delete them."""
        if probes := self._selected():
            self.post_message(Ask(commands.Delete(_ids(probes))))

    def action_stop(self) -> None:
        """Stop the guest when they are hit, or no longer if all do."""
        if probes := self._selected():
            on = not all(probe.row.stops for probe in probes)
            self.post_message(Ask(commands.StopOnHit(_ids(probes), on)))

    def action_edit(self) -> None:
        """Change the definition of the last one."""
        if probes := self._selected():
            self.post_message(self.Edit(probes[-1]))

    def action_filter(self) -> None:
        """Ask for the filter of the last one's event."""
        probes = self._selected()
        if not probes or not probes[-1].event:
            return
        event = probes[-1].event

        def answer(text: str) -> None:
            self.prompt.close()
            self.post_message(Ask(commands.SetFilter(event, text)))

        self.prompt.ask("filter", f"{event} only if", answer, probes[-1].row.rules.filter)

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
        if 0 <= index < len(self.source.probes) and self.source.probes[index].addresses:
            self.post_message(Located(self.source.probes[index].addresses[0], focus=focus))


def _ids(probes: Sequence[ProbeView]) -> tuple[int, ...]:
    return tuple(probe.row.id for probe in probes)
