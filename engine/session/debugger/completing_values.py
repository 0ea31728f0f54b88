"""Names in expressions for completion: registers, members, variables, enumerators, types.

What stands where is looked up, never computed: no function of the program is called for a
completion, and nothing is changed.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from engine.guest.modules import Module
from engine.image.datatypes import Member, TypeKind
from engine.image.names import NamedEntry
from engine.language.evaluation import evaluate
from engine.language.languages import GO, RUST, C
from engine.language.macros import MacroDefinition
from engine.language.value_types import CType
from engine.session.debugger.completing_names import TROUBLE, OfferedFunctions, path_starts
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.places import CodePlace
from engine.session.protocol.views import RunState

_DEEP: Final = 16
_WORD: Final = re.compile(r"(?:\(anonymous namespace\)::)?(?:::)?[A-Za-z_~][\w:~.]*$")
_PLAIN: Final = re.compile(r"(?:\(anonymous namespace\)::)?[A-Za-z_~][\w:~]*$")
_DOLLAR: Final = re.compile(r"\$\w*$")
_MEMBER: Final = re.compile(r"(\.|->)\s*([\w~]*)$")
_TAG: Final = re.compile(r"\b(struct|union|class|enum)\s+([\w:]*)$")
_CAST: Final = re.compile(r"_cast<\s*([\w:]*)$")
_TEMPLATE: Final = re.compile(r"[A-Za-z_][\w:]*<[\w:<>,* &]*$")
_STATIC: Final = re.compile(r"(?:'([^']+)'|([\w:.]+))::(\w*)$")
_NAME: Final = re.compile(r"(?<![\w$.>])[A-Za-z_](?:\w|::)*")
_KEYWORDS: Final = frozenset(
    (
        "sizeof",
        "struct",
        "union",
        "class",
        "enum",
        "const",
        "volatile",
        "signed",
        "unsigned",
        "this",
        "self",
        "reinterpret_cast",
        "static_cast",
        "dynamic_cast",
        "const_cast",
    )
)
_NAMED: Final = ("variable", "type", "enumerator", "struct", "union", "enum")
_OWN: Final = ("pc", "sp", "fp")
_BASIC: Final = (
    "bool",
    "char",
    "double",
    "float",
    "int",
    "long",
    "long double",
    "long long",
    "short",
    "signed char",
    "unsigned char",
    "unsigned int",
    "unsigned long",
    "unsigned long long",
    "unsigned short",
    "void",
)
_RECORDS: Final = ("struct", "class")
_UNWRITTEN: Final = re.compile(r"\boperator (?!\()|[({#]|^\W*operator\b")
"""In names of C++ that no expression has: conversions, lambdas, namespaces without a name."""
_OPERATOR: Final = re.compile(r"operator[^\w\s]+")
_RUST_PATH: Final = re.compile(r"\w+(::\w+)*")
_GO_NAME: Final = re.compile(r"\w+(\.\w+)?")
_PROBED: Final = "_probe_arg"
_UNNAMED: Final = "(anonymous namespace)::"


class OfferedValues:
    """Completes the last word of expressions."""

    def __init__(self, debugger: Debugger, functions: OfferedFunctions) -> None:
        """Read nothing before the first question."""
        self._debugger, self._functions = debugger, functions
        self._listed: dict[tuple[int, str], tuple[Module, tuple[str, ...]]] = {}
        self._place: CodePlace | None = None
        self.known_macros: Callable[[], Mapping[str, MacroDefinition]] = dict

    def completed_at(self, place: CodePlace, text: str) -> tuple[int, list[str]]:
        """`completed` where the variables are those of a place: of a breakpoint's condition."""
        self._place = place
        try:
            column, found = self.completed(text, types=False)
            return column, list(found)
        finally:
            self._place = None

    def completed(self, text: str, *, types: bool) -> tuple[int, Iterable[str]]:
        """The column from which on the last word of an expression may be others, and those.

        Args:
            text: the expression.
            types: a type may stand there, too.
        """
        if dollar := _DOLLAR.search(text):
            return dollar.start(), self._dollars(dollar[0])
        if tag := _TAG.search(text):
            return tag.start(2), self._tags(tag[1], tag[2])
        if cast := _CAST.search(text):
            return cast.start(1), self.named(cast[1], "type")
        if (member := _MEMBER.search(text)) and not self._is_go_path(text):
            begin = begin_of_value(text[: member.start()].rstrip())
            return member.start(2), begun(member[2], self._members(text[begin : member.start()]))
        if (static := _STATIC.search(text)) and (found := self._statics(static)):
            return static.start(3), found
        if template := _TEMPLATE.search(text):
            made = list(self._templates(template[0]))
            if made:
                return template.start(), made
        pattern = _WORD if self._dotted else _PLAIN
        word = pattern.search(text)
        if word is None:
            return len(text), self._locals("") if _begins_value(text) else ()
        if word.start() and re.search(r"[\w.\]]$", text[: word.start()]):
            return len(text), ()  # the letters behind a number: 0x
        shown = word[0].removeprefix("::")
        things = self._things(shown, types=types, local=shown == word[0])
        if text[: word.start()].endswith("'"):
            return word.start(), (f"{one}'" for one in things)
        return word.end() - len(shown), things

    def registers(self, typed: str) -> list[str]:
        """The registers of the program, and their parts, as `info registers` takes them."""
        arch = self._debugger.control.session.arch
        names = [name for one in arch.registers for name in (one.name, *one.aliases)]
        names += [*arch.slices]
        names += [name[:-1] for name in names if re.fullmatch(r"ymm\d+h", name)]
        return begun(typed, dict.fromkeys((*_OWN, *names)))

    def code(self, typed: str) -> list[str]:
        """Functions as an expression can name them."""
        return [one for one in self._functions.begun(typed) if self._is_written(one)]

    def named(self, typed: str, kind: str) -> list[str]:
        """The program's own names of a kind, "type" or "variable"."""
        main = self._functions.modules()[:1]
        return sorted(one for module in main for one in begun(typed, self._of(module, kind)))

    def begun_macros(self, typed: str) -> list[str]:
        """Macros that are defined where the user looks."""
        return sorted(begun(typed, self.known_macros()))

    @property
    def _dotted(self) -> bool:
        """True where dots are a part of names: in Go."""
        try:
            return self._debugger.scope.go is not None
        except TROUBLE:
            return False

    def _is_go_path(self, text: str) -> bool:
        """True for a package in front of a dot: "main.gr"."""
        word = _WORD.search(text) if self._dotted else None
        if word is None:
            return False
        front = word[0].partition(".")[0]
        return front not in self._locals(front)

    def _dollars(self, typed: str) -> list[str]:
        """Registers, the user's own variables, variables and functions of the debugger's own."""
        own = (name for name in self._debugger.kept.names if not name.startswith(_PROBED))
        return begun(typed, (f"${name}" for name in dict.fromkeys((*self.registers(""), *own))))

    # -- members -----------------------------------------------------------------------------

    def _members(self, text: str) -> Iterator[str]:
        """The members of what an expression means, those of base classes too."""
        if not text.strip() or re.search(r"[\w\])]\s*\(|=[^=]|\+\+|--", text):
            return  # nothing is called or changed
        if self._debugger.state is RunState.RUNNING or not self._are_known(text):
            return
        try:
            kind = evaluate(text, self._debugger.scope).type.resolved
            for _ in range(_DEEP):  # of a pointer to a pointer gdb offers the same
                if kind.kind is not TypeKind.POINTER or kind.target is None:
                    break
                kind = kind.target.resolved
            yield from _member_names(kind.members, 0)
            yield from (name.rpartition("::")[2] for _, name in kind.statics)
            yield from self._methods(kind, 0)
        except TROUBLE:
            return

    def _are_known(self, text: str) -> bool:
        """False if a name of an expression is nobody's: a search would read all of every file."""
        main = self._functions.modules()[:1]
        for match in _NAME.finditer(text):
            name = match[0]
            known = name in _KEYWORDS or name in self._locals(name) or "::" in name
            known = known or any(
                name in self._of(module, kind) for module in main for kind in _NAMED
            )
            found = (module.symbols.find(name) for module in self._functions.modules())
            if not known and name not in self.known_macros() and not any(found):
                return False
        return True

    def _methods(self, kind: CType, depth: int) -> Iterator[str]:
        """The functions of a class and of its bases that the program has."""
        spelled = kind.text.replace(" ", "")  # a demangler sets blanks elsewhere
        own = spelled[max(path_starts(spelled), default=0) :].partition("<")[0]
        for module in self._functions.modules()[:1] if kind.members else ():
            for name in self._functions.of(module):
                bare = name.bare.replace(" ", "")
                method = bare.removeprefix(f"{spelled}::")
                is_plain = method.isidentifier() or _OPERATOR.fullmatch(method) is not None
                if is_plain and name.bare.endswith(method) and method not in (bare, own):
                    yield method
        for member in kind.members if depth < _DEEP else ():
            if member.is_base:
                yield from self._methods(member.type.resolved, depth + 1)

    # -- names -------------------------------------------------------------------------------

    def _locals(self, typed: str) -> list[str]:
        """Variables of the frame, or of the place that is asked for."""
        debugger = self._debugger
        there = [] if self._place is None else self._at(self._place.address)
        if there:
            return begun(typed, there)
        if not debugger.started or debugger.state is RunState.RUNNING:
            return []
        try:
            names = dict.fromkeys(one.name for one in debugger.scope.locals())
            return [name for name in begun(typed, names) if name.isidentifier()]
        except TROUBLE:
            return []

    def _at(self, address: int) -> list[str]:
        """Variables of the function at an address."""
        for module in self._functions.modules():
            if module.covers(address):
                try:
                    scope = self._debugger.files.scope(module, address - module.bias)
                except TROUBLE:
                    scope = None
                return list(dict.fromkeys(one.name for one in scope.visible)) if scope else []
        return []

    def _things(self, typed: str, *, types: bool, local: bool) -> Iterator[str]:
        """Variables of the frame, then names of the program; its libraries' if it has none."""
        language = self._debugger.scope.language
        kinds = ["variable", "enumerator", "type"]
        if types:
            kinds = ["type", "variable", "enumerator"]
        elif language is not C:  # casts name no types there
            kinds.remove("type")
        found = self._locals(typed) if local else []
        for module in self._functions.modules()[:1]:
            for kind in (*kinds, "data"):
                names = begun(typed, self._of(module, kind))
                found += sorted(one for one in names if self._is_written(one, is_type=types))
            if language is RUST and not types:
                found += self._variants(module, typed)
        found += self._macros(typed)
        if language is C:
            found += begun(typed, _BASIC)
        for module in self._functions.modules()[:1]:
            names = begun(typed, (one.bare for one in self._functions.of(module)))
            found += sorted(one for one in dict.fromkeys(names) if self._is_written(one))
        if not found and language is not RUST:  # whose expressions have none of libraries of C
            found = [n for n in self._functions.begun(typed, parts=False) if self._is_written(n)]
            for module in self._functions.modules():
                found += sorted(begun(typed, self._of(module, "data")))
        yield from found

    def _variants(self, module: Module, typed: str) -> list[str]:
        """Variants of Rust's enumerations, which are types within types."""
        known = frozenset(self._of(module, "type"))
        names = sorted(begun(typed, known))
        return [n for n in names if n.rpartition("::")[0] in known and self._is_written(n)]

    def _macros(self, typed: str) -> list[str]:
        """Macros, with the bracket of the arguments that some take."""
        known = self.known_macros()
        names = sorted(begun(typed, known))
        return [name if known[name].parameters is None else f"{name}(" for name in names]

    def _is_written(self, name: str, *, is_type: bool = False) -> bool:
        """True for the name of a function or type that an expression of the language can have."""
        language = self._debugger.scope.language
        if language is RUST:
            return is_type or _RUST_PATH.fullmatch(name) is not None
        if language is GO:
            return _GO_NAME.fullmatch(name) is not None
        return not _UNWRITTEN.search(name.replace("operator()", ""))

    def _templates(self, typed: str) -> Iterator[str]:
        """Types and functions of a template whose arguments are being typed."""
        for module in self._functions.modules()[:1]:
            yield from sorted(begun(typed, self._of(module, "type")))
        yield from filter(self._is_written, self._functions.begun(typed, parts=False))

    def _tags(self, word: str, typed: str) -> list[str]:
        """Structures, unions, classes or enumerations by the word in front."""
        kind = _RECORDS[0] if word in _RECORDS else word
        if self._debugger.scope.language is not C:
            return []
        for module in self._functions.modules()[:1]:
            return sorted(begun(typed, self._of(module, kind)))
        return []

    def _statics(self, match: re.Match[str]) -> list[str]:
        """Static variables of a function, or the variables of a source file."""
        name = match[1] or match[2]
        for module in self._functions.modules()[:1]:
            if all(name != one.bare for one in self._functions.of(module)):
                continue
            try:
                names = self._debugger.files.names(module)
                found = names.function(name) if names is not None else None
                if found is not None:
                    scope = self._debugger.files.variables(module).scope(found[1])
                    visible = scope.visible if scope is not None else ()
                    kept = begun(match[3], dict.fromkeys(one.name for one in visible))
                    return [one for one in kept if self._is_there(one, name)]
            except TROUBLE:
                return []
        return self.named(match[3], "variable") if "." in name else []

    def _is_there(self, name: str, function: str) -> bool:
        """True if a function's variable has a value: it is kept, or the function is at work."""
        try:
            return self._debugger.scope.variable(name, function) is not None
        except TROUBLE:
            return False

    def _of(self, module: Module, kind: str) -> tuple[str, ...]:
        """Names of a file by kind, read once."""
        key = id(module.image), kind
        if key not in self._listed:
            try:
                names = dict.fromkeys(self._read(module, kind))
            except TROUBLE:
                names = {}
            self._listed[key] = module, tuple(names)
        return self._listed[key][1]

    def _read(self, module: Module, kind: str) -> Iterator[str]:
        if kind == "data":
            for symbol in module.symbols:
                if symbol.kind in ("object", "tls", "notype") and not symbol.is_function:
                    name = symbol.name.partition("@")[0]
                    if name.isidentifier():
                        yield name
            return
        known = self._debugger.files.names(module)
        if known is None:
            return
        if kind in ("variable", "enumerator"):
            for one in known.listed(kind):
                if one.name[:1] not in ("", "."):
                    yield one.name.removeprefix(_UNNAMED)
            return
        for entry in known.listed("type"):
            if entry.name and entry.name[:1] != "." and _is_of(entry, kind):
                yield entry.name


def _is_of(entry: NamedEntry, kind: str) -> bool:
    """True for a type that may stand behind a word: "struct", "union", "enum", or "type": none."""
    if kind == "type":
        words = ("struct ", "union ", "class ", "enum ", "interface ")
        return entry.alias is not None or not entry.type.text.startswith(words)
    if entry.alias is not None:
        return False
    if kind == "enum":
        return entry.type.kind is TypeKind.ENUM
    return entry.type.keyword in (_RECORDS if kind == _RECORDS[0] else (kind,))


def _member_names(members: Iterable[Member], depth: int) -> Iterator[str]:
    for member in members:
        if member.name:
            yield from (member.name,) if member.name.isidentifier() else ()  # no _vptr.Base
        elif depth < _DEEP:  # a base class, or a structure without a name
            yield from _member_names(member.type.resolved.members, depth + 1)


def _begins_value(text: str) -> bool:
    """True if another value is wanted at the end of a text: behind an operator, a bracket."""
    if not text.strip():
        return True
    if re.search(r"::$|\w<$", text):
        return False
    return (
        text[-1] in "(,=+-*/%&|^!~?:<>[{@"
        or re.search(r"[-(,=+*/%&|^!~?:<>\[]\s+$", text) is not None
    )


def begun(typed: str, names: Iterable[str]) -> list[str]:
    """The names that begin so."""
    return [name for name in names if name.startswith(typed)]


def begin_of_value(text: str) -> int:
    """The column at which the last value of a text begins: the a of "1 + a.b[i]"."""
    at, depth = len(text), 0
    while at:
        letter = text[at - 1]
        if letter in ")]":
            depth += 1
        elif letter in "([":
            if not depth:
                break
            depth -= 1
        elif not depth and not (letter.isalnum() or letter in "_$.:" or text[at - 2 : at] == "->"):
            if letter == "-" and text[at : at + 1] == ">":
                at -= 1
                continue
            break
        at -= 1
    return at
