"""Words for macros: info macro, info macros, macro expand, define, undef, list.

A place in the source says which definitions hold: that of the frame that is looked at, else the
one that was listed last (gdb/macroscope.c). What the user has defined comes first everywhere.
"""

import re
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, ImageError
from engine.image import dies
from engine.image.dies import Unit
from engine.image.lines import Lines
from engine.image.macros import MacroRow, has_macros, macro_rows
from engine.image.reader import DamagedError
from engine.language.macros import MacroDefinition, expanded, macro_of
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.listing import SourceListing

_NOBODY: Final = (("<user-defined>", -1),)
_Key = tuple[int, str, int]


class _MacroPlace(Struct, frozen=True):
    """A place in the source.

    Attributes:
        unit: the unit that is compiled.
        lines: knows the files of the unit.
        file: the source file.
        line: its number.
    """

    unit: Unit
    lines: Lines
    file: str
    line: int


class MacroWords:
    """Knows the macros of a debugger's guest and those of its user."""

    def __init__(self, debugger: Debugger, listing: SourceListing) -> None:
        """Know a debugger's; `listing` says what was listed last."""
        self._debugger, self._listing = debugger, listing
        self._own: dict[str, MacroDefinition] = {}
        self._rows: dict[int, list[MacroRow]] = {}
        self._kept: tuple[_Key, dict[str, MacroDefinition]] | None = None
        self._every: dict[str, list[MacroDefinition]] = {}
        debugger.expand = self.expand

    # -- words ------------------------------------------------------------------------------

    def macro(self, rest: str) -> None:
        """Work with macros: macro expand TEXT, define NAME TEXT, undef NAME, list."""
        word, _, text = rest.partition(" ")
        text = text.strip()
        words = {
            "expand": self._expand,
            "define": self._define,
            "undef": self._undefine,
            "list": self._list,
        }
        if word in ("expand-once", "exp1"):
            raise CommandError("Expand-once not implemented yet.")
        found = [one for one in words if word and one.startswith(word)]
        if not word:
            raise CommandError(
                '"macro" must be followed by the name of a macro command:'
                " macro expand, macro define, macro undef, macro list."
            )
        if len(found) != 1:
            raise CommandError(f'Undefined macro command: "{rest}".  Try "help macro".')
        words[found[0]](text)

    def _expand(self, text: str) -> None:
        if not text:
            raise CommandError(
                "You must follow the `macro expand' command with the expression you\n"
                "want to expand."
            )
        self._debugger.put(f"expands to: {expanded(text, self.lookup)}")

    def _define(self, text: str) -> None:
        if not text:
            raise CommandError("usage: macro define NAME[(ARGUMENT-LIST)] [REPLACEMENT-LIST]")
        macro = macro_of(text, _NOBODY)
        if macro is None:
            raise CommandError("Invalid macro name.")
        self._own[macro.name] = macro

    def _undefine(self, text: str) -> None:
        if not text:
            raise CommandError("usage: macro undef <macro>")
        self._own.pop(text, None)

    def _list(self, text: str) -> None:
        for name in sorted(self._own):
            macro = self._own[name]
            self._debugger.put(f"macro define {macro.head} {macro.replacement}")

    def info_macro(self, rest: str) -> None:
        """A macro's definition and where it is: info macro [-a] [--] NAME."""
        match = re.fullmatch(r"(-a(?:ll)?\b)?\s*(?:--(?:\s+|$))?(\S*)", rest.strip())
        name = match[2] if match is not None else rest.strip()
        if not name:
            raise CommandError(
                "You must follow the `info macro' command with the name of the macro\n"
                "whose definition you want to see."
            )
        if match is not None and match[1]:
            self._known()
            for macro in self._every.get(name, []):
                self._tell(macro)
            return
        found = self._known().get(name)  # gdb shows none of the user's own here
        if found is not None:
            self._tell(found)
            return
        put, place = self._debugger.put, self._place()
        put(f"The symbol `{name}' has no definition as a C/C++ preprocessor macro")
        chain = _NOBODY if place is None else self._walk(place)[1]
        self._tell_chain("at ", chain)

    def info_macros(self, rest: str) -> None:
        """List the macros that are defined where the program stands."""
        for _, macro in sorted(self._known().items()):
            self._tell(macro)

    def _tell(self, macro: MacroDefinition) -> None:
        self._tell_chain("Defined at ", macro.chain)
        built_in = macro.chain[0][1] == 0
        head = f"-D{macro.head}=" if built_in else f"#define {macro.head} "
        self._debugger.put(f"{head}{macro.replacement}")

    def _tell_chain(self, before: str, chain: tuple[tuple[str, int], ...]) -> None:
        for number, (file, line) in enumerate(chain):
            self._debugger.put(f"{'  included at ' if number else before}{file}:{line}")

    # -- definitions ------------------------------------------------------------------------

    def expand(self, text: str) -> str:
        """An expression with its macros expanded, where the user looks.

        Raises:
            CommandError: the arguments of one do not fit it.
        """
        return expanded(text, self.lookup)

    def lookup(self, name: str) -> MacroDefinition | None:
        """The macro of a name where the user looks; None for none."""
        return self._own.get(name) or self._known().get(name)

    def known(self) -> dict[str, MacroDefinition]:
        """The user's own macros and those that are defined where the user looks, by name."""
        return {**self._known(), **self._own}

    def _known(self) -> dict[str, MacroDefinition]:
        """The macros of the program that are defined where the user looks."""
        place = self._place()
        if place is None:
            self._every = {}
            return {}
        key = (id(place.unit), place.file, place.line)
        if self._kept is None or self._kept[0] != key:
            self._kept = (key, self._walk(place)[0])
        return self._kept[1]

    def _place(self) -> _MacroPlace | None:
        """Return the place where the user looks; None where no unit with macros is known."""
        debugger = self._debugger
        frames = debugger.frames
        if debugger.started and frames.all and frames.frame.file and frames.frame.line:
            frame = frames.frame
            at = frame.pc - (not frames.exact(min(frames.selected, len(frames.all) - 1)))
            return self._at(at, frame.file, frame.line)
        shown = self._listing.last_shown
        if shown is None:
            return None
        for module in debugger.files.modules():
            if not module.lines.has_file(shown[0]):
                continue
            for address in module.lines.statements_of(shown[0]).values():
                return self._at(address + module.bias, *shown)
        return None

    def _at(self, address: int, file: str, line: int) -> _MacroPlace | None:
        debugger = self._debugger
        module = debugger.frames.seen.modules.at(address)
        if module is None:
            return None
        try:
            info = debugger.files.variables(module).info
            units = [] if info is None else info.containing(address - module.bias)
            for unit in units:
                if has_macros(unit):
                    return _MacroPlace(unit, module.lines, file, line)
        except (DamagedError, ImageError):
            return None
        return None

    def _rows_of(self, unit: Unit) -> list[MacroRow]:
        if id(unit) not in self._rows:
            try:
                self._rows[id(unit)] = list(macro_rows(unit))
            except DamagedError as error:
                raise CommandError(f"The macros cannot be read: {error}.") from None
        return self._rows[id(unit)]

    def _walk(
        self, place: _MacroPlace
    ) -> tuple[dict[str, MacroDefinition], tuple[tuple[str, int], ...]]:
        """The macros that are defined at a place, and the inclusions that lead to it."""
        root = place.unit.root
        name, folder = root.string(dies.AT_NAME) or "", root.string(dies.AT_COMP_DIR) or ""
        main = name if name.startswith("/") or not folder else f"{folder}/{name}"
        found: dict[str, MacroDefinition] = {}
        every: dict[str, list[MacroDefinition]] = {}
        stack: list[tuple[str, int]] = []  # (file, line of its inclusion)
        end: tuple[tuple[str, int], ...] = ((main, place.line),)
        over = False
        for row in self._rows_of(place.unit):
            inside = bool(stack) and stack[-1][0] == place.file
            if inside and not over and (row.kind == "end" or row.line > place.line):
                over, end = True, _chain(stack, place.line)
            match row.kind:
                case "file":
                    file = place.lines.file_of(place.unit.offset, row.file) or ""
                    stack.append((file, row.line))
                case "end":
                    del stack[-1:]
                case "define":
                    chain = _chain(stack, row.line) if stack and row.line else ((main, 0),)
                    macro = macro_of(row.text, chain)
                    if macro is not None:
                        every.setdefault(macro.name, []).append(macro)
                        if not over:
                            found[macro.name] = macro
                case _:
                    if not over:
                        found.pop(row.text.strip(), None)
        self._every = every
        return found, end


def _chain(stack: list[tuple[str, int]], line: int) -> tuple[tuple[str, int], ...]:
    """A line of the innermost file, and where each file is included, from there outwards."""
    chain: list[tuple[str, int]] = []
    for file, included in reversed(stack):
        chain.append((file, line))
        line = included
    return tuple(chain)
