"""The text of an x86-64 kernel as it patches itself at boot.

The tables say where, the CPU's features and the initial state of keys say what. Sources:
arch/x86/kernel/alternative.c, static_call.c, jump_label.c, ftrace.c and paravirt.c of the
versions from 5.17 on; where they have changed, `_Era` says since when.
"""

from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import Final

from engine.arch.kernel import KernelView
from engine.arch.kernelcpu import CpuModel
from engine.arch.kerneldiff import LiveBytes
from engine.arch.kernelsites import (
    Alternative,
    BootedKernel,
    KernelSites,
    TextPatch,
)
from engine.arch.x86_64.decode import decode
from engine.arch.x86_64.kernel_text_features import Features
from engine.arch.x86_64.kernel_text_keys import BootedKeys
from engine.arch.x86_64.kernel_text_nops import (
    add_nop,
    optimized,
    optimized_in_pieces,
    relocated,
    relocated_call,
)

_CALL, _JUMP, _SHORT, _RET, _INT3, _NOP = 0xE8, 0xE9, 0xEB, 0xC3, 0xCC, 0x90
_NOP5: Final = bytes.fromhex("0f1f440000")
_NOP2: Final = bytes.fromhex("6690")
_RETURN0: Final = bytes.fromhex("2e2e2e31c0")  # xor %eax, %eax in five bytes
_ENDBR: Final = bytes.fromhex("f30f1efa")
_SEALED: Final = bytes.fromhex("660f1f00")
_INDIRECT_CALL: Final = b"\xff\x15"
_LOCK, _DS = b"\xf0", b"\x3e"
_LFENCE: Final = bytes.fromhex("0faee8")
_DIRECT_CALL: Final = 2  # ALT_FLAG_DIRECT_CALL
_PAIR: Final = Layout("<ii")
_PAGE: Final = 4096
_CONSTANTS_MOST: Final = 1 << 20
_REPLACEMENTS_MOST: Final = 1 << 24
_RELOCATES: Final = (6, 4, 0)
"""Since this version all operands of a replacement are relocated, not only its first one."""


class PatchedText(BootedKernel):
    """A kernel's live text on one CPU, and that of its modules."""

    def __init__(self, view: KernelView, sites: KernelSites, cpu: CpuModel) -> None:
        """The text of a kernel.

        Args:
            view: the kernel's image.
            sites: its tables.
            cpu: on which it has booted.
        """
        self._kernel = view
        self._sites = sites
        self._cpu = cpu
        self._features = Features(view, sites, cpu)
        self._thunk = view.symbol("__x86_return_thunk")
        self._returns = self._return_thunk() if self._features.has("RETHUNK") else None
        self._return0 = view.symbol("__static_call_return0")
        self._booted = BootedKeys(view, sites, self._features, cpu)

    def patches(self) -> tuple[TextPatch, ...]:
        """The places of the kernel's own text that differ from the file, in order."""
        start, end = self._kernel.symbol("_stext"), self._kernel.symbol("_etext")
        if start is None or end is None or end <= start or self._is_program():
            return ()
        return self._patched(self._kernel, self._sites, start, end)

    def _is_program(self) -> bool:
        """True for a kernel that runs as a program of another one: it leaves its text alone."""
        return self._kernel.symbol("start_uml") is not None

    def module_patches(
        self, view: KernelView, sites: KernelSites, start: int, end: int
    ) -> tuple[TextPatch, ...]:
        """The places of a module's text that differ from the file, in order.

        Args:
            view: the module.
            sites: its tables.
            start: of its text.
            end: of its text.
        """
        return () if self._is_program() else self._patched(view, sites, start, end)

    def _patched(
        self, view: KernelView, sites: KernelSites, start: int, end: int
    ) -> tuple[TextPatch, ...]:
        """All patches of one text."""
        live = LiveBytes(start, view.read(start, end - start))
        spare = _replacements(view, sites)
        for each in (live, spare):
            self._static_calls(view, sites, each)
            self._paravirt(sites, each)
            self._retpolines(sites, each)
            self._return_sites(sites, each)
        if self._kernel.version >= _RELOCATES:
            self._alternatives(sites, live, spare)
        else:
            self._old_alternatives(sites, live, spare)
        self._seals(sites, live)
        self._constants(view, live)
        self._locks(sites, live)
        self._ftrace(sites, live)
        self._jump_labels(view, sites, live)
        return live.patches()

    def _static_calls(self, view: KernelView, sites: KernelSites, live: LiveBytes) -> None:
        """Calls and jumps to trampolines lead to what their keys hold.

        A trampoline does so once its key has changed.
        """
        booted = self._booted.calls
        targets = {key: target for key, (target, _) in booted.items()}
        if view.is_module:
            # A key that is not exported to modules goes by its trampoline.
            for trampoline, key in self._trampoline_keys():
                targets[trampoline] = targets.get(key, self._word(self._kernel, key))
        for site in sites.static_calls:
            target = targets.get(site.key)
            if target is None:
                target = self._word(view, site.key) or self._word(self._kernel, site.key)
                targets[site.key] = target
            code = live.read(site.address, 2)
            if code[:1] == b"\x0f":
                if target:
                    distance = target - site.address - 6
                    live.put(site.address, code + _signed(distance), "static_calls")
            else:
                new = self._static_call(site.address, target, site.tail)
                live.put(site.address, new, "static_calls")
        for target, trampoline in booted.values():
            new = self._static_call(trampoline, target, tail=True)
            live.put(trampoline, new, "static_calls")

    def _trampoline_keys(self) -> Iterator[tuple[int, int]]:
        """Trampolines that stand for their keys, and these."""
        start, end = (
            self._kernel.symbol(f"__{edge}_static_call_tramp_key") for edge in ("start", "stop")
        )
        if start is None or end is None or not 0 < end - start <= _CONSTANTS_MOST:
            return
        table = self._kernel.read(start, end - start)
        for at, pair in enumerate(_PAIR.iter_unpack(table[: len(table) & ~7])):
            yield start + 8 * at + pair[0], start + 8 * at + 4 + (pair[1] & ~3)

    def _static_call(self, address: int, target: int, tail: bool) -> bytes:
        """The instruction for a static call's target; 0 for none."""
        if tail:
            return _branch(_JUMP, address, target) if target else self._return(address)
        if not target:
            return _NOP5
        return _RETURN0 if target == self._return0 else _branch(_CALL, address, target)

    def _paravirt(self, sites: KernelSites, live: LiveBytes) -> None:
        """Calls through the table of operations become direct ones, or nothing."""
        table = self._kernel.symbol("pv_ops")
        if table is None or not sites.paravirt:
            return
        nothing, missing = (
            self._kernel.symbol(name) for name in ("_paravirt_nop", "paravirt_BUG")
        )
        targets: dict[int, int] = {}
        for site in sites.paravirt:
            target = targets.get(site.kind)
            if target is None:
                target = self._word(self._kernel, table + 8 * site.kind) or missing or 0
                targets[site.kind] = target
            code = b"" if target == nothing else _branch(_CALL, site.address, target)
            code += self._nops(site.size - len(code))
            if len(code) == site.size:
                live.put(site.address, code, "paravirt")

    def _retpolines(self, sites: KernelSites, live: LiveBytes) -> None:
        """Calls and jumps to the thunks are made indirect where the CPU needs no thunk."""
        has = self._features.has
        thunks = self._kernel.symbol("__x86_indirect_thunk_array")
        if thunks is None or (has("RETPOLINE") and not has("RETPOLINE_LFENCE")):
            return
        fence = _LFENCE if has("RETPOLINE_LFENCE") else b""
        for address in sites.retpoline_sites:
            insn = decode(live.read(address, 15))
            if insn is None or insn.immediate_size != 4:
                continue
            code = live.read(address, insn.size)
            distance = int.from_bytes(code[-4:], "little", signed=True)
            number, rest = divmod(address + insn.size + distance - thunks, 32)
            if rest or not 0 <= number < 16:
                continue
            made = b""
            jumps = insn.opcode != _CALL
            if insn.first == 0x0F:
                made = bytes((0x70 + (insn.opcode & 15 ^ 1), insn.size - 2))
            made += fence + (b"\x41" if number >= 8 else b"")
            made += bytes((0xFF, (0xE0 if jumps else 0xD0) + (number & 7)))
            if len(made) > insn.size:
                continue
            if jumps and len(made) < insn.size:
                made += bytes((_INT3,))
            made += bytes((_NOP,)) * (insn.size - len(made))
            live.put(address, self._optimized(made), "retpoline_sites")

    def _return_sites(self, sites: KernelSites, live: LiveBytes) -> None:
        """Jumps to the thunk of returns become returns, or jumps to the one in use."""
        if self._thunk is None:
            return
        plain = bytes((_RET, _INT3, _INT3, _INT3, _INT3))
        thunk, returns = self._thunk, self._returns
        start, end = live.start, live.end
        for address in sites.return_sites:
            if not start <= address < end:
                continue
            code = live.read(address, 5)
            if code[0] != _JUMP or _target(address, code) != thunk:
                continue
            if returns is None:
                live.put(address, plain, "return_sites")
            elif returns != thunk:
                live.put(address, _branch(_JUMP, address, returns), "return_sites")

    def _alternatives(self, sites: KernelSites, live: LiveBytes, spare: LiveBytes) -> None:
        """Instructions that the CPU's features exchange; since 6.4."""
        has = self._features.has_number
        sizes = _site_sizes(sites.alternatives)
        for entry in sites.alternatives:
            address = entry.address
            if not live.start <= address < live.end:
                continue
            size = sizes[address]
            flags = entry.feature >> 16
            old = live.read(address, size)
            if has(entry.feature & 0xFFFF) == bool(flags & 1):
                new = optimized(old)
            else:
                code = spare.read(entry.replacement, entry.replacement_size)
                if flags & _DIRECT_CALL:
                    direct = self._direct_call(address, old, code)
                    if direct is None:
                        continue
                    code = direct
                code += bytes((_NOP,)) * (size - len(code))
                new = relocated(code[:size], address, entry.replacement, entry.replacement_size)
            live.put(address, new, "alternatives")

    def _old_alternatives(self, sites: KernelSites, live: LiveBytes, spare: LiveBytes) -> None:
        """Instructions that the CPU's features exchange; before 6.4."""
        has = self._features.has_number
        for entry in sites.alternatives:
            address, size = entry.address, entry.size
            if not live.start <= address < live.end:
                continue
            if entry.feature >> 16:
                feature, inverted = entry.feature & 0xFFFF, bool(entry.feature >> 16 & 1)
            else:
                feature, inverted = entry.feature & 0x7FFF, bool(entry.feature & 0x8000)
            code = live.read(address, size)
            if has(feature) != inverted:
                code = spare.read(entry.replacement, entry.replacement_size)
                code = relocated_call(code, address, entry.replacement, self._nops)
                code += bytes((_NOP,)) * (size - len(code))
            live.put(address, optimized_in_pieces(code[:size], self._nops), "alternatives")

    def _direct_call(self, address: int, old: bytes, new: bytes) -> bytes | None:
        """A call to what the table of operations holds, in place of one through it.

        The replacement is a call of BUG_func, relative to its own place.
        """
        missing = self._kernel.symbol("BUG_func")
        if len(old) < 6 or old[:2] != _INDIRECT_CALL or len(new) != 5 or missing is None:
            return None
        pointer = address + 6 + int.from_bytes(old[2:6], "little", signed=True)
        target = self._word(self._kernel, pointer) or missing
        if target == self._kernel.symbol("nop_func"):
            return b""
        distance = int.from_bytes(new[1:], "little", signed=True) + target - missing
        return new[:1] + _signed(distance)

    def _seals(self, sites: KernelSites, live: LiveBytes) -> None:
        """Marks of branch targets that nobody branches to are poisoned."""
        for address in sites.endbr_seal:
            if live.read(address, 4) == _ENDBR:
                live.put(address, _SEALED, "endbr_seal")

    def _constants(self, view: KernelView, live: LiveBytes) -> None:
        """The end of user memory is put into the instructions that compare with it (6.12).

        Other constants of this kind depend on how much memory a machine has.
        """
        start, end = (
            view.symbol(f"__{edge}_runtime_ptr_USER_PTR_MAX") for edge in ("start", "stop")
        )
        if start is None or end is None or not 0 < end - start <= _CONSTANTS_MOST:
            return
        size = 1 << (56 if self._features.has("la57") else 47)
        value = (size - _PAGE).to_bytes(8, "little")
        table = view.read(start, end - start)
        for at in range(0, len(table) & ~3, 4):
            distance = int.from_bytes(table[at : at + 4], "little", signed=True)
            live.put(start + at + distance, value, "runtime_constants")

    def _locks(self, sites: KernelSites, live: LiveBytes) -> None:
        """Lock prefixes are dropped where there is one processor, unless told not to."""
        if self._cpu.count != 1 or self._cpu.option("noreplace-smp") is not None:
            return
        for address in sites.smp_locks:
            if live.read(address, 1) == _LOCK:
                live.put(address, _DS, "smp_locks")

    def _ftrace(self, sites: KernelSites, live: LiveBytes) -> None:
        """Calls of __fentry__ become nops until somebody traces."""
        fentry = self._kernel.symbol("__fentry__")
        for address in sites.ftrace:
            code = live.read(address, 5)
            if len(code) == 5 and code[0] == _CALL and _target(address, code) == fentry:
                live.put(address, _NOP5, "ftrace")

    def _jump_labels(self, view: KernelView, sites: KernelSites, live: LiveBytes) -> None:
        """Branches and nops follow the keys, as far as the boot is known to turn them."""
        for label in sites.jump_labels:
            on = self._booted.keys.get(label.key)
            if on is None:
                continue
            code = live.read(label.code, 5)
            if not code:
                continue
            short = code[0] == _SHORT or code[:2] == _NOP2
            if on == label.likely:
                new = _NOP2 if short else _NOP5
            elif short:
                new = bytes((_SHORT, (label.target - label.code - 2) & 0xFF))
            else:
                new = _branch(_JUMP, label.code, label.target)
            live.put(label.code, new, "jump_labels")

    def _return(self, address: int) -> bytes:
        """A return in five bytes."""
        if self._returns is not None:
            return _branch(_JUMP, address, self._returns)
        return bytes((_RET, _INT3, _INT3, _INT3, _INT3))

    def _return_thunk(self) -> int | None:
        """Address of the thunk that returns go through on this CPU."""
        for name in self._features.return_thunks():
            address = self._kernel.symbol(name)
            if address is not None:
                return address
        return self._thunk

    def _nops(self, size: int) -> bytes:
        """Nops of the old kind: at most 8 bytes each."""
        return b"".join(add_nop(min(8, size - at)) for at in range(0, size, 8))

    def _optimized(self, code: bytes) -> bytes:
        """Code whose nops were joined, by the version's rule."""
        if self._kernel.version >= _RELOCATES:
            return optimized(code)
        return optimized_in_pieces(code, self._nops)

    def _word(self, view: KernelView, address: int) -> int:
        """Eight bytes of data; 0 where there are none."""
        return int.from_bytes(view.read(address, 8), "little")


def _replacements(view: KernelView, sites: KernelSites) -> LiveBytes:
    """The bytes that alternatives take, which are patched themselves before."""
    starts = [entry.replacement for entry in sites.alternatives]
    if not starts or max(starts) - min(starts) > _REPLACEMENTS_MOST:
        return LiveBytes(0, b"")
    low, high = min(starts), max(starts) + 256
    return LiveBytes(low, view.read(low, high - low))


def _site_sizes(entries: Sequence[Alternative]) -> dict[int, int]:
    """Bytes of each place: nested alternatives have the longest's."""
    sizes: dict[int, int] = {}
    for entry in entries:
        sizes[entry.address] = max(entry.size, sizes.get(entry.address, 0))
    return sizes


def _signed(distance: int) -> bytes:
    """Four bytes of a distance."""
    return (distance & 0xFFFFFFFF).to_bytes(4, "little")


def _branch(opcode: int, address: int, target: int) -> bytes:
    """A call or jump in five bytes."""
    return bytes((opcode,)) + _signed(target - address - 5)


def _target(address: int, code: bytes) -> int:
    """The target of a call or jump of five bytes."""
    return address + 5 + int.from_bytes(code[1:5], "little", signed=True)
