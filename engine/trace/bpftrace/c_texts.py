"""Definitions in C before a script's probes, cut out of it: what they say is read elsewhere."""

import re
from typing import Final

from engine.trace.bpftrace.text import Span
from engine.trace.bpftrace.tokens import LAYOUT, NAME, TokenStream
from engine.trace.bpftrace.tree import CDefinition

_DIRECTIVE: Final = re.compile(r"\#(?:[^\\\n]|\\\r?(?s:.))*+")
_SIGN: Final = re.compile(
    r"""//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|"(?:[^"\\\n]|\\(?s:.))*+"?|'(?:[^'\\\n]|\\(?s:.))*+'?|[{};()]""",
)
_ATTRIBUTE: Final = re.compile(LAYOUT + r"__attribute__\b")
_HEAD: Final = re.compile(
    r"(?:struct|union|enum|typedef)\b"
    r"(?:[^{:/;,(]|//[^\n]*|/\*(?s:.*?)\*/|\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\))*+[{;]?"
)
"""The words before the braces of a definition, an attribute's brackets included."""
_TAGS: Final = frozenset(("struct", "union", "enum", "typedef"))
_ENUMERATION: Final = re.compile(r"\benum\b[^{};]*+\{([^{}]*+)\}")
_VALUE: Final = re.compile(r",\s*+([A-Za-z_]\w*)", re.ASCII)
_BRACKET: Final = re.compile(r"[()]")


class CDefinitionTexts:
    """Cuts definitions out of a script.

    Args:
        words: where the script is read.
    """

    def __init__(self, words: TokenStream) -> None:
        self._words = words

    def next(self) -> CDefinition | None:
        """Take the definition that begins here; None if none does.

        Raises:
            WrongScriptError: its attributes are no such.
        """
        words = self._words
        start = words.start
        if words.begins("#") and not words.begins("#!"):
            match = _DIRECTIVE.match(words.source, start, words.limit)
            assert match is not None, "the sign is there"
            words.go(match.end())
            text = match[0].rstrip()
        elif words.kind == NAME and words.word in _TAGS and self._is_definition():
            text = self._declaration(start)
        else:
            return None
        return CDefinition(Span(start, start + len(text)), text)

    def _is_definition(self) -> bool:
        """True if `struct` and the like begins a definition, not an attach point."""
        words = self._words
        head = _HEAD.match(words.source, words.start, words.limit)
        return head is not None and (head[0][-1] in "{;" or words.word == "typedef")

    def _declaration(self, start: int) -> str:
        """A definition with braces, up to the semicolon behind it."""
        words = self._words
        source = words.source
        is_typedef = words.word == "typedef"
        depth, end = 0, words.limit
        for match in _SIGN.finditer(source, start, words.limit):
            sign = match[0]
            if sign in ("{", "("):
                depth += 1
            elif sign in ("}", ")"):
                depth -= 1
                if sign == "}" and depth == 0 and not is_typedef:
                    end = match.end()
                    break
            elif sign == ";" and depth == 0:
                end = match.start()
                break
        while True:
            attribute = _ATTRIBUTE.match(source, end, words.limit)
            if attribute is None:
                break
            end = self._attribute(attribute.end())
        words.go(end)
        words.taken(";")
        return source[start:end].rstrip()

    def _attribute(self, at: int) -> int:
        """The end of an attribute's brackets."""
        words = self._words
        words.go(at)
        if not words.begins("(("):
            raise words.failure("__attribute__ syntax error, expected '(('")
        depth = 0
        for match in _BRACKET.finditer(words.source, words.start, words.limit):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.end()
        raise words.failure("__attribute__ syntax error, mismatched '(' and ')'")


def enumerators(definition: CDefinition) -> list[str]:
    """Names of values in a definition: those of its enumerations."""
    if "enum" not in definition.text:
        return []
    bodies = _ENUMERATION.findall(definition.text)
    return [name for body in bodies for name in _VALUE.findall(f",{body}")]
