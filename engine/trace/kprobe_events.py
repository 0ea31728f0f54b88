"""The files `kprobe_events` and `dynamic_events` of a kernel: lines in, events and errors out."""

import errno
from typing import Final

from msgspec import Struct

from engine.arch.program import RecordLayout
from engine.errors import ProbeError, ProbeSyntaxError, UnloggedError
from engine.fetch.argument_words import FIRST_ARG
from engine.fetch.compile import PLACE
from engine.trace.definition import (
    BLANKS,
    Definition,
    clean_line,
    different_argument,
    matches,
    read_deletion,
)
from engine.trace.errors import TEXTS
from engine.trace.fields import format_text
from engine.trace.function_filter import filter_matches
from engine.trace.head_syntax import HEAD
from engine.trace.kernel_lines import KernelLines, KernelProbe, UnclaimedError, find_symbol
from engine.trace.place_syntax import Address
from engine.trace.probed_kernel import ProbedKernel
from engine.trace.rows import EventInfo

KPROBE_EVENTS: Final = "kprobe_events"
DYNAMIC_EVENTS: Final = "dynamic_events"
_WORDLESS: Final = frozenset(("ENOMEM", "EEXIST"))
_FILES: Final = frozenset(("enable", "filter"))
"""Files of a group, beside the folders of its events."""


class Outcome(Struct, frozen=True):
    """The kernel's answer to one line.

    Attributes:
        rc: result of the write: 0 or a negative error number.
        error: what error_log shows, or why it shows nothing; None where the line was accepted.
        shown: the file as it reads then; "" where the line was refused.
        format: the `format` file of the event that was defined, with `N` for its number; None
            where it has no such file.
        definition: the event that was defined.
        address: where its probe stands; None while its place is not there.
    """

    rc: int
    error: ProbeError | None = None
    shown: str = ""
    format: str | None = None
    definition: Definition | None = None
    address: int | None = None

    @property
    def text(self) -> str | None:
        """The words in error_log; None for none."""
        return self.error.text if isinstance(self.error, ProbeSyntaxError) else None

    @property
    def column(self) -> int | None:
        """Column of the caret in the command; None without an entry in error_log."""
        return self.error.column if isinstance(self.error, ProbeSyntaxError) else None


class DefinedProbe(Struct, frozen=True):
    """A probe that was accepted.

    Attributes:
        probe: as its line has it.
        address: where it stands; None while it waits for a module, or for good.
        maxactive: instances that its listing shows.
    """

    probe: KernelProbe
    address: int | None
    maxactive: int

    @property
    def name(self) -> tuple[str, str]:
        """Group and name of its event."""
        one = self.probe.definition
        return one.group, one.event


class KprobeEvents:
    """The probe events of one kernel."""

    def __init__(self, kernel: ProbedKernel) -> None:
        """None yet."""
        self._kernel = kernel
        self._lines = KernelLines(kernel)
        self._defined: list[DefinedProbe] = []

    @property
    def defined(self) -> tuple[DefinedProbe, ...]:
        """The probes, in the order of their lines."""
        return tuple(self._defined)

    def take(self, line: str, file: str = KPROBE_EVENTS) -> Outcome:
        """Write a line to one of the files; errors are part of the answer.

        Args:
            line: with or without its end.
            file: KPROBE_EVENTS or DYNAMIC_EVENTS.
        """
        try:
            return self._taken(line, file)
        except UnclaimedError as error:
            if file == DYNAMIC_EVENTS and self._kernel.era.unknown_type_said:
                text = clean_line(line)
                said = ProbeSyntaxError(
                    "NO_EVENT_TYPE", TEXTS["NO_EVENT_TYPE"], text, 0, "dynevent"
                )
                return Outcome(-errno.EINVAL, said)
            return Outcome(-errno.EINVAL, error)
        except (ProbeSyntaxError, UnloggedError) as error:
            return Outcome(-getattr(errno, error.errno), error)
        except ProbeError as error:
            return Outcome(-errno.EINVAL, error)

    def listing(self, file: str = KPROBE_EVENTS) -> str:
        """One of the files as it reads."""
        shown = (one for one in self._defined if _belongs(one, file))
        return "".join(f"{one.probe.listing(one.maxactive)}\n" for one in shown)

    def event(self, group: str, name: str) -> EventInfo | None:
        """The description of an event; None where there is none."""
        for one in self._defined:
            if one.name == (group, name):
                return _info(one.probe.definition)
        return None

    def _taken(self, line: str, file: str) -> Outcome:
        line = clean_line(line)
        words = tuple(filter(None, BLANKS.split(line)))
        if not words:
            return Outcome(0, shown=self.listing(file))
        if line.startswith("-"):
            self._delete(words, file)
            return Outcome(0, shown=self.listing(file))
        if file == DYNAMIC_EVENTS and words[HEAD][0] in "ft" and self._kernel.era.function_events:
            probe = self._lines.function_event(words)
        else:
            probe = self._lines.kprobe(words)
        done = self._define(probe)
        one = probe.definition
        hidden = one.event in _FILES and not self._kernel.era.own_folders
        text = None if hidden else format_text(_info(one), "N")
        return Outcome(0, None, self.listing(file), text, one, done.address)

    def _delete(self, words: tuple[str, ...], file: str) -> None:
        deletion = read_deletion(words)
        kept = [
            one
            for one in self._defined
            if not (_belongs(one, file) and matches(deletion, one.probe.definition))
        ]
        if len(kept) == len(self._defined):
            raise UnloggedError(f"{' '.join(words)}: there is no such event", "ENOENT")
        self._defined = kept

    # -- definitions ---------------------------------------------------------------------

    def _define(self, probe: KernelProbe) -> DefinedProbe:
        self._check_event(probe)
        place = self._place(probe)
        if isinstance(place, str):
            if place in _WORDLESS:
                raise UnloggedError(f"{probe.definition.place}: {place}", place)
            code = {"EILSEQ": "BAD_INSN_BNDRY", "ENOENT": "BAD_PROBE_ADDR"}.get(place)
            error = probe.command.error(code or "FAIL_REG_PROBE", PLACE)
            flat = probe.definition.kind == "fprobe" and self._kernel.era.functions_sought
            error.errno = "EINVAL" if flat else place
            raise error
        one = probe.definition
        maxactive = one.maxactive
        if one.kind == "kprobe" and one.is_return and place is not None:
            maxactive = maxactive or self._kernel.instances
        done = DefinedProbe(probe, place, maxactive)
        self._defined.append(done)
        return done

    def _check_event(self, probe: KernelProbe) -> None:
        """Refuse an event that does not go with those of its name."""
        new = probe.definition
        named = [one.probe for one in self._defined if one.name == (new.group, new.event)]
        siblings = [one for one in named if one.definition.kind == new.kind]
        if not siblings:
            if named or self._kernel.has_event(new.group, new.event):
                raise probe.command.error("EVENT_EXIST", HEAD)
            return
        first = siblings[0]
        if (first.definition.is_return, first.tracepoint) != (new.is_return, probe.tracepoint):
            raise probe.command.error("DIFF_PROBE_TYPE", HEAD)
        index = different_argument(first.definition.args, new.args)
        if index is not None:
            raise probe.command.error("DIFF_ARG_TYPE", FIRST_ARG + index)
        # Probes by address have no symbol to tell them apart.
        wish = probe.symbol, probe.offset, [arg.text for arg in new.args]
        for one in siblings:
            if (one.symbol, one.offset, [arg.text for arg in one.definition.args]) == wish:
                raise probe.command.error("SAME_PROBE", HEAD)

    # -- places --------------------------------------------------------------------------

    def _place(self, probe: KernelProbe) -> int | str | None:
        """The address of a probe, None while it waits for its place, or an error's name."""
        if probe.definition.kind == "fprobe":
            return self._function_place(probe)
        target = probe.definition.target
        if isinstance(target, Address):
            base: int | None = target.value
        else:
            base = find_symbol(self._kernel, probe.symbol or "")
        address = None if base is None else base + probe.offset
        problem = self._problem(probe, address)
        if problem == "ENOENT" and self._may_come(probe.symbol):
            return None
        return problem or address

    def _problem(self, probe: KernelProbe, address: int | None) -> str:
        """Name of the error with which registering fails, "" for none."""
        kernel = self._kernel
        around = kernel.covering(address) if address else None
        if address is not None and around is not None and kernel.notrace(address):
            return "EINVAL"
        if probe.missing:
            return _missing(probe)
        if address is None or around is None:
            return "EINVAL" if address == 0 and probe.symbol is None else "ENOENT"
        is_return = probe.definition.is_return
        if is_return and not kernel.at_entry(around[0], address - around[0]):
            return "EINVAL"
        return kernel.register(address, is_return=is_return)

    def _may_come(self, symbol: str | None) -> bool:
        """True if a place that is not there does not hinder: its module is not loaded.

        A probe by address has no module either.
        """
        if symbol is None:
            return True
        module, colon, _ = symbol.partition(":")
        return bool(colon) and not self._kernel.has_module(module)

    def _function_place(self, probe: KernelProbe) -> int | str | None:
        if probe.missing:
            return _missing(probe)
        symbol = probe.symbol or ""
        if probe.tracepoint:
            function = self._kernel.tracepoint(symbol)
            if function is None:
                return None  # a module's, which may come
            symbol = function
        address = find_symbol(self._kernel, symbol)
        if address is None or (not probe.tracepoint and self._kernel.notrace(address)):
            if probe.tracepoint:
                return "EINVAL"
            if self._kernel.era.functions_sought:
                return "ENOENT"
            return None if filter_matches(symbol, self._kernel.traced_names()) else "EINVAL"
        return address


def _missing(probe: KernelProbe) -> str:
    return "ENOENT" if probe.missing == "BAD_PROBE_ADDR" else "EINVAL"


def _belongs(one: DefinedProbe, file: str) -> bool:
    return file == DYNAMIC_EVENTS or one.probe.definition.kind == "kprobe"


def _info(definition: Definition) -> EventInfo:
    layout = RecordLayout.of(definition.args, definition.is_return)
    return EventInfo.of(1, definition.group, definition.event, layout, symbolic=True)
