"""Definitions of probes: lines of `kprobe_events` and `uprobe_events`, as Linux 6.18 reads them.

`parse` accepts and refuses what kernel/trace/trace_kprobe.c, trace_uprobe.c and trace_probe.c do,
in the same order and with the same texts and carets. What differs, on purpose:

- A place with a '/' is a uprobe's, any other a kprobe's: here the two files are one.
- `LIB:SYM` may have '+' and '-' in the library's name; `FILE:LINE`, `PATH:SYM` and a leading '!'
  are ours.
- Words end at ASCII blanks only: the kernel also splits at the byte 0xA0, in the middle of a
  letter. A bitfield's numbers are not taken modulo 2**64.
- In strict mode a return probe may be placed by number. The kernel takes `r 0xADDR` but neither
  `0xADDR%return` nor `$retval` with it, by an oversight that `Mode.KERNEL` keeps.
- `$duration` and `$entry(BODY)` of a return event are ours: the ticks of the clock from the call
  to its return, and what BODY gave at the entry (SystemTap's `@entry`). In kernel mode they are
  refused as any unknown variable.
- Variables come from the program's debug information, where the kernel asks BTF; what goes
  beyond BTF's arguments stands in `engine.trace.variables`. `%pd`/`%pD` of dentries do not exist
  for a program.
"""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.plan import Mode
from engine.arch.program import FetchArg
from engine.errors import ProbeError, ProbeSyntaxError, UnloggedError
from engine.fetch.compile import (
    FIRST_ARG,
    MAX_ARGS,
    PLACE,
    ArgContext,
    compile_args,
)
from engine.fetch.types import same_type
from engine.trace.errors import Command
from engine.trace.head_syntax import HEAD, MAX_EVENT, read_maxactive, read_names
from engine.trace.place_syntax import (
    Address,
    FileOffset,
    Lookup,
    SourceLine,
    SymbolPlace,
    Target,
    path_symbol,
    read_file_offset,
    read_kprobe_place,
)

MAX_LINE: Final = 4094
"""Bytes of a line without its end."""

_MATCHED = 63  # characters of a word that the kernel builds to compare with a deletion's
BLANKS: Final = re.compile(r"[ \t\n\v\f\r]+")
"""Bytes between the words of a line."""
_NO_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")
_SEPARATOR = re.compile(r"[.\-_]")
_NOTHING = Lookup()
_REGISTERS_ONLY: Final = re.compile(r"(?:\w+=)?(?:[+-]\w+\()*%\w+\)*(?::[\w\[\]]+)?", re.ASCII)
"""Arguments that mean the same at every place."""
_KEPT: Final = 1024
_kept: dict[tuple[object, ...], tuple[FetchArg, ...]] = {}
"""Arguments that were read, by what they may depend on."""


class Definition(Struct, frozen=True):
    """One probe event.

    Attributes:
        kind: "kprobe" or "uprobe".
        is_return: it fires when the function returns.
        maxactive: instances of a return kprobe, 0 where not given.
        group: of the event; the kernel's default where not given.
        event: its name; the kernel's automatic one where not given.
        target: the place as read.
        args: what it records.
        line: the definition as written.
        bits: width of an address.
        strict_override: a '!' was in front: place it even where strict mode would not.
    """

    kind: str
    is_return: bool
    maxactive: int
    group: str
    event: str
    target: Target
    args: tuple[FetchArg, ...]
    line: str
    bits: int
    strict_override: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The definition, word by word."""
        return _words(self.line)

    @property
    def place(self) -> str:
        """The place as written."""
        return self.words[PLACE]

    @property
    def command(self) -> str:
        """The line as error_log shows it."""
        return " ".join(self.words)

    @property
    def stands_alone(self) -> bool:
        """True if its line is read in the same way without the program."""
        args = self.words[FIRST_ARG:]
        return isinstance(self.target, FileOffset) and all(map(_REGISTERS_ONLY.fullmatch, args))

    def listing(self) -> str:
        """The line as tracefs lists it."""
        letter = "r" if self.is_return else "p"
        maxactive = str(self.maxactive) if self.is_return and self.maxactive else ""
        args = "".join(f" {arg.name}={arg.text}" for arg in self.args)
        place = self.target.spelling(self.bits)
        return f"{letter}{maxactive}:{self.group}/{self.event} {place}{args}"

    def error(self, code: str, part: int = PLACE, offset: int = 0) -> ProbeSyntaxError:
        """The kernel's error for what turns out to be wrong later.

        Args:
            code: id of the error.
            part: index of the word it is about: 0 head, 1 place, 2... arguments.
            offset: characters into that word.
        """
        return Command(_subsystem(self.kind), self.words).error(code, part, offset)


class Deletion(Struct, frozen=True):
    """A line that removes events.

    Attributes:
        group: only of this group; None for any.
        event: only of this name; "" for any.
        place: only at this place, spelled as in the listing; "" for any.
        args: only with these first arguments, spelled as in the listing.
    """

    group: str | None
    event: str
    place: str = ""
    args: tuple[str, ...] = ()


def parse(
    line: str, arch: Arch, *, mode: Mode = Mode.STRICT, lookup: Lookup = _NOTHING
) -> Definition | Deletion | None:
    """Read one line; None for one with nothing but blanks and comment.

    Args:
        line: with or without its end.
        arch: of the program.
        mode: whether the kernel's oversights are kept too.
        lookup: what the program knows.

    Raises:
        ProbeSyntaxError: what the kernel writes to error_log.
        ProbeError: what the kernel refuses without a word there.
    """
    line = clean_line(line)
    override = line.startswith("!")
    if override:
        line = BLANKS.sub(" ", line[1:]).lstrip(" ")
    words = _words(line)
    if not words:
        if override:
            raise UnloggedError("'!' goes in front of a definition", "ENOENT")
        return None
    if line.startswith("-") and not override:
        return read_deletion(words)
    letter = words[HEAD][0]
    if override and letter not in ("p", "r"):
        why = "what '!' is in front of begins with p or r, or is a synthetic event's name"
        raise UnloggedError(f"{words[HEAD]}: {why}", "ENOENT")
    if letter not in ("p", "r"):
        why = "a definition begins with p, r, e:, s: or -:"
        raise UnloggedError(f"{words[HEAD]}: {why}")
    if len(words) <= PLACE:
        raise ProbeError(
            f"{words[HEAD]}: a definition needs a place: p[:[GRP/]EVENT] PLACE (EINVAL)"
        )
    place = words[PLACE]
    named = "/" not in place or (mode is Mode.STRICT and path_symbol(place) is not None)
    read = _read_kprobe if named else _read_uprobe
    return read(line, words, arch, mode, lookup, override)


@lru_cache(maxsize=1)
def _words(line: str) -> tuple[str, ...]:
    """The words of a line; what reads one asks for them a few times."""
    return tuple(filter(None, BLANKS.split(line)))


def clean_line(line: str) -> str:
    """A line without end and comment; ProbeError if it is none that the kernel could be given."""
    if line.endswith("\n"):
        line = line[:-1]
    try:
        size = len(line) if line.isascii() else len(line.encode(errors="surrogateescape"))
    except UnicodeEncodeError:
        raise ProbeError("the definition is no text (EINVAL)") from None
    if size > MAX_LINE:
        raise ProbeError(f"a definition has at most {MAX_LINE} bytes (EINVAL)")
    if "\0" in line or "\n" in line:
        raise ProbeError("a definition is one line (EINVAL)")
    return line.partition("#")[0]


def _subsystem(kind: str) -> str:
    return f"trace_{kind}"


def read_deletion(words: tuple[str, ...]) -> Deletion:
    """The words of a line that begins with '-'; ProbeError if they are none."""
    name = words[HEAD]
    group, slash, event = name[2:].partition("/")
    if not slash:
        group, event = "", group
    if not name.startswith("-:") or (not slash and not event):
        raise ProbeError(f"{name}: a deletion is -:[GRP/]EVENT [PLACE [ARG...]] (EINVAL)")
    place = words[PLACE] if len(words) > PLACE else ""
    return Deletion(group if slash else None, event, place, words[FIRST_ARG:])


def _read_uprobe(
    line: str, words: tuple[str, ...], arch: Arch, mode: Mode, lookup: Lookup, override: bool
) -> Definition:
    command = Command(_subsystem("uprobe"), words)
    if len(words) - FIRST_ARG > MAX_ARGS:
        raise command.error("TOO_MANY_ARGS", FIRST_ARG)
    head = words[HEAD]
    target, suffixed = read_file_offset(words[PLACE], arch.bits, command, lookup)
    is_return = suffixed or head.startswith("r")
    # Digits of a maxactive make the kernel overlook the name.
    group, event = read_names(head, 1 if head[1:2] == ":" else -1, "uprobes", command)
    args, plain = _argument_words(words)
    context = ArgContext(
        arch,
        uprobe=True,
        is_return=is_return,
        at_entry=mode is Mode.STRICT and not is_return and lookup.entry(target, words[PLACE]),
        fail=command.error,
        symbol=lambda name: lookup.symbol(name, target, words[PLACE]),
        variables=None if plain else lookup.variables(target, words[PLACE], is_return),
        extended=mode is Mode.STRICT,
    )
    return Definition(
        kind="uprobe",
        is_return=is_return,
        maxactive=0,
        group=group,
        event=event or event_name(target, is_return, arch.bits),
        target=target,
        args=_kept_args(args, context) if plain else compile_args(args, context),
        line=line,
        bits=arch.bits,
        strict_override=override,
    )


def _read_kprobe(
    line: str, words: tuple[str, ...], arch: Arch, mode: Mode, lookup: Lookup, override: bool
) -> Definition:
    command = Command(_subsystem("kprobe"), words)
    head = words[HEAD]
    colon = head.find(":", 1)
    maxactive = read_maxactive(head, colon, command)
    target, suffixed = read_kprobe_place(words[PLACE], arch.bits, command, mode)
    is_return = suffixed or head.startswith("r")
    if problem := lookup.place(target, words[PLACE], is_return):
        raise command.error(problem, PLACE, why=lookup.why())
    group, event = read_names(head, colon, "kprobes", command)
    args, plain = _argument_words(words)
    context = ArgContext(
        arch,
        uprobe=False,
        is_return=is_return and not (mode is Mode.KERNEL and isinstance(target, Address)),
        at_entry=not is_return and lookup.entry(target, words[PLACE]),
        fail=command.error,
        symbol=lambda name: lookup.symbol(name, target, words[PLACE]),
        variables=None if plain else lookup.variables(target, words[PLACE], is_return),
        extended=mode is Mode.STRICT,
    )
    return Definition(
        kind="kprobe",
        is_return=is_return,
        maxactive=maxactive,
        group=group,
        event=event or event_name(target, is_return, arch.bits),
        target=target,
        args=_kept_args(args, context) if plain else compile_args(args, context),
        line=line,
        bits=arch.bits,
        strict_override=override,
    )


def _argument_words(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The arguments of a definition, and whether they mean the same at every place."""
    args = words[FIRST_ARG:]
    return args, all(map(_REGISTERS_ONLY.fullmatch, args))


def _kept_args(words: tuple[str, ...], context: ArgContext) -> tuple[FetchArg, ...]:
    """`compile_args`; many definitions have the same words, and then share what they mean."""
    kind = context.uprobe, context.is_return, context.at_entry, context.extended
    key = context.arch.name, kind, words
    found = _kept.get(key)
    if found is None:
        found = compile_args(words, context)
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[key] = found
    return found


def event_name(place: Target, is_return: bool, bits: int) -> str:
    """The name that an event without one gets.

    The kernel says `p_` for every uprobe, also one that fires on return.
    """
    letter = "r" if is_return else "p"
    match place:
        case FileOffset(path, offset):
            base = _SEPARATOR.split(path.rpartition("/")[2], maxsplit=1)[0]
            return f"p_{base}_{offset:#x}"[:MAX_EVENT]
        case SymbolPlace():
            short = replace(place, module=place.module.rpartition("/")[2])
            name = f"{letter}_{short.qualified}_{place.offset}"
        case Address():
            name = f"{letter}_{place.spelling(bits)}"
        case SourceLine(file, line):
            name = f"{letter}_{file}_{line}"
    return _NO_IDENTIFIER.sub("_", name[:MAX_EVENT])


def compatible(first: Definition, second: Definition) -> None:
    """Refuse `second` where the kernel would because of `first`, which is there already.

    To be asked about every earlier definition; those with another name only matter to the
    reference counter of the same uprobe place.

    Raises:
        ProbeSyntaxError: EVENT_EXIST, DIFF_PROBE_TYPE, DIFF_ARG_TYPE or SAME_PROBE (EEXIST).
        ProbeError: another reference counter for the same place (EINVAL).
    """
    here, there = second.target, first.target
    if isinstance(here, FileOffset) and isinstance(there, FileOffset):
        same_site = (here.path, here.offset) == (there.path, there.offset)
        if same_site and here.reference != there.reference:
            raise ProbeError(
                f"{second.place}: another probe there has a different reference counter (EINVAL)"
            )
    if (first.group, first.event) != (second.group, second.event):
        return
    if first.kind != second.kind:
        raise second.error("EVENT_EXIST", HEAD)
    if first.is_return != second.is_return:
        raise second.error("DIFF_PROBE_TYPE", HEAD)
    index = different_argument(first.args, second.args)
    if index is not None:
        raise second.error("DIFF_ARG_TYPE", FIRST_ARG + index)
    if here == there and [arg.text for arg in first.args] == [arg.text for arg in second.args]:
        raise second.error("SAME_PROBE", HEAD)


def different_argument(first: tuple[FetchArg, ...], second: tuple[FetchArg, ...]) -> int | None:
    """Index of the first argument that differs; a missing one is looked for first."""
    if len(first) != len(second):
        return min(len(first), len(second))
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        if one.name != other.name or not same_type(one.type, other.type):
            return index
    return None


def named(deletion: Deletion, group: str, event: str) -> bool:
    """True if a line removes definitions of an event, wherever their places are."""
    if deletion.event and deletion.event != event:
        return False
    return deletion.group is None or deletion.group == group


def matches(deletion: Deletion, definition: Definition) -> bool:
    """True if a line removes a definition; the kernel says ENOENT where it removes none."""
    if not named(deletion, definition.group, definition.event):
        return False
    if not deletion.place:
        return True
    place = definition.target.spelling(definition.bits)
    if not isinstance(definition.target, FileOffset):
        place = place[:_MATCHED]
    if place != deletion.place or len(deletion.args) > len(definition.args):
        return False
    spelled = (f"{arg.name}={arg.text}"[:_MATCHED] for arg in definition.args)
    return all(word == arg for word, arg in zip(deletion.args, spelled, strict=False))
