"""Words that may stand at a place in a definition that is being typed."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import escape
from itertools import islice
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.errors import ImageError, KprobeTuiError
from engine.fetch.types import TYPES, find_type
from engine.fetch.variables import VariableError
from engine.session.program.places import Place, PlaceError
from engine.session.program.verdicts import Verdicts
from engine.trace.place_syntax import path_symbol

_MOST: Final = 200
_PLACE: Final = 1
_PIECE: Final = re.compile(r"[^=(]*$")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RETURN: Final = "%return"
_BITFIELD: Final = "b1@0/8"
_PARAMETERS: Final = 6
"""Arguments offered of a function that nothing is known of."""


class Completion(Struct, frozen=True):
    """Words that fit where the cursor is.

    Attributes:
        start: column from which on a word takes the place of what is typed, up to the cursor.
        words: what fits, the likeliest first.
    """

    start: int
    words: tuple[str, ...] = ()


class DefinitionCompleter:
    """Completes definitions for one program."""

    def __init__(
        self,
        arch: Arch,
        verdicts: Verdicts,
        names: Callable[[str, int], Iterable[str]],
        mode: Mode,
    ) -> None:
        """Set up; files are read when somebody asks.

        Args:
            arch: of the program.
            verdicts: knows its places.
            names: (beginning, most) to names of functions, as a definition spells them.
            mode: what the kernel does not have is left out in kernel mode.
        """
        self._arch = arch
        self._verdicts = verdicts
        self._names = names
        self._mode = mode

    def complete(self, line: str, column: int, groups: Sequence[str] = ()) -> Completion:
        """Find the words that fit at a column.

        Args:
            line: the definition as far as it is typed.
            column: of the cursor.
            groups: of the events there are.
        """
        before = line[:column]
        bare = before.lstrip().removeprefix("!").lstrip()
        start = len(before) - len(bare)
        words = bare.split()
        typed = "" if not bare or bare[-1].isspace() else words.pop()
        start += len(bare) - len(typed)
        if not words:
            return self._head(typed, start, groups)
        if words[0][:1] == "e":
            return self._event_probe(typed, start, words)
        if words[0][:1] not in ("p", "r"):
            return Completion(start)
        if len(words) == _PLACE:
            return self._place(typed, start)
        is_return = words[0].startswith("r") or _RETURN in words[_PLACE]
        return self._argument(typed, start, words[_PLACE], is_return)

    # -- parts of a definition ----------------------------------------------------------------

    def _head(self, typed: str, start: int, groups: Sequence[str]) -> Completion:
        letter, colon, name = typed.partition(":")
        if typed[:1] == "%" or typed.startswith("sdt"):
            return _fitting(typed, self._markers(typed), start)
        if not colon:
            return _fitting(typed, ("p:", "r:", "e:"), start)
        if "/" in name or letter[:1] not in ("p", "r", "e", "-"):
            return Completion(start)
        known = dict.fromkeys((*groups, "kprobes", "uprobes"))
        return _fitting(name, [f"{group}/" for group in known], start + len(letter) + 1)

    def _place(self, typed: str, start: int) -> Completion:
        name, percent, _ = typed.partition("%")
        if typed[:1] == "%" or typed.startswith("sdt_"):
            return _fitting(typed, self._markers(typed), start)
        if percent:
            return _fitting(typed[len(name) :], (_RETURN,), start + len(name))
        if "/" in typed:
            path, colon, beginning = typed.partition(":")
            if colon and self._mode is Mode.STRICT and not beginning[:1].isdigit():
                return Completion(start, tuple(self._functions(path, beginning)))
            files = [f"{path}:" for path in self._verdicts.places.paths]
            return _fitting(typed, files, start)
        if "+" in typed or not typed:
            return Completion(start)
        return Completion(start, tuple(dict.fromkeys(self._names(typed, _MOST))))

    def _event_probe(self, typed: str, start: int, words: Sequence[str]) -> Completion:
        """An event of the kernel's, and its fields."""
        from engine.session.program.placeless_lines import PlacelessLines  # few lines are these

        events = PlacelessLines(self._arch, self._mode)
        if len(words) == _PLACE:
            return _fitting(typed.replace("/", ".", 1), events.names(), start)
        piece = _PIECE.search(typed)
        assert piece is not None, "the piece may be empty"
        body, colon, kind = piece[0].partition(":")
        at = start + piece.start()
        if colon:
            return _fitting(kind, self._types(uprobe=False), at + len(body) + 1)
        fields = [*(f"${name}" for name in events.fields(words[_PLACE])), "$comm"]
        return _fitting(body, fields, at) if body[:1] in ("", "$") else Completion(at)

    def _functions(self, path: str, beginning: str) -> Iterator[str]:
        """The functions of a file whose names begin like this, as `PATH:SYM`."""
        try:
            found = self._verdicts.places.matching(f"{path}:{escape(beginning)}*")
            for place in islice(found, _MOST):
                yield f"{path}:{place.symbol}"
        except KprobeTuiError:
            return  # no file that can be read

    def _argument(self, typed: str, start: int, place: str, is_return: bool) -> Completion:
        match = _PIECE.search(typed)
        assert match is not None, "the piece may be empty"
        piece, at = match[0], start + match.start()
        body, colon, kind = piece.partition(":")
        named = self._mode is Mode.STRICT and path_symbol(place) is not None
        uprobe = "/" in place and not named
        if ")" in body and not colon:
            return Completion(start + len(typed))
        if colon:
            return _fitting(kind, self._types(uprobe), at + len(body) + 1)
        if body.startswith("%"):
            probes = self._arch.probes
            names = (*probes.fetch_registers, *probes.fixed_registers)
            return _fitting(body, [f"%{name}" for name in names], at)
        found = self._at(place)
        if body.startswith("$"):
            return _fitting(body, self._specials(found, uprobe, is_return), at)
        if body.startswith("@"):
            return Completion(at, () if uprobe else tuple(self._symbols(body[1:])))
        if not body or _NAME.fullmatch(body):
            return _fitting(body, self._variables(found, uprobe), at)
        return Completion(at)

    def _markers(self, typed: str) -> list[str]:
        """The program's static probes, each once; the kernel's rules know none."""
        if self._mode is Mode.KERNEL:
            return []
        mark = "%" if typed[:1] == "%" else ""
        return list(dict.fromkeys(mark + one.event for one in self._verdicts.markers.all()))

    # -- what there is ------------------------------------------------------------------------

    def _types(self, uprobe: bool) -> list[str]:
        extra = ("symbol", "symstr", "ustring")
        names = [*TYPES, *(name for name in extra if name not in TYPES)]
        known = [name for name in names if find_type(name, self._arch.bits, uprobe=uprobe)]
        return [*known, _BITFIELD]

    def _specials(self, place: Place | None, uprobe: bool, is_return: bool) -> list[str]:
        found = ["$retval"] if is_return else []
        if is_return and self._mode is Mode.STRICT:
            found += ["$duration", "$entry("]
        if not uprobe or self._variables(place, uprobe):
            known = self._parameters(place)
            count = _PARAMETERS if known is None else known
            found += ["$arg*"] if known else []
            found += [f"$arg{number}" for number in range(1, count + 1)]
        return [*found, "$stack", "$stack0", "$comm"]

    def _parameters(self, place: Place | None) -> int | None:
        """The number of them that the function has; None if nobody knows."""
        if place is None:
            return None
        try:
            return len(self._verdicts.lookup.scope_at(place).parameters())
        except (KprobeTuiError, VariableError):
            return None

    def _variables(self, place: Place | None, uprobe: bool) -> list[str]:
        if place is None or (uprobe and self._mode is Mode.KERNEL):
            return []
        rows = self._verdicts.lookup.scope_at(place).listing()
        return list(dict.fromkeys(name for name, _, _ in rows))

    def _symbols(self, typed: str) -> list[str]:
        symbols = self._verdicts.main.symbols
        return [f"@{name}" for name in symbols.complete(typed, _MOST)] if typed else []

    def _at(self, text: str) -> Place | None:
        try:
            return self._verdicts.places.resolve(text.partition("%")[0])[0]
        except (PlaceError, ImageError):
            return None


def _fitting(typed: str, words: Iterable[str], start: int) -> Completion:
    """The words that begin with what is typed; none if that is the only one already."""
    found = tuple(word for word in words if word.startswith(typed))
    return Completion(start, () if found == (typed,) else found[:_MOST])
