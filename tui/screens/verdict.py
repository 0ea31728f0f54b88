"""The why panel: all rules for a probe at a place, and what each has to say."""

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from engine.message_text import counted
from engine.session.browse import Placed
from tui.render import harmless, is_ascii, mark
from tui.screens.dialog import Dialog

if TYPE_CHECKING:  # few guests are kernels
    from engine.session.browse import KernelAnswer


class VerdictScreen(Dialog[int | None]):
    """Returns the address of a better place, None to stay."""

    DEFAULT_CSS = """
    VerdictScreen { align: center middle; }
    VerdictScreen > Vertical {
        width: 92%;
        max-width: 110;
        height: auto;
        max-height: 90%;
        border: solid $border;
        background: $surface;
        padding: 0 1;
        &.-ascii { border: ascii $border; }
    }
    VerdictScreen VerticalScroll { height: auto; max-height: 100%; background: $surface; }
    VerdictScreen #hint { dock: bottom; height: 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,y", "dismiss(None)", "Back"),
        Binding("enter", "nearest", "To the nearest good place"),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
        Binding("space,pagedown,ctrl+d", "page(1)", show=False),
        Binding("pageup,ctrl+u", "page(-1)", show=False),
    ]

    def __init__(
        self, placed: Placed, kernel: "KernelAnswer | None" = None, *, is_booted: bool = False
    ) -> None:
        """Show a verdict.

        Args:
            placed: on a probe in the guest.
            kernel: of a kernel image: what its own kernel says.
            is_booted: the kernel is booted: its own answer alone decides.
        """
        super().__init__()
        self._is_booted = is_booted
        self._placed = placed
        self._kernel = kernel
        self._keys = ""
        found = placed.judgement.findings
        self._nearest = next((finding.nearest for finding in found if finding.nearest), None)
        if placed.judgement.ok:
            self._nearest = placed.nearest_jump

    def compose(self) -> ComposeResult:
        """The verdict, the checklist, the remarks."""
        with Vertical() as box:
            box.set_class(is_ascii(self.app), "-ascii")
            box.border_title = Content(harmless(f"Why: {self._placed.place.shown}"))
            with VerticalScroll():
                yield Static(self._text(), markup=False)
            keys = "Esc back"
            if self._nearest is not None:
                wished = f", where a {self._placed.wished} fits"
                what = wished if self._placed.judgement.ok else ""
                keys = f"Enter goes to {self._nearest:#x}{what}   {keys}"
            self._keys = keys
            yield Static(keys, id="hint", markup=False)

    def on_mount(self) -> None:
        """Tell of what lies below, as long as there is some."""
        area = self.query_one(VerticalScroll)
        for change in ("scroll_y", "virtual_size", "size"):
            self.watch(area, change, self._hint, init=False)

    def _hint(self) -> None:
        area = self.query_one(VerticalScroll)
        keys = self._keys
        if area.max_scroll_y:
            below = area.virtual_size.height - area.size.height - area.scroll_offset.y
            more = f"{counted(below, 'line')} below" if below > 0 else "the end"
            keys = f"j k: {more}   {keys}"
        self.query_one("#hint", Static).update(keys, layout=False)

    def _text(self) -> Content:
        plain = is_ascii(self.app)
        judgement = self._placed.judgement
        parts: list[tuple[str, str]] = []
        if self._kernel is not None:
            parts += self._answer(self._kernel, plain)
        if self._is_booted:
            text = "the processor tells of the place: nothing is planted\n"
            return Content.assemble(*parts, (text, ""))
        if judgement.ok:
            how = f"{self._placed.technique}, {judgement.how}: "
            parts.append((how, "bold $text-success"))
        else:
            parts.append((f"no probe ({judgement.errno}): ", "bold $text-error"))
        reason = harmless(judgement.reason, plain)
        parts.append((reason.removeprefix(f"{judgement.how}: ") + "\n", ""))
        plan = judgement.plan
        if plan.operation is not None and plan.operation.text not in judgement.reason:
            parts.append((f"in software: {harmless(plan.operation.text, plain)}\n", ""))
        if not plan.proven:
            text = "this verdict comes from the kernel's sources, not from a run\n"
            parts.append((text, "italic $text-muted"))
        parts.append(("\n", ""))
        for check in judgement.checks:
            sign = mark("yes" if check.ok else "no", plain)
            parts.append((f"{sign} ", "$text-success" if check.ok else "bold $text-error"))
            parts.append((f"{check.rule:<12} ", "bold"))
            parts.append((harmless(check.detail, plain) + "\n", ""))
        for number, (title, checks) in enumerate(self._placed.eras):
            parts.append((f"\n{title}:\n", ""))
            for check in checks:
                sign = mark("yes" if check.ok else "no", plain)
                parts.append((f"{sign} ", "$text-success" if check.ok else "bold $text-error"))
                parts.append((f"{check.rule:<16} ", "bold"))
                parts.append((harmless(check.detail, plain) + "\n", ""))
            if not number and self._placed.nearest_jump is not None:
                what = self._placed.wished
                text = f"the nearest place for a {what}: {self._placed.nearest_jump:#x}\n"
                parts.append((text, "$text-accent"))
        for finding in judgement.findings:
            if finding.severity != "error":
                parts.append((f"{finding.severity:<8} ", "bold $text-warning"))
                parts.append((f"{finding.rule}: {harmless(finding.message, plain)}\n", ""))
        return Content.assemble(*parts)

    @staticmethod
    def _answer(kernel: "KernelAnswer", plain: bool) -> list[tuple[str, str]]:
        """The image's own kernel about the place; the guest's verdict follows."""
        parts = [(f"{kernel.kernel}: ", "bold")]
        if kernel.errno:
            parts.append((f"no probe ({kernel.errno}): ", "bold $text-error"))
        else:
            parts.append((f"{kernel.kind}: ", "bold $text-success"))
        parts.append((harmless(kernel.text, plain) + "\n\n", ""))
        for check in kernel.checks:
            sign = mark("yes" if check.ok else "no", plain)
            parts.append((f"{sign} ", "$text-success" if check.ok else "bold $text-error"))
            parts.append((f"{check.rule:<20} ", "bold"))
            parts.append((harmless(check.detail, plain) + "\n", ""))
        parts.append(("\nin this guest: ", "bold"))
        return parts

    def action_nearest(self) -> None:
        """Go to the nearest place that would do."""
        self.dismiss(self._nearest)

    def action_scroll(self, lines: int) -> None:
        """Scroll."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        area = self.query_one(VerticalScroll)
        area.scroll_relative(y=pages * max(area.size.height - 1, 1), animate=False)
