"""Lists of what scripts can be attached to in a guest, as `bpftrace -l` has them."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final, Protocol

from engine.errors import ProbeError
from engine.image.datatypes import DataType
from engine.session.guest.session import Session
from engine.session.tracing.script.places import KERNELS, SIGNALS, USERS, ScriptPlaces
from engine.session.tracing.script.script_symbols import ScriptSymbols
from engine.session.tracing.script.surroundings import GuestSurroundings
from engine.trace.bpftrace.attach_points import attach_point, has_glob
from engine.trace.bpftrace.text import ScriptRemarks, ScriptText, Span

SHORT: Final = {
    "t": "tracepoint",
    "u": "uprobe",
    "ur": "uretprobe",
    "U": "usdt",
    "k": "kprobe",
    "kr": "kretprobe",
    "f": "fentry",
    "fr": "fexit",
    "kfunc": "fentry",
    "kretfunc": "fexit",
    "i": "interval",
    "p": "profile",
    "w": "watchpoint",
    "rt": "rawtracepoint",
}
_TYPES: Final = ("struct ", "union ", "enum ")
TIMES: Final = ("hz", "ms", "s", "us")
_NOWHERE: Final = Span(0, 0)


class TypeNames(Protocol):
    """Types by their names."""

    def struct(self, name: str) -> DataType | None:
        """A structure, union or enumeration; None if there is none of that name."""


def is_type(pattern: str) -> bool:
    """True for a pattern that names a structure, a union or an enumeration."""
    return pattern.startswith(_TYPES)


def type_lines(types: TypeNames, pattern: str, *, verbose: bool) -> Iterator[str]:
    """The lines of a type in a list.

    Args:
        types: what is known.
        pattern: its name with the word in front of it.
        verbose: its members follow.

    Raises:
        ProbeError: it is not known.
    """
    found = types.struct(pattern)
    if found is None:
        raise ProbeError(f"{pattern} is not known")
    if verbose:
        from engine.language.typetexts import definition_of  # few lists have types

        yield from definition_of(found).removeprefix("type = ").split("\n")
    else:
        yield pattern


class ProbeListing:
    """Lists the probes of one guest."""

    def __init__(self, session: Session) -> None:
        """Set up; files are read when somebody asks."""
        verdicts = session.probes().verdicts
        self._places = ScriptPlaces(session.arch, verdicts.places, verdicts.program)
        symbols = ScriptSymbols(session, self._places, verdicts.program)
        self._around = GuestSurroundings(session, verdicts, self._places, symbols)
        self._main = verdicts.main.path
        self._kernel = session.is_kernel

    def lines(self, pattern: str, *, verbose: bool) -> Iterator[str]:
        """The probes that a pattern means.

        Args:
            pattern: as attach points are written; "" for all; a glob without a provider is
                looked for in whole names.
            verbose: arguments follow each.

        Raises:
            ProbeError: there is no provider of that name, or no file that the pattern names.
        """
        if is_type(pattern):
            yield from type_lines(self._around, pattern, verbose=verbose)
            return
        provider, _, rest = pattern.partition(":")
        provider = SHORT.get(provider, provider) or "*"
        known = ("self", "tracepoint", "interval", "profile", "usdt", *sorted(USERS))
        known = (*known, *sorted(KERNELS)) if self._kernel else known
        wanted = [each for each in known if fnmatchcase(each, provider)]
        if not wanted and not rest and has_glob(pattern):
            for each in known:
                yield from self._of(each, "", verbose=verbose, whole=pattern)
            return
        if not wanted:
            why = self._around.provides(provider)
            raise ProbeError(why or f"Invalid provider: '{provider}'")
        for each in wanted:
            if each in USERS and each != provider and not rest:
                continue  # there are too many functions for those who did not ask for them
            yield from self._of(each, rest, verbose=verbose, named=each == provider)

    def _of(
        self,
        provider: str,
        rest: str,
        *,
        verbose: bool,
        whole: str = "*",
        named: bool = False,
    ) -> Iterator[str]:
        if provider == "self":
            texts = (f"signal:{name}" for name in SIGNALS)
            found = (f"self:{each}" for each in texts if fnmatchcase(each, rest or "*"))
            yield from (each for each in found if fnmatchcase(each, whole))
            return
        if provider in ("interval", "profile"):
            each = (f"{unit}:" for unit in TIMES)
            found = (f"{provider}:{one}" for one in each if fnmatchcase(one, rest or "*"))
            yield from (one for one in found if fnmatchcase(one, whole))
            return
        parts = rest.split(":") if rest else []
        least = {"usdt": 2, "tracepoint": 2}.get(provider, 2 if provider in USERS else 1)
        parts = parts or ["*"]
        if len(parts) < least:
            parts.insert(0, self._main if provider in USERS else "*")
        text = ":".join((provider, *parts))
        point = attach_point(text, _NOWHERE, ScriptRemarks(ScriptText("-l", text)))
        if point is None:
            return
        listed = self._places.expanded(point) if named else self._places.listed(point)
        if provider != "tracepoint":
            listed = sorted(listed, key=lambda one: one.text)
        for one in listed:
            if not fnmatchcase(one.text, whole):
                continue
            yield one.text
            if verbose:
                yield from (f"    {each}" for each in self._around.described(one))
