"""The word skip: functions and files that `step` does not stop in (gdb/skip.c)."""

import re
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from engine.errors import CommandError
from engine.message_text import bare_name
from engine.session.debugger.debugger import Debugger

_NONE: Final = "<none>"
_OPTIONS: Final = {
    "-fi": "file",
    "-file": "file",
    "-gfi": "gfile",
    "-gfile": "gfile",
    "-fu": "function",
    "-function": "function",
    "-rfu": "rfunction",
    "-rfunction": "rfunction",
}


class SkipRule(Struct):
    """A rule: the function and the file that are skipped.

    Attributes:
        number: of it.
        function: name of a function or, if `is_regexp`, what names have in them; "" for any.
        file: path of a file, or its last part, or a pattern, if `is_glob`; "" for any.
        is_regexp: the function is a regular expression.
        is_glob: the file is a pattern.
        on: it is enabled.
    """

    number: int
    function: str = ""
    file: str = ""
    is_regexp: bool = False
    is_glob: bool = False
    on: bool = True

    def fits(self, function: str, file: str) -> bool:
        """True if a function of a file is skipped by this rule."""
        return self.on and self._fits_function(function) and self._fits_file(file)

    def _fits_function(self, name: str) -> bool:
        if not self.function:
            return True
        if self.is_regexp:
            return re.search(self.function, name) is not None
        return (
            name in (self.function, bare_name(self.function)) or bare_name(name) == self.function
        )

    def _fits_file(self, path: str) -> bool:
        if not self.file:
            return True
        last = path.rpartition("/")[2]
        if self.is_glob:
            return fnmatchcase(path, self.file) or (
                "/" not in self.file and fnmatchcase(last, self.file)
            )
        return path == self.file or path.endswith("/" + self.file.lstrip("/"))

    @property
    def sentence(self) -> str:
        """The line that tells of the rule when it is made."""
        file = f"File(s) {self.file}" if self.is_glob else f"File {self.file}"
        function = f"Function{'(s)' if self.is_regexp else ''} {self.function}"
        if self.function and self.file:
            file = file[0].lower() + file[1:]
            return f"{function} in {file} will be skipped when stepping."
        return f"{function if self.function else file} will be skipped when stepping."

    @property
    def row(self) -> str:
        """The rule in the table of `info skip`."""
        on, glob, regexp = ("y" if one else "n" for one in (self.on, self.is_glob, self.is_regexp))
        file, function = self.file or _NONE, self.function or _NONE
        return f"{self.number:<5} {on:<3} {glob:>4} {file:<20} {regexp:>2} {function}"


class SkipWords:
    """Makes rules, and says what they skip."""

    def __init__(self, debugger: Debugger) -> None:
        """Skip nothing yet."""
        self._debugger = debugger
        self._rules: dict[int, SkipRule] = {}
        self._numbers = 0

    def skips(self, function: str, file: str) -> bool:
        """True if `step` does not stop in a function of a file."""
        return any(rule.fits(function, file) for rule in self._rules.values())

    def skip(self, rest: str) -> None:
        """Step over functions: skip [function NAME|file NAME|-gfi GLOB|-rfu REGEXP|delete N]."""
        word, _, behind = rest.partition(" ")
        behind = behind.strip()
        if word in ("delete", "enable", "disable") and len(word) > 1:
            self._change(word, behind)
        elif word == "file":
            self._add(SkipRule(0, file=behind or self._here()[1]))
        elif word == "function":
            self._add(SkipRule(0, behind or self._here()[0]))
        elif word.startswith("-"):
            self._add(self._of_options(rest))
        else:
            self._add(SkipRule(0, rest or self._here()[0]))

    def _here(self) -> tuple[str, str]:
        """The function and the file that are looked at."""
        frame = self._debugger.frame
        if frame is None:
            raise CommandError("No default function now.")
        return bare_name(frame.function), self._debugger.files.written(frame.file)

    def _of_options(self, rest: str) -> SkipRule:
        given: dict[str, str] = {}
        words = rest.split()
        for option, value in zip(words[::2], [*words[1::2], ""], strict=False):
            name = _OPTIONS.get(option)
            if name is None:
                raise CommandError(f"Invalid skip option: {option}")
            if not value:
                raise CommandError(f"Missing value for {option} option.")
            given[name] = value
        for plain, pattern in (("file", "gfile"), ("function", "rfunction")):
            if plain in given and pattern in given:
                raise CommandError(f"Cannot specify both -{plain} and -{pattern}.")
        if "rfunction" in given:
            try:
                re.compile(given["rfunction"])
            except re.error as error:
                raise CommandError(f"Invalid regexp: {error}") from None
        return SkipRule(
            0,
            given.get("function", given.get("rfunction", "")),
            given.get("file", given.get("gfile", "")),
            "rfunction" in given,
            "gfile" in given,
        )

    def _add(self, rule: SkipRule) -> None:
        self._numbers += 1
        rule.number = self._numbers
        self._rules[rule.number] = rule
        self._debugger.put(rule.sentence)

    def _change(self, word: str, rest: str) -> None:
        for rule in self._chosen(rest):
            if word == "delete":
                del self._rules[rule.number]
            else:
                rule.on = word == "enable"

    def _chosen(self, rest: str) -> list[SkipRule]:
        if not rest:
            return list(self._rules.values())
        wanted: set[int] = set()
        for part in rest.split():
            match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
            if match is None:
                raise CommandError(f"Arguments must be skip numbers: {part}")
            first, last = int(match[1]), int(match[2] or match[1])
            wanted |= {number for number in self._rules if first <= number <= last}
        if not wanted:
            raise CommandError(f"No skiplist entries found with number {rest}.")
        return [rule for number, rule in self._rules.items() if number in wanted]

    def info_skip(self, rest: str) -> None:
        """The table of what is skipped: info skip [NUMBER...]."""
        put = self._debugger.put
        if not self._rules:
            put("Not skipping any files or functions.")
            return
        rules = self._chosen(rest)
        put("Num   Enb Glob File                 RE Function")
        for rule in rules:
            put(rule.row)
