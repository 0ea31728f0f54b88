"""Names of functions and places for completion: those of the program, then of its libraries."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.modules import Module
from engine.image.reader import DamagedError
from engine.image.symtab import Symbol, demangle
from engine.message_text import bare_name
from engine.session.debugger.debugger import Debugger

TROUBLE: Final = (CommandError, GuestFaultError, ImageError, DamagedError)
"""Errors in a program's files: nothing is offered of those."""
_HIDDEN: Final = re.compile(r"@|\.(cold|part|isra|constprop)\b|^(__pfx_|_init$|_fini$)")
_LAMBDA: Final = "{lambda("
_STUB: Final = "@plt"
_UNNAMED: Final = "(anonymous namespace)"
_ADDED: Final = re.compile(r"^operator\s*(?:<<=?|<=>?|<|>>=?|->\*?|>=?|\(\))")
_FILE: Final = re.compile(r"([^:()<>\s]+\.\w+):(?!:)")


class OfferedFunction(Struct, frozen=True):
    """A function as it can be asked for.

    Attributes:
        bare: its name without parameters.
        whole: with them, the same for a language without overloads.
        address: link address.
    """

    bare: str
    whole: str
    address: int


class OfferedFunctions:
    """The functions of a debugger's guest by what their names begin with."""

    def __init__(self, debugger: Debugger) -> None:
        """Read nothing before the first question."""
        self._debugger = debugger
        self._known: dict[int, tuple[Module, tuple[OfferedFunction, ...]]] = {}
        self._stubs: dict[int, tuple[Module, tuple[OfferedFunction, ...]]] = {}
        self._of_files: dict[tuple[int, str], tuple[Module, tuple[OfferedFunction, ...]]] = {}

    def modules(self) -> list[Module]:
        """The files in memory, the program first."""
        return self._debugger.files.modules()

    def of(self, module: Module) -> tuple[OfferedFunction, ...]:
        """The functions of a file."""
        key = id(module.image)
        if key not in self._known:
            try:
                found = tuple(_functions(module))
            except TROUBLE:
                found = ()
            self._known[key] = module, found
        return self._known[key][1]

    def begun(self, typed: str, *, parts: bool = True) -> list[str]:
        """Functions that begin so, or a part of whose path does; the program's before all others.

        Args:
            typed: the begin of a name; with an open bracket behind it parameters are offered.
            parts: parts of paths count, too: `break push` finds `park::List::push`.
        """
        modules = self.modules()
        for chosen in (modules[:1], modules[1:]):
            names = (name for module in chosen for name in self.of(module))
            found = _fitting(typed, names, parts=parts)
            if found:
                return found
        return []

    def places(self, typed: str, *, called: bool = False, lined: bool = False) -> list[str]:
        """Functions, files with a colon behind them, functions of a file behind its colon.

        Args:
            typed: the begin of a place.
            called: functions of libraries that the program calls count, loaded or not.
            lined: only functions that have source lines, and names, count.
        """
        quote = typed[:1] if typed[:1] in "'\"" else ""
        text = typed.removeprefix(quote)
        match = _FILE.match(typed)
        if match is not None:
            return [match[0] + one for one in self._of_file(match[1], typed[match.end() :])]
        sources = []
        if typed and not quote and ":" not in typed:
            sources = [f"{name}:" for name in self.sources(typed)]
        names = (
            name
            for module in self.modules()[:1]
            for name in chain(self.of(module), self._called(module) if called else ())
            if not lined
            or (_LAMBDA not in name.bare and module.line_at(name.address + module.bias))
        )
        found = _fitting(text, names, parts=True)
        if not found and not sources and not lined:
            found = self.begun(text)
        return [*(f"{quote}{name}{quote}" for name in found), *sources]

    def sources(self, typed: str) -> list[str]:
        """The program's source files of a name that begins so."""
        main = self._debugger.control.session.seen.modules.main
        files = main.lines.files() if main is not None else ()
        names = {path.rpartition("/")[2] for path in files}
        return sorted(name for name in names if name.startswith(typed))

    def _called(self, module: Module) -> tuple[OfferedFunction, ...]:
        """The libraries' functions that a file calls, which may not have come yet."""
        key = id(module.image)
        if key not in self._stubs:
            try:
                names = [one.name for one in module.symbols if one.name.endswith(_STUB)]
                symbols = (module.symbols.find(name) for name in names)
                found = tuple(one for each in symbols if each for one in _named(each))
            except TROUBLE:
                found = ()
            self._stubs[key] = module, found
        return self._stubs[key][1]

    def _of_file(self, file: str, typed: str) -> list[str]:
        """Functions of a source file, by what stands behind its colon."""
        if typed[:1].isdigit():
            return []
        for module in self.modules():
            key = id(module.image), file
            if key not in self._of_files:
                try:
                    there = module.lines.has_file(file)
                    found = tuple(_of_source(module, file, self.of(module))) if there else ()
                except TROUBLE:
                    found = ()
                self._of_files[key] = module, found
            names = self._of_files[key][1]
            if names:
                return _fitting(typed, names, parts=True)
        return []


def _functions(module: Module) -> Iterator[OfferedFunction]:
    for symbol in module.symbols.functions():
        if not _HIDDEN.search(symbol.name):
            yield from _named(symbol)


def _named(symbol: Symbol) -> Iterator[OfferedFunction]:
    """A function as it is asked for, a linkage stub as the function that it leads to."""
    name = symbol.name.removesuffix(_STUB).partition("@")[0]
    shown = demangle(name)
    if shown == name:
        if name[:1] != "*":
            yield OfferedFunction(name, name, symbol.address)
        return
    bare = bare_name(shown)
    at = shown.find(bare) if bare else -1
    whole = shown[at:] if at >= 0 else bare
    yield OfferedFunction(bare, whole.partition("[clone ")[0].strip(), symbol.address)


def _of_source(
    module: Module, file: str, names: Iterable[OfferedFunction]
) -> Iterator[OfferedFunction]:
    for name in names:
        line = module.lines.line_at(name.address)
        if line is not None and (line[0] == file or line[0].endswith(f"/{file}")):
            yield name


def _fitting(typed: str, names: Iterable[OfferedFunction], *, parts: bool) -> list[str]:
    """Names that begin so, sorted, then those of which a part of the path does."""
    text = _whole_parameters(typed)
    close = typed.replace(" ", "") if "<" in typed and " " in typed else ""
    begun, inner = dict[str, None](), dict[str, None]()
    for each in names:
        name = each.whole if text else each.bare
        if name.startswith(typed) or (close and name.replace(" ", "").startswith(close)):
            begun[name] = None
        elif parts and typed and typed in name and _has_part(name, typed):
            inner[name] = None
    return [
        *sorted(begun),
        *sorted(inner, key=lambda name: (not name.endswith(f"::{typed}"), name)),
    ]


def _whole_parameters(typed: str) -> bool:
    """True where a bracket of parameters is open: "push(" but not "operator(" or Go's "fmt.("."""
    bare = typed.replace(_UNNAMED, "").replace("operator()", "").replace("operator(", "")
    at = bare.find("(")
    unnamed = _UNNAMED.startswith(bare[at:]) and bare[:at].endswith("::")
    return at > 0 and bare[at - 1] != "." and _LAMBDA not in bare and not unnamed


def _has_part(name: str, typed: str) -> bool:
    """True if a part of a path begins so."""
    return any(name.startswith(typed, at) for at in path_starts(name))


@cache
def path_starts(name: str) -> tuple[int, ...]:
    """Columns at which parts of a path begin, the first one's apart: of "a::b<c::d>::e" b and e.

    What stands in brackets is no part of the path.
    """
    found: list[int] = []
    depth, at, part = 0, 0, 0
    while at < len(name):
        operator = _ADDED.match(name[part:]) if at == part and name[at] == "o" else None
        if operator is not None:
            at += operator.end()
            continue
        letter = name[at]
        if not depth and name.startswith("::", at):
            at = part = at + 2
            found.append(at)
            continue
        if letter == "(" and not depth and name.startswith(_UNNAMED, at):
            at += len(_UNNAMED)
            continue
        if letter in "<([{":
            depth += 1
        elif letter in ">)]}" and name[at - 1] != "-":
            depth -= 1
        at += 1
    return tuple(found)
