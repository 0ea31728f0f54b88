"""Places in a kernel image: may a kprobe stand there, and what would it be.

The order of the questions is that of kernel/kprobes.c (register_kprobe, check_kprobe_address_safe)
and of kernel/trace/trace_kprobe.c, which asks more: it keeps events off functions that ftrace
does not know. The answers of the architecture are in `engine.arch.kernelprobes`.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final, Protocol

from msgspec import Struct

from engine.arch.kernelprobes import KernelFunction, KernelOutcome, KernelPlaceRules, KernelRefusal

FTRACE: Final = "ftrace"
OPTIMISED: Final = "jump"
BREAKPOINT: Final = "breakpoint"
REJECTED: Final = "rejected"

NOTRACE: Final = "kernel.notrace"
_REACH: Final = 32
"""Bytes that a site, or the window of a probe, takes at most."""
_LABEL: Final = 5


class KernelNaming(Protocol):
    """Names of an image, looked up as the kernel does."""

    def bounds(self, address: int) -> tuple[str, int, int] | None:
        """Name, start and end of the symbol around an address."""
        ...

    def find(self, name: str) -> int | None:
        """Address of the first symbol of a name."""
        ...


class KernelTables(Protocol):
    """The image's tables, sorted by address."""

    @property
    def text(self) -> Sequence[tuple[int, int]]:
        """The [start, end) of what is text once the kernel runs."""
        ...

    @property
    def gone(self) -> Sequence[tuple[int, int]]:
        """The [start, end) of text that is freed after boot, or after a module is loaded."""
        ...

    @property
    def ftrace(self) -> Sequence[int]:
        """Addresses of ftrace's sites that are alive."""
        ...

    @property
    def traces(self) -> bool:
        """True if the kernel has ftrace, which events ask."""
        ...

    @property
    def forbidden(self) -> Sequence[tuple[int, int]]:
        """The [start, end) of kprobes/blacklist, joined."""
        ...

    @property
    def labels(self) -> Sequence[int]:
        """Addresses of jump labels."""
        ...

    @property
    def static_calls(self) -> Sequence[int]:
        """Addresses of static calls."""
        ...

    @property
    def bugs(self) -> Sequence[int]:
        """Addresses of the traps of BUG and WARN."""
        ...

    @property
    def exceptions(self) -> Sequence[int]:
        """Addresses of instructions that may fault."""
        ...

    def live(self, address: int, size: int) -> bytes:
        """Text as a running kernel has it."""
        ...


class KernelVerdict(Struct, frozen=True):
    """The answer for one address.

    Attributes:
        address: it, behind a landing pad where the kernel moves the probe there.
        refusal: the rule that refuses a probe; None if one may stand there.
        kind: "ftrace", "jump" or "breakpoint"; "" where it is refused.
        stays: why a breakpoint stays one; None for the other kinds.
    """

    address: int
    refusal: KernelRefusal | None
    kind: str
    stays: KernelRefusal | None = None

    @property
    def ok(self) -> bool:
        """True if a probe may stand there."""
        return self.refusal is None


def _holds(ranges: Sequence[tuple[int, int]], address: int) -> bool:
    at = bisect_right(ranges, (address, 1 << 65)) - 1
    return at >= 0 and address < ranges[at][1]


def _between(sites: Sequence[int], low: int, high: int) -> tuple[int, ...]:
    return tuple(sites[bisect_left(sites, low) : bisect_left(sites, high)])


Outcome = tuple[str, str]
"""Technique, as in a verdict's `kind` or "rejected", and rule that decided, "" for none."""


def outcome_of(verdict: KernelVerdict) -> Outcome:
    """The technique and rule that a verdict is counted by."""
    why = verdict.refusal or verdict.stays
    return verdict.kind or REJECTED, why.rule if why is not None else ""


class _Sites(Struct, frozen=True):
    """The sites of the tables in and around some text."""

    ftrace: tuple[int, ...]
    labels: tuple[int, ...]
    static_calls: tuple[int, ...]
    bugs: tuple[int, ...]


class _Around(Struct, frozen=True):
    """The symbol around an address, and what is the same for all of its places.

    Attributes:
        name: of it.
        start: of it.
        end: of the next one.
        untraced: ftrace does not know it, nor what it is a part of.
        whole: name of what it is a part of and that is on the blacklist; "" for none.
        sites: in it, and so near that they reach into it or a probe reaches them.
    """

    name: str
    start: int
    end: int
    untraced: bool
    whole: str
    sites: _Sites


class KernelPlaces:
    """Judges addresses of one image."""

    def __init__(
        self, names: KernelNaming, tables: KernelTables, rules: KernelPlaceRules, *, module: bool
    ) -> None:
        """Nothing is read before the first question.

        Args:
            names: of the image.
            tables: of it.
            rules: of its architecture and version.
            module: a module, not a kernel.
        """
        self._names = names
        self._tables = tables
        self._rules = rules
        self._module = module
        self._latest: KernelFunction | None = None
        self._near: _Around | None = None

    def _around(self, address: int) -> _Around | None:
        """The symbol around an address; None where there is none."""
        near = self._near
        if near is not None and near.start <= address < near.end:
            return near
        found = self._names.bounds(address)
        if found is None:
            return None
        name, start, end = found
        base, dot, _ = name.partition(".")
        whole = self._names.find(base) if dot else None
        untraced = self._tables.traces and not self._sited(start, end)
        if untraced and whole is not None:
            bounds = self._names.bounds(whole)
            untraced = bounds is None or not self._sited(bounds[1], bounds[2])
        forbidden = whole is not None and _holds(self._tables.forbidden, whole)
        sites = self._sites(start, end)
        self._near = _Around(name, start, end, untraced, base if forbidden else "", sites)
        return self._near

    def _sites(self, start: int, end: int) -> _Sites:
        low, high, tables = start - _REACH, end + _REACH, self._tables
        return _Sites(
            _between(tables.ftrace, low, high),
            _between(tables.labels, low, high),
            _between(tables.static_calls, low, high),
            _between(tables.bugs, low, high),
        )

    # -- functions ---------------------------------------------------------------------

    def function(self, address: int) -> KernelFunction | None:
        """The live text of the symbol around an address."""
        latest = self._latest
        if latest is not None and latest.start <= address < latest.end:
            return latest
        found = self._around(address)
        if found is None:
            return None
        start, end, exceptions = found.start, found.end, self._tables.exceptions
        low, high = bisect_left(exceptions, start), bisect_left(exceptions, end)
        code = self._tables.live(start, end - start)
        faulting = tuple(exceptions[low:high])
        self._latest = KernelFunction(found.name, start, end, code, faulting)
        return self._latest

    def instructions(self, function: KernelFunction) -> Iterator[tuple[int, int]]:
        """Address and bytes of each instruction of a function, as the kernel decodes it."""
        return self._rules.instructions(function)

    def entry(self, address: int) -> int:
        """The address of a probe on a function's entry, which is behind a landing pad."""
        return address + self._rules.entry_offset(self._tables.live(address, 4))

    def on_entry(self, address: int) -> bool:
        """True if a probe there is on a function's entry (kprobe_on_func_entry)."""
        found = self._around(address)
        return found is not None and address in (found.start, self.entry(found.start))

    # -- verdicts ----------------------------------------------------------------------

    def registered(self, address: int) -> KernelVerdict:
        """The answer of register_kprobe for an address."""
        found = self._around(address)
        if found is not None and address == found.start:
            address = self.entry(address)
        refusal = self._refusal(address)
        if refusal is not None:
            return KernelVerdict(address, refusal, "")
        if self._rules.ftrace_based and found is not None and address in found.sites.ftrace:
            return KernelVerdict(address, None, FTRACE)
        stays = self._stays(address)
        return KernelVerdict(address, None, BREAKPOINT if stays is not None else OPTIMISED, stays)

    def event(self, address: int) -> KernelVerdict:
        """The answer for an event of kprobe_events, which ftrace has to know the function of."""
        if self.untraced(address):
            name = self._name(address)
            detail = f"{name} is notrace: it has no site of ftrace"
            return KernelVerdict(address, KernelRefusal(NOTRACE, detail, "EINVAL", address), "")
        return self.registered(address)

    def counted(self, function: KernelFunction, end: int) -> Counter[Outcome]:
        """The number of a function's instructions by what an event on each would be.

        The same as counting `event` at each, but where no table names a site nearby the rules
        tell of all of the function's places at once.

        Args:
            function: whose instructions are counted.
            end: instructions from there on are left out.
        """
        around = self._around(function.start)
        if around is None or not self._plain(around):
            found = (address for address, _ in self.instructions(function) if address < end)
            return Counter(outcome_of(self.event(address)) for address in found)
        if around.untraced:
            found = (address for address, _ in self.instructions(function))
            places = sum(1 for _ in takewhile(end.__gt__, found))
            return Counter({(REJECTED, NOTRACE): places})
        starts, ordinary = self._rules.ordinary(function, end)
        near = self._near_sites(around, starts, ordinary)
        counts = Counter(ordinary)
        counts.subtract(ordinary[number] for number in near)
        total = Counter(outcome_of(self.event(starts[number])) for number in near)
        for (refused, rule), count in counts.items():
            kind = REJECTED if refused else BREAKPOINT if rule else OPTIMISED
            total[kind, rule] += count
        return +total

    def _plain(self, around: _Around) -> bool:
        """True if a symbol is in one stretch of text and has nothing to do with the blacklist."""
        if around.whole:
            return False
        text, forbidden = self._tables.text, self._tables.forbidden
        inside = bisect_right(text, (around.start, 1 << 65)) - 1
        if inside < 0 or around.end > text[inside][1]:
            return False
        after = bisect_left(forbidden, (around.end, 0))
        return not after or forbidden[after - 1][1] <= around.start

    def _near_sites(
        self, around: _Around, starts: Sequence[int], ordinary: Sequence[KernelOutcome]
    ) -> list[int]:
        """The numbers of the places that more decides about than the instructions.

        Those are a landing pad, behind which its probe is moved; those inside of a table's site;
        and of those from which a jump would reach one the ones that would be jumps.
        """
        rules, sites = self._rules, around.sites
        found = set()
        if starts and self.entry(around.start) != around.start:
            found.add(0)
        inside = (
            (sites.bugs, 1),
            (sites.ftrace, 1),
            (sites.labels, _LABEL),
            (sites.static_calls, rules.static_call_size),
        )
        for addresses, size in inside:
            for site in addresses:
                found.update(range(bisect_left(starts, site), bisect_left(starts, site + size)))
        reserved = (
            (sites.ftrace, rules.site_size),
            (sites.labels, _LABEL),
            (sites.static_calls, rules.static_call_size),
        )
        for addresses, size in reserved:
            for site in addresses:
                # A jump takes whole instructions, so all of the one that the site begins in.
                holder = bisect_right(starts, site) - 1
                low = starts[holder] - rules.reach if holder >= 0 else site
                numbers = range(bisect_right(starts, low), bisect_left(starts, site + size))
                found.update(number for number in numbers if not any(ordinary[number]))
        return sorted(found)

    def returning(self, address: int) -> KernelVerdict:
        """The answer for a return event on a function's entry."""
        return self._as_return(address, self.event(address))

    def returned(self, address: int) -> KernelVerdict:
        """The answer of register_kretprobe for an address."""
        if not self.on_entry(address):
            refusal = KernelRefusal("kernel.return", "no function's entry", "EINVAL", address)
            return KernelVerdict(address, refusal, "")
        return self._as_return(address, self.registered(address))

    def _as_return(self, address: int, verdict: KernelVerdict) -> KernelVerdict:
        name = self._name(address)
        if verdict.ok and name in self._rules.return_refused:
            detail = f"{name}: no return probe may be on it (kretprobe_blacklist)"
            refusal = KernelRefusal("kernel.return-blacklist", detail, "EINVAL", address)
            return KernelVerdict(verdict.address, refusal, "")
        return verdict

    def crowded(self, verdict: KernelVerdict, others: Iterable[int]) -> KernelVerdict:
        """The same with other probes armed: one inside of its window takes the jump away.

        Args:
            verdict: of a place alone.
            others: addresses of all probes that are armed, sorted.
        """
        function = self.function(verdict.address)
        if verdict.kind != OPTIMISED or function is None:
            return verdict
        low, high = self._rules.window(function, verdict.address)
        sites = others if isinstance(others, Sequence) else tuple(others)
        at = bisect_left(sites, low)
        if at == len(sites) or sites[at] >= high:
            return verdict
        detail = f"a probe at {sites[at]:#x} is inside of the bytes that the jump would take"
        stays = KernelRefusal("optprobe.neighbour", detail, "", sites[at])
        return KernelVerdict(verdict.address, None, BREAKPOINT, stays)

    def _name(self, address: int) -> str:
        found = self._around(address)
        return found.name if found is not None else f"{address:#x}"

    def untraced(self, address: int) -> bool:
        """True for a function without a site, unless it is a part of one that has one."""
        found = self._around(address)
        return self._tables.traces if found is None else found.untraced

    def _sited(self, start: int, end: int) -> bool:
        sites = self._tables.ftrace
        at = bisect_left(sites, start)
        return at < len(sites) and sites[at] < end

    def _refusal(self, address: int) -> KernelRefusal | None:
        tables, rules = self._tables, self._rules
        if not _holds(tables.text, address):
            if self._module and _holds(tables.gone, address):
                text = "init text of a module, which is freed when it is loaded"
                return KernelRefusal("kernel.init", text, "ENOENT", address)
            if _holds(tables.gone, address):
                text = "init text, which is freed after boot"
                return KernelRefusal("kernel.init", text, "EINVAL", address)
            return KernelRefusal("kernel.text", "not in the kernel's text", "EINVAL", address)
        refusal = self._blacklisted(address)
        if refusal is not None:
            return refusal
        around = self._around(address)
        sites = around.sites if around is not None else self._sites(address, address + 1)
        for site in sites.labels:
            if site <= address < site + _LABEL and (
                address < site + rules.label_size(tables.live(site, _LABEL))
            ):
                detail = f"in the jump label's site at {site:#x}"
                return KernelRefusal("kernel.jump-label", detail, "EINVAL", site)
        for site in sites.static_calls:
            if site <= address < site + rules.static_call_size:
                detail = f"in the static call's site at {site:#x}"
                return KernelRefusal("kernel.static-call", detail, "EINVAL", site)
        if address in sites.bugs:
            detail = "the trap of a BUG or WARN"
            return KernelRefusal("kernel.bug", detail, "EINVAL", address)
        if address in sites.ftrace:
            if rules.ftrace_based:
                return None
            detail = "ftrace's site, where these kernels let no kprobe stand"
            return KernelRefusal("kernel.ftrace", detail, "EINVAL", address)
        function = self.function(address)
        if function is None:
            return KernelRefusal("kernel.symbol", "no symbol in front of it", "EILSEQ", address)
        return rules.refusal(function, address)

    def _blacklisted(self, address: int) -> KernelRefusal | None:
        if _holds(self._tables.forbidden, address):
            detail = f"{self._name(address)} is on the kernel's blacklist (kprobes/blacklist)"
            return KernelRefusal("kernel.blacklist", detail, "EINVAL", address)
        found = self._around(address)
        if found is not None and found.whole:
            detail = f"{found.whole}, which this is a part of, is on the kernel's blacklist"
            return KernelRefusal("kernel.blacklist", detail, "EINVAL", address)
        return None

    # -- jumps -------------------------------------------------------------------------

    def _stays(self, address: int) -> KernelRefusal | None:
        function = self.function(address)
        assert function is not None, "it was accepted"
        return self._rules.unoptimised(function, address, self._reserved)

    def _reserved(self, low: int, high: int) -> KernelRefusal | None:
        tables, rules, around = self._tables, self._rules, self._around(low)
        assert around is not None, "it was accepted"
        sites = around.sites
        for site in sites.ftrace:
            if site < high and low < site + rules.site_size:
                return KernelRefusal("kernel.ftrace", f"ftrace's site at {site:#x}", "", site)
        for site in sites.labels:
            if (
                site < high
                and low < site + _LABEL
                and (low < site + rules.label_size(tables.live(site, _LABEL)))
            ):
                return KernelRefusal("kernel.jump-label", f"the jump label at {site:#x}", "", site)
        for site in sites.static_calls:
            if site < high and low < site + rules.static_call_size:
                detail = f"the static call at {site:#x}"
                return KernelRefusal("kernel.static-call", detail, "", site)
        return None
