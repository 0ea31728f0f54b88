"""Places of a kernel's own x86-64 text where it lets kprobes stand, and which become jumps.

Sources: arch/x86/kernel/kprobes/core.c (can_probe, prepare_emulation, can_boost) and opt.c
(can_optimize, copy_optimized_instructions) of Linux 6.1 and 6.12, arch/x86/kernel/cfi.c. Unlike
the rules for programs (`analyze`, `relocate`), these are a version's own, its oversights included.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from engine.arch.kernel import KernelView
from engine.arch.kernelprobes import KernelFunction, KernelOutcome, KernelRefusal
from engine.arch.x86_64.kernel_shapes import INT3, TRAP, InsnShape, InsnShapes, refused
from engine.arch.x86_64.verdicts import BOOSTABLE_0F

_JUMP: Final = 5
_ENDBRS: Final = (
    bytes.fromhex("f30f1efa"),
    bytes.fromhex("660f1f00"),  # sealed: nobody branches there (gen_endbr_poison)
    bytes.fromhex("0f1f40d6"),  # the same since 6.14
)
_SHORT_LABELS: Final = (0xEB, 0x66)
_NO_TRAPS: Final = (6, 9, 0)
"""Since this version traps (int, ud) are no places."""
_GROUPS: Final = (6, 9, 0)
"""Since this version shifts and inc, dec and not are boosted."""
_NO_INDIRECT: Final = (6, 6, 0)
"""Since this version indirect jumps do not matter where none is left (retpolines, IBT)."""
_TRAPS_MOST: Final = 1 << 24
_OPTIMISED: Final = KernelOutcome(refused=False, rule="")


class _Line(Struct, frozen=True, eq=False):
    """One function decoded.

    Attributes:
        starts: addresses of its instructions.
        shapes: they; None where the bytes are none.
        jumps: (target, address) of its direct jumps, sorted.
        fatal: the reason for which none of its places is optimised.
    """

    starts: list[int]
    shapes: list[InsnShape | None]
    jumps: list[tuple[int, int]]
    fatal: KernelRefusal | None


class X86KernelRules:
    """The rules of one kernel."""

    ftrace_based = True
    static_call_size = 5
    site_size = 5
    reach = _JUMP
    return_refused = frozenset(("__switch_to",))

    def __init__(self, view: KernelView) -> None:
        """Take version, thunks and tables from an image.

        Args:
            view: the image, with its symbols and tables.
        """
        version = view.version
        thunk, end = view.symbol("__indirect_thunk_start"), view.symbol("__indirect_thunk_end")
        self._thunks = (thunk, end) if thunk is not None and end is not None else None
        retpolines = view.symbol("__x86_indirect_thunk_rax") is not None
        self._indirect = not (version >= _NO_INDIRECT and retpolines)
        entry = view.symbol("__entry_text_start"), view.symbol("__entry_text_end")
        self._entry = (entry[0] or 0, entry[1] or 0)
        boosted = BOOSTABLE_0F
        table = view.symbol("twobyte_is_boostable")
        if table is not None and len(bits := view.read(table, 32)) == 32:
            value = int.from_bytes(bits, "little")
            boosted = frozenset(code for code in range(256) if value >> code & 1)
        self._shapes = InsnShapes(
            traps=version < _NO_TRAPS, groups=version >= _GROUPS, boosted_0f=boosted
        )
        self._cfi_traps = _cfi_traps(view)
        self._landing_pads = view.section(".ibt_endbr_seal") is not None
        self._latest: tuple[KernelFunction | None, _Line | None] = (None, None)

    def label_size(self, code: bytes) -> int:
        """2 where the label is a short jump or its nop, else 5 (arch_jump_entry_size)."""
        return 2 if code[:1] and code[0] in _SHORT_LABELS else 5

    def entry_offset(self, code: bytes) -> int:
        """4 behind an ENDBR, sealed or not (arch_adjust_kprobe_addr)."""
        return 4 if self._landing_pads and code.startswith(_ENDBRS) else 0

    # -- may a probe stand there -------------------------------------------------------

    def refusal(self, function: KernelFunction, address: int) -> KernelRefusal | None:
        """The reason for which the architecture does not prepare a probe."""
        line = self._line(function)
        index = bisect_left(line.starts, address)
        if index == len(line.starts) or line.starts[index] != address:
            inside = line.starts[max(index - 1, 0)]
            detail = f"not an instruction boundary: inside of the instruction at {inside:#x}"
            return KernelRefusal("kernel.boundary", detail, "EILSEQ", inside)
        shape = line.shapes[index]
        if shape is None:
            detail = "no instruction can be decoded there"
            return KernelRefusal("kernel.boundary", detail, "EILSEQ", address)
        if shape.rule == TRAP:
            return KernelRefusal(TRAP, "a trap (int, ud)", "EILSEQ", address)
        if shape.rule == INT3:
            return KernelRefusal(INT3, "it is an int3", "EINVAL", address)
        behind = shape.trap_behind
        if behind and address + behind in self._cfi_traps:
            detail = f"a part of the check whose trap at {address + behind:#x} CFI reads it by"
            return KernelRefusal("kernel.cfi", detail, "EILSEQ", address + behind)
        if not shape.rule:
            return None
        found = refused(function.code[address - function.start :][: shape.size])
        return None if found is None else KernelRefusal(*found, address)

    def instructions(self, function: KernelFunction) -> Iterator[tuple[int, int]]:
        """Address and bytes of each instruction."""
        line = self._line(function)
        for start, shape in zip(line.starts, line.shapes, strict=True):
            if shape is not None:
                yield start, shape.size

    def ordinary(
        self, function: KernelFunction, stop: int
    ) -> tuple[Sequence[int], Sequence[KernelOutcome]]:
        """The outcome at each instruction where no table has a say.

        One walk from the end: what a place asks of those behind it is known then.
        """
        line = self._line(function)
        fatal = _breakpoint(line.fatal.rule) if line.fatal is not None else None
        targets = sorted({target for target, _ in line.jumps})
        found: list[KernelOutcome] = []
        end, entry = function.end, self._entry
        never = end + _JUMP
        unboosted, why = never, _NOT_BOOSTED  # the nearest that cannot run from a buffer
        target = never  # the nearest target of a jump behind the place
        first = bisect_left(line.starts, stop)
        last = bisect_left(line.starts, stop + _JUMP)  # what windows reach
        for address, shape in zip(
            reversed(line.starts[:last]), reversed(line.shapes[:last]), strict=True
        ):
            while targets and targets[-1] > address:
                target = targets.pop()
            if shape is None:
                unboosted, why = address, _UNDECODED
                continue
            if not shape.boosted:
                unboosted, why = address, _NOT_BOOSTED
            if shape.rule:
                found.append(_rejected(shape.rule))
            elif shape.trap_behind and address + shape.trap_behind in self._cfi_traps:
                found.append(_rejected("kernel.cfi"))
            elif entry[0] <= address < entry[1]:
                found.append(_ENTRY)
            elif end - address < _JUMP:
                found.append(_SHORT)
            elif fatal is not None:
                found.append(fatal)
            elif target <= address + _JUMP:
                found.append(_JUMP_TARGET)
            elif unboosted < address + _JUMP:
                found.append(why)
            else:
                found.append(_OPTIMISED)
        found.reverse()
        return line.starts[: min(first, len(found))], found[:first]

    # -- does it become a jump ---------------------------------------------------------

    def window(self, function: KernelFunction, address: int) -> tuple[int, int]:
        """The bytes behind the first one that whole instructions of a jump take."""
        line = self._line(function)
        index = bisect_left(line.starts, address)
        at = address
        while at < address + _JUMP and index < len(line.starts):
            shape = line.shapes[index]
            if shape is None:
                break
            at += shape.size
            index += 1
        return address + 1, max(at, address + _JUMP)

    def unoptimised(
        self,
        function: KernelFunction,
        address: int,
        reserved: Callable[[int, int], KernelRefusal | None],
    ) -> KernelRefusal | None:
        """The reason for which a breakpoint stays one."""
        low, high = self._entry
        if low <= address < high:
            return _stays(
                "optprobe.entry-text", "entry text: the stack may not be set up", address
            )
        if function.end - address < _JUMP:
            return _stays(
                "optprobe.short",
                f"only {function.end - address} bytes up to the next symbol; a jump takes 5",
                address,
            )
        line = self._line(function)
        if line.fatal is not None:
            return line.fatal
        at = bisect_left(line.jumps, (address + 1, 0))
        if at < len(line.jumps) and line.jumps[at][0] <= address + _JUMP:
            target, source = line.jumps[at]
            detail = f"the jump at {source:#x} lands at {target:#x}, inside of the 5 bytes"
            if target == address + _JUMP:
                detail = f"the jump at {source:#x} lands right behind the 5 bytes"
            return _stays("optprobe.jump-target", detail, source)
        return self._window_refusal(function, line, address, reserved)

    def _window_refusal(
        self,
        function: KernelFunction,
        line: _Line,
        address: int,
        reserved: Callable[[int, int], KernelRefusal | None],
    ) -> KernelRefusal | None:
        index = bisect_left(line.starts, address)
        at = address
        while at < address + _JUMP:
            shape = line.shapes[index] if index < len(line.starts) else None
            if shape is None:
                return _stays("optprobe.decode", "no instruction can be decoded there", at)
            if not shape.boosted:
                raw = function.at(at)[: shape.size].hex(" ")
                detail = f"the instruction at {at:#x} ({raw}) cannot run from a buffer"
                return _stays("optprobe.not-boostable", detail, at)
            at += shape.size
            index += 1
        found = reserved(address, at)
        if found is not None:
            return _stays(f"optprobe.{found.rule.partition('.')[2]}", found.detail, found.address)
        return None

    # -- decoding ----------------------------------------------------------------------

    def _line(self, function: KernelFunction) -> _Line:
        known, line = self._latest
        if known is not function or line is None:
            line = self._decoded(function)
            self._latest = function, line
        return line

    def _decoded(self, function: KernelFunction) -> _Line:
        code, start = function.code, function.start
        starts, shapes, numbers = self._shapes.decoded(code, start, function.end - start)
        jumps: list[tuple[int, int]] = []
        indirect = -1
        for number in numbers:
            address, shape = starts[number], shapes[number]
            assert shape is not None, "it jumps"
            if shape.branch_size:
                low = address - start + shape.branch_at
                raw = code[low : low + shape.branch_size]
                distance = int.from_bytes(raw, "little", signed=True)
                jumps.append((address + shape.size + distance, address))
            elif indirect < 0:
                indirect = address
        jumps.sort()
        return _Line(starts, shapes, jumps, self._fatal(function, starts, jumps, indirect))

    def _fatal(
        self,
        function: KernelFunction,
        starts: list[int],
        jumps: list[tuple[int, int]],
        indirect: int,
    ) -> KernelRefusal | None:
        """The reason for which no place of a function is optimised."""
        for address in function.exceptions:
            index = bisect_right(starts, address) - 1
            if index >= 0 and starts[index] == address:
                detail = f"the exception table names the instruction at {address:#x}"
                return _stays("optprobe.exception-table", detail, address)
        if self._indirect:
            if indirect >= 0:
                detail = f"the indirect jump at {indirect:#x} may lead anywhere in the function"
                return _stays("optprobe.indirect-jump", detail, indirect)
            if self._thunks is not None:
                low, high = self._thunks
                for target, source in jumps:
                    if low <= target <= high:
                        detail = f"the jump at {source:#x} leads to a thunk: it is indirect"
                        return _stays("optprobe.indirect-jump", detail, source)
        return None


def _cfi_traps(view: KernelView) -> frozenset[int]:
    """The traps of the compiler's checks of indirect calls (CONFIG_CFI_CLANG)."""
    start, end = view.symbol("__start___kcfi_traps"), view.symbol("__stop___kcfi_traps")
    if start is None or end is None:
        start, size = view.section("__kcfi_traps") or (0, 0)
        end = start + size
    if not 0 < end - start <= _TRAPS_MOST:
        return frozenset()
    data = view.read(start, end - start)
    distances = memoryview(data)[: len(data) & ~3].cast("i")
    return frozenset(start + 4 * number + distance for number, distance in enumerate(distances))


@cache
def _rejected(rule: str) -> KernelOutcome:
    return KernelOutcome(refused=True, rule=rule)


@cache
def _breakpoint(rule: str) -> KernelOutcome:
    return KernelOutcome(refused=False, rule=rule)


_ENTRY: Final = _breakpoint("optprobe.entry-text")
_SHORT: Final = _breakpoint("optprobe.short")
_JUMP_TARGET: Final = _breakpoint("optprobe.jump-target")
_NOT_BOOSTED: Final = _breakpoint("optprobe.not-boostable")
_UNDECODED: Final = _breakpoint("optprobe.decode")


def _stays(rule: str, detail: str, address: int) -> KernelRefusal:
    return KernelRefusal(rule, detail, "", address)
