"""Words that change the guest's state, how it is started, and settings."""

import re
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger

_NOTHING: Final = re.compile(
    r"(pagination|width|height|style\b.*|debuginfod\b.*|verbose|logging\b.*|history\b.*"
    r"|startup-with-shell|disable-randomization|osabi|non-stop|prompt|editing|complaints"
    r"|print\s+(address|symbol|pretty|thread-events|inferior-events|sevenbit-strings)"
    r"|can-use-hw-watchpoints|auto-load\b.*|max-value-size|listsize\s+10)"
    r"(\s+(?P<value>\S.*))?$"
)
"""Settings that change nothing here, or that are given the value that always holds here."""
_CHOICE: Final = re.compile(r"(confirm|breakpoint\s+pending)\b(.*)$")
_SETTING: Final = re.compile(r"[a-z][a-z-]+\s+[\w\"'/]")
"""Two words in a row are no expression."""
_FIXED: Final = {
    "print address": ("on",),
    "print symbol": ("on",),
    "print pretty": ("off",),
    "print sevenbit-strings": ("on", "off"),
    "disable-randomization": ("on",),
    "non-stop": ("off",),
}


class Changing:
    """Changes variables, registers and memory, arguments and the environment."""

    def __init__(self, debugger: Debugger) -> None:
        """Change a debugger's guest."""
        self._debugger = debugger

    def set_other(self, rest: str) -> None:
        """Change a setting of gdb's, or what an expression changes."""
        if not rest:
            raise CommandError("Argument required (expression to compute).")
        if choice := _CHOICE.match(rest):
            self._choose(choice[1], choice[2].strip() or "on")
        elif _NOTHING.match(rest) or _SETTING.match(rest):
            self._setting(rest)
        else:
            self._debugger.value(rest)

    def set_variable(self, rest: str) -> None:
        """Change what an expression changes: set var EXPRESSION."""
        self._debugger.value(rest)

    def set_args(self, rest: str) -> None:
        """Give the program other arguments from the next run on: set args WORDS."""
        self._debugger.set_arguments(rest)

    def set_environment(self, rest: str) -> None:
        """Give the program a variable from the next run on: set env NAME=VALUE."""
        name, _, value = rest.partition("=") if "=" in rest else rest.partition(" ")
        if not name.strip():
            raise CommandError("Argument required (environment variable and value).")
        self._environment(name.strip(), value.strip())

    def tty(self, rest: str) -> None:
        """The program's standard streams are a terminal or file from the next run on: tty FILE."""
        debugger = self._debugger
        debugger.configure(replace(debugger.control.config, tty=rest))

    def _choose(self, name: str, value: str) -> None:
        """A setting that is one of a few words."""
        debugger = self._debugger
        values = ("on", "off") if name == "confirm" else ("on", "off", "auto")
        if value not in values:
            wanted = '"on", "off" or "auto"' if len(values) > 2 else '"on" or "off"'
            raise CommandError(f"{wanted} expected.")
        if name == "confirm":
            debugger.confirm = value == "on"
        else:
            debugger.pending_breakpoints = value

    def _setting(self, rest: str) -> None:
        """A setting of gdb's: those that change nothing here are taken, others are refused."""
        match = _NOTHING.match(rest)
        if match is None:
            raise CommandError(f'The setting "{rest}" has no meaning here.')
        value = match["value"] or "on"
        fixed = _FIXED.get(" ".join(match[1].split()))
        if fixed is not None and value not in fixed:
            raise CommandError(f'"{match[1]}" is always {fixed[0]} here.')

    def unset(self, rest: str) -> None:
        """Take something back: unset env [NAME]."""
        word, _, name = rest.partition(" ")
        if word not in ("env", "environment"):
            raise CommandError('"unset" must be followed by: env')
        self._environment(name.strip(), None)

    def _environment(self, name: str, value: str | None) -> None:
        config = self._debugger.control.config
        kept = [entry for entry in config.env if name and entry.partition("=")[0] != name]
        if value is not None:
            kept.append(f"{name}={value}")
        self._debugger.configure(replace(config, env=tuple(kept)))

    def show(self, rest: str) -> None:
        """Show how the program is started: show args, show env [NAME]."""
        config, put = self._debugger.control.config, self._debugger.put
        word, _, name = rest.partition(" ")
        if word == "args":
            words = self._debugger.arguments
            put(f'Argument list to give program being debugged when it is started is "{words}".')
        elif word in ("inferior-tty", "tty"):
            put(f'Terminal for future runs of program being debugged is "{config.tty}".')
        elif word in ("env", "environment"):
            found = [entry for entry in config.env if not name or entry.partition("=")[0] == name]
            for entry in found:
                key, _, value = entry.partition("=")
                put(f"{key} = {value}" if name else entry)
            if name and not found:
                put(f'Environment variable "{name}" not defined.')
        elif word in ("convenience", "conv"):
            debugger = self._debugger
            for key, item in reversed(debugger.convenience.items()):
                put(f"${key} = {debugger.frames.printer(debugger.scope).text(item)}")
        elif rest.strip() == "confirm":
            asked = "on" if self._debugger.confirm else "off"
            put(f"Whether to confirm potentially dangerous operations is {asked}.")
        elif rest.split() == ["breakpoint", "pending"]:
            held = self._debugger.pending_breakpoints
            put(f"Debugger's behavior regarding pending breakpoints is {held}.")
        elif word == "version":
            put("These are gdb's words in kprobe-tui.")
        else:
            raise CommandError(
                f'"show {rest}" has no meaning here; there are args, env, convenience.'
            )
