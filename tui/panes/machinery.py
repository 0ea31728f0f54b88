"""The machinery pane: the phases of the hit at hand, the site, the slot, what comes next."""

from rich.style import Style
from rich.text import Text

from engine.session.browser import Browser
from engine.session.placing import Placed
from engine.session.views import GuestView, HitView, PhaseView
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
has changed, the guest goes on.

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

    def _hit(self, hit: HitView, width: int) -> list[Text]:
        rows = [*self._route(hit, width)]
        rows.append(self._site(hit))
        if hit.returns_to is not None:
            rows.append(self._labelled("return", f"goes on at {hit.returns_to:x}", "accent"))
        rows += self._slot(hit)
        if hit.done:
            rows += self._done(hit.done[-1])
        if hit.fixups and hit.next:
            rows.append(self._labelled("fix-up", "; ".join(hit.fixups), "note"))
        if len(hit.probes) > 0:
            rows.append(self._labelled("probes", ", ".join(map(harmless, hit.probes)), "dim"))
        rows.append(self._labelled("why", hit.reason, "note"))
        return rows

    def _route(self, hit: HitView, width: int) -> list[Text]:
        """The phases in their order, over as many lines as they need."""
        arrow = mark("arrow", self.ascii_only)
        at = len(hit.done)
        lines, text = [], Text(no_wrap=True)
        for number, name in enumerate(hit.route):
            current = number == at and hit.next
            shown = f"[{name}]" if current else name
            piece = (arrow if number else "") + shown
            if len(text) + len(piece) > width and len(text):
                lines.append(text)
                text = Text(no_wrap=True)
            if number:
                text.append(arrow, self.look("dim"))
            look = "accent" if current else "good" if number < at else "dim"
            text.append(shown, self.look(look) + Style(reverse=bool(current)))
        lines.append(text)
        state = f"{at}/{len(hit.route)}"
        lines[-1].append(f"  {state} {'done' if not hit.next else 'next: ' + hit.next}")
        return lines

    def _site(self, hit: HitView) -> Text:
        text = self._labelled("site", f"{hit.address:x}  ", "")
        if hit.planted:
            text.append(hit.planted.hex(" "), self.look("bad"))
            rest = hit.original[len(hit.planted) :].hex(" ")
            text.append(f" {rest}" if rest else "", self.look("dim"))
            text.append("  for  ", self.look("dim"))
        text.append(hit.original.hex(" "))
        text.append(f"  {hit.insn}", self.look("accent"))
        return text

    def _slot(self, hit: HitView) -> list[Text]:
        if hit.how == "emulated":
            return [self._labelled("slot", "none: software carries the instruction out", "dim")]
        if hit.slot is None:
            return [self._labelled("slot", "one is taken when the step begins", "dim")]
        rows = [self._labelled("slot", f"{hit.slot:x}  {hit.slot_bytes.hex(' ')}", "warn")]
        rows += [self._labelled("", line, "accent") for line in hit.slot_text]
        return rows

    def _done(self, phase: PhaseView) -> list[Text]:
        sign = "*" if phase.by_guest else "!"
        rows = [self._labelled("now", phase.text, "")]
        if phase.before != phase.after:
            move = f"{phase.before:x} {mark('arrow', self.ascii_only)} {phase.after:x}"
            rows.append(
                self._labelled("", f"{sign} pc  {move}", "good" if phase.by_guest else "warn")
            )
        look = "good" if phase.by_guest else "warn"
        for name, old, new in phase.registers:
            moved = f"{sign} {name}  {old:#x} {mark('arrow', self.ascii_only)} {new:#x}"
            rows.append(self._labelled("", moved, look))
        for change in phase.changes:
            if change.old != change.new:
                shown = (
                    f"{sign} {change.what} {change.address:x}  {change.old.hex(' ')} "
                    f"{mark('arrow', self.ascii_only)} {change.new.hex(' ')}"
                )
                rows.append(self._labelled("", shown, look))
        return rows

    # -- no hit --------------------------------------------------------------------------------

    def _verdict(self, placed: Placed) -> list[Text]:
        judgement = placed.judgement
        name = harmless(placed.place.name, self.ascii_only)
        rows = []
        if judgement.ok:
            rows.append(self._labelled("here", f"a probe on {name}: {placed.technique}", "good"))
            how = judgement.reason
            if judgement.how is not None and not how.startswith(judgement.how):
                how = f"{judgement.how}: {how}"
            rows.append(self._labelled("how", how, ""))
        else:
            rows.append(self._labelled("here", f"no probe on {name}", "bad"))
            rows.append(self._labelled("why", f"{judgement.reason} ({judgement.errno})", "bad"))
        plan = judgement.plan
        if plan.operation is not None and plan.operation.text not in judgement.reason:
            rows.append(self._labelled("does", plan.operation.text, "dim"))
        for finding in judgement.findings:
            look = {"error": "bad", "warning": "warn"}.get(finding.severity, "note")
            rows.append(self._labelled(finding.severity, finding.message, look))
        rows.append(self._labelled("", "y shows all rules", "dim"))
        return rows

    def _labelled(self, label: str, value: str, look: str) -> Text:
        text = Text(no_wrap=True)
        text.append(f"{label:<8}", self.look("name"))
        text.append(value, self.look(look) if look else "")
        return text


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
