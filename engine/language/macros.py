"""Macros of C: their definitions, and the expansion of a text (gdb/macroexp.c).

Text stays as it was written wherever no macro is expanded. A macro is not expanded within its
own expansion (C17, 6.10.3.4).
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)|(?P<name>[A-Za-z_$]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<string>L?"(?:[^"\\]|\\.)*"?)|(?P<char>L?'(?:[^'\\]|\\.)*'?)
    |(?P<op>\#\#|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
_DEFINITION: Final = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?P<args>\([^)]*\))?\s?(?P<rest>.*)", re.DOTALL
)
_MOST: Final = 1 << 16
"""Characters of an expansion, at the most."""
_EXPANSIONS: Final = 20_000
"""Macros that are expanded for a text, at the most: those that leave nothing count, too."""
_DEEP: Final = 100
"""Expansions within each other, at the most."""


class MacroDefinition(Struct, frozen=True):
    """A definition.

    Attributes:
        name: of it.
        parameters: of one that takes arguments; None for one that takes none.
        replacement: what stands for it.
        chain: (file, line) of the definition, and of the inclusions that lead to it.
    """

    name: str
    parameters: tuple[str, ...] | None
    replacement: str
    chain: tuple[tuple[str, int], ...] = ()

    @property
    def head(self) -> str:
        """Name and parameters."""
        if self.parameters is None:
            return self.name
        return f"{self.name}({', '.join(self.parameters)})"


Lookup = Callable[[str], MacroDefinition | None]
"""Gives the macro of a name; None where there is none."""


def macro_of(text: str, chain: tuple[tuple[str, int], ...] = ()) -> MacroDefinition | None:
    """A macro from its definition, "MAX(a,b) ((a)>(b)?(a):(b))"; None for no definition."""
    match = _DEFINITION.fullmatch(text)
    if match is None:
        return None
    parameters = None
    if match["args"] is not None:
        inside = match["args"][1:-1].strip()
        parameters = tuple(one.strip() for one in inside.split(",")) if inside else ()
    return MacroDefinition(match["name"], parameters, match["rest"].strip(), chain)


def expanded(text: str, lookup: Lookup) -> str:
    """A text with its macros expanded.

    Raises:
        CommandError: the arguments of one do not fit it, or the expansion has no end in sight.
    """
    return _ExpandedText(lookup).of(text, frozenset())


def _tokens(text: str) -> list[tuple[str, str]]:
    return [(match.lastgroup or "op", match[0]) for match in _TOKEN.finditer(text)]


class _ExpandedText:
    """Expands one text."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup, self._left = lookup, _EXPANSIONS

    def of(self, text: str, within: frozenset[str], deep: int = 0) -> str:
        """A part of the text, expanded.

        Args:
            text: the part.
            within: macros in whose expansions it stands, which are not expanded there.
            deep: expansions in which it stands, those of arguments among them.
        """
        tokens, found, at = _tokens(text), "", 0
        while at < len(tokens):
            kind, word = tokens[at]
            at += 1
            macro = self._lookup(word) if kind == "name" and word not in within else None
            if macro is None:
                found = _joined(found, word)
                continue
            self._count(deep)
            if macro.parameters is None:
                body = _substituted(macro, {}, {}, macro.replacement)
            else:
                taken = _arguments(tokens, at, macro)
                if taken is None:  # its name alone is no call
                    found = _joined(found, word)
                    continue
                given, at = taken
                whole = {name: self.of(one, within, deep + 1) for name, one in given.items()}
                body = _substituted(macro, given, whole, macro.replacement)
            found = _joined(found, self.of(body, within | {word}, deep + 1))
            if len(found) > _MOST:
                raise CommandError(f"The expansion has more than {_MOST} characters.")
        return found

    def _count(self, deep: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise CommandError(f"The expansion needs more than {_EXPANSIONS} macros.")
        if deep > _DEEP:
            raise CommandError(f"The expansion has more than {_DEEP} macros within each other.")


def _joined(before: str, behind: str) -> str:
    """Two texts, kept apart by a space where their tokens would become one."""
    if before and behind and not before[-1].isspace() and not behind[0].isspace():
        last, first = _last(before), _tokens(behind)[0][1]
        if _tokens(last + first)[0][1] != last:
            return f"{before} {behind}"
    return before + behind


def _last(text: str) -> str:
    """The last token."""
    return _tokens(text[-64:])[-1][1]


def _arguments(
    tokens: list[tuple[str, str]], at: int, macro: MacroDefinition
) -> tuple[dict[str, str], int] | None:
    """The arguments of a call by parameter, and the place behind it; None for no call.

    Raises:
        CommandError: they are too many, too few, or not closed.
    """
    while at < len(tokens) and tokens[at][0] == "space":
        at += 1
    if at >= len(tokens) or tokens[at][1] != "(":
        return None
    given, depth = [""], 0
    for place in range(at, len(tokens)):
        word = tokens[place][1]
        depth += (word == "(") - (word == ")")
        if not depth:
            return _named(given, macro), place + 1
        if word == "," and depth == 1:
            given.append("")
        elif place > at:
            given[-1] += word
    raise CommandError(f"Malformed argument list for macro `{macro.name}'.")


def _named(given: list[str], macro: MacroDefinition) -> dict[str, str]:
    parameters = macro.parameters or ()
    if not parameters:
        if not "".join(given).strip() and len(given) == 1:
            return {}
    elif parameters[-1].endswith("..."):
        *fixed, rest = parameters
        if len(given) >= len(fixed):
            name = rest.removesuffix("...") or "__VA_ARGS__"
            more = ",".join(given[len(fixed) :]).strip()
            given = [one.strip() for one in given]
            return {**dict(zip(fixed, given, strict=False)), name: more}
    elif len(given) == len(parameters):
        return dict(zip(parameters, (one.strip() for one in given), strict=True))
    count = f"expected {len(parameters)}, got {len(given)}"
    raise CommandError(f"Wrong number of arguments to macro `{macro.name}' ({count}).")


def _substituted(
    macro: MacroDefinition, given: dict[str, str], whole: dict[str, str], text: str
) -> str:
    """The replacement with arguments in place of parameters, `#` and `##` carried out."""
    found, tokens, at = "", _tokens(text), 0
    while at < len(tokens):
        kind, word = tokens[at]
        at += 1
        if word == "#" and macro.parameters is not None:
            name = next((n for n in range(at, len(tokens)) if tokens[n][0] != "space"), at)
            if name < len(tokens) and tokens[name][1] in given:
                found = _joined(found, _quoted(given[tokens[name][1]]))
                at = name + 1
                continue
        pastes = _next_is_paste(tokens, at)
        if word == "##":
            found = found.rstrip()
            while at < len(tokens) and tokens[at][0] == "space":
                at += 1
            if at < len(tokens):
                found += given.get(tokens[at][1], tokens[at][1])
                at += 1
            continue
        if kind == "name" and word in given:
            word = given[word] if pastes else whole[word]
        found = _joined(found, word) if word else found
    return found


def _next_is_paste(tokens: list[tuple[str, str]], at: int) -> bool:
    following = (word for kind, word in tokens[at:] if kind != "space")
    return next(following, "") == "##"


def _quoted(text: str) -> str:
    inside = re.sub(r"\s+", " ", text)
    return '"' + inside.replace("\\", "\\\\").replace('"', '\\"') + '"'


def names_in(text: str) -> Iterator[str]:
    """Names that stand in a text outside of strings."""
    return (word for kind, word in _tokens(text) if kind == "name")
