"""Scripts of bpftrace, read: what stands at the top, and all below it.

The language is that of bpftrace 0.26 (its src/parser.cpp and docs/language.md), with 0.17's
spellings. Reading ends at the first fault, with bpftrace's words for it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engine.trace.bpftrace.attach_points import NEEDS_SPACE, CommandWords, attach_points
from engine.trace.bpftrace.c_constants import constant, expression_of
from engine.trace.bpftrace.c_macros import HAS_BTF, CMacros
from engine.trace.bpftrace.c_texts import CDefinitionTexts, enumerators
from engine.trace.bpftrace.c_uses import CMacroUses
from engine.trace.bpftrace.expressions import is_builtin
from engine.trace.bpftrace.statements import StatementReader
from engine.trace.bpftrace.text import MAX_SCRIPT, ScriptRemarks, ScriptText, Span
from engine.trace.bpftrace.tokens import MAP, NUMBER, STRING, VARIABLE, TokenStream
from engine.trace.bpftrace.tree import (
    AttachPoint,
    CDefinition,
    ConfigSetting,
    Expression,
    Macro,
    MapDeclaration,
    MapName,
    Name,
    Probe,
    ScratchName,
    Script,
    StringLiteral,
)

_POINT: Final = re.compile(
    r'(?:[^\s{,/":]|"(?:[^"\\]|\\(?s:.))*+(?:"|\Z))*+'
    r'(?::(?:[^\s{,"]|"(?:[^"\\]|\\(?s:.))*+(?:"|\Z)|(?<=:)[ \t]++(?=[^\s{,/"]))*+)?'
)
"""An attach point; a slash belongs to it behind a colon only, else it begins a predicate.

Space may stand behind a colon, as 0.17 has it.
"""
_SPACED_COLON: Final = re.compile(r":[ \t]+")

_HEADER: Final = ".h"
_LIBRARY: Final = "stdlib"
"""bpftrace's own library, all of which is always there."""


def is_library(path: str) -> bool:
    """True if an import names bpftrace's own library."""
    return path == _LIBRARY or path.startswith(f"{_LIBRARY}/")


def parse(
    script: ScriptText,
    parameters: Sequence[str] = (),
    defined: Iterable[str] = (HAS_BTF,),
    program: str = "",
) -> Script:
    """A script.

    Args:
        script: its text, with those of the files that it imports.
        parameters: what `$1` and so on stand for in attach points.
        defined: names that are defined for C's preprocessor.
        program: the guest's own, which functions and markers without a target are in; "" for
            none, and those are errors.

    Raises:
        WrongScriptError: something in it is not understood.
    """
    remarks = ScriptRemarks(script)
    if len(script.text) > MAX_SCRIPT:
        remarks.error(f"a script of more than {MAX_SCRIPT} bytes", Span(0, 0))
        remarks.raise_errors()
    macros = CMacros(script, defined)
    command = CommandWords(parameters, program)
    own = _ScriptFileReader(script, Span(0, script.own_end), "", macros, remarks, command)
    parts = [
        *(
            _ScriptFileReader(script, Span(one.start, one.end), one.name, macros, remarks, command)
            for one in script.imported or ()
        ),
        own,
    ]
    for part in reversed(parts):
        part.head()
    definitions = [one for part in parts for one in part.definitions]
    if definitions:

        def condition(text: str, span: Span) -> int:
            return constant(expression_of(script, text, span), script)

        macros.declarations(definitions, condition)
    known = frozenset(macros.macros).union(*map(enumerators, definitions))
    for part in parts:
        part.body(known)
    remarks.raise_errors()
    return Script(
        Span(0, len(script.text)),
        tuple(definitions),
        tuple(own.settings or ()),
        tuple(one for part in parts for one in part.imports),
        tuple(one for part in parts for one in part.maps),
        tuple(one for part in parts for one in part.macros),
        tuple(one for part in parts for one in part.probes),
    )


def imports_of(script: ScriptText, part: Span) -> list[StringLiteral]:
    """The imports of a part of a script.

    Raises:
        WrongScriptError: what stands before that is not understood.
    """
    reader = _ScriptFileReader(
        script, part, "", CMacros(script, ()), ScriptRemarks(script), CommandWords()
    )
    reader.head()
    return reader.imports


class _ScriptFileReader:
    """Reads a script, or one that it imports.

    Args:
        script: all of it.
        part: to be read.
        name: of the file that is imported; "" for the script itself.
        c_macros: of all parts.
        remarks: takes what is wrong with attach points.
        command: words of the command line.
    """

    def __init__(
        self,
        script: ScriptText,
        part: Span,
        name: str,
        c_macros: CMacros,
        remarks: ScriptRemarks,
        command: CommandWords,
    ) -> None:
        self._name, self._c_macros = name, c_macros
        self._remarks, self._command = remarks, command
        self._words = TokenStream(script, part=part)
        self._definitions = CDefinitionTexts(self._words)
        self._statements = StatementReader(self._words, CMacroUses(c_macros).expression)
        self.definitions: list[CDefinition] = []
        self.settings: list[ConfigSetting] | None = None
        self.imports: list[StringLiteral] = []
        self.maps: list[MapDeclaration] = []
        self.macros: list[Macro] = []
        self.probes: list[Probe] = []

    def head(self) -> None:
        """Definitions in C, the config block and imports."""
        words = self._words
        if words.begins("#!"):
            end = words.source.find("\n", words.start, words.limit)
            words.go(words.limit if end < 0 else end)
        while (found := self._definitions.next()) is not None:
            self.definitions.append(found)
        while words.word in ("config", "import"):
            if words.word == "import":
                self.imports.append(self._statements.imported(words.start))
            elif self._name:
                raise words.failure("invalid `config` within import")
            elif self.settings is not None:
                raise words.failure("duplicate config block")
            else:
                self._config()

    def body(self, known: frozenset[str]) -> None:
        """Probes, macros and maps.

        Args:
            known: names of values that the definitions give.
        """
        words = self._words
        if self._name.endswith(_HEADER) and not words.is_at_end:
            raise words.failure("of a header only types and macros can be read")
        self._statements.expressions.known = known
        while not words.is_at_end:
            self._top()
        for one in (*self.imports, *self._statements.imports):
            if is_library(one.value.decode(errors="surrogateescape")):
                continue
            if one not in self.imports:
                self._remarks.error("import it in front of all probes", one.span)
            elif words.script.imported is None:
                self._remarks.error("files cannot be imported here", one.span)

    def _top(self) -> None:
        words = self._words
        word = words.word
        late = self._definitions.next()
        if late is not None:
            raise words.failure("C definitions must appear before probes and functions", late.span)
        if word == "config":
            raise words.failure("config must appear before probes and functions")
        if word == "import":
            raise words.failure("root imports must appear before probes and functions")
        if word == "macro":
            self.macros.append(self._macro())
        elif word == "fn":
            raise words.failure(
                "functions of a script's own are not supported: write a macro instead"
            )
        elif word == "let":
            self._map_declaration()
        else:
            self.probes.append(self._probe())

    # -- config, macros, maps -----------------------------------------------------------------

    def _config(self) -> None:
        words = self._words
        words.next()
        words.expect("=")
        words.expect("{")
        settings: list[ConfigSetting] = []
        while words.word != "}":
            start = words.start
            name = words.name("expected config key")
            words.expect("=")
            value = self._setting()
            settings.append(ConfigSetting(words.span(start), name, value))
            if words.word != "}":
                words.expect(";")
        words.next()
        self.settings = settings

    def _setting(self) -> int | str | bool:
        words = self._words
        if words.kind == STRING or words.begins('"'):
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
        parameters: list[ScratchName | MapName | Name] = []
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

    def _macro_parameter(self) -> ScratchName | MapName | Name:
        words = self._words
        kind, word = words.kind, words.word
        start = words.start
        if kind in (VARIABLE, MAP):
            words.next()
            span = words.span(start)
            return ScratchName(span, word[1:]) if kind == VARIABLE else MapName(span, word[1:])
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
        self.maps.append(MapDeclaration(words.span(start), MapName(place, name), kind, entries))

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
        """The attach points that one between two commas stands for."""
        words = self._words
        start = words.start
        match = _POINT.match(words.source, start, words.limit)
        assert match is not None, "every part of the pattern may be empty"
        if not match[0]:
            raise words.failure("expected attach point")
        words.go(match.end())
        span = Span(start, match.end())
        text = match[0] if '"' in match[0] else _SPACED_COLON.sub(":", match[0])
        found = attach_points(text, span, self._remarks, self._command)
        if any(remark.text == NEEDS_SPACE for remark in self._remarks.found[-1:]):
            self._remarks.raise_errors()  # what follows is read wrongly
        return list(found)
