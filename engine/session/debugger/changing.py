"""Words that change the guest's state, how it is started, and settings."""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.elsewhere import unavailable
from engine.session.debugger.script import ScriptLine, lines_of

_CHOICE: Final = re.compile(r"(confirm|breakpoint\s+pending)\b(.*)$")
_SETTING: Final = re.compile(r"[a-z][a-z-]+\s+[\w\"'/]")
"""Two words in a row are no expression."""


class Changing:
    """Changes variables, registers and memory, arguments and the environment."""

    def __init__(self, debugger: Debugger, defined: Mapping[str, tuple[ScriptLine, ...]]) -> None:
        """Change a debugger's guest; `defined`: the words of the user's own, and their lines."""
        self._debugger = debugger
        self._warned = False
        self._user_words = defined

    def set_other(self, rest: str) -> None:
        """Change a setting of gdb's, or what an expression changes."""
        if not rest:
            raise CommandError("Argument required (expression to compute).")
        if choice := _CHOICE.match(rest):
            self._choose(choice[1], choice[2].strip() or "on")
        elif not self._setting(rest):
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

    def _setting(self, rest: str) -> bool:
        """Give a setting of gdb's a value; False where the text is an expression."""
        if re.match(r"\w+\s*([-+*/%&|^]|<<|>>)?=|\w+\s*(\[|\.|->|\+\+|--)", rest):
            return False
        debugger = self._debugger
        old = re.fullmatch(r"logging(?:\s+(on|off))?", rest.strip())
        rest = f"logging enabled {old[1] or 'on'}" if old else rest  # gdb 11's
        found = debugger.settings.find(rest)
        if found is not None:
            debugger.settings.set(*found, debugger.number)
            if found[0].name == "language" and not self._warned:
                self._warned = self._warn_of_language()
        elif _SETTING.match(rest):
            if debugger.settings.inert.set(rest):
                return True
            word = rest.split()[0]
            raise CommandError(
                unavailable("set ", rest) or f'No symbol "{word}" in current context.'
            )
        return found is not None

    def with_(self, rest: str, line: Callable[[str], object]) -> None:
        """Carry a word out under a setting: with SETTING [VALUE] -- WORD.

        Args:
            rest: the setting and the word.
            line: carries a word out.

        Raises:
            CommandError: there is no such setting, or no word.
        """
        if not rest:
            raise CommandError("Missing arguments.")
        wanted, dashes, word = rest.partition("--")
        debugger = self._debugger
        if not dashes or not word.strip():
            raise CommandError("No previous command to relaunch")
        found = debugger.settings.find(wanted)
        if found is None:
            raise CommandError(f'Undefined set command: "{wanted.strip()}".  Try "help set".')
        with debugger.settings.held():
            debugger.settings.set(*found, debugger.number)
            line(word)

    # -- source files -----------------------------------------------------------------------

    def pwd(self, rest: str) -> None:
        """Say in which folder files and commands of the host are looked for."""
        self._debugger.put(f"Working directory {os.getcwd()}.")

    def directory(self, rest: str) -> None:
        """Look for source files in folders, too: directory [FOLDER...]; none: in no others."""
        sources = self._debugger.settings.sources
        if not rest:
            sources.folders.clear()
        fresh = [word for word in re.split(r"[:\s]+", rest) if word and word[0] != "$"]
        sources.folders[:0] = [os.path.abspath(os.path.expanduser(word)) for word in fresh]
        kept = list(dict.fromkeys(sources.folders))
        sources.folders[:] = kept
        for folder in (os.path.abspath(os.path.expanduser(word)) for word in fresh):
            if not os.path.isdir(folder):
                self._debugger.complain(f"Warning: {folder}: No such file or directory.")
        self._debugger.settings.changed()

    def substitute_path(self, rest: str) -> None:
        """Look for source files elsewhere: set substitute-path FROM TO."""
        words = shlex.split(rest)
        if len(words) != 2:
            raise CommandError(
                "Incorrect usage, too many arguments in command"
                if len(words) > 2
                else "Incorrect usage, too few arguments in command"
            )
        begin, other = (word if word == "/" else word.rstrip("/") for word in words)
        sources = self._debugger.settings.sources
        sources.rules[:] = [rule for rule in sources.rules if rule[0] != begin]
        sources.rules.append((begin, other))
        self._debugger.settings.changed()

    def unset(self, rest: str) -> None:
        """Take something back: unset env [NAME], unset substitute-path [FROM]."""
        word, _, name = rest.partition(" ")
        if word == "substitute-path":
            rules = self._debugger.settings.sources.rules
            kept = [rule for rule in rules if name and rule[0] != name.strip().rstrip("/")]
            if name and len(kept) == len(rules):
                raise CommandError(f"No substitution rule defined for `{name}'")
            rules[:] = kept
            self._debugger.settings.changed()
            return
        if word not in ("env", "environment"):
            raise CommandError('"unset" must be followed by: env, substitute-path')
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
            for key, item in reversed(debugger.kept.variables.items()):
                put(f"${key} = {debugger.frames.printer(debugger.scope).text(item)}")
        elif word == "user":
            self._show_user(name.strip())
        elif word in ("values", "val"):
            self._show_values(name)
        elif rest.strip() == "confirm":
            asked = "on" if self._debugger.confirm else "off"
            put(f"Whether to confirm potentially dangerous operations is {asked}.")
        elif rest.split() == ["breakpoint", "pending"]:
            held = self._debugger.pending_breakpoints
            put(f"Debugger's behavior regarding pending breakpoints is {held}.")
        elif word == "version":
            put("These are gdb's words in kprobe-tui.")
        elif rest.strip() in ("language", "lang"):
            self._show_language()
        elif word == "directories":
            folders = "".join(f"{one}:" for one in self._debugger.settings.sources.folders)
            put(f"Source directories searched: {folders}$cdir:$cwd")
        elif word == "substitute-path":
            put("List of all source path substitution rules:")
            for begin, other in self._debugger.settings.sources.rules:
                put(f"  `{begin}' -> `{other}'.")
        else:
            self._show_setting(rest)

    def _show_language(self) -> None:
        """The language of expressions, chosen or the code's own."""
        debugger = self._debugger
        chosen, own = debugger.settings["language"], debugger.language_name
        if chosen in ("auto", "local"):
            chosen = f"auto; currently {own}"
        debugger.put(f'The current source language is "{chosen}".')
        self._warn_of_language()

    def _warn_of_language(self) -> bool:
        """Say so if the chosen language is not that of the code in sight; True if it is not."""
        debugger = self._debugger
        other = debugger.started and debugger.language_name != debugger.spoken
        if debugger.spoken and other:
            debugger.put("Warning: the current language does not match this frame.")
        return bool(debugger.spoken) and other

    def _show_user(self, name: str) -> None:
        """The lines of a word of the user's own; of all without a name."""
        for key, lines in self._user_words.items():
            if name in ("", key):
                self._debugger.put(f'User command "{key}":')
                for line in lines_of(lines, "  "):
                    self._debugger.put(line)
                self._debugger.put("")
        if name and name not in self._user_words:
            raise CommandError("Not a user command.")

    def _show_values(self, rest: str) -> None:
        """The last ten values that were printed, or ten around a number."""
        debugger = self._debugger
        known = len(debugger.kept.history)
        first = max(debugger.number(rest) - 5, 1) if rest else max(known - 9, 1)
        for number in range(first, min(first + 10, known + 1)):
            text = debugger.frames.printer(debugger.scope).text(debugger.kept.history[number - 1])
            debugger.put_value(f"${number} = {text}")

    def _show_setting(self, rest: str) -> None:
        settings = self._debugger.settings
        found = settings.find(rest)
        if found is None and (told := settings.inert.sentence(rest)):
            self._debugger.put(told)
            return
        if found is None:
            raise CommandError(f'Undefined show command: "{rest}".  Try "help show".')
        self._debugger.put(settings.sentence(found[0]))
