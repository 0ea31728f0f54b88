"""The arguments of gdb's words, as data for completion.

A `Grammar` has the words and options that a word of its own takes, and the kind of all else. Only
what the words here carry out is in it; gdb's own list is longer.
"""

import re
from enum import Enum
from typing import Final

from msgspec import Struct


class ArgumentKind(Enum):
    """The kind of a text behind a word."""

    NOTHING = "nothing that is known"
    VALUE = "an expression"
    COUNT = "an expression, mostly a number"
    TYPE = "a type or an expression"
    TYPE_NAME = "a type of the program"
    VARIABLE_NAME = "a variable of the program's files"
    PLACE = "a place, perhaps with a condition"
    LISTED = "a place with source lines"
    CODE = "a function, as expressions name them"
    PATTERN = "a function's name, as a regular expression"
    FUNCTION = "a function"
    FILE = "a file of the host"
    FILE_THEN_VALUE = "a file of the host, then expressions"
    SOURCE = "a source file"
    STOPS = "numbers of breakpoints"
    STOP_THEN_VALUE = "a number of a breakpoint, then an expression"
    DISPLAYS = "numbers of displays"
    FRAME = "a number of a frame"
    THREADS = "numbers of threads"
    SIGNALS = "signals"
    ACTIONS = "signals, and what is done with them"
    CALLS = "system calls"
    REGISTERS = "registers"
    MACRO = "a macro"
    MARK = "a bookmark"
    MOMENT = "a bookmark, or an end of the recording"
    LINE = "another line"
    SETTING = "a setting and its value"
    SHOWN = "a setting"
    SETTING_THEN_LINE = "a setting and its value, then another line behind --"
    PRINTED = "options of print, then an expression"
    INFO = "a subject of info"
    WORD = "a word of gdb's"
    SCRIPT = "a script of bpftrace"


class Grammar(Struct, frozen=True):
    """The arguments of a word.

    Attributes:
        kind: of what stands behind its own words and options.
        words: that it takes first, each with what that takes.
        options: that it takes before all else, as often as wanted, each with what it takes; None
            for an option that stands alone.
        skipped: words of this pattern stand before all else, too: numbers.
    """

    kind: ArgumentKind = ArgumentKind.NOTHING
    words: "dict[str, Grammar]" = {}
    options: "dict[str, ArgumentKind | None]" = {}
    skipped: str = ""


class Position(Struct, frozen=True):
    """The end of a line within the arguments of its word.

    Attributes:
        grammar: what is taken there.
        rest: what is typed of it.
        first: nothing of it stands before `rest`, so that its own words may follow.
        kind: of the rest.
    """

    grammar: Grammar
    rest: str
    first: bool
    kind: ArgumentKind


def _alone(*words: str) -> dict[str, Grammar]:
    return {word: Grammar() for word in words}


_FLAGS: Final[dict[str, ArgumentKind | None]] = {"-q": None, "-c": None, "-s": None}
_LINE: Final = Grammar(ArgumentKind.LINE, options=_FLAGS)
_NUMBERED_LINE: Final = Grammar(ArgumentKind.LINE, options=_FLAGS, skipped=r"-?\d[\d.-]*")
_VALUE: Final = Grammar(ArgumentKind.VALUE)
_STOPS: Final = Grammar(ArgumentKind.STOPS)
_FILE: Final = Grammar(ArgumentKind.FILE)
_FUNCTION: Final = Grammar(ArgumentKind.FUNCTION)
_PLACE: Final = Grammar(
    ArgumentKind.PLACE,
    options={
        "-function": ArgumentKind.FUNCTION,
        "-source": ArgumentKind.SOURCE,
        "-line": ArgumentKind.NOTHING,
        "-qualified": None,
        "-probe": ArgumentKind.NOTHING,
        "-probe-stap": ArgumentKind.NOTHING,
    },
)
_WATCHED: Final = Grammar(ArgumentKind.VALUE, options={"-location": None, "-l": None})
_CAUGHT: Final = Grammar(
    words={
        "syscall": Grammar(ArgumentKind.CALLS),
        "signal": Grammar(ArgumentKind.SIGNALS, words=_alone("all")),
        **_alone("fork", "vfork", "exec", "throw", "rethrow", "catch", "rust-panic"),
    }
)
_TRACE: Final = Grammar(words=_alone("full"), options={"-full": None})
_WRITTEN: Final = {
    "memory": Grammar(ArgumentKind.FILE_THEN_VALUE),
    "value": Grammar(ArgumentKind.FILE_THEN_VALUE),
}
_DUMPED: Final = Grammar(words={"binary": Grammar(words=_WRITTEN), **_WRITTEN})
_NUMBERED: Final = Grammar(ArgumentKind.STOPS, skipped=r"\d+")
_FOUND: Final[dict[str, ArgumentKind | None]] = {"-q": None, "-n": None, "-t": ArgumentKind.TYPE}

GRAMMAR: Final[dict[str, Grammar]] = {
    **dict.fromkeys(("print", "call"), Grammar(ArgumentKind.PRINTED)),
    **dict.fromkeys(
        ("output", "x", "display", "printf", "return", "find", "if", "while", "last-write"),
        _VALUE,
    ),
    **dict.fromkeys(("origin", "first-time", "last-time"), _VALUE),
    **dict.fromkeys(("step", "next", "stepi", "nexti"), Grammar(ArgumentKind.COUNT)),
    **dict.fromkeys(("up", "down", "continue"), Grammar(ArgumentKind.COUNT)),
    **dict.fromkeys(("whatis", "ptype"), Grammar(ArgumentKind.TYPE)),
    **dict.fromkeys(("break", "tbreak", "hbreak", "thbreak"), _PLACE),
    **dict.fromkeys(("until", "advance", "clear", "jump", "dprintf"), _PLACE),
    "list": Grammar(ArgumentKind.LISTED),
    "rbreak": Grammar(ArgumentKind.PATTERN),
    "disassemble": Grammar(ArgumentKind.CODE, options={"/s": None, "/m": None, "/r": None}),
    **dict.fromkeys(("watch", "rwatch", "awatch"), _WATCHED),
    **dict.fromkeys(("catch", "tcatch"), _CAUGHT),
    "backtrace": _TRACE,
    "frame": Grammar(
        ArgumentKind.FRAME,
        words={
            "level": Grammar(ArgumentKind.FRAME),
            "function": _FUNCTION,
            "address": _VALUE,
            "apply": Grammar(
                ArgumentKind.LINE, words={"all": _LINE, "level": _NUMBERED_LINE}, skipped=r"-?\d+"
            ),
        },
    ),
    "thread": Grammar(
        ArgumentKind.THREADS,
        words={
            "apply": Grammar(ArgumentKind.LINE, {"all": _LINE}, _FLAGS, r"\d[\d.-]*"),
            **_alone("name", "find"),
        },
    ),
    "goroutine": Grammar(ArgumentKind.LINE, words={"all": _LINE}, skipped=r"\d+"),
    **dict.fromkeys(("faas", "taas", "tfaas", "pipe", "complete"), _LINE),
    "delete": Grammar(
        ArgumentKind.STOPS,
        words={"breakpoints": _STOPS, "display": Grammar(ArgumentKind.DISPLAYS)},
    ),
    "enable": Grammar(
        ArgumentKind.STOPS,
        words={
            "breakpoints": _STOPS,
            "once": _STOPS,
            "delete": _STOPS,
            "count": _NUMBERED,
            "display": Grammar(ArgumentKind.DISPLAYS),
        },
    ),
    "disable": Grammar(
        ArgumentKind.STOPS,
        words={"breakpoints": _STOPS, "display": Grammar(ArgumentKind.DISPLAYS)},
    ),
    "undisplay": Grammar(ArgumentKind.DISPLAYS),
    "condition": Grammar(ArgumentKind.STOP_THEN_VALUE),
    "ignore": Grammar(ArgumentKind.STOP_THEN_VALUE),
    "commands": _STOPS,
    "skip": Grammar(
        ArgumentKind.FUNCTION,
        words={
            "function": _FUNCTION,
            "file": Grammar(ArgumentKind.SOURCE),
            **_alone("delete", "enable", "disable"),
        },
        options={
            "-file": ArgumentKind.SOURCE,
            "-gfile": ArgumentKind.SOURCE,
            "-function": ArgumentKind.FUNCTION,
            "-rfunction": ArgumentKind.NOTHING,
        },
    ),
    "handle": Grammar(ArgumentKind.ACTIONS),
    "signal": Grammar(ArgumentKind.SIGNALS),
    "macro": Grammar(
        words={
            "expand": Grammar(ArgumentKind.VALUE),
            "undef": Grammar(ArgumentKind.MACRO),
            **_alone("define", "list"),
        }
    ),
    "record": Grammar(
        words={**_alone("full", "stop"), "goto": Grammar(ArgumentKind.MOMENT)},
    ),
    "goto": Grammar(ArgumentKind.MOMENT),
    "unmark": Grammar(ArgumentKind.MARK),
    "save": Grammar(words={"breakpoints": _FILE}),
    "source": Grammar(ArgumentKind.FILE, options={"-v": None}),
    **dict.fromkeys(("generate-core-file", "tty", "directory", "run", "start", "starti"), _FILE),
    "shell": _FILE,
    "restore": Grammar(ArgumentKind.FILE_THEN_VALUE),
    **dict.fromkeys(("dump", "append"), _DUMPED),
    "set": Grammar(
        ArgumentKind.SETTING,
        words={
            "variable": _VALUE,
            "var": _VALUE,
            "environment": Grammar(),
            "args": _FILE,
            "inferior-tty": _FILE,
            "substitute-path": _FILE,
        },
    ),
    "show": Grammar(
        ArgumentKind.SHOWN,
        words=_alone(
            "args",
            "convenience",
            "directories",
            "environment",
            "inferior-tty",
            "substitute-path",
            "user",
            "values",
            "version",
        ),
    ),
    "unset": Grammar(words=_alone("environment", "substitute-path")),
    "with": Grammar(ArgumentKind.SETTING_THEN_LINE),
    "info": Grammar(ArgumentKind.INFO),
    "help": Grammar(ArgumentKind.WORD, words={"info": Grammar(ArgumentKind.INFO)}),
    "bpftrace": Grammar(ArgumentKind.SCRIPT),
    # The interface's own.
    **dict.fromkeys(("load", "write", "snapshot", "export"), _FILE),
    "examine": _VALUE,
}
INFO: Final[dict[str, Grammar]] = {
    **dict.fromkeys(("registers", "all-registers"), Grammar(ArgumentKind.REGISTERS)),
    **dict.fromkeys(("breakpoints", "watchpoints"), _STOPS),
    "display": Grammar(),
    "line": Grammar(ArgumentKind.PLACE),
    "scope": Grammar(ArgumentKind.LISTED),
    "address": _VALUE,
    **dict.fromkeys(("frame", "symbol", "vtbl"), _VALUE),
    "proc": Grammar(words=_alone("mappings")),
    "signals": Grammar(ArgumentKind.SIGNALS),
    "threads": Grammar(ArgumentKind.THREADS),
    "functions": Grammar(ArgumentKind.PATTERN, options=_FOUND),
    "variables": Grammar(ArgumentKind.VARIABLE_NAME, options=_FOUND),
    "types": Grammar(ArgumentKind.TYPE_NAME, options={"-q": None}),
    "stack": _TRACE,
    "macro": Grammar(ArgumentKind.MACRO, options={"-all": None}),
    "probes": Grammar(words=_alone("all", "stap")),
}


def position(grammar: Grammar, rest: str) -> Position:
    """Find where the end of a text is in what a word takes.

    Words may be cut short where one alone begins so; an option that takes something is followed
    by it.
    """
    first = True
    while True:
        word, space, behind = rest.partition(" ")
        if not space:
            return Position(grammar, rest, first, grammar.kind)
        inner = _inner(grammar, word) if first else None
        if inner is not None:
            grammar, rest, first = inner, behind.lstrip(" "), True
            continue
        option = _option(grammar, word)
        if option:
            kind, rest = grammar.options[option], behind.lstrip(" ")
            if kind is not None:
                last = kind in (ArgumentKind.FUNCTION, ArgumentKind.TYPE) and " -" not in rest
                if " " not in rest or last:
                    return Position(Grammar(), rest, False, kind)
                rest = rest.partition(" ")[2].lstrip(" ")
            continue
        if grammar.skipped and re.fullmatch(grammar.skipped, word):
            rest, first = behind.lstrip(" "), False
            continue
        return Position(grammar, rest, False, grammar.kind)


def _option(grammar: Grammar, word: str) -> str:
    """The option that a word is, which may be cut short; "" for none."""
    found = [name for name in grammar.options if name.startswith(word)]
    is_clear = len(found) == 1 and word[:1] == "-" and len(word) > 1
    return word if word in grammar.options else found[0] if is_clear else ""


def _inner(grammar: Grammar, word: str) -> Grammar | None:
    found = [name for name in grammar.words if word and name.startswith(word)]
    exact = grammar.words.get(word)
    return exact or (grammar.words[found[0]] if len(found) == 1 else None)
