"""What ctrl+p offers: every action, every command, panes, probes, functions, themes."""

from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from engine.session.protocol import commands as cmd
from tui.base import AppBase
from tui.command_line import COMMANDS
from tui.keymap import ACTIONS
from tui.layout import PANES
from tui.render import harmless
from tui.widgets.bars import MessageLine

_FUNCTIONS = 30


class Everything(Provider):
    """The one provider."""

    @property
    def _app(self) -> AppBase:
        return cast("AppBase", self.app)

    async def discover(self) -> Hits:
        """The actions, before anything is typed."""
        for action in ACTIONS:
            text = f"{action.help}  ({self._app.key_text(action)})"
            yield DiscoveryHit(text, partial(self._app.run_action, action.id))

    async def search(self, query: str) -> Hits:
        """All that fits."""
        app, matcher = self._app, self.matcher(query)
        for action in ACTIONS:
            text = f"{action.help}  ({app.key_text(action)})"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), partial(app.run_action, action.id))
        for spec in COMMANDS:
            text = f":{spec.names[0]} {spec.usage}  {spec.help}"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), partial(self._type, spec.names[0]))
        for pane in PANES:
            text = f"pane {pane.number}: {pane.name}"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), partial(app.show_pane, pane.id))
        for probe in app.view.probes[:1000]:
            text = f"probe {probe.id}: {harmless(probe.definition)}"
            if (score := matcher.match(text)) > 0 and probe.addresses:
                go = partial(app.go_to, f"{probe.addresses[0]:#x}")
                yield Hit(score, matcher.highlight(text), go)
        for theme in app.available_themes:
            text = f"theme {theme}"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(text), partial(setattr, app, "theme", theme))
        wanted = query.removeprefix("go to ").removeprefix("probe ").strip()
        for match in app.browser.complete(wanted, _FUNCTIONS) if wanted else ():
            name = harmless(match.name)
            score = self.matcher(wanted).match(name) or 0.1
            if not query.startswith("probe "):
                yield Hit(score, f"go to {name}", partial(app.go_to, match.name), text=name)
            line = app.browser.default_definition(match.name)
            place = partial(app.bridge.post, cmd.Define(line))
            if not query.startswith("go to "):
                yield Hit(score * 0.9, f"probe {name}", place, text=name)

    def _type(self, name: str) -> None:
        self._app.query_one(MessageLine).ask(":", "", name + " ")
