"""Scripts of bpftrace, read: what stands at the top, and all below it.

The language is that of bpftrace 0.26 (its src/parser.cpp and docs/language.md), with 0.17's
spellings. Reading ends at the first fault, with bpftrace's words for it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engine.trace.bpftrace.attach_points import attach_points
from engine.trace.bpftrace.c_constants import constant, expression_of
from engine.trace.bpftrace.c_macros import HAS_BTF, CMacros
from engine.trace.bpftrace.c_uses import CMacroUses
from engine.trace.bpftrace.expressions import is_builtin
from engine.trace.bpftrace.statements import StatementReader
from engine.trace.bpftrace.text import MAX_SCRIPT, Remarks, ScriptText, Span
from engine.trace.bpftrace.tokens import LAYOUT, MAP, NAME, NUMBER, STRING, VARIABLE, TokenStream
from engine.trace.bpftrace.tree import (
    AttachPoint,
    CDefinition,
    Expression,
    Macro,
    MapDeclaration,
    MapName,
    Name,
    Probe,
    Scratch,
    Script,
    Setting,
    StringLiteral,
)

_POINT: Final = re.compile(
    r'(?:[^\s{,/":]|"(?:[^"\\]|\\(?s:.))*+(?:"|\Z))*+'
    r'(?::(?:[^\s{,"]|"(?:[^"\\]|\\(?s:.))*+(?:"|\Z))*+)?'
)
"""An attach point; a slash belongs to it behind a colon only, else it begins a predicate."""
_DIRECTIVE: Final = re.compile(r"\#(?:[^\\\n]|\\(?s:.))*+")
_DEFINITION: Final = re.compile(
    r"""//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|"(?:[^"\\\n]|\\(?s:.))*+"?|'(?:[^'\\\n]|\\(?s:.))*+'?|[{};()]""",
)
_ATTRIBUTE: Final = re.compile(LAYOUT + r"__attribute__\b")
_HEAD: Final = re.compile(
    r"(?:struct|union|enum|typedef)\b"
    r"(?:[^{:/;,(]|//[^\n]*|/\*(?s:.*?)\*/|\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\))*+[{;]?"
)
"""What stands before the braces of a definition, an attribute's brackets included."""
_TAGS: Final = frozenset(("struct", "union", "enum", "typedef"))


def parse(
    script: ScriptText, parameters: Sequence[str] = (), defined: Iterable[str] = (HAS_BTF,)
) -> Script:
    """A script.

    Args:
        script: its text.
        parameters: what `$1` and so on stand for in attach points.
        defined: names that are defined for C's preprocessor.

    Raises:
        ScriptError: something in it is not understood.
    """
    return _ScriptReader(script, parameters, defined).script()


class _ScriptReader:
    def __init__(
        self, script: ScriptText, parameters: Sequence[str], defined: Iterable[str]
    ) -> None:
        self._remarks, self._parameters = Remarks(script), parameters
        if len(script.text) > MAX_SCRIPT:
            self._remarks.error(f"a script of more than {MAX_SCRIPT} bytes", Span(0, 0))
            self._remarks.raise_errors()
        self._words = TokenStream(script)
        self._c_macros = CMacros(script, defined)
        uses = CMacroUses(self._c_macros)
        self._statements = StatementReader(self._words, uses.expression)
        self._definitions: list[CDefinition] = []
        self._settings: list[Setting] | None = None
        self._imports: list[StringLiteral] = []
        self._maps: list[MapDeclaration] = []
        self._macros: list[Macro] = []
        self._probes: list[Probe] = []

    def _condition(self, text: str, span: Span) -> int:
        """The value of what stands behind `#if`."""
        return constant(expression_of(self._words.script, text, span), self._words.script)

    def script(self) -> Script:
        words = self._words
        if words.source.startswith("#!", words.start):
            end = words.source.find("\n", words.start)
            words.go(len(words.source) if end < 0 else end)
        while self._definition() is not None:
            pass
        if self._definitions:
            self._c_macros.declarations(self._definitions, self._condition)
            self._statements.expressions.known = frozenset(self._c_macros.macros)
        while words.word in ("config", "import"):
            if words.word == "config":
                if self._settings is not None:
                    raise words.failure("duplicate config block")
                self._config()
            else:
                self._imports.append(self._statements.imported(words.start))
        while not words.is_at_end:
            self._top()
        self._remarks.raise_errors()
        return Script(
            words.span(0, len(words.source)),
            tuple(self._definitions),
            tuple(self._settings or ()),
            (*self._imports, *self._statements.imports),
            tuple(self._maps),
            tuple(self._macros),
            tuple(self._probes),
        )

    def _top(self) -> None:
        words = self._words
        word = words.word
        late = self._definition()
        if late is not None:
            raise words.failure("C definitions must appear before probes and functions", late.span)
        if word == "config":
            raise words.failure("config must appear before probes and functions")
        if word == "import":
            raise words.failure("root imports must appear before probes and functions")
        if word == "macro":
            self._macros.append(self._macro())
        elif word == "fn":
            raise words.failure(
                "functions of a script's own are not supported: write a macro instead"
            )
        elif word == "let":
            self._map_declaration()
        else:
            self._probes.append(self._probe())

    # -- definitions of C ---------------------------------------------------------------------

    def _definition(self) -> CDefinition | None:
        """A definition in C; None if none begins here."""
        words = self._words
        start = words.start
        if words.source.startswith("#", start) and not words.source.startswith("#!", start):
            match = _DIRECTIVE.match(words.source, start)
            assert match is not None, "the sign is there"
            words.go(match.end())
            text = match[0].rstrip()
        elif words.kind == NAME and words.word in _TAGS and self._is_definition():
            text = self._c_declaration(start)
        else:
            return None
        found = CDefinition(Span(start, start + len(text)), text)
        self._definitions.append(found)
        return found

    def _is_definition(self) -> bool:
        """True if `struct` and the like begins a definition, not an attach point."""
        words = self._words
        head = _HEAD.match(words.source, words.start)
        return head is not None and (head[0][-1] in "{;" or words.word == "typedef")

    def _c_declaration(self, start: int) -> str:
        """A definition with braces, up to the semicolon behind it."""
        words = self._words
        source = words.source
        is_typedef = words.word == "typedef"
        depth, at = 0, start
        end = len(source)
        for match in _DEFINITION.finditer(source, start):
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
        at = end
        while True:
            attribute = _ATTRIBUTE.match(source, at)
            if attribute is None:
                break
            at = self._attribute(attribute.end())
        text = source[start:at].rstrip()
        words.go(at)
        words.taken(";")
        return text

    def _attribute(self, at: int) -> int:
        """The end of an attribute's brackets."""
        words = self._words
        words.go(at)
        if not words.source.startswith("((", words.start):
            raise words.failure("__attribute__ syntax error, expected '(('")
        depth = 0
        for match in re.compile(r"[()]").finditer(words.source, words.start):
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.end()
        raise words.failure("__attribute__ syntax error, mismatched '(' and ')'")

    # -- config, macros, maps -----------------------------------------------------------------

    def _config(self) -> None:
        words = self._words
        words.next()
        words.expect("=")
        words.expect("{")
        settings: list[Setting] = []
        while words.word != "}":
            start = words.start
            name = words.name("expected config key")
            words.expect("=")
            value = self._setting()
            settings.append(Setting(words.span(start), name, value))
            if words.word != "}":
                words.expect(";")
        words.next()
        self._settings = settings

    def _setting(self) -> int | str | bool:
        words = self._words
        if words.kind == STRING or words.source.startswith('"', words.start):
            return words.string().decode(errors="surrogateescape")
        if words.kind == NUMBER:
            return words.number()
        word = words.name("expected string, int, boolean, or ident")
        return word == "true" if word in ("true", "false") else word

    def _macro(self) -> Macro:
        words = self._words
        start = words.start
        words.next()
        name = words.name("expected macro name")
        span = words.span(start)
        parameters: list[Scratch | MapName | Name] = []
        if words.word != "{":
            words.expect("(")
            if words.word != ")":
                parameters.append(self._macro_parameter())
                while words.taken(","):
                    parameters.append(self._macro_parameter())
            words.expect(")")
        expressions = self._statements.expressions
        known = expressions.known
        expressions.known = known | {one.name for one in parameters if isinstance(one, Name)}
        body = self._statements.block()
        expressions.known = known
        return Macro(span, name, tuple(parameters), body)

    def _macro_parameter(self) -> Scratch | MapName | Name:
        words = self._words
        kind, word = words.kind, words.word
        start = words.start
        if kind in (VARIABLE, MAP):
            words.next()
            span = words.span(start)
            return Scratch(span, word[1:]) if kind == VARIABLE else MapName(span, word[1:])
        name = words.name("expected macro argument ($var, @map, or identifier)")
        span = words.span(start)
        if is_builtin(name):
            raise words.failure(f"builtin '{name}' can't be used as a macro argument", span)
        return Name(span, name)

    def _map_declaration(self) -> None:
        words = self._words
        start = words.start
        words.next()
        if words.kind != MAP:
            raise words.failure(
                "root-level let statements need to be map declarations, e.g. let @a = hash(2);",
                words.span(start, start + len("let")),
            )
        at, name = words.start, words.word[1:]
        words.next()
        place = words.span(at)
        words.expect("=")
        kind = words.name("expected map type name")
        words.expect("(")
        if words.kind != NUMBER:
            raise words.failure("expected positive integer for map declaration max entries")
        entries = words.number()
        words.expect(")")
        words.taken(";")
        self._maps.append(MapDeclaration(words.span(start), MapName(place, name), kind, entries))

    # -- probes -------------------------------------------------------------------------------

    def _probe(self) -> Probe:
        words = self._words
        start = words.start
        points = self._points()
        stop = words.end
        while words.taken(","):
            if words.word == "{" or words.word == "/":
                break
            points += self._points()
            stop = words.end
        span = Span(start, stop)
        predicate: Expression | None = None
        if words.taken("/"):
            predicate = self._statements.expressions.expression()
            if not words.taken("/"):
                raise words.failure("expected '/' to close predicate")
        body = self._statements.body()
        if not points and not self._remarks.found:
            self._remarks.error("No attach points for probe", span)
        return Probe(span, tuple(points), predicate, body)

    def _points(self) -> list[AttachPoint]:
        """What stands between two commas in front of a probe."""
        words = self._words
        start = words.start
        match = _POINT.match(words.source, start)
        assert match is not None, "every part of the pattern may be empty"
        if not match[0]:
            raise words.failure("expected attach point")
        words.go(match.end())
        span = Span(start, match.end())
        return list(attach_points(match[0], span, self._remarks, self._parameters))
