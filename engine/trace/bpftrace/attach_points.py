"""Attach points: where probes run, as scripts write it.

What is written is cut at colons (and at `@`, before a line of a source file), short names become
whole ones, and what stands between the colons gets its meaning (bpftrace's docs/language.md and
src/ast/passes/attachpoint_passes.cpp). Whether there is such a place is for those to say who
know the guest.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from msgspec import Struct, field, structs

from engine.errors import CommandError
from engine.trace.bpftrace.text import ScriptRemarks, Span
from engine.trace.bpftrace.tokens import whole_number
from engine.trace.bpftrace.tree import AttachPoint

LISTED_IN_KERNELS: Final = (
    "fentry",
    "hardware",
    "iter",
    "kprobe",
    "rawtracepoint",
    "software",
    "tracepoint",
)
"""Providers that a glob for a provider stands for where no path follows."""
LISTED_IN_PROGRAMS: Final = ("uprobe", "usdt")
"""Providers that it stands for where one does."""
TIME_UNITS: Final = frozenset(("s", "ms", "us", "hz"))
LANGUAGES: Final = frozenset(("cpp",))
SOFTWARE: Final = {
    "alignment-faults": "",
    "bpf-output": "",
    "context-switches": "cs",
    "cpu-clock": "cpu",
    "cpu-migrations": "",
    "dummy": "",
    "emulation-faults": "",
    "major-faults": "",
    "minor-faults": "",
    "page-faults": "faults",
    "task-clock": "",
}
"""Events of the kernel's software, and their short names."""
HARDWARE: Final = {
    "backend-stalls": "",
    "branch-instructions": "branches",
    "branch-misses": "",
    "bus-cycles": "",
    "cache-misses": "",
    "cache-references": "",
    "cpu-cycles": "cycles",
    "frontend-stalls": "",
    "instructions": "",
    "ref-cycles": "",
}
"""Events of the processor, and their short names."""
_SHORT: Final = {
    "k": "kprobe",
    "kr": "kretprobe",
    "u": "uprobe",
    "ur": "uretprobe",
    "U": "usdt",
    "t": "tracepoint",
    "p": "profile",
    "i": "interval",
    "s": "software",
    "h": "hardware",
    "w": "watchpoint",
    "aw": "asyncwatchpoint",
    "f": "fentry",
    "kfunc": "fentry",
    "fr": "fexit",
    "kretfunc": "fexit",
    "it": "iter",
    "rt": "rawtracepoint",
}
_PIECE: Final = re.compile(r'[^":@$\\]+|"(?:[^"\\]|\\(?s:.))*+"?|\$[0-9]*|(?s:.)')
NEEDS_SPACE: Final = "a predicate needs a space in front of it"
_OF_PROGRAMS: Final = frozenset(("uprobe", "uretprobe", "usdt"))
_OF_FILES: Final = _OF_PROGRAMS | {"iter"}
"""Providers whose parts may be paths."""
_SIGN: Final = re.compile(r"([:@])")
_ESCAPED: Final = re.compile(r"\\((?s:.))")
_LONGEST: Final = 4096
"""Letters of an attach point with its parameters: what a path may have."""


class CommandWords(Struct, frozen=True):
    """Words of the command line that attach points need.

    Attributes:
        parameters: what `$1` and so on stand for; one that was not given is empty.
        program: the guest's own, for functions and markers without a target; "" for none.
    """

    parameters: Sequence[str] = ()
    program: str = ""


_NO_WORDS: Final = CommandWords()


class PointParts(Struct):
    """An attach point that is being read; see `AttachPoint`.

    Attributes:
        words: what stands between the colons.
        faults: what is wrong with it, in the order of checks.
    """

    provider: str
    words: list[str]
    given: str = ""
    target: str = ""
    function: str = ""
    namespace: str = ""
    language: str = ""
    offset: int = 0
    address: int | None = None
    argument: int | None = None
    file: str = ""
    line: int = 0
    column: int = 0
    rate: int = 0
    length: int = 0
    mode: str = ""
    faults: list[str] = field(default_factory=list)

    def check_count(self, *counts: int) -> None:
        """Refuse another number of parts behind the provider."""
        if len(self.words) not in counts:
            said = [str(count) for count in counts]
            if self.provider in _SAID:
                said = _SAID[self.provider]
            raise CommandError(
                f"{self.provider} probe type requires {' or '.join(said)} arguments,"
                f" found {len(self.words)}"
            )


_SAID: Final = {"rawtracepoint": ["2", "1"], "fentry": ["1", "3"], "fexit": ["1", "3"]}
"""Counts of parts as bpftrace says them."""


def full_name(point: AttachPoint | PointParts) -> str:
    """The name of an attach point, as `probe` gives it: the script's own, or all of its parts."""
    if point.given:
        return point.given
    function = point.function
    if function and point.offset:
        function += f"+{point.offset}"
    numbers = (point.address or 0, point.rate, point.length)
    return ":".join(
        part
        for part in (
            point.provider,
            point.target,
            point.language,
            point.namespace,
            function,
            *(str(number) for number in numbers if number),
            point.mode,
        )
        if part
    )


def attach_point(
    text: str, span: Span, remarks: ScriptRemarks, command: CommandWords = _NO_WORDS
) -> AttachPoint | None:
    """An attach point; None if it is wrong, which is noted, or empty.

    Args:
        text: as it is written.
        span: where it stands.
        remarks: takes what is wrong with it.
        command: words of the command line.
    """
    found = attach_points(text, span, remarks, command)
    return found[0] if found else None


def attach_points(
    text: str, span: Span, remarks: ScriptRemarks, command: CommandWords = _NO_WORDS
) -> tuple[AttachPoint, ...]:
    """The attach points that one stands for: several if its provider is a glob.

    See `attach_point`; none if it is wrong or empty.
    """
    try:
        words = _cut(text, command.parameters)
        provider = words[0]
        if not provider:
            return ()  # as bpftrace: it may be a comma too many
        name, sign, rest = provider.partition("=")
        if sign and rest:
            provider = rest
        else:
            name = ""
        if not has_glob(provider):
            words = _targeted(provider, words[1:], command.program)
            return (_point(text, span, name, provider, words, remarks),)
        return _expanded(text, span, name, [provider, *words[1:]], remarks)
    except CommandError as wrong:
        remarks.error(str(wrong), span)
        return ()


def _targeted(provider: str, words: list[str], program: str) -> list[str]:
    """The parts of a function or a marker, the guest's program in front if no target is given.

    bpftrace does so with -p and -c.
    """
    if not program or whole_provider(provider) not in _OF_PROGRAMS:
        return words
    if len(words) == 1 or (len(words) == 2 and words[0] in LANGUAGES):
        return [program, *words]
    return [program, *words[1:]] if words and not words[0] else words


def whole_provider(name: str) -> str:
    """The whole name of a provider, in lower case, whether there is one or not."""
    return _SHORT.get(name) or _SHORT.get(name.lower()) or name.lower()


def has_glob(text: str) -> bool:
    """True if a text is a pattern."""
    return "*" in text or ("[" in text and "]" in text)


def _cut(text: str, parameters: Sequence[str]) -> list[str]:
    """The parts of an attach point, `@` being one of its own."""
    found: list[str] = []
    part: list[str] = []
    size = 0
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece[0] in ":@":
            found += ["".join(part), *("@" * (piece == "@"))]
            part = []
            continue
        if piece[0] == "$":
            *cut, piece = _SIGN.split(
                _parameter(piece, text[match.end() : match.end() + 1], parameters)
            )
            for one, sign in zip(
                cut[::2], cut[1::2], strict=True
            ):  # a parameter's colons cut, too
                found += ["".join(part) + one, *("@" * (sign == "@"))]
                part = []
        elif piece[0] == '"':
            piece = _ESCAPED.sub(r"\1", piece[1 : -1 if piece[-1:] == '"' else None])
        size += len(piece)
        if size > _LONGEST:
            raise CommandError(f"an attach point of more than {_LONGEST} characters")
        part.append(piece)
    return [*found, "".join(part)]


def _parameter(piece: str, following: str, parameters: Sequence[str]) -> str:
    digits = piece[1:]
    if not digits or digits[0] == "0":
        bad = digits[:1] or following
        if not bad:
            return ""
        raise CommandError(
            f"invalid trailing character for positional param: {bad}. Try quoting this"
            f' entire part if this is intentional e.g. "${bad}".'
        )
    number = whole_number(digits)
    if isinstance(number, str):
        raise CommandError(f"positional parameter is not valid: {number}")
    return parameters[number - 1] if number <= len(parameters) else ""


def _expanded(
    text: str, span: Span, name: str, words: list[str], remarks: ScriptRemarks
) -> tuple[AttachPoint, ...]:
    """Attach points of all providers that a glob stands for, those that can be with its parts."""
    pattern = words[0] if len(words) > 1 else "*"
    is_path = len(words) > 1 and "/" in words[1]
    providers = [
        one
        for one in (LISTED_IN_PROGRAMS if is_path else LISTED_IN_KERNELS)
        if fnmatchcase(one, pattern)
    ]
    if not providers:
        raise CommandError(f"No probe type matched for {words[0]}")
    if len(providers) == 1:
        return (_point(text, span, name, providers[0], words[1:], remarks),)
    found: list[AttachPoint] = []
    for provider in providers:
        silent = ScriptRemarks(remarks.script)
        try:
            point = _point(text, span, name, provider, words[1:], silent)
        except CommandError:
            continue  # this provider has no such places
        if not silent.found:
            found.append(point)
    if not found:
        raise CommandError("No attach points for probe")
    return tuple(found)


def _point(
    text: str, span: Span, name: str, provider: str, words: list[str], remarks: ScriptRemarks
) -> AttachPoint:
    whole = whole_provider(provider)
    read = _PROVIDERS.get(whole)
    if read is None:
        raise CommandError(f"Invalid probe type: {provider}")
    if whole not in _OF_FILES and any("/" in word for word in words):
        raise CommandError(NEEDS_SPACE)
    parts = PointParts(whole, words, given=name)
    read(parts)
    for fault in parts.faults:
        remarks.error(fault, span)
    values = structs.asdict(parts)
    del values["faults"]
    parts_of_it = tuple(values.pop("words"))
    return AttachPoint(span, full_name(parts), parts=parts_of_it, written=text, **values)


def _number(text: str, what: str) -> int:
    number = whole_number(text)
    if isinstance(number, str):
        raise CommandError(f"{what}: {number}")
    return number


# -- one function a kind of provider ----------------------------------------------------------


def _begin(parts: PointParts) -> None:
    if parts.words == ["*"]:
        parts.words = []
    parts.check_count(0)


def _self(parts: PointParts) -> None:
    parts.check_count(2)
    parts.target, parts.function = parts.words
    if parts.target != "signal":
        parts.faults.append(f"{parts.target} is not a supported trigger")
    elif parts.function != "SIGUSR1":
        parts.faults.append(f"{parts.function} is not a supported signal")


def _bench(parts: PointParts) -> None:
    parts.check_count(1)
    parts.target = parts.words[0]
    if not parts.target:
        parts.faults.append(f"{parts.provider} probes must have a name")


def _function(parts: PointParts, text: str) -> None:
    """A function, an offset in one, or an address."""
    if "+" in text:
        if parts.provider in ("kretprobe", "uretprobe"):
            raise CommandError("Offset not allowed")
        if text.count("+") > 1:
            raise CommandError("Cannot take more than one offset")
        name, _, offset = text.partition("+")
        if not name or not offset:
            raise CommandError("Invalid offset")
        parts.function = name
        parts.offset = _number(offset, "Invalid offset")
        return
    number = whole_number(text)
    if isinstance(number, str):
        parts.function = text
    else:
        parts.address = number


def _kprobe(parts: PointParts) -> None:
    parts.check_count(1, 2)
    if len(parts.words) == 2:
        parts.target = parts.words[0]
    _function(parts, parts.words[-1])
    if not parts.function and not parts.address:
        parts.faults.append("kprobes should be attached to a function or an address")


def _uprobe(parts: PointParts) -> None:
    words = parts.words
    if len(words) > 1 and words[1] == "@":
        _source_line(parts)
        return
    parts.check_count(2, 3)
    parts.target = words[0]
    if len(words) == 3:
        parts.language = words[1]
        if parts.language and parts.language not in LANGUAGES:
            parts.faults.append(f"unsupported language type: {parts.language}")
    if not parts.target:
        parts.faults.append(f"{parts.provider} should have a target")
    _function(parts, words[-1])
    if parts.address is not None and has_glob(parts.target):
        raise CommandError("Cannot use wildcards with absolute address")
    if not parts.function and parts.address is None:
        parts.faults.append(
            f"{parts.provider} should be attached to a function,"
            " address, or source file and line (using DWARF)"
        )


def _source_line(parts: PointParts) -> None:
    """`uprobe:PROGRAM@FILE:LINE[:COLUMN]`."""
    words = parts.words
    if parts.provider == "uretprobe":
        raise CommandError("Source code location not allowed")
    if has_glob(words[0]):
        raise CommandError("Cannot use wildcards with source code location")
    if len(words) not in (4, 5) or not words[2] or not words[3]:
        raise CommandError(
            "Invalid uprobe arguments, expected format: uprobe:TARGET@FILE:LINE[:COL]"
        )
    parts.target, parts.file = words[0], words[2]
    parts.line = _number(words[3], "Invalid line number")
    if len(words) == 5:
        parts.column = _number(words[4], "Invalid column number")


def _usdt(parts: PointParts) -> None:
    parts.check_count(2, 3)
    parts.target, parts.function = parts.words[0], parts.words[-1]
    if len(parts.words) == 3:
        parts.namespace = parts.words[1]
    if not parts.function:
        parts.faults.append("usdt probe must have a target function or wildcard")
    if not parts.target:
        parts.faults.append(
            "usdt probe must specify at least path or pid to probe. To target all paths/pids set"
            " the path to '*'."
        )


def _tracepoint(parts: PointParts) -> None:
    if len(parts.words) == 1 and has_glob(parts.words[0]):
        parts.words.insert(0, "*")
    parts.check_count(2)
    parts.target, parts.function = parts.words
    if not parts.target or not parts.function:
        parts.faults.append("tracepoint probe must have a target")


def _timer(parts: PointParts) -> None:
    words, what = parts.words, f"Invalid rate of {parts.provider} probe"
    parts.check_count(1, 2)
    if len(words) == 1:
        rate = _number(words[0], what)
        if rate < 1000:
            raise CommandError(f"{what}. Minimum is 1000 or 1us. Found: {rate} nanoseconds")
        parts.target, parts.rate = "us", rate // 1000
        return
    parts.target = words[0]
    parts.rate = _number(words[1], what)
    if not parts.target:
        parts.faults.append(f"{parts.provider} probe must have unit of time")
        return
    if parts.target not in TIME_UNITS:
        parts.faults.append(f"{parts.target} is not an accepted unit of time")
    if not parts.rate:
        parts.faults.append(f"{parts.provider} frequency should be a positive integer")


def _counter(parts: PointParts) -> None:
    parts.check_count(1, 2)
    parts.target = parts.words[0]
    if len(parts.words) == 2 and parts.words[1] != "*":
        parts.rate = _number(parts.words[1], f"Invalid count for {parts.provider} probe")
    known = SOFTWARE if parts.provider == "software" else HARDWARE
    if not parts.target:
        parts.faults.append(f"{parts.provider} probe must have a {parts.provider} event name")
    elif has_glob(parts.target):
        parts.faults.append(f"wildcards are not allowed for {parts.provider} probe type")
    elif parts.target not in known and parts.target not in known.values():
        parts.faults.append(f"{parts.target} is not a {parts.provider} probe")


_OF_FUNCTION: Final = re.compile(r"([A-Za-z_][\w.$]*)\+arg([0-9]{1,2})", re.ASCII)


def _watchpoint(parts: PointParts) -> None:
    parts.check_count(3)
    where, length, mode = parts.words
    of_function = _OF_FUNCTION.fullmatch(where)  # 0.17 has these
    if of_function is not None:
        parts.function, parts.argument = of_function[1], int(of_function[2])
    else:
        parts.address = _number(where, "Invalid function/address argument")
    parts.length = _number(length, "Invalid length argument")
    parts.mode = "".join(sorted(mode))
    if parts.address == 0:
        parts.faults.append("watchpoint must be attached to a non-zero address")
    if parts.length not in (1, 2, 4, 8):
        parts.faults.append("watchpoint length must be one of (1,2,4,8)")
    if not parts.mode or set(parts.mode) - set("rwx"):
        parts.faults.append("watchpoint mode must be combination of (r,w,x)")
    elif len(set(parts.mode)) < len(parts.mode):
        parts.faults.append("watchpoint modes may not be duplicated")


def _fentry(parts: PointParts) -> None:
    words = parts.words
    if len(words) not in (1, 2, 3):
        parts.check_count(1, 2, 3)
    if words[0] == "bpf":
        parts.target = "bpf"
        if len(words) == 1:
            raise CommandError(
                "the 'bpf' variant of this probe requires a bpf program name and optional bpf"
                " program id"
            )
        parts.function = words[-1]
        if len(words) == 3 and words[1] != "*" and isinstance(whole_number(words[1]), str):
            raise CommandError("bpf program id must be a number or '*'")
        return
    if len(words) == 3:
        raise CommandError("Only the 'bpf' variant of this probe supports 4 arguments")
    parts.function = words[-1]
    if len(words) == 2:
        parts.target = words[0]
    elif has_glob(parts.function):
        parts.target = "*"
    if not parts.function:
        parts.faults.append("fentry/fexit should specify a function")


def _iter(parts: PointParts) -> None:
    words = parts.words
    if len(words) not in (1, 2):
        raise CommandError("iter probe type takes 2 arguments (1 optional)")
    if any(has_glob(word) for word in words):
        raise CommandError("iter probe type does not support wildcards")
    parts.function = words[0]
    if not parts.function:
        parts.faults.append("iter should specify a iterator's name")


def _raw_tracepoint(parts: PointParts) -> None:
    parts.check_count(1, 2)
    parts.function = parts.words[-1]
    parts.target = parts.words[0] if len(parts.words) == 2 else "*"
    if not parts.function:
        parts.faults.append("rawtracepoint should be attached to a function")


_PROVIDERS: Final[dict[str, Callable[[PointParts], Any]]] = {
    "begin": _begin,
    "end": _begin,
    "self": _self,
    "test": _bench,
    "bench": _bench,
    "kprobe": _kprobe,
    "kretprobe": _kprobe,
    "uprobe": _uprobe,
    "uretprobe": _uprobe,
    "usdt": _usdt,
    "tracepoint": _tracepoint,
    "rawtracepoint": _raw_tracepoint,
    "profile": _timer,
    "interval": _timer,
    "software": _counter,
    "hardware": _counter,
    "watchpoint": _watchpoint,
    "asyncwatchpoint": _watchpoint,
    "fentry": _fentry,
    "fexit": _fentry,
    "iter": _iter,
}
PROVIDERS: Final = frozenset(_PROVIDERS)
"""The providers that bpftrace knows."""
