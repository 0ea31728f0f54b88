"""Commands of perf probe as they are read: places, arguments, ranges of lines.

tools/perf/util/probe-event.c of Linux 6.1: parse_perf_probe_point, parse_perf_probe_arg,
parse_line_range_desc. Its "Semantic error" texts are kept.
"""

import re
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, ProbeError

VARS: Final = "$vars"
PARAMS: Final = "$params"
MAX_ARGS: Final = 128
NO_END: Final = (1 << 31) - 1
"""The last line of a range without an end."""
MAX_COMMAND: Final = 8192
_BLANKS: Final = re.compile(r"[ \t\n\v\f\r]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)")
_WAY_OUT: Final = (
    "a place is [[GROUP:]EVENT=]FUNC[@SRC][+OFFS|%return|:RLN|;PTN], SRC:ALN or SRC;PTN"
)


class FieldStep(Struct, frozen=True):
    """A step into a variable: `->name`, `.name` or `[N]`.

    Attributes:
        name: of the member; `[N]` as written for an element.
        index: of the element.
        arrow: it is `->` or `[N]`.
    """

    name: str
    index: int = 0
    arrow: bool = False

    @property
    def is_index(self) -> bool:
        """True for an element of an array."""
        return self.name.startswith("[")


class ProbeArgument(Struct, frozen=True):
    """An argument as written.

    Attributes:
        name: the event's field; "" where none is given.
        variable: the variable, register, symbol or special word.
        steps: into it.
        type: behind ':'; "" for none.
        user: it ends in `@user`.
    """

    name: str
    variable: str
    steps: tuple[FieldStep, ...] = ()
    type: str = ""
    user: bool = False

    @property
    def is_variable(self) -> bool:
        """True if it names something of the source."""
        return is_c_variable(self.variable)

    def written(self) -> str:
        """As perf writes it (synthesize_perf_probe_arg)."""
        both = self.name and self.variable
        text = f"{self.name}={self.variable}" if both else self.name or self.variable
        for step in self.steps:
            sign = "" if step.is_index else "->" if step.arrow else "."
            text += sign + step.name
        return f"{text}:{self.type}" if self.type else text


class CommandPlace(Struct, frozen=True):
    """A place as written; 0 and "" where a part is not given."""

    function: str = ""
    file: str = ""
    line: int = 0
    offset: int = 0
    is_return: bool = False
    pattern: str = ""
    address: int | None = None

    def written(self) -> str:
        """As perf writes it (synthesize_perf_probe_point)."""
        text = self.function
        if text and self.offset:
            text += f"+{self.offset}"
        elif text and self.line:
            text += f":{self.line}"
        elif text and self.is_return:
            text += "%return"
        if self.file:
            tail = self.file
            if len(tail) > 30:
                cut = tail[-30:]
                tail = cut[cut.find("/") + 1 :] if "/" in cut else cut
            text += f"@{tail}"
            if not self.function and self.line:
                text += f":{self.line}"
        return text


class ProbeCommand(Struct, frozen=True):
    """A definition of perf probe.

    Attributes:
        group: "" where not given.
        event: likewise.
        point: the place.
        arguments: in order.
        text: as written.
    """

    group: str
    event: str
    point: CommandPlace
    arguments: tuple[ProbeArgument, ...]
    text: str

    @property
    def has_variables(self) -> bool:
        """True if the source's variables are asked for."""
        return any(arg.is_variable or arg.variable in (VARS, PARAMS) for arg in self.arguments)

    @property
    def needs_debug_information(self) -> bool:
        """True if symbols alone do not do."""
        point = self.point
        return bool(point.file or point.line or point.pattern) or self.has_variables


class LineRange(Struct, frozen=True):
    """A range of source lines: of a function, counted from its own, or of a file."""

    function: str
    file: str
    start: int
    end: int


def one_line(*texts: str) -> str:
    """Texts of perf as one line of an error."""
    parts = (part.strip().removesuffix(".") for text in texts for part in text.split("\n"))
    return "; ".join(filter(None, parts))


def is_c_variable(text: str) -> bool:
    """True if a word is a variable's (is_c_varname)."""
    return bool(text) and text[0].isascii() and (text[0].isalpha() or text[0] == "_")


def read_command(text: str) -> ProbeCommand:
    """A definition of perf probe.

    Raises:
        ProbeError: it is none, in perf's words.
    """
    if len(text) > MAX_COMMAND:
        raise ProbeError(f"a definition of perf probe has at most {MAX_COMMAND} characters")
    words = list(filter(None, _BLANKS.split(text)))
    if not words:
        raise ProbeError(f"a definition of perf probe is empty: {_WAY_OUT}")
    if len(words) - 1 > MAX_ARGS:
        raise _semantic(text, f"Too many probe arguments ({len(words) - 1}).")
    group, event, point = _read_point(words[0], text)
    if not event and point.function and point.line and not point.pattern and not point.offset:
        event = f"{point.function}_L{point.line}"
    arguments = tuple(_read_argument(word, text) for word in words[1:])
    if point.is_return and any(arg.is_variable for arg in arguments):
        raise _semantic(text, "You can't specify local variable for kretprobe.")
    return ProbeCommand(group, event, point, arguments, text)


def read_line_range(text: str) -> LineRange:
    """A range of lines: `FUNC[@SRC][:RLN[+NUM|-RLN2]]` or `SRC[:ALN[+NUM|-ALN2]]`.

    Raises:
        CommandError: it is none, in perf's words.
    """
    name, colon, rest = text.partition(":")
    start, end = 0, NO_END
    if colon:
        start, rest = _line_number(rest, text, "start line")
        if rest[:1] in ("+", "-"):
            sign = rest[0]
            end, rest = _line_number(rest[1:], text, "end line")
            if sign == "+":
                end += start - 1
        if start > end:
            raise _line_error(text, "Start line must be smaller than end line.")
        if rest:
            raise _line_error(text, f"Tailing with invalid str '{rest}'.")
    function, at, file = name.partition("@")
    if at:
        return LineRange(function, file, start, end)
    if "/" in name or "." in name:
        return LineRange("", name, start, end)
    if not _NAME.fullmatch(name):
        raise _line_error(text, f"'{name}' is not a valid function name.")
    return LineRange(name, "", start, end)


def _line_error(text: str, why: str) -> CommandError:
    return CommandError(
        f"{text}: Semantic error: {why.removesuffix('.')}; "
        "lines are FUNC[@SRC][:RLN[+NUM|-RLN2]] or SRC:ALN[+NUM|-ALN2]"
    )


def _line_number(text: str, whole: str, what: str) -> tuple[int, str]:
    """A number as strtol reads it, and what follows."""
    match = _NUMBER.match(text)
    value = None if match is None else _integer(match)
    if match is None or value is None or not -NO_END - 1 <= value <= NO_END:
        raise _line_error(whole, f"'{what}' is not a valid number.")
    return value, text[match.end() :]


def _integer(match: re.Match[str]) -> int | None:
    """The value of `_NUMBER`, base by prefix; None for an octal number with an 8."""
    digits = match[2]
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    if octal and not set(digits) <= set("01234567"):
        return None
    value = int(digits, 8 if octal else 16 if digits[:2] in ("0x", "0X") else 10)
    return -value if match[1] == "-" else value


def _semantic(text: str, why: str) -> ProbeError:
    return ProbeError(f"{text.strip()}: Semantic error: {one_line(why, _WAY_OUT)}")


# -- places ----------------------------------------------------------------------------


def _find(text: str, stops: str) -> int:
    """The first of some signs that no backslash stands in front of; -1 for none."""
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        if text[at] in stops:
            return at
        at += 1
    return -1


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.?)", r"\1", text, flags=re.DOTALL)


def _read_names(text: str, whole: str) -> tuple[str, str]:
    """`[GROUP:]EVENT` in front of '='."""
    at = _find(text, ":")
    group, event = ("", text) if at < 0 else (text[:at], text[at + 1 :])
    event = _unescaped(event)
    if at >= 0 and not _NAME.fullmatch(group):
        raise _bad_name(group, whole)
    if not _NAME.fullmatch(event):
        raise _bad_name(event, whole)
    return _unescaped(group), event


def _bad_name(name: str, whole: str) -> ProbeError:
    why = f"{name} is bad for event name -it must follow C symbol-naming rule."
    return _semantic(whole, why)


def _read_point(word: str, whole: str) -> tuple[str, str, CommandPlace]:
    """Group, event and place."""
    marker = word.startswith("sdt_") and ":" in word and "=" not in word
    if marker or word.startswith("%"):
        raise ProbeError(
            f"{whole.strip()}: markers (SDT) are no places of perf probe here: "
            "perf takes them from its cache of build-ids"
        )
    group = event = ""
    at = _find(word, ";=@+%")
    if at >= 0 and word[at] == "=":
        group, event = _read_names(word[:at], whole)
        word = word[at + 1 :]
    is_file = False
    if _find(word, "+@%") < 0:
        at = _find(word, ";:")
        is_file = at >= 0 and "." in word[:at]
    at = _find(word, ";:+@%")
    name = _unescaped(word if at < 0 else word[:at])
    file = name if is_file else ""
    function = "" if is_file else name
    address: int | None = None
    if function.startswith("0x"):
        if not re.fullmatch(r"0x[0-9a-fA-F]+", function):
            raise _semantic(whole, "Invalid absolute address.")
        address = int(function, 16)
    line = offset = 0
    is_return, pattern = False, ""
    while at >= 0:
        sign, rest = word[at], word[at + 1 :]
        if sign == ";":  # must be the last part
            pattern = rest
            break
        word, at = rest, _find(rest, ";:+@%")
        part = word if at < 0 else word[:at]
        if sign == ":":
            line = _plain_number(part, whole, "There is non-digit char in line number.")
        elif sign == "+":
            offset = _plain_number(part, whole, "There is non-digit character in offset.")
        elif sign == "@":
            if file:
                raise _semantic(whole, "SRC@SRC is not allowed.")
            file = _unescaped(part)
        elif part == "return":
            is_return = True
        else:
            raise _semantic(whole, f"%{part} is not supported.")
    point = CommandPlace(function, file, line, offset, is_return, pattern, address)
    _exclude(point, whole)
    return group, event, point


def _plain_number(text: str, whole: str, why: str) -> int:
    """A number as strtoul reads it, with nothing behind it; an empty one is 0."""
    if not text:
        return 0
    match = _NUMBER.fullmatch(text)
    value = None if match is None else _integer(match)
    if value is None or not 0 <= value < 1 << 63:
        raise _semantic(whole, why)
    return value


def _exclude(point: CommandPlace, whole: str) -> None:
    """Refuse parts that do not go together."""
    why = ""
    if point.pattern and point.line:
        why = "Lazy pattern can't be used with line number."
    elif point.pattern and point.offset:
        why = "Lazy pattern can't be used with offset."
    elif point.line and point.offset:
        why = "Offset can't be used with line number."
    elif not point.line and not point.pattern and point.file and not point.function:
        why = "File always requires line number or lazy pattern."
    elif point.offset and not point.function:
        why = "Offset requires an entry function."
    elif (point.offset or point.line or point.pattern) and point.is_return:
        why = "Offset/Line/Lazy pattern can't be used with return probe."
    if why:
        raise _semantic(whole, why)
    if not (point.function or point.file):
        raise _semantic(whole, "The place has no function and no file.")
    if point.line > NO_END:
        raise _semantic(whole, "The line number is too big.")


# -- arguments -------------------------------------------------------------------------

_STEP: Final = re.compile(r"\[(?P<index>[^\]]*)\]?|(?P<sign>->|\.|-)(?P<name>[^\-.\[]*)")


def _read_argument(word: str, whole: str) -> ProbeArgument:
    name, equals, text = word.partition("=")
    if not equals:
        name, text = "", word
    user = text.find("@") > 0 and text[text.find("@") + 1 :] == "user"
    if user:
        text = text[: text.find("@")]
    text, _, kind = text.partition(":")
    first = re.search(r"[-.\[]", text)
    if not is_c_variable(text) or first is None:
        if not text:
            raise _semantic(whole, f"Argument parse error: {word}")
        return ProbeArgument(name, text, (), kind, user)
    variable, at = text[: first.start()], first.start()
    steps: list[FieldStep] = []
    goodname = variable
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise _semantic(whole, f"Argument parse error: {text[at:]}")
        if match["sign"] is None:
            number = _NUMBER.fullmatch(match["index"])
            index = None if number is None else _integer(number)
            if index is None or not match[0].endswith("]") or abs(index) >= 1 << 31:
                raise _semantic(whole, "Array index must be a number.")
            steps.append(FieldStep(match[0], index, arrow=True))
        else:
            if match["sign"] == "-":
                raise _semantic(whole, f"Argument parse error: {text[at:]}")
            steps.append(FieldStep(match["name"], arrow=match["sign"] == "->"))
            goodname = match["name"]
        at = match.end()
    return ProbeArgument(name or goodname, variable, tuple(steps), kind, user)
