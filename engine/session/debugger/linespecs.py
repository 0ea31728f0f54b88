"""Places as users of gdb write them, read into what is asked for (gdb/linespec.c, location.c).

`main`, `12`, `+3`, `file.c:12`, `file.c:main`, `main:label`, `*0x401136`, `-function main`,
`-probe-stap NAME`, nothing for here. What a text asks for is not looked up here.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_MARKER: Final = re.compile(r"-p(?:robe)?(?P<kind>-?(?:stap|dtrace))?\s+(?P<name>\S+)")
_OPTIONS: Final = ("source", "function", "qualified", "line", "label")
_OPTION: Final = re.compile(r"-([A-Za-z]\w*)(?:\s+|$)")
_VALUE: Final = re.compile(r"\s+(?=-[A-Za-z])")
"""The begin of another option, which ends the name behind one."""
_NUMBER: Final = re.compile(r"([+-]?)(\d+)(?=$|[\s:,])")
_KEYWORD: Final = re.compile(r"(?:^|\s)(?:if(?=[\s(])|(?:thread|task)\s+(?=\S))")
"""The begin of a condition or a thread, which only `break` takes, and has read before."""
_OFFSET: Final = 5
"""Lines of a sign alone: "+" is "+5"."""


class WantedMarker(Struct, frozen=True):
    """Static probes as `break -probe-stap [OBJECT:][PROVIDER:]NAME` asks for them.

    Attributes:
        module: path or name of the file, "" for any.
        provider: of it, "" for any.
        name: of it.
        known: it is of a kind that this program reads: of SystemTap's.
    """

    module: str
    provider: str
    name: str
    known: bool

    @property
    def why_not(self) -> str:
        """The complaint where no file has such a probe."""
        module, provider = self.module or "<any>", self.provider or "<any>"
        return f"No probe matching objfile=`{module}', provider=`{provider}', name=`{self.name}'"

    def is_in(self, path: str) -> bool:
        """True if it may be in a file."""
        return self.known and self.module in ("", path, path.rpartition("/")[2])


class WantedPlace(Struct, frozen=True):
    """A place as it was asked for, to be looked up again when other files have come.

    Attributes:
        text: as gdb shows it.
        function: name of a function, "" for none.
        file: of the function or of the line, "" for any.
        line: its number; where no function, address or marker is meant.
        whole: nothing stands in front of the function's name.
        address: of an instruction, where that was asked for.
        probe: (provider, name) of static probes, which are preferred to the function.
        marker: static probes, where they were asked for.
        entries: names of functions whose first instructions are meant, in place of all else.
        current: the user has named a line, but no file.
        label: of the function's code, "" for none.
    """

    text: str
    function: str = ""
    file: str = ""
    line: int = 0
    whole: bool = False
    address: int | None = None
    probe: tuple[str, str] | None = None
    marker: "WantedMarker | None" = None
    entries: tuple[str, ...] = ()
    current: bool = False
    label: str = ""

    @property
    def is_line(self) -> bool:
        """True if a line is asked for."""
        return self.address is None and self.marker is None and not self.function


class LineSpecs:
    """Reads places as they are written where something is looked at."""

    def __init__(
        self,
        here: Callable[[], tuple[str, int]],
        function: Callable[[], str],
        address: Callable[[str], int],
        number: Callable[[str], int | None],
        is_file: Callable[[str], bool],
    ) -> None:
        """Take what texts are relative to.

        Args:
            here: gives the file and line that are looked at; raises `CommandError` for none.
            function: gives the name of the function there, "" for none.
            address: gives the address that an expression means.
            number: gives the number that a convenience variable has, None for another one.
            is_file: tells names of source files of the program.
        """
        self._here, self._function = here, function
        self._address, self._number, self._is_file = address, number, is_file

    def read(self, text: str) -> WantedPlace:
        """Read a place.

        Raises:
            CommandError: the text asks for nothing.
        """
        if found := _KEYWORD.search(text):
            rest = text[found.start() :].strip()
            raise CommandError(f"Junk at end of line specification: {rest}")
        if text.startswith("*"):
            if not text[1:].strip():
                raise CommandError("Argument required (expression to compute).")
            return WantedPlace(text, address=self._address(text[1:]))
        if marker := _MARKER.fullmatch(text):
            return WantedPlace(text, marker=_wanted_marker(marker))
        if _OPTION.match(text):
            return self._explicit(text)
        head, behind = _quoted(text)
        if head is not None and not behind:
            return self.read(head) if head else WantedPlace(text, function=text)
        if head is not None and not behind.startswith(":"):
            raise _unexpected(behind)
        if head is None:
            if text in ("+", "-"):
                return self._line(text, text, "")
            if found := _NUMBER.match(text):
                _expect_end(text[found.end() :])
                return self._line(text, found[0], "")
            if text.startswith(":") and not text.startswith("::"):
                raise CommandError("malformed linespec error: unexpected colon")
            head, behind = _split(text)
        if behind.startswith(":"):
            return self._in_file_or_function(text, head.strip(), behind[1:].strip())
        if text.startswith("$"):
            number = self._number(text)
            return WantedPlace(text, function=text) if number is None else self._lined(number)
        return WantedPlace(text, function=text)

    def _line(self, text: str, number: str, file: str) -> WantedPlace:
        """A line, perhaps one that is counted from here."""
        sign, digits = (number[0], number[1:]) if number[0] in "+-" else ("", number)
        count = int(digits) if digits and (int(digits) or not sign) else _OFFSET
        if file:  # a sign means nothing there, or a line in front of the first one
            count = -count if sign == "-" else count
            return WantedPlace(f"{file}:{count}", file=file, line=count)
        if not sign:
            return self._lined(count)
        current, line = self._here()
        line += count if sign == "+" else -count
        return WantedPlace(f"{current}:{line}", file=current, line=line, current=True)

    def _lined(self, line: int) -> WantedPlace:
        """A line of the file that is looked at."""
        file = self._here()[0]
        return WantedPlace(f"{file}:{line}", file=file, line=line, current=True)

    def _in_file_or_function(self, text: str, head: str, behind: str) -> WantedPlace:
        """`FILE:LINE`, `FILE:FUNCTION`, `FUNCTION:LABEL`, `FILE:FUNCTION:LABEL`."""
        if not behind:
            if not self._is_file(head) and "." in head:
                return WantedPlace(text, file=head)
            raise CommandError("malformed linespec error: unexpected end of input")
        if found := _NUMBER.match(behind):
            _expect_end(behind[found.end() :])
            return self._line(text, found[0], head)
        name, rest = _quoted(behind)
        if name is not None:
            _expect_end(rest)
            behind = name
        if "." not in head and not self._is_file(head):
            return WantedPlace(text, function=head, label=behind)
        function, label = _split(behind)
        return WantedPlace(text, function=function.strip(), file=head, label=label[1:].strip())

    def _explicit(self, text: str) -> WantedPlace:
        """`-source FILE -line N`, `-function NAME -label NAME`, `-qualified NAME`."""
        given: dict[str, str] = {}
        rest, whole = text, False
        while found := _OPTION.match(rest):
            name = next((one for one in _OPTIONS if one.startswith(found[1])), "")
            if not name:
                raise CommandError(f'invalid explicit location argument, "-{found[1]}"')
            rest = rest[found.end() :]
            if name == "qualified":
                whole = True
                continue
            end = _VALUE.search(rest)
            value = rest[: end.start()] if end is not None else rest
            if not value.strip() or _OPTION.match(value):
                raise CommandError(f'missing argument for "-{name}"')
            given[name] = _unquoted(value.strip())
            rest = rest[len(value) :].strip()
        function, file = given.get("function", rest), given.get("source", "")
        label, number = given.get("label", ""), given.get("line", "")
        if number:
            found = _NUMBER.fullmatch(number)
            if found is None and number not in ("+", "-"):
                raise CommandError(f'malformed line offset: "{number}"')
            if not function:
                line = self._line(text, number, file)
                shown = f"-source {line.file} -line {line.line}"
                return WantedPlace(shown, file=line.file, line=line.line, current=line.current)
        if file and not function:
            raise CommandError("Source filename requires function, label, or line offset.")
        if label and not function:
            function = self._function()
            text = f"-function {function} -label {label}"
        return WantedPlace(text, function, file, whole=whole, label=label)


def _quoted(text: str) -> tuple[str | None, str]:
    """Read the text in quotes in front, and the rest; None for no quotes.

    Raises:
        CommandError: they are not closed.
    """
    if text[:1] not in ("'", '"'):
        return None, text
    end = text.find(text[0], 1)
    if end < 0:
        raise CommandError("unmatched quote")
    return text[1:end], text[end + 1 :].strip()


def _unquoted(text: str) -> str:
    inner, rest = _quoted(text)
    return text if inner is None or rest else inner


def _split(text: str) -> tuple[str, str]:
    """Part a text at its first colon, which stays with the rest; "" for none.

    Colons of namespaces, in templates' arguments and in parameters are none.

    Raises:
        CommandError: a comma ends the place.
    """
    depth, at = 0, 0
    while at < len(text):
        letter = text[at]
        if letter in "<([" and not text.endswith("operator", 0, at):
            depth += 1
        elif letter in ">)]" and not text.endswith(("operator", "-"), 0, at):
            depth -= 1
        elif text.startswith("::", at):
            at += 1
        elif depth <= 0 and letter == ":":
            return text[:at], text[at:]
        elif depth <= 0 and letter == "," and not text.endswith("operator", 0, at):
            raise CommandError(f"Garbage '{text[at:]}' at end of command")
        at += 1
    return text, ""


def _expect_end(rest: str) -> None:
    """Refuse what stands behind a place; raises `CommandError` with gdb's words."""
    if rest := rest.strip():
        if rest.startswith(","):
            raise CommandError(f"Garbage '{rest}' at end of command")
        raise _unexpected(rest)


def _unexpected(rest: str) -> CommandError:
    """The complaint of a part of a text that nothing goes on with."""
    if rest.startswith(":"):
        return CommandError("malformed linespec error: unexpected colon")
    found = _NUMBER.match(rest)
    kind, shown = ("number", found[0]) if found is not None else ("string", _unquoted(rest))
    return CommandError(f'malformed linespec error: unexpected {kind}, "{shown}"')


def _wanted_marker(found: re.Match[str]) -> WantedMarker:
    """Read the name of static probes (gdb/probe.c, parse_probes).

    Raises:
        CommandError: a part of it is empty.
    """
    parts = found["name"].split(":", 2)
    name = parts.pop()
    provider = parts.pop() if parts else None
    module = parts.pop() if parts else None
    if provider == "":
        raise CommandError("invalid provider name")
    if module == "":
        raise CommandError("invalid objfile name")
    if not name:
        raise CommandError("no probe name specified")
    known = not (found["kind"] or "").endswith("dtrace")
    return WantedMarker(module or "", provider or "", name, known)
