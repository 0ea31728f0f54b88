"""A place as the placement rules see it: code, function, sections, names, plan."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice, pairwise
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.arch.flow import CodeFlow
from engine.arch.machine import Insn
from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.image import ElfImage, Section, Segment, Symbol, SymbolTable
from engine.image.headers import PF_X
from engine.image.index import undivided

_Told = TypeVar("_Told")

Decode = Callable[[int, bytes], tuple[Insn, ...]]
"""(address, bytes) to instructions, for messages."""

InMemory = Callable[[int, bytes], bytes]
"""(link address, bytes of a file) to those that a guest's memory has in their place."""

_FUNCTION_MAX: Final = 1 << 24
_CACHED: Final = 64
_NEAR: Final = 16
_NO_FLOW: Final = CodeFlow()
SHORT_REACH: Final = 130
"""Bytes that a short jump spans, with room to spare."""


class FunctionCode:
    """The original bytes of a function and what they say about themselves.

    Attributes:
        start: link address of its first byte.
        data: its bytes.
        starts: addresses of its instructions, read one after the other from its start as the
            kernel does; they end where something does not decode.
        bad: address of the first bytes that are no instruction, None if all are.
        entered: addresses in it that jumps elsewhere may go to, sorted; None until somebody has
            looked for them.
    """

    def __init__(self, arch: Arch, start: int, data: bytes) -> None:
        """Find the instructions."""
        self._arch = arch
        self._unit = arch.code_unit
        self.start = start
        self.data = data
        self.starts, self.bad = _boundaries(arch, start, data)
        self.entered: Sequence[int] | None = None
        self._matching: dict[tuple[Callable[[bytes], bool], ...], tuple[int, ...]] = {}
        self._told: dict[Callable[[bytes, int], Any], dict[int, Any]] = {}

    def holds(self, address: int) -> bool:
        """True if an instruction begins at an address."""
        at = bisect_left(self.starts, address)
        return at < len(self.starts) and self.starts[at] == address

    def around(self, address: int) -> tuple[int, bytes] | None:
        """Address and bytes of the instruction that an address lies in."""
        at = bisect_right(self.starts, address) - 1
        if at < 0:
            return None
        begin = self.starts[at]
        end = self.starts[at + 1] if at + 1 < len(self.starts) else self.end
        return (begin, self.insn(begin, end)) if begin <= address < end else None

    def numbered(self, number: int) -> tuple[int, bytes]:
        """Address and bytes of an instruction by its number."""
        starts = self.starts
        begin = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else self.end
        return begin, self.insn(begin, end)

    def insn(self, address: int, end: int) -> bytes:
        """Bytes of the instruction between two addresses; all of its bundle's where it has one."""
        unit = self._unit
        if unit > 1:
            return self.read(address - address % unit, unit)
        return self.data[address - self.start : end - self.start]

    def read(self, address: int, size: int) -> bytes:
        """Bytes from an address in it; fewer where it ends."""
        at = address - self.start
        return self.data[at : at + size] if at >= 0 else b""

    @property
    def end(self) -> int:
        """The address behind its last instruction."""
        return self.start + len(self.data) if self.bad is None else self.bad

    @cached_property
    def inward(self) -> "BranchTargets":
        """Targets of its direct branches inside it."""
        return self._branches[0]

    @cached_property
    def outward(self) -> "BranchTargets":
        """Targets of its direct branches outside of it."""
        return self._branches[1]

    @cached_property
    def _branches(self) -> "tuple[BranchTargets, BranchTargets]":
        inside: dict[int, int] = {}
        outside: dict[int, int] = {}
        target_of, start, end = self._arch.probes.target, self.start, self.end
        for address, raw in zip(self.starts, self.raws, strict=True):
            target = target_of(raw, address)
            if target is not None:
                (inside if start <= target < end else outside).setdefault(target, address)
        return BranchTargets(inside), BranchTargets(outside)

    def matching(
        self, wanted: Callable[[bytes], bool], unless: Callable[[bytes], bool] = lambda raw: False
    ) -> tuple[int, ...]:
        """Addresses of instructions whose bytes are wanted; the answer is remembered."""
        found = self._matching.get((wanted, unless))
        if found is None:
            found = tuple(
                at
                for at, raw in zip(self.starts, self.raws, strict=True)
                if wanted(raw) and not unless(raw)
            )
            self._matching[wanted, unless] = found
        return found

    @cached_property
    def suspicious(self) -> frozenset[int]:
        """Addresses of its instructions that an emulator has to look at before they run."""
        suspects, data = self._arch.suspects, self.data
        if not suspects:
            return frozenset()
        assert self._unit == 1, "an instruction is a unit of its own"
        found: set[int] = set()
        for match in _pairs(tuple(suspects.items())).finditer(data):
            one = self.start + match.start()
            insn = self.around(one)
            if insn is not None and one + 1 < insn[0] + len(insn[1]):
                found.add(insn[0])
        return frozenset(found)

    def told(self, ask: Callable[[bytes, int], _Told], address: int, raw: bytes) -> _Told:
        """An answer about the bytes of one of its instructions; it is remembered."""
        answers = self._told.get(ask)
        if answers is None:
            answers = self._told[ask] = {}
        if address not in answers:
            answers[address] = ask(raw, address)
        found: _Told = answers[address]
        return found

    @cached_property
    def raws(self) -> list[bytes]:
        """Bytes of each instruction, as `insn` has them."""
        starts = self.starts
        ends = chain(islice(starts, 1, None), (self.end,))
        if self._unit > 1:
            return [self.insn(address, end) for address, end in zip(starts, ends, strict=False)]
        data, base = self.data, self.start
        pairs = zip(starts, ends, strict=False)
        return [data[address - base : end - base] for address, end in pairs]

    @cached_property
    def flow(self) -> CodeFlow:
        """Registers, flags and stack in use at its instructions, as far as is known."""
        flow = self._arch.probes.flow
        if flow is None or self.bad is not None:
            return _NO_FLOW
        return flow(self.data, self.start)


_CHUNK: Final = 1 << 20
"""Bytes of code that are searched at a time."""


class BranchTargets:
    """Targets of branches, and for each the first branch that goes there.

    Attributes:
        targets: all of them, sorted.
    """

    def __init__(self, first: Mapping[int, int]) -> None:
        """Take the targets, in the order of their first branches."""
        self._first = first
        self.targets = sorted(first)

    def into(self, start: int, end: int) -> tuple[int, int] | None:
        """The target in [start, end) that is branched to first, and the branch."""
        targets = self.targets
        at = bisect_left(targets, start)
        if at == len(targets) or targets[at] >= end:
            return None
        inside = targets[at : bisect_left(targets, end)]
        target = min(inside, key=self._first.__getitem__)
        return target, self._first[target]


def screened(arch: Arch, raw: bytes) -> bool:
    """True if an emulator has to look at an instruction before it runs."""
    return any(second in arch.suspects.get(first, ()) for first, second in pairwise(raw))


@lru_cache
def _pairs(suspects: tuple[tuple[int, frozenset[int]], ...]) -> re.Pattern[bytes]:
    """The first byte of each pair that the emulator screens for, in front of the second."""

    def escaped(byte: int) -> bytes:
        return b"\\x%02x" % byte

    found = [
        escaped(one) + b"(?=[" + b"".join(map(escaped, sorted(seconds))) + b"])"
        for one, seconds in suspects
        if seconds
    ]
    return re.compile(b"|".join(found))


def _boundaries(arch: Arch, start: int, data: bytes) -> tuple[list[int], int | None]:
    length, longest, steps = arch.probes.length, arch.insn_max, arch.probes.steps
    at, end = 0, len(data)
    found: list[int] = []
    if steps is not None:
        return _slots(arch, steps, start, data)
    if arch.probes.starts is not None:
        return arch.probes.starts(data, start)
    while at < end:
        size = length(data[at : at + longest])
        if size <= 0:
            return found, start + at
        found.append(start + at)
        at += size
    return found, None


def _slots(
    arch: Arch, steps: Callable[[bytes], tuple[int, ...]], start: int, data: bytes
) -> tuple[list[int], int | None]:
    """The same where units hold several; a function begins with one."""
    found: list[int] = []
    unit = arch.code_unit
    for offset in range(0, len(data), unit):
        at = start + offset
        distances = steps(data[offset : offset + unit])
        if not distances:
            return found, at
        for distance in distances:
            found.append(at)
            at += distance
    return found, None


class Stretch(Struct, eq=False):
    """Addresses between which nothing begins or ends: no symbol, section or segment.

    Addresses are those of the `ImageCode` that it is from.

    Attributes:
        start: the first one.
        end: behind the last one.
        segment: the loadable segment that they lie in: the last one, as mapped.
        section: the section, where there are sections.
        symbol: the one that covers them.
        silent: ids of the rules about what they lie in that find nothing there; None until
            somebody has asked them.
    """

    start: int
    end: int
    segment: Segment | None
    section: Section | None
    symbol: Symbol | None
    silent: frozenset[str] | None = None


class ImageCode:
    """The code of one file: what all sites in it have in common.

    Attributes:
        arch: its architecture.
        image: the file.
        symbols: its names.
        decode: for messages.
        bias: what is added to link addresses to get those that sites, rules and messages have.
    """

    def __init__(
        self,
        arch: Arch,
        image: ElfImage,
        symbols: SymbolTable,
        decode: Decode | None = None,
        bias: int = 0,
        in_memory: InMemory | None = None,
    ) -> None:
        """Nothing is read before the first question.

        Args:
            arch: the file's architecture.
            image: the file.
            symbols: its names.
            decode: instructions for messages; without it they show bytes only.
            bias: of the file in memory; without it all addresses are link addresses.
            in_memory: the bytes that count, where they are not the file's.
        """
        self._in_memory = in_memory
        self.bias = bias
        self.arch = arch
        self.image = image
        self.symbols = symbols
        self.decode = decode
        self.function = lru_cache(maxsize=_CACHED)(self._function)
        # What was asked for last: the neighbours ask for the same.
        self._latest: Stretch | None = None
        self._lying: tuple[int, int, tuple[tuple[int, int, str], ...]] = (0, 0, ())

    def _function(self, start: int, size: int) -> FunctionCode:
        data = self.read(start, min(size, _FUNCTION_MAX))
        return FunctionCode(self.arch, start, data)

    def neighbours(self, start: int, end: int) -> Iterator[FunctionCode]:
        """All functions but the one at `start` that a short jump into [start, end) may be in."""
        near = self.functions_between(start - SHORT_REACH, end + SHORT_REACH + 1)
        for low, high in {(low, high) for low, high, _ in near if low != start}:
            yield self.function(low, high - low)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of the file, where it is in memory; or what memory has there."""
        link = address - self.bias
        data = self.image.read_vaddr(link, size)
        return data if self._in_memory is None else self._in_memory(link, data)

    @cached_property
    def _ranges(self) -> list[tuple[int, int, str]]:
        functions = [(s.address + self.bias, s.size, s.name) for s in self.symbols.functions()]
        return sorted((start, start + size, name) for start, size, name in functions)

    @property
    def has_functions(self) -> bool:
        """True if the file names functions at all."""
        return bool(self._ranges)

    @cached_property
    def _reach(self) -> list[int]:
        return list(accumulate((end for _, end, _ in self._ranges), max))

    def functions_at(self, address: int) -> Sequence[tuple[int, int, str]]:
        """All (start, end, name) of functions with a size that cover an address."""
        low, high, found = self._lying
        if low <= address < high:
            return found
        ranges = self._ranges
        at = bisect_right(self._starts, address) - 1
        inside: list[tuple[int, int, str]] = []
        while at >= 0 and self._reach[at] > address:
            if ranges[at][1] > address:
                inside.append(ranges[at])
            at -= 1
        found = tuple(reversed(inside))
        span = undivided(self._starts, self._reach, lambda at: ranges[at][1], address)
        self._lying = (*span, found)
        return found

    def functions_between(self, low: int, high: int) -> list[tuple[int, int, str]]:
        """All (start, end, name) of functions with a size that reach into [low, high)."""
        at = bisect_left(self._starts, high) - 1
        found: list[tuple[int, int, str]] = []
        while at >= 0 and self._reach[at] > low:
            if self._ranges[at][1] > low:
                found.append(self._ranges[at])
            at -= 1
        return found

    def stretch(self, address: int) -> Stretch:
        """The surroundings that an address and its neighbours share."""
        latest = self._latest
        if latest is not None and latest.start <= address < latest.end:
            return latest
        bias = self.bias
        symbol, low, high = self.symbols.span(address - bias)
        if symbol is not None and bias:
            symbol = replace(symbol, address=symbol.address + bias)
        self._latest = found = Stretch(
            low + bias, high + bias, self.segment(address), self.section(address), symbol
        )
        return found

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _, _ in self._ranges]

    def begun(self, low: int, high: int) -> list[int]:
        """Addresses in [low, high) at which functions begin."""
        starts = self._starts
        return starts[bisect_left(starts, low) : bisect_left(starts, high)]

    @cached_property
    def long_breakpoints(self) -> tuple[int, ...]:
        """Addresses of `ArchProbes.long_breakpoint` in the functions, where those are known."""
        wanted = self.arch.probes.long_breakpoint
        return tuple(self._finding(wanted)) if wanted else ()

    def _finding(self, wanted: bytes) -> Iterator[int]:
        for segment in self.image.load_segments:
            if not segment.flags & PF_X:
                continue
            low, more = segment.vaddr + self.bias, len(wanted) - 1
            for start in range(low, low + segment.filesz, _CHUNK):
                size = min(_CHUNK + more, low + segment.filesz - start)
                data, at = self.read(start, size), -1
                while (at := data.find(wanted, at + 1)) >= 0:
                    if self._holds_insn(start + at):
                        yield start + at

    def _holds_insn(self, address: int) -> bool:
        """True if an instruction of a function is known to begin there."""
        around = next(iter(self.functions_at(address)), None)
        return around is not None and self.function(around[0], around[1] - around[0]).holds(
            address
        )

    def names_at(self, address: int) -> list[str]:
        """Names of all functions that begin at an address."""
        at = bisect_left(self._starts, address)
        found: list[str] = []
        while at < len(self._ranges) and self._ranges[at][0] == address:
            found.append(self._ranges[at][2])
            at += 1
        return found

    def segment(self, address: int) -> Segment | None:
        """The loadable segment that shows an address: the last one, as mapped."""
        link, loads = address - self.bias, self.image.load_segments
        return next((segment for segment in reversed(loads) if segment.covers(link)), None)

    def section(self, address: int) -> Section | None:
        """The section that an address lies in, where there are sections."""
        link = address - self.bias
        return next((s for s in self.image.sections if s.holds(link)), None)

    def show(self, address: int, raw: bytes) -> str:
        """An instruction as text and bytes."""
        insn = next(iter(self.decode(address, raw)), None) if self.decode else None
        if insn is None:
            return f"({raw.hex(' ')})"
        return f"'{insn.text}' ({insn.raw.hex(' ')})"


class Site(Struct, dict=True):
    """A place with everything a rule may look at; addresses are link addresses plus `code.bias`.

    Attributes:
        code: the file.
        address: of the probe.
        rules: whose rules decide.
        mode: how strictly.
        function_range: (start, size) of the function around it, None outside of all.
        symbol: the symbol that covers it.
        probed: whether a probe stands there already.
    """

    code: ImageCode
    address: int
    rules: Rules
    mode: Mode
    function_range: tuple[int, int] | None
    symbol: Symbol | None = None
    probed: bool = False

    @property
    def arch(self) -> Arch:
        """The architecture."""
        return self.code.arch

    @property
    def function(self) -> FunctionCode | None:
        """The function around it."""
        return self.code.function(*self.function_range) if self.function_range else None

    @cached_property
    def raw(self) -> bytes:
        """Original bytes from the unit around the address on, as many as an instruction has."""
        return bytes_at(self.code, self.function, self.address)

    @cached_property
    def plan(self) -> InsnPlan:
        """The plan for the instruction there."""
        return self._analyze(self.address, self.mode)

    def plan_in(self, mode: Mode) -> InsnPlan:
        """The plan under the rules of a mode."""
        return self.plan if mode is self.mode else self._analyze(self.address, mode)

    def _analyze(self, address: int, mode: Mode) -> InsnPlan:
        raw = self.raw if address == self.address else None
        return plan_at(self.code, self.function, address, self.rules, mode, raw)

    @property
    def stretch(self) -> Stretch:
        """All that it lies in together with its neighbours."""
        return self.code.stretch(self.address)

    @property
    def segment(self) -> Segment | None:
        """The loadable segment it lies in."""
        return self.stretch.segment

    @property
    def section(self) -> Section | None:
        """The section it lies in."""
        return self.stretch.section

    @property
    def executable(self) -> bool:
        """True if its segment is mapped executable."""
        return self.segment is not None and bool(self.segment.flags & PF_X)

    @property
    def is_entry(self) -> bool:
        """True if it is the first instruction of its function."""
        return self.function_range is not None and self.function_range[0] == self.address

    @property
    def flow(self) -> CodeFlow:
        """Registers, flags and stack in use in its function."""
        return self.function.flow if self.function is not None else _NO_FLOW

    def nearest_accepted(self) -> int | None:
        """The closest other instruction of the function that a probe may stand on."""
        function = self.function
        if function is None:
            return None
        at = bisect_left(function.starts, self.address)
        near = function.starts[max(at - _NEAR, 0) : at + _NEAR]
        for address in sorted(near, key=lambda address: abs(address - self.address)):
            if (
                address != self.address
                and self._analyze(address, self.mode).verdict is not Verdict.REJECTED
            ):
                return address
        return None


def bytes_at(code: ImageCode, function: FunctionCode | None, address: int) -> bytes:
    """Original bytes from the unit around an address on, as many as an instruction has.

    Args:
        code: the file.
        function: the function around the address, None outside of all.
        address: where.
    """
    arch = code.arch
    base = address - address % arch.code_unit
    if function is not None:
        found = function.read(base, arch.insn_max)
        if len(found) == arch.insn_max:
            return found
    return code.read(base, arch.insn_max)


def plan_at(
    code: ImageCode,
    function: FunctionCode | None,
    address: int,
    rules: Rules,
    mode: Mode,
    raw: bytes | None = None,
) -> InsnPlan:
    """The plan for the instruction at an address.

    Args:
        code: the file.
        function: the function around it, None outside of all.
        address: where.
        rules: whose verdict.
        mode: how strictly.
        raw: what `bytes_at` says, where that is known.
    """
    before, probes = b"", code.arch.probes
    if probes.looks_back and function is not None:
        begin = max(function.start, address - probes.looks_back)
        before = function.read(begin, address - begin)
    if raw is None:
        raw = bytes_at(code, function, address)
    return probes.analyze(raw, address, rules, mode, before)
