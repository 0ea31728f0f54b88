"""A place as the placement rules see it: code, function, sections, names, plan."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Final

from engine.arch.base import Arch
from engine.arch.flow import CodeFlow
from engine.arch.machine import Insn
from engine.arch.plan import InsnPlan, Mode, Rules, Verdict
from engine.image import ElfImage, Section, Segment, Symbol, SymbolTable
from engine.image.headers import PF_X

Decode = Callable[[int, bytes], tuple[Insn, ...]]
"""(address, bytes) to instructions, for messages."""

InMemory = Callable[[int, bytes], bytes]
"""(link address, bytes of a file) to those that a guest's memory has in their place."""

_BEFORE: Final = 512
_FUNCTION_MAX: Final = 1 << 24
_CACHED: Final = 64
_NEAR: Final = 16
_NO_FLOW: Final = CodeFlow()


class FunctionCode:
    """The original bytes of a function and what they say about themselves.

    Attributes:
        start: link address of its first byte.
        data: its bytes.
        starts: addresses of its instructions, read one after the other from its start as the
            kernel does; they end where something does not decode.
        bad: address of the first bytes that are no instruction, None if all are.
    """

    def __init__(self, arch: Arch, start: int, data: bytes) -> None:
        """Find the instructions."""
        self._arch = arch
        self.start = start
        self.data = data
        self.starts, self.bad = _boundaries(arch, start, data)
        self._matching: dict[Callable[[bytes], bool], tuple[int, ...]] = {}

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
        end = self.starts[at + 1] if at + 1 < len(self.starts) else self._end
        return (begin, self.insn(begin, end)) if begin <= address < end else None

    def insn(self, address: int, end: int) -> bytes:
        """Bytes of the instruction between two addresses; all of its bundle's where it has one."""
        unit = self._arch.code_unit
        if unit > 1:
            return self.read(address - address % unit, unit)
        return self.read(address, end - address)

    def read(self, address: int, size: int) -> bytes:
        """Bytes from an address in it; fewer where it ends."""
        at = address - self.start
        return self.data[at : at + size] if at >= 0 else b""

    @property
    def _end(self) -> int:
        return self.start + len(self.data) if self.bad is None else self.bad

    @cached_property
    def sources(self) -> Mapping[int, tuple[int, ...]]:
        """Targets of its direct branches inside it, to the branches that go there."""
        found: dict[int, tuple[int, ...]] = {}
        for address, raw in self._instructions():
            target = self._arch.probes.target(raw, address)
            if target is not None and self.start <= target < self._end:
                found[target] = (*found.get(target, ()), address)
        return found

    @cached_property
    def elsewhere(self) -> Mapping[int, tuple[int, ...]]:
        """Targets of its direct branches outside of it, to the branches that go there."""
        found: dict[int, tuple[int, ...]] = {}
        for address, raw in self._instructions():
            target = self._arch.probes.target(raw, address)
            if target is not None and not self.start <= target < self._end:
                found[target] = (*found.get(target, ()), address)
        return found

    def matching(self, wanted: Callable[[bytes], bool]) -> tuple[int, ...]:
        """Addresses of instructions whose bytes are wanted; the answer is remembered."""
        found = self._matching.get(wanted)
        if found is None:
            found = tuple(at for at, raw in self._instructions() if wanted(raw))
            self._matching[wanted] = found
        return found

    def _instructions(self) -> Iterator[tuple[int, bytes]]:
        """Address and bytes of each."""
        for number, address in enumerate(self.starts):
            end = self.starts[number + 1] if number + 1 < len(self.starts) else self._end
            yield address, self.insn(address, end)

    @cached_property
    def flow(self) -> CodeFlow:
        """Registers, flags and stack in use at its instructions, as far as is known."""
        flow = self._arch.probes.flow
        if flow is None or self.bad is not None:
            return _NO_FLOW
        return flow(self.data, self.start)


def _boundaries(arch: Arch, start: int, data: bytes) -> tuple[list[int], int | None]:
    length, longest, steps = arch.probes.length, arch.insn_max, arch.probes.steps
    at, end = 0, len(data)
    found: list[int] = []
    if steps is not None:
        return _slots(arch, steps, start, data)
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

    def _function(self, start: int, size: int) -> FunctionCode:
        data = self.read(start, min(size, _FUNCTION_MAX))
        return FunctionCode(self.arch, start, data)

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

    def functions_at(self, address: int) -> list[tuple[int, int, str]]:
        """All (start, end, name) of functions with a size that cover an address."""
        at = bisect_right(self._ranges, address, key=lambda row: row[0]) - 1
        found: list[tuple[int, int, str]] = []
        while at >= 0 and self._reach[at] > address:
            if self._ranges[at][1] > address:
                found.append(self._ranges[at])
            at -= 1
        return found[::-1]

    def names_at(self, address: int) -> list[str]:
        """Names of all functions that begin at an address."""
        at = bisect_left(self._ranges, address, key=lambda row: row[0])
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


@dataclass
class Site:
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
    _plans: dict[Mode, InsnPlan] = field(default_factory=dict, repr=False)

    @property
    def arch(self) -> Arch:
        """The architecture."""
        return self.code.arch

    @cached_property
    def function(self) -> FunctionCode | None:
        """The function around it."""
        return self.code.function(*self.function_range) if self.function_range else None

    @cached_property
    def raw(self) -> bytes:
        """Original bytes from the unit around the address on, as many as an instruction has."""
        return self._bytes_at(self.address)

    def _bytes_at(self, address: int) -> bytes:
        base = address - address % self.arch.code_unit
        return self.code.read(base, self.arch.insn_max)

    @property
    def plan(self) -> InsnPlan:
        """The plan for the instruction there."""
        return self.plan_in(self.mode)

    def plan_in(self, mode: Mode) -> InsnPlan:
        """The plan under the rules of a mode."""
        plan = self._plans.get(mode)
        if plan is None:
            plan = self._plans[mode] = self._analyze(self.address, mode)
        return plan

    def _analyze(self, address: int, mode: Mode) -> InsnPlan:
        function = self.function
        before, raw = b"", self.raw
        if function is not None:
            begin = max(function.start, address - _BEFORE)
            before = function.read(begin, address - begin)
        if address != self.address:
            raw = self._bytes_at(address)
        return self.arch.probes.analyze(raw, address, self.rules, mode, before)

    @cached_property
    def segment(self) -> Segment | None:
        """The loadable segment it lies in."""
        return self.code.segment(self.address)

    @cached_property
    def section(self) -> Section | None:
        """The section it lies in."""
        return self.code.section(self.address)

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
