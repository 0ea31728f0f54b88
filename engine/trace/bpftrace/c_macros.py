"""Lines of C's preprocessor in a script: macros, conditions, includes (C11 6.10).

A use of a macro in an action is one expression, as bpftrace has it
(src/ast/passes/c_macro_expansion.cpp): `#define X 1 + 2` makes `X * 3` nine, not seven.
Headers are not read: what they declare comes from the guest's debug information.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from engine.trace.bpftrace.text import ScriptRemark, ScriptText, Span, WrongScriptError
from engine.trace.bpftrace.tree import CDefinition

HAS_BTF: Final = "BPFTRACE_HAVE_BTF"
"""Defined where types come from debug information: scripts include headers where it is not."""
MAX_EXPANDED: Final = 1 << 20
"""Characters that all uses of macros of a script become."""
_MAX_NESTED: Final = 50
"""Macros in each other."""
_PARAMETERS: Final = 64

_LINE: Final = re.compile(r"\#\s*([a-z_]*)\s*((?s:.*))", re.ASCII)
_DEFINE: Final = re.compile(r"([A-Za-z_]\w*)(\(([^()]*)\))?\s*((?s:.*))", re.ASCII)
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\(?s:.))*+"?)|\\\r?\n|//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)')
_WORD: Final = re.compile(r'[A-Za-z_]\w*|[0-9]\w*|"(?:[^"\\]|\\(?s:.))*+"?|(?s:.)', re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DEFINED: Final = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))", re.ASCII)
_OPENING: Final = re.compile(r"\s*+\(")
_IDLE: Final = frozenset(("pragma", "ident", "line", ""))
_PASTE: Final = re.compile(r"\s*##\s*")
_STRINGIFIED: Final = re.compile(r"\#\s*([A-Za-z_]\w*)", re.ASCII)


class CMacro(Struct, frozen=True):
    """A macro of C.

    Attributes:
        name: of it.
        parameters: None if it takes none, not even brackets.
        body: what it stands for, comments left out.
    """

    name: str
    parameters: tuple[str, ...] | None
    body: str


class _ConditionBranch(Struct):
    """An `#if` that has not ended.

    Attributes:
        is_read: what follows counts.
        was_read: one of its branches counted.
        span: its place.
    """

    is_read: bool
    was_read: bool
    span: Span


class CMacros:
    """The macros of a script.

    Args:
        script: the text.
        defined: names that are defined from the start, as 1.

    Attributes:
        macros: by name, at the end of the definitions.
        includes: headers that the script names.
    """

    def __init__(self, script: ScriptText, defined: Iterable[str] = (HAS_BTF,)) -> None:
        self._script = script
        self.macros: dict[str, CMacro] = {name: CMacro(name, None, "1") for name in defined}
        self.includes: list[str] = []
        self._branches: list[_ConditionBranch] = []
        self._left = MAX_EXPANDED
        self._whole: dict[str, str] = {}

    def declarations(
        self, definitions: Sequence[CDefinition], value: Callable[[str, Span], int]
    ) -> list[CDefinition]:
        """Take in definitions; those that are not the preprocessor's, and count, remain.

        Args:
            definitions: in the order of the script.
            value: gives the number that the text of a condition stands for.

        Raises:
            WrongScriptError: a line is wrong.
        """
        found: list[CDefinition] = []
        for definition in definitions:
            if not definition.text.startswith("#"):
                if self._is_read:
                    found.append(definition)
                continue
            match = _LINE.match(definition.text)
            assert match is not None, "the sign is there"
            self._line(match[1], _uncommented(match[2]).strip(), definition.span, value)
        if self._branches:
            raise self.failure("unterminated conditional directive", self._branches[-1].span)
        return found

    @property
    def _is_read(self) -> bool:
        return not self._branches or self._branches[-1].is_read

    def failure(self, text: str, span: Span) -> WrongScriptError:
        """An error at a place."""
        return WrongScriptError(ScriptRemark("ERROR", text, span, self._script))

    # -- lines ----------------------------------------------------------------------------------

    def _line(self, word: str, rest: str, span: Span, value: Callable[[str, Span], int]) -> None:
        if word in ("if", "ifdef", "ifndef"):
            outer = self._is_read
            holds = outer and self._holds(word, rest, span, value)
            # In a part that does not count, no branch ever does.
            self._branches.append(_ConditionBranch(holds, holds or not outer, span))
        elif word in ("elif", "else", "endif"):
            if not self._branches:
                raise self.failure(f"#{word} without #if", span)
            branch = self._branches[-1]
            if word == "endif":
                self._branches.pop()
            elif branch.was_read:
                branch.is_read = False
            else:
                branch.is_read = word == "else" or self._holds("if", rest, span, value)
                branch.was_read = branch.is_read
        elif self._is_read:
            self._command(word, rest, span)

    def _holds(self, word: str, rest: str, span: Span, value: Callable[[str, Span], int]) -> bool:
        if word != "if":
            return (rest in self.macros) == (word == "ifdef")
        known = _DEFINED.sub(
            lambda match: "1" if (match[1] or match[2]) in self.macros else "0", rest
        )
        text = self.expanded(known, span)
        return bool(value(_NAME.sub("0", text), span))

    def _command(self, word: str, rest: str, span: Span) -> None:
        if word == "define":
            match = _DEFINE.fullmatch(rest)
            if match is None:
                raise self.failure("macro name missing", span)
            self._define(match, span)
        elif word == "undef":
            self.macros.pop(rest, None)
            self._whole.clear()
        elif word == "include":
            if not rest.startswith("<"):
                why = f"{rest} is not read: write what it declares here, or import a .bt file"
                raise self.failure(f"#include: {why}", span)
            self.includes.append(rest)
        elif word == "error":
            raise self.failure(rest or "#error", span)
        elif word not in _IDLE and word != "warning":
            raise self.failure(f"invalid preprocessing directive #{word}", span)

    def _define(self, match: re.Match[str], span: Span) -> None:
        name, brackets, inner, body = match.groups()
        parameters: tuple[str, ...] | None = None
        if brackets:
            words = [word.strip() for word in inner.split(",")] if inner.strip() else []
            if len(words) > _PARAMETERS or not all(_NAME.fullmatch(word) for word in words):
                raise self.failure(f"parameters of macro {name} are not names", span)
            parameters = tuple(words)
        self.macros[name] = CMacro(name, parameters, body.strip())
        self._whole.clear()

    # -- uses -----------------------------------------------------------------------------------

    def use(self, name: str, arguments: Sequence[str] | None, span: Span) -> str:
        """The text that a use of a macro stands for, all macros in it expanded.

        Args:
            name: of the macro.
            arguments: None if it takes none.
            span: the place of its use.

        Raises:
            WrongScriptError: it cannot be expanded.
        """
        return self._used(self.macros[name], arguments, span, ())

    def expanded(self, text: str, span: Span, active: tuple[str, ...] = ()) -> str:
        """A text with all macros in it expanded."""
        found: list[str] = []
        at = 0
        while at < len(text):
            match = _WORD.match(text, at)
            assert match is not None, "any character is a word"
            word, at = match[0], match.end()
            macro = self.macros.get(word)
            if macro is not None:
                if word in active:
                    raise self.failure(f"Macro recursion: {'->'.join(active)}", span)
                arguments: list[str] | None = None
                if macro.parameters is not None:
                    opening = _OPENING.match(text, at)
                    if opening is not None:
                        arguments, at = split_arguments(text, opening.end() - 1)
                if macro.parameters is None or arguments is not None:
                    word = self._used(macro, arguments, span, active)
            found.append(word)
            self._spend(len(word), span)
        return "".join(found)

    def _spend(self, size: int, span: Span) -> None:
        self._left -= size
        if self._left < 0:
            raise self.failure(f"macros become more than {MAX_EXPANDED} characters", span)

    def _used(
        self,
        macro: CMacro,
        arguments: Sequence[str] | None,
        span: Span,
        active: tuple[str, ...],
    ) -> str:
        if macro.parameters is None:
            whole = self._whole.get(macro.name)
            if whole is None:
                whole = self.expanded(macro.body, span, self._deeper(active, macro.name, span))
                self._whole[macro.name] = whole
            self._spend(len(whole), span)
            return whole
        given = list(arguments or ())
        if not macro.parameters and given == [""]:
            given = []
        if len(given) != len(macro.parameters):
            raise self.failure(
                f"macro {macro.name} takes {len(macro.parameters)} arguments, {len(given)} given",
                span,
            )
        body = self._filled(macro, given, span, active)
        return self.expanded(body, span, self._deeper(active, macro.name, span))

    def _deeper(self, active: tuple[str, ...], name: str, span: Span) -> tuple[str, ...]:
        if len(active) >= _MAX_NESTED:
            raise self.failure(f"more than {_MAX_NESTED} macros in each other", span)
        return (*active, name)

    def _filled(self, macro: CMacro, given: list[str], span: Span, active: tuple[str, ...]) -> str:
        """A macro's body with its arguments in it."""
        raw = dict(zip(macro.parameters or (), given, strict=True))
        body = _STRINGIFIED.sub(lambda match: _quoted(raw, match), _PASTE.sub("\0", macro.body))
        whole: dict[str, str] = {}
        found: list[str] = []
        words = _WORD.findall(body)
        for at, word in enumerate(words):
            if word == "\0":
                continue
            if word in raw:
                is_pasted = "\0" in (words[at - 1 : at] + words[at + 1 : at + 2])
                if not is_pasted and word not in whole:
                    whole[word] = self.expanded(raw[word], span, active)
                word = raw[word] if is_pasted else whole[word]
            found.append(word)
            self._spend(len(word), span)
        return "".join(found)


def _quoted(raw: dict[str, str], match: re.Match[str]) -> str:
    if match[1] not in raw:
        return match[0]
    text = raw[match[1]].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _uncommented(text: str) -> str:
    """A line without comments, lines that go on joined."""
    return _COMMENT.sub(lambda match: match[1] or " ", text)


def split_arguments(text: str, opening: int) -> tuple[list[str], int]:
    """Text between brackets, split at commas, and the place behind the closing one.

    Without a closing bracket it is all the rest.
    """
    found: list[str] = []
    depth, start = 0, opening + 1
    for match in _ARGUMENT.finditer(text, opening):
        sign = match[0]
        if sign in ("(", "[", "{"):
            depth += 1
        elif sign in (")", "]", "}"):
            depth -= 1
            if not depth:
                return [*found, text[start : match.start()].strip()], match.end()
        elif sign == "," and depth == 1:
            found.append(text[start : match.start()].strip())
            start = match.end()
    return [*found, text[start:].strip()], len(text)


_ARGUMENT: Final = re.compile(r'"(?:[^"\\]|\\(?s:.))*+"?|[()\[\]{},]')
