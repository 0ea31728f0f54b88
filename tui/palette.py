"""The palette (ctrl+p): every action, every command, panes, probes, functions, themes."""

from collections.abc import Callable
from functools import partial
from typing import Final, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from engine.session.protocol import commands as cmd
from tui.command_line import COMMANDS, command_question
from tui.controls import Controlled, Controls
from tui.keymap import ACTIONS
from tui.panes.registry import PANES
from tui.render import harmless

_FUNCTIONS = 30


def _copy_as(form: str, on: Controls) -> None:
    on.desk.post(cmd.ListDefinitions(form))


def _typed(begin: str, on: Controls) -> None:
    on.desk.ask(command_question(on, begin))


_MORE: Final[tuple[tuple[str, Callable[[Controls], object]], ...]] = (
    ("Screenshot: the screen as an SVG file", lambda on: on.desk.take_picture()),
    ("Copy as text: the row at the cursor", lambda on: on.body.copy_row()),
    ("Copy as a line for gdb: the place at the cursor", lambda on: on.probes.copy_for_gdb()),
    (
        "Copy as a line for a kernel: the probe at the cursor",
        lambda on: on.probes.copy_definition(),
    ),
    *(
        (f"Copy all probes for a real machine: {form}", partial(_copy_as, form))
        for form in ("tracefs", "perf", "bpftrace")
    ),
    (
        "Where from, again: the links of the value that was followed last",
        lambda on: on.history.links(),
    ),
    *(
        (text, partial(_typed, f"{word} "))
        for text, word in (
            ("Who wrote: the last write of a variable, a field or a register", "last-write"),
            ("Where from: follow the value of EXPR back to an input or a computation", "origin"),
            ("First time: the first moment of the run at which EXPR is true", "first-time"),
            ("Last time: the last moment before now at which EXPR became true", "last-time"),
        )
    ),
    (
        "Branches: the runs that go on from moments of the past, with what each takes",
        lambda on: on.desk.type("info branches"),
    ),
    (
        "Export events: those that are shown, to a file",
        partial(_typed, "export "),
    ),
)
"""Entries that have no key of their own, or are looked for under another name."""


class Everything(Provider):
    """The one provider."""

    @property
    def _on(self) -> Controls:
        return cast("Controlled", self.app).controls

    async def discover(self) -> Hits:
        """The actions, before anything is typed."""
        on = self._on
        for action in ACTIONS:
            text = f"{action.help}  ({on.desk.key_text(action)})"
            yield DiscoveryHit(text, partial(action.do, on))
        for text, do in _MORE:
            yield DiscoveryHit(text, partial(do, on))

    async def search(self, query: str) -> Hits:
        """All that fits."""
        on, matcher = self._on, self.matcher(query)
        for action in ACTIONS:
            text = f"{action.help}  ({on.desk.key_text(action)})"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), partial(action.do, on))
        for text, do in _MORE:
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), partial(do, on))
        for spec in COMMANDS:
            text = f":{spec.names[0]} {spec.usage}  {spec.help}"
            if (score := matcher.match(text)) > 0:
                type_it = partial(on.desk.ask, command_question(on, spec.names[0] + " "))
                yield Hit(score, matcher.highlight(text), type_it)
        for name in on.history.branches():
            for text, do in (
                (f"switch to branch {name}", partial(on.history.switch, name)),
                (f"diff with branch {name}", partial(on.desk.type, f"diff {name}")),
            ):
                if (score := matcher.match(text)) > 0:
                    yield Hit(score, matcher.highlight(text), do)
        for pane in PANES:
            text = f"pane {pane.key}: {pane.tab}"
            if (score := matcher.match(text)) > 0:
                show = partial(on.body.show_pane, pane.id)
                yield Hit(score, matcher.highlight(text), show)
        for probe in on.desk.view.probes[:1000]:
            text = f"probe {probe.row.id}: {harmless(probe.row.line)}"
            if (score := matcher.match(text)) > 0 and probe.addresses:
                go = partial(on.navigator.go_to, f"{probe.addresses[0]:#x}")
                yield Hit(score, Content(text), go)  # not highlighted: that reads markup
        for theme in self.app.available_themes:
            text = f"theme {theme}"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), partial(on.desk.use_theme, theme))
        wanted = query.removeprefix("go to ").removeprefix("probe ").strip()
        for match in on.browser.complete(wanted, _FUNCTIONS) if wanted else ():
            name = harmless(match.name)
            score = self.matcher(wanted).match(name) or 0.1
            if not query.startswith("probe "):
                go = partial(on.navigator.go_to, match.name)
                yield Hit(score, Content(f"go to {name}"), go, text=name)
            line = on.browser.default_definition(match.name)
            place = partial(on.desk.post, cmd.Define(line))
            if not query.startswith("go to "):
                yield Hit(score * 0.9, Content(f"probe {name}"), place, text=name)
