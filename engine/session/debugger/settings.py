"""gdb's settings: the values behind `set`, `show`, `with` and `$_gdb_setting`.

A setting that changes nothing here keeps its value, as scripts set many of them; one that has a
single value here says so when it is given another one.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Final

from msgspec import Struct, convert

from engine.errors import CommandError
from engine.language.print_options import UNLIMITED, PrintOptions
from engine.language.value_types import CHAR, INT, UNSIGNED, array_of
from engine.language.values import Order, TypedValue, made
from engine.session.debugger.inert_settings import InertSettings

SettingValue = bool | int | str | None
"""A switch, a limit (None for unlimited) or a word."""
_ON: Final = ("", "on", "1", "yes", "enable")
_OFF: Final = ("off", "0", "no", "disable")


_STRANGE: Final = ("unknown", "ada", "d", "fortran", "modula-2", "objective-c", "opencl", "pascal")
"""Languages of gdb's that have no expressions here."""


class SettingKind(Enum):
    """The kind of a setting's value."""

    SWITCH = "switch"
    LIMIT = "limit"  # 0 stands for unlimited
    COUNT = "count"  # -1 stands for unlimited
    WORD = "word"
    TEXT = "text"


class GdbSetting(Struct, frozen=True):
    """A setting.

    Attributes:
        name: of it, all words.
        shown: the sentence of `show`, with {} for the value.
        kind: of its value.
        default: the value that holds until another one is set.
        only: the values that it may have; empty for all of its kind.
        option: the field of `PrintOptions` that it is, "" for none.
    """

    name: str
    shown: str
    kind: SettingKind
    default: SettingValue
    only: tuple[SettingValue, ...] = ()
    option: str = ""


def _switch(
    name: str, shown: str, default: bool, option: str = "", *, only: bool = False
) -> GdbSetting:
    values = (default,) if only else ()
    return GdbSetting(name, shown, SettingKind.SWITCH, default, values, option)


def _text(name: str, shown: str, default: str) -> GdbSetting:
    return GdbSetting(name, shown, SettingKind.TEXT, default)


_PRINTING: Final = (
    GdbSetting(
        "print elements",
        "Limit on string chars or array elements to print is {}.",
        SettingKind.LIMIT,
        200,
        option="elements",
    ),
    GdbSetting(
        "print repeats",
        "Threshold for repeated print elements is {}.",
        SettingKind.LIMIT,
        10,
        option="repeats",
    ),
    GdbSetting(
        "print max-depth", "Maximum print depth is {}.", SettingKind.COUNT, 20, option="depth"
    ),
    _switch("print pretty", "Pretty formatting of structures is {}.", False, "pretty"),
    _switch("print array", "Pretty formatting of arrays is {}.", False, "array"),
    _switch("print array-indexes", "Printing of array indexes is {}.", False, "indexes"),
    _switch("print address", "Printing of addresses is {}.", True, "address"),
    _switch("print symbol", "Printing of symbols when printing pointers is {}.", True, "symbol"),
    _switch("print union", "Printing of unions interior to structures is {}.", True, "union"),
    _switch("print static-members", "Printing of C++ static members is {}.", True, "statics"),
    _switch(
        "print object",
        "Printing of object's derived type based on vtable info is {}.",
        False,
        "object",
    ),
    _switch("print raw-values", "Whether to print values in raw form is {}.", False, "raw"),
    GdbSetting(
        "output-radix",
        "Default output radix for printing of values is {}.",
        SettingKind.COUNT,
        10,
        (10, 16, 8),
        "radix",
    ),
    _switch(
        "print asm-demangle", "Demangling of C++/ObjC names in disassembly listings is {}.", False
    ),
    _switch("print vtbl", "Printing of C++ virtual function tables is {}.", False, "tables"),
    _switch(
        "print null-stop",
        "Printing of char arrays to stop at first null char is {}.",
        False,
        "null_stop",
    ),
)
_ARGUMENTS: Final = ("all", "scalars", "none", "presence")
_OTHERS: Final = (
    GdbSetting(
        "print frame-arguments",
        'Printing of non-scalar frame arguments is "{}".',
        SettingKind.WORD,
        "scalars",
        _ARGUMENTS,
    ),
    GdbSetting(
        "print entry-values",
        'Printing of function arguments at function entry is "{}".',
        SettingKind.WORD,
        "default",
        ("no", "only", "preferred", "if-needed", "both", "compact", "default"),
    ),
    _switch("print thread-events", "Printing of thread events is {}.", True),
    _switch("print inferior-events", "Printing of inferior events is {}.", True),
    _switch(
        "print sevenbit-strings", "Printing of 8-bit characters in strings as \\nnn is {}.", False
    ),
    GdbSetting(
        "listsize",
        "Number of source lines gdb will list by default is {}.",
        SettingKind.COUNT,
        10,
    ),
    GdbSetting(
        "width", "Number of characters gdb thinks are in a line is {}.", SettingKind.LIMIT, None
    ),
    GdbSetting(
        "height", "Number of lines gdb thinks are in a page is {}.", SettingKind.LIMIT, None
    ),
    GdbSetting("max-value-size", "Maximum value size is {} bytes.", SettingKind.COUNT, 65536),
    GdbSetting(
        "can-use-hw-watchpoints",
        "Debugger's willingness to use watchpoint hardware is {}.",
        SettingKind.COUNT,
        1,
    ),
    GdbSetting(
        "disassembly-flavor",
        'The disassembly flavor is "{}".',
        SettingKind.WORD,
        "att",
        ("att", "intel"),
    ),
    GdbSetting(
        "backtrace limit",
        "An upper bound on the number of backtrace levels is {}.",
        SettingKind.LIMIT,
        None,
    ),
    _switch("backtrace past-main", 'Whether backtraces should continue past "main" is {}.', False),
    _switch(
        "backtrace past-entry",
        "Whether backtraces should continue past the entry point of a program is {}.",
        False,
        only=True,
    ),
    GdbSetting(
        "input-radix",
        "Default input radix for entering numbers is {}.",
        SettingKind.COUNT,
        10,
        (10,),
    ),
    GdbSetting(
        "filename-display",
        'Filenames are displayed as "{}".',
        SettingKind.WORD,
        "relative",
        ("relative", "basename", "absolute"),
    ),
    GdbSetting(
        "disassemble-next-line",
        "Debugger's willingness to use disassemble-next-line is {}.",
        SettingKind.WORD,
        "off",
        ("off", "on", "auto"),
    ),
    GdbSetting(
        "scheduler-locking",
        'Mode for locking scheduler during execution is "{}".',
        SettingKind.WORD,
        "replay",
        ("off", "on", "step", "replay"),
    ),
    GdbSetting(
        "language",
        'The current source language is "{}".',
        SettingKind.WORD,
        "auto",
        ("auto", "local", "asm", "c", "c++", "go", "minimal", "rust"),
    ),
    _switch(
        "calls-on-copy", "Functions are called on a copy of memory, which is dropped: {}.", False
    ),
    _switch(
        "unwindonsignal",
        "Unwinding of stack if a signal is received while in a call dummy is {}.",
        False,
    ),
    _switch(
        "unwind-on-terminating-exception",
        "Unwind stack if a C++ exception is unhandled while in a call dummy is {}.",
        True,
    ),
    _switch("step-mode", "Mode of the step operation is {}.", False),
    _switch("trace-commands", "State of GDB CLI command tracing is {}.", False),
    _switch("print finish", "Printing of return value after `finish' is {}.", True),
    _switch("print demangle", "Demangling of encoded C++/ObjC names is {}.", True, only=True),
    _switch("print nibbles", "Printing binary values in groups is {}.", False, only=True),
    _switch(
        "print raw-frame-arguments",
        "Whether to print frame arguments in raw form is {}.",
        False,
        only=True,
    ),
    _switch(
        "print symbol-filename",
        "Printing of source filename and line number with <symbol> is {}.",
        False,
        only=True,
    ),
    GdbSetting(
        "print max-symbolic-offset",
        "The largest offset that will be printed in <symbol+1234> form is {}.",
        SettingKind.LIMIT,
        None,
        (None,),
    ),
    _switch("print type methods", "Printing of methods defined in a class in {}", True, only=True),
    _switch(
        "print type typedefs", "Printing of typedefs defined in a class in {}", True, only=True
    ),
    _switch(
        "print type hex",
        "Display of struct members offsets and sizes in hexadecimal is {}",
        False,
        only=True,
    ),
    GdbSetting(
        "case-sensitive",
        'Case sensitivity in name search is "{}".',
        SettingKind.WORD,
        "auto",
        ("auto", "on"),
    ),
    GdbSetting(
        "stop-on-solib-events",
        "Stopping for shared library events is {}.",
        SettingKind.COUNT,
        0,
        (0,),
    ),
    GdbSetting("annotate", "Annotation_level is {}.", SettingKind.COUNT, 0, (0,)),
    GdbSetting(
        "max-user-call-depth",
        "The max call depth for user-defined commands is {}.",
        SettingKind.LIMIT,
        200,
        (200,),
    ),
    _switch("observer", "Observer mode is {}.", False, only=True),
    _switch(
        "overload-resolution",
        "Overload resolution in evaluating C++ functions is {}.",
        True,
        only=True,
    ),
    _switch("check type", "Strict type checking is {}.", True, only=True),
    _switch("write", "Writing into executable and core files is {}.", False, only=True),
    GdbSetting("osabi", 'The current OS ABI is "{}".', SettingKind.TEXT, "auto"),
    _switch("pagination", "State of pagination is {}.", True),
    _switch("verbose", "Verbosity is {}.", False),
    _switch("startup-with-shell", "Use of shell to start subprocesses is {}.", True),
    _switch(
        "disable-randomization",
        "Disabling randomization of debuggee's virtual address space is {}.",
        True,
        only=True,
    ),
    _switch("non-stop", "Controlling the inferior in non-stop mode is {}.", False, only=True),
    _switch("editing", "Editing of command lines as they are typed is {}.", False),
    _switch("style enabled", "CLI output styling is {}.", False),
    _switch("style sources", "Source code styling is {}.", False),
    _text("debuginfod enabled", 'Debuginfod functionality is currently set to "{}".', "off"),
    _text("debuginfod verbose", "Debuginfod verbose output is set to {}.", "1"),
    _text("debuginfod urls", "Debuginfod URLs are currently set to:\n{}", ""),
    _text("prompt", 'Gdb\'s prompt is "{}".', "(gdb) "),
    _text("complaints", "Max number of complaints about incorrect symbols is {}.", "0"),
    _switch("logging enabled", "Logging is {}.", False),
    _switch(
        "logging overwrite", "Whether logging overwrites or appends to the log file is {}.", False
    ),
    _switch("logging redirect", "The logging output mode is {}.", False),
    _text("logging file", 'The current logfile is "{}".', "gdb.txt"),
    _switch("history save", "Saving of the history record on exit is {}.", False),
    _switch("history expansion", "History expansion on command input is {}.", False),
    _text("history filename", 'The filename in which to record the command history is "{}".', ""),
    _text("history size", "The size of the command history is {}.", "256"),
    _text(
        "history remove-duplicates",
        "Number of history entries to look back at for duplicates is {}.",
        "0",
    ),
    _text(
        "auto-load safe-path",
        "List of directories from which it is safe to auto-load files is {}.",
        "",
    ),
    _switch("auto-load python-scripts", "Auto-loading of Python scripts is {}.", False),
    _switch(
        "auto-load gdb-scripts",
        "Auto-loading of canned sequences of commands scripts is {}.",
        False,
    ),
    _switch(
        "auto-load local-gdbinit",
        "Auto-loading of .gdbinit script from current directory is {}.",
        False,
    ),
)
TABLE: Final = (*_PRINTING, *_OTHERS)


class SourceRules(Struct):
    """The places where source files are looked for besides those that compilers wrote down.

    Attributes:
        rules: (from, to): the begin of a path, and what stands for it.
        folders: that are searched, the first first.
    """

    rules: list[tuple[str, str]]
    folders: list[str]

    def candidates(self, path: str) -> Iterator[str]:
        """Paths at which a source file may be, the likeliest first."""
        for begin, other in self.rules:
            rest = path.removeprefix(begin)
            if rest != path and (not rest or rest[0] == "/" or begin.endswith("/")):
                path = other + rest
                break
        yield path
        for folder in self.folders:
            yield f"{folder.rstrip('/')}/{path.lstrip('/')}"
            yield f"{folder.rstrip('/')}/{path.rpartition('/')[2]}"


class SettingValues:
    """The values of all settings.

    Attributes:
        sources: where source files are looked for.
        inert: those that change nothing.
        changed: called after a change.
    """

    def __init__(self, changed: Callable[[], object]) -> None:
        """Start with the defaults; see the class for `changed`."""
        self.inert = InertSettings()
        self._values: dict[str, SettingValue] = {one.name: one.default for one in TABLE}
        self.sources = SourceRules([], [])
        self.changed = changed

    def __getitem__(self, name: str) -> SettingValue:
        """The value of a setting by its whole name."""
        return self._values[name]

    def limit(self, name: str) -> int:
        """The value of a limit; a number beyond all for an unlimited one."""
        value = self._values[name]
        return UNLIMITED if value is None else int(value)

    @property
    def print_options(self) -> PrintOptions:
        """The choices of `set print`."""
        return self._options(self._values)

    @staticmethod
    def _options(values: dict[str, SettingValue]) -> PrintOptions:
        chosen = {one.option: values[one.name] for one in _PRINTING}
        given = {name: UNLIMITED if one is None else one for name, one in chosen.items()}
        return convert(given, PrintOptions)

    def find(self, text: str) -> tuple[GdbSetting, str] | None:
        """The setting that a text begins with, and what stands behind its name.

        Words of the name may be cut short where one setting alone begins so.

        Raises:
            CommandError: it is a setting of `print` that there is none of.
        """
        words = text.split()
        if not words:
            return None
        if words[0] in ("p", "pr"):
            words[0] = "print"
        longest = max(len(one.name.split()) for one in TABLE)
        for count in range(min(longest, len(words)), 0, -1):
            found = [one for one in TABLE if _begins(one.name.split(), words[:count])]
            exact = [one for one in found if one.name.split() == words[:count]]
            if len(found) == 1 or exact:
                match = re.match(rf"(\s*\S+){{{count}}}\s*", text)
                rest = text[match.end() :] if match is not None else ""
                return (exact or found)[0], rest.strip()
        if self.inert.knows(text):
            return None
        if words[0] == "print" and len(words) > 1 and re.match(r"[a-z]", words[1]):
            behind = " ".join(words[1:])
            raise CommandError(f'Undefined set print command: "{behind}".  Try "help set print".')
        return None

    def set(self, setting: GdbSetting, text: str, number: Callable[[str], int]) -> None:
        """Give a setting a value.

        Args:
            setting: the setting.
            text: its value as it was typed.
            number: gives the number that an expression is.

        Raises:
            CommandError: it cannot have this value.
        """
        self._values[setting.name] = _value_of(setting, text, number)
        self.changed()

    def begin(self, name: str, value: SettingValue) -> None:
        """Have a setting begin with another value than in gdb."""
        self._values[name] = value

    def restore(self, name: str) -> None:
        """Give a setting its first value again."""
        self._values[name] = next(one.default for one in TABLE if one.name == name)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put all values back in the end."""
        before = dict(self._values)
        try:
            yield
        finally:
            self._values = before
            self.changed()

    def text(self, setting: GdbSetting) -> str:
        """The value of a setting in words."""
        return _shown(setting, self._values[setting.name])

    def sentence(self, setting: GdbSetting) -> str:
        """The sentence that `show` says."""
        return setting.shown.format(self.text(setting))

    def typed(self, setting: GdbSetting, order: Order) -> TypedValue:
        """The value of a setting for an expression: `$_gdb_setting`."""
        value = self._values[setting.name]
        if isinstance(value, str):
            raw = value.encode() + b"\0"
            return TypedValue(array_of(CHAR, len(raw)), lambda: raw, order=order)
        unlimited = -1 if setting.kind is SettingKind.COUNT else 0
        kind = UNSIGNED if setting.kind is SettingKind.LIMIT else INT
        return made(kind, unlimited if value is None else int(value), order)

    def split_options(
        self, text: str, number: Callable[[str], int]
    ) -> tuple[PrintOptions | None, str]:
        """Options in front of an expression, `-pretty -elements 3 -- EXPR`, and what follows.

        Raises:
            CommandError: there is no such option.
        """
        match = re.match(r"(-[a-z].*?)?(?:^|\s)--(?:\s+|$)", text, re.DOTALL)
        if match is None:
            return None, text
        values, words, at = dict(self._values), (match[1] or "").split(), 0
        while at < len(words):
            behind = " ".join([*words[at:], "--", text[match.end() :]]).strip()
            name = words[at].removeprefix("-")
            found = [one for one in _PRINTING if one.name.startswith(f"print {name}")]
            exact = [one for one in found if one.name == f"print {name}"]
            if words[at][:1] != "-" or not found:
                raise CommandError(f"Unrecognized option at: {behind}")
            if (len(found) > 1 and not exact) or name == "r":
                raise CommandError(f"Ambiguous option at: {behind}")
            setting, value = (exact or found)[0], ""
            at += 1
            if at < len(words) and words[at][:1] != "-":
                value, at = words[at], at + 1
            values[setting.name] = _value_of(setting, value, number)
        return self._options(values), text[match.end() :]


def _begins(name: list[str], words: list[str]) -> bool:
    return len(name) == len(words) and all(
        whole.startswith(word) for whole, word in zip(name, words, strict=True)
    )


def _value_of(setting: GdbSetting, text: str, number: Callable[[str], int]) -> SettingValue:
    value: SettingValue
    match setting.kind:
        case SettingKind.SWITCH:
            if text not in _ON and text not in _OFF:
                raise CommandError('"on" or "off" expected.')
            value = text in _ON
        case SettingKind.LIMIT | SettingKind.COUNT:
            value = _limit(setting.kind, text, number)
        case _:
            value = text
    if setting.only and value not in setting.only:
        if len(setting.only) > 1:
            words = ", ".join(str(one) for one in setting.only)
            if not text:
                raise CommandError(f"Requires an argument. Valid arguments are {words}.")
            if setting.name == "language" and text in _STRANGE:
                raise CommandError(f"Expressions of {text} are not there: {words} are.")
            raise CommandError(f'Undefined item: "{text}".')
        raise CommandError(f'"{setting.name}" is always {_shown(setting, setting.only[0])} here.')
    return value


def _limit(kind: SettingKind, text: str, number: Callable[[str], int]) -> int | None:
    if not text:
        raise CommandError('Argument required (integer to set it to, or "unlimited").')
    if "unlimited".startswith(text):
        return None
    value = number(text)
    if kind is SettingKind.COUNT and value == -1:
        return None
    if not 0 <= value < 1 << 31:
        raise CommandError(f"integer {value} out of range")
    return value if value or kind is SettingKind.COUNT else None


def _shown(setting: GdbSetting, value: SettingValue) -> str:
    if setting.kind is SettingKind.SWITCH:
        return "on" if value else "off"
    return "unlimited" if value is None else str(value)
