"""The machinery pane: the phases of the hit at hand, the site, the slot, what comes next."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.style import Style
from rich.text import Text
from textual.geometry import Size
from textual.message import Message

from engine.session.browse import Browser, Placed
from engine.session.protocol.views import GuestView, HitView, RunState
from tui.panes.hit_drawing import Pen, draw
from tui.render import harmless
from tui.widgets.line_source import LineSource
from tui.widgets.list_pane import ListPane
from tui.widgets.looks import Looks
from tui.widgets.virtual_lines import VirtualLines

_WRAP = 24


class MachineryRows(LineSource):
    """The hit; where the guest stands at no probe, what a probe at the cursor would do."""

    def __init__(
        self, browser: Browser, looks: Callable[[], Looks], arranged: Callable[[], object]
    ) -> None:
        """Nothing is shown yet.

        Args:
            browser: judges places.
            looks: those of the list; the lines are laid out before it asks for them.
            arranged: called when the lines have another width: they may be more or fewer.
        """
        self._browser = browser
        self._looks_now, self._arranged = looks, arranged
        self._view = GuestView()
        self._rows: list[Text] | None = None
        self._at = 0
        self._width = _WRAP

    def fill(self, view: GuestView) -> bool:
        """Take another view; True if the lines are others now."""
        if view.hit is self._view.hit and view.hit is not None and view.state == self._view.state:
            return False
        self._view, self._rows = view, None
        return True

    def locate(self, address: int) -> bool:
        """Look at another place; True if the lines are others now."""
        if address == self._at:
            return False
        self._at = address
        if self._view.hit is not None:
            return False
        self._rows = None
        return True

    def arrange(self, size: Size) -> bool:
        """Lay the lines out for another width."""
        self._width, self._rows = max(size.width - 3, _WRAP), None
        self._arranged()
        return True

    def restyled(self) -> bool:
        """Lay the lines out again: they keep their colours."""
        self._rows = None
        return True

    @property
    def rows(self) -> list[Text]:
        """The lines; a probe that nobody looks at is not judged."""
        if self._rows is None:
            self._rows = self._laid_out()
        return self._rows

    def _laid_out(self) -> list[Text]:
        hit = self._view.hit
        if hit is not None:
            return self._hit(hit)
        placed = self._browser.judge(self._at) if self._at else None
        rows = self._verdict(placed) if placed is not None else self._elsewhere()
        return rows + self._detours()

    @property
    def verdict(self) -> int:
        """Lines on the probe at the place that is looked at, 0 where there is none, or a hit."""
        planted = self._view.hit is None and self._at in self._view.planted
        return len(self.rows) if planted else 0

    @property
    def count(self) -> int:
        """Lines there are."""
        return len(self.rows)

    def line(self, index: int, width: int, looks: Looks) -> Text:
        """A line."""
        return self.rows[index]

    @property
    def _pen(self) -> Pen:
        looks = self._looks_now()
        return Pen(looks, looks.ascii_only, self._width)

    # -- a hit ---------------------------------------------------------------------------------

    def _detours(self) -> list[Text]:
        """Counts of detour buffers, and the reasons that zombies wait for."""
        counts = self._view.detours
        if not (counts.standing or counts.zombies or counts.freed):
            return []
        text = (
            f"{counts.standing} in use, {counts.zombies} waiting to be freed, {counts.freed} freed"
        )
        pen = self._pen
        rows = pen.wrapped("detours", text, "dim")
        for wait in counts.waits:
            rows += pen.wrapped("zombie", wait, "warn")
        return rows

    def _hit(self, hit: HitView) -> list[Text]:
        pen = self._pen
        rows = [*self._route(hit, pen), *draw(hit, pen)]
        if len(hit.probes) > 0:
            rows += pen.wrapped("probes", ", ".join(map(harmless, hit.probes)), "dim")
        rows += pen.wrapped("why", hit.reason, "note")
        return rows + self._detours()

    @staticmethod
    def _route(hit: HitView, pen: Pen) -> list[Text]:
        """The phases in their order, over as many lines as they need."""
        arrow, width = pen.arrow, pen.width
        at = len(hit.done)
        lines, text = [], Text(no_wrap=True)
        for number, name, count in _runs(hit.route):
            current = number < at <= number + count  # the last one that was carried out
            shown = f"{name} x{count}" if count > 1 else name
            shown = f"[{shown}]" if current else shown
            piece = (arrow if number else "") + shown
            if len(text) + len(piece) > width and len(text):
                lines.append(text)
                text = Text(no_wrap=True)
            if number:
                text.append(arrow, pen.look("dim"))
            look = "accent" if current else "good" if number + count < at else "dim"
            text.append(shown, pen.look(look) + Style(reverse=bool(current)))
        lines.append(text)
        state = f"{at}/{len(hit.route)}{'' if hit.next else ' done'}"
        if len(lines[-1]) + 2 + len(state) > width:
            state = state.split()[0]
        if len(lines[-1]) + 2 + len(state) > width:
            lines.append(Text(no_wrap=True))
        lines[-1].append(f"  {state}")
        return lines

    def _elsewhere(self) -> list[Text]:
        """A place outside of all files."""
        if self._browser.is_code(self._at):
            text = "code in memory only: probes stand in the code of files"
        else:
            text = "no code"
        return self._pen.wrapped("here", text, "dim")

    # -- no hit --------------------------------------------------------------------------------

    def _verdict(self, placed: Placed) -> list[Text]:
        judgement, pen = placed.judgement, self._pen
        name = harmless(placed.place.shown, pen.ascii_only)
        rows = []
        if judgement.ok:
            rows += pen.wrapped("here", f"a probe on {name}: {placed.technique}", "good")
            how = judgement.reason
            if judgement.how is not None and not how.startswith(judgement.how):
                how = f"{judgement.how}: {how}"
            rows += pen.wrapped("how", how, "")
        else:
            rows += pen.wrapped("here", f"no probe on {name}", "bad")
            rows += pen.wrapped("why", f"{judgement.reason} ({judgement.errno})", "bad")
        plan = judgement.plan
        if plan.operation is not None and plan.operation.text not in judgement.reason:
            rows += pen.wrapped("does", plan.operation.text, "dim")
        for finding in judgement.findings:
            look = {"error": "bad", "warning": "warn"}.get(finding.severity, "note")
            rows += pen.wrapped(finding.severity, finding.message, look)
        rows += pen.wrapped("", "y shows all rules", "dim")
        return rows


def _runs(route: tuple[str, ...]) -> Iterator[tuple[int, str, int]]:
    """(number of the first, name, how many) of phases, those of the same name as one."""
    number = 0
    for name, same in groupby(route):
        count = len(list(same))
        yield number, name, count
        number += count


class MachineryPane(ListPane[MachineryRows]):
    """The pane of the machinery."""

    TITLE = "Machinery"
    OF_A_MOMENT = True
    HELP = """
### Machinery

What a probe does, one phase at a time: the breakpoint traps, handlers run, the displaced
instruction is executed out of line in its slot (or emulated), fix-ups put right what the slot
has changed, the guest goes on. A jump does not trap: its detour keeps some registers, records the
hit, carries the displaced instructions out, and jumps back behind them.

| key | does |
|---|---|
| `.` | carry out the next phase |
| `,` | back by a phase; outside of a hit to the last one of the hit before |
| `P` | play the phases; `+` and `-` change the speed |
| `i` | all that is left of the hit at once |
| `y` | why this technique and this way |

What the guest's own instruction changed is marked `*`, what the machinery changed `!`.

In a booted kernel the hits are those of the kernel's own kprobes, as its own code serves them:
int3 and slot, detour, ftrace's trampoline, the trampoline of returns. `P` runs to the next one.
"""

    @dataclass
    class Verdict(Message):
        """So many rows tell of the probe at the place that is looked at, 0 without one."""

        rows: int

    def __init__(self, browser: Browser) -> None:
        rows = MachineryRows(browser, lambda: self.lines.looks, self._tell)
        super().__init__(VirtualLines(rows))
        self._state = RunState.READY
        self._verdict = 0

    def show(self, view: GuestView) -> None:
        """Show a new view; while the guest runs there is nothing new to see."""
        before, self._state = self._state, view.state
        if view.state is RunState.RUNNING and before is RunState.RUNNING:
            return
        if self.source.fill(view):
            self._renew()
        hit = view.hit
        self.retitle(*((harmless(hit.shown), hit.how) if hit is not None else ()))

    def locate(self, address: int) -> None:
        """Look at another place."""
        if self.source.locate(address):
            self._renew()

    def on_show(self) -> None:
        """Make the lines anew: those from before the pane was hidden are of another moment."""
        self.lines.renew()

    def _renew(self) -> None:
        if self.display:
            self.lines.renew()
        self._tell()

    def _tell(self) -> None:
        """Say how much room the verdict takes, if that is another."""
        if (verdict := self.source.verdict) != self._verdict:
            self._verdict = verdict
            self.post_message(self.Verdict(verdict))
