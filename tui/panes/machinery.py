"""The machinery pane: the phases of the hit at hand, the site, the slot, what comes next."""

from collections.abc import Iterator
from itertools import groupby

from rich.style import Style
from rich.text import Text

from engine.session.browse import Browser, Placed
from engine.session.protocol.views import GuestView, HitView
from tui.panes.hit_drawing import Pen, draw
from tui.render import harmless, mark
from tui.widgets.list_pane import ListPane
from tui.widgets.virtual_lines import VirtualLines

_WRAP = 24


class MachineryLines(VirtualLines):
    """Shows the hit; where the guest stands at no probe, what a probe at the cursor would do."""

    HELP = """
### Machinery

What a probe does, one phase at a time: the breakpoint traps, handlers run, the displaced
instruction is executed out of line in its slot (or emulated), fix-ups put right what the slot
has changed, the guest goes on. A jump does not trap: its detour keeps some registers, records the
hit, carries the displaced instructions out, and jumps back behind them.

| key | does |
|---|---|
| `.` | carry out the next phase |
| `P` | play the phases; `+` and `-` change the speed |
| `i` | all that is left of the hit at once |
| `y` | why this technique and this way |

What the guest's own instruction changed is marked `*`, what the machinery changed `!`.
"""

    def __init__(self, browser: Browser, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._browser = browser
        self._view = GuestView()
        self._rows: list[Text] = []
        self._at = 0

    def show(self, view: GuestView) -> None:
        """Another view."""
        if view.hit is not self._view.hit or view.hit is None or view.state != self._view.state:
            self._view = view
            self.rebuild()

    def locate(self, address: int) -> None:
        """Another place is looked at."""
        if address != self._at:
            self._at = address
            if self._view.hit is None:
                self.rebuild()

    def rebuild(self) -> None:
        """Lay the lines out for this width."""
        hit = self._view.hit
        width = max(self.size.width - 3, _WRAP)
        if hit is not None:
            self._rows = self._hit(hit, width)
        else:
            placed = self._browser.judge(self._at) if self._at else None
            self._rows = self._verdict(placed) if placed is not None else [Text("no code here")]
            self._rows += self._detours()
        self.changed()
        self.refresh_size()
        self.refresh()

    def on_resize(self) -> None:
        """Lay the lines out again."""
        super().on_resize()
        self.rebuild()

    @property
    def line_count(self) -> int:
        """Lines."""
        return len(self._rows)

    def line(self, index: int, width: int) -> Text:
        """A line."""
        return self._rows[index]

    # -- a hit ---------------------------------------------------------------------------------

    def _detours(self) -> list[Text]:
        """How many detour buffers there are, and what zombies wait for."""
        counts = self._view.detours
        if not (counts.standing or counts.zombies or counts.freed):
            return []
        text = (
            f"{counts.standing} in use, {counts.zombies} waiting to be freed, {counts.freed} freed"
        )
        rows = self._pen.wrapped("detours", text, "dim")
        for wait in counts.waits:
            rows += self._pen.wrapped("zombie", wait, "warn")
        return rows

    def _hit(self, hit: HitView, width: int) -> list[Text]:
        rows = [*self._route(hit, width)]
        rows += draw(hit, self._pen)
        if len(hit.probes) > 0:
            rows += self._pen.wrapped("probes", ", ".join(map(harmless, hit.probes)), "dim")
        rows += self._pen.wrapped("why", hit.reason, "note")
        return rows + self._detours()

    def _route(self, hit: HitView, width: int) -> list[Text]:
        """The phases in their order, over as many lines as they need."""
        arrow = mark("arrow", self.ascii_only)
        at = len(hit.done)
        lines, text = [], Text(no_wrap=True)
        for number, name, count in _runs(hit.route):
            current = number <= at < number + count and hit.next
            shown = f"{name} x{count}" if count > 1 else name
            shown = f"[{shown}]" if current else shown
            piece = (arrow if number else "") + shown
            if len(text) + len(piece) > width and len(text):
                lines.append(text)
                text = Text(no_wrap=True)
            if number:
                text.append(arrow, self.look("dim"))
            look = "accent" if current else "good" if number + count <= at else "dim"
            text.append(shown, self.look(look) + Style(reverse=bool(current)))
        lines.append(text)
        state = f"{at}/{len(hit.route)} {'done' if not hit.next else 'next: ' + hit.next}"
        if len(lines[-1]) + 2 + len(state) > width:
            state = state.split()[0]
        lines[-1].append(f"  {state}")
        return lines

    # -- no hit --------------------------------------------------------------------------------

    def _verdict(self, placed: Placed) -> list[Text]:
        judgement = placed.judgement
        name = harmless(placed.place.name, self.ascii_only)
        rows = []
        if judgement.ok:
            rows += self._pen.wrapped("here", f"a probe on {name}: {placed.technique}", "good")
            how = judgement.reason
            if judgement.how is not None and not how.startswith(judgement.how):
                how = f"{judgement.how}: {how}"
            rows += self._pen.wrapped("how", how, "")
        else:
            rows += self._pen.wrapped("here", f"no probe on {name}", "bad")
            rows += self._pen.wrapped("why", f"{judgement.reason} ({judgement.errno})", "bad")
        plan = judgement.plan
        if plan.operation is not None and plan.operation.text not in judgement.reason:
            rows += self._pen.wrapped("does", plan.operation.text, "dim")
        for finding in judgement.findings:
            look = {"error": "bad", "warning": "warn"}.get(finding.severity, "note")
            rows += self._pen.wrapped(finding.severity, finding.message, look)
        rows += self._pen.wrapped("", "y shows all rules", "dim")
        return rows

    @property
    def _pen(self) -> Pen:
        return Pen(self.look, self.ascii_only, max(self.size.width - 3, _WRAP))


def _runs(route: tuple[str, ...]) -> Iterator[tuple[int, str, int]]:
    """(number of the first, name, how many) of phases, those of the same name as one."""
    number = 0
    for name, same in groupby(route):
        count = len(list(same))
        yield number, name, count
        number += count


class MachineryPane(ListPane[MachineryLines]):
    """The pane of the machinery."""

    TITLE = "Machinery"
    NUMBER = 4

    def __init__(self, browser: Browser, *, id: str | None = None) -> None:
        super().__init__(MachineryLines(browser), id=id)

    def show(self, view: GuestView, playing: str = "") -> None:
        """Another view; `playing` says how slow motion stands."""
        self.lines.show(view)
        hit = view.hit
        self.retitle(*((harmless(hit.place), hit.how) if hit is not None else ()))
        self.note(playing)

    def locate(self, address: int) -> None:
        """Another place is looked at."""
        self.lines.locate(address)
