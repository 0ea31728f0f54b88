"""Places of a kernel's own x86-64 text where it lets kprobes stand, and which become jumps.

Sources: arch/x86/kernel/kprobes/core.c (can_probe, prepare_emulation, can_boost) and opt.c
(can_optimize, copy_optimized_instructions) of Linux 6.1 and 6.12, arch/x86/kernel/cfi.c. Unlike
the rules for programs (`analyze`, `relocate`), these are a version's own, its oversights included.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.arch.kernel import KernelView
from engine.arch.kernelprobes import KernelFunction, KernelRefusal
from engine.arch.plan import Mode, Rules, Verdict
from engine.arch.x86_64.analyze import analyze
from engine.arch.x86_64.decode import ADDRESS_SIZE, CS, LEGACY, LONGEST, Decoded, decode
from engine.arch.x86_64.verdicts import BOOSTABLE_0F, NOT_BOOSTABLE

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
_TRAPS: Final = frozenset((0xCC, 0xCD, 0xCE, 0xF1, 0x10B, 0x1B9, 0x1FF))
_SHIFTS: Final = frozenset((0xC0, 0xC1, 0xD0, 0xD1, 0xD2, 0xD3))
_CFI_CHECKS: Final = {0xBA: 12, 0x03: 6}
"""Instructions of a check before an indirect call (mov, add), to the distance of its trap."""
_TRAPS_MOST: Final = 1 << 24
_LOOPS: Final = frozenset((0xE0, 0xE1, 0xE2, 0xE3, 0xE9, 0xEB))


class _Line(Struct, frozen=True, eq=False):
    """One function decoded.

    Attributes:
        starts: addresses of its instructions.
        decoded: they; None where the bytes are none.
        jumps: (target, address) of its direct jumps, sorted.
        fatal: the reason for which none of its places is optimised.
    """

    starts: list[int]
    decoded: list[Decoded | None]
    jumps: list[tuple[int, int]]
    fatal: KernelRefusal | None


class X86KernelRules:
    """The rules of one kernel."""

    ftrace_based = True
    static_call_size = 5
    site_size = 5
    return_refused = frozenset(("__switch_to",))

    def __init__(self, view: KernelView) -> None:
        """Take version, thunks and tables from an image.

        Args:
            view: the image, with its symbols and tables.
        """
        version = view.version
        self._no_traps = version >= _NO_TRAPS
        self._groups = version >= _GROUPS
        thunk, end = view.symbol("__indirect_thunk_start"), view.symbol("__indirect_thunk_end")
        self._thunks = (thunk, end) if thunk is not None and end is not None else None
        retpolines = view.symbol("__x86_indirect_thunk_rax") is not None
        self._indirect = not (version >= _NO_INDIRECT and retpolines)
        entry = view.symbol("__entry_text_start"), view.symbol("__entry_text_end")
        self._entry = (entry[0] or 0, entry[1] or 0)
        self._boostable_0f = BOOSTABLE_0F
        table = view.symbol("twobyte_is_boostable")
        if table is not None and len(bits := view.read(table, 32)) == 32:
            value = int.from_bytes(bits, "little")
            self._boostable_0f = frozenset(code for code in range(256) if value >> code & 1)
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
        insn = line.decoded[index]
        if insn is None:
            detail = "no instruction can be decoded there"
            return KernelRefusal("kernel.boundary", detail, "EILSEQ", address)
        trap = insn.encoding == LEGACY and insn.key in _TRAPS
        if trap and self._no_traps:
            return KernelRefusal("kernel.trap", "a trap (int, ud)", "EILSEQ", address)
        if insn.encoding == LEGACY and insn.key == 0xCC:
            return KernelRefusal("kernel.int3", "it is an int3", "EINVAL", address)
        if trap:
            return None
        behind = _CFI_CHECKS.get(insn.key) if insn.encoding == LEGACY else None
        if behind is not None and address + behind in self._cfi_traps:
            detail = f"a part of the check whose trap at {address + behind:#x} CFI reads it by"
            return KernelRefusal("kernel.cfi", detail, "EILSEQ", address + behind)
        found = _refused(function.code[address - function.start :][: insn.size])
        return None if found is None else KernelRefusal(*found, address)

    def instructions(self, function: KernelFunction) -> Iterator[tuple[int, int]]:
        """Address and bytes of each instruction."""
        line = self._line(function)
        for start, insn in zip(line.starts, line.decoded, strict=True):
            if insn is not None:
                yield start, insn.size

    # -- does it become a jump ---------------------------------------------------------

    def window(self, function: KernelFunction, address: int) -> tuple[int, int]:
        """The bytes behind the first one that whole instructions of a jump take."""
        line = self._line(function)
        index = bisect_left(line.starts, address)
        at = address
        while at < address + _JUMP and index < len(line.starts):
            insn = line.decoded[index]
            if insn is None:
                break
            at += insn.size
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
            insn = line.decoded[index] if index < len(line.starts) else None
            if insn is None:
                return _stays("optprobe.decode", "no instruction can be decoded there", at)
            if not self._boostable(insn):
                raw = function.at(at)[: insn.size].hex(" ")
                detail = f"the instruction at {at:#x} ({raw}) cannot run from a buffer"
                return _stays("optprobe.not-boostable", detail, at)
            at += insn.size
            index += 1
        found = reserved(address, at)
        if found is not None:
            return _stays(f"optprobe.{found.rule.partition('.')[2]}", found.detail, found.address)
        return None

    def _boostable(self, insn: Decoded) -> bool:
        """True if its copy may be followed by a jump (can_boost)."""
        key = insn.key
        if insn.encoding == LEGACY and key >= 0x100:
            return key < 0x200 and key & 0xFF in self._boostable_0f
        if insn.prefixes & (CS | ADDRESS_SIZE):
            return False
        code = key & 0xFF
        if code in NOT_BOOSTABLE:
            return False
        if code in _SHIFTS:
            return self._groups and insn.reg != 6
        if code in (0xF6, 0xF7):
            return self._groups and insn.reg != 1
        if code == 0xFE:
            return self._groups and insn.reg < 2
        if code == 0xFF:
            return insn.reg == 4 or (self._groups and insn.reg < 2)
        return True

    # -- decoding ----------------------------------------------------------------------

    def _line(self, function: KernelFunction) -> _Line:
        known, line = self._latest
        if known is not function or line is None:
            line = self._decoded(function)
            self._latest = function, line
        return line

    def _decoded(self, function: KernelFunction) -> _Line:
        code, start = function.code, function.start
        starts: list[int] = []
        decoded: list[Decoded | None] = []
        jumps: list[tuple[int, int]] = []
        indirect = -1
        at, size = 0, function.end - start
        while at < size:
            insn = decode(code[at : at + LONGEST])
            starts.append(start + at)
            decoded.append(insn)
            if insn is None:
                break
            key = insn.key
            if insn.encoding == LEGACY and (
                key in _LOOPS or (key & 0xF0 == 0x70 and key < 0x100) or key & 0xFF0 == 0x180
            ):
                width = insn.immediate_size
                raw = code[at + insn.immediate_at : at + insn.immediate_at + width]
                target = start + at + insn.size + int.from_bytes(raw, "little", signed=True)
                jumps.append((target, start + at))
            elif (
                indirect < 0
                and insn.encoding == LEGACY
                and (key == 0xEA or (key == 0xFF and insn.reg & 6 == 4))
            ):
                indirect = start + at
            at += insn.size
        jumps.sort()
        return _Line(starts, decoded, jumps, self._fatal(function, starts, jumps, indirect))

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


@lru_cache(maxsize=1 << 14)
def _refused(raw: bytes) -> tuple[str, str, str] | None:
    """Rule, reason and error by which an instruction is refused wherever it stands."""
    plan = analyze(raw, 0, Rules.KPROBE, Mode.KERNEL, b"")
    if plan.verdict is not Verdict.REJECTED:
        return None
    return plan.rule, plan.reason, plan.errno


def _stays(rule: str, detail: str, address: int) -> KernelRefusal:
    return KernelRefusal(rule, detail, "", address)
