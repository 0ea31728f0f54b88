"""The text of an AArch64 kernel as it patches itself at boot.

Sources: arch/arm64/kernel/alternative.c, ftrace.c, jump_label.c, proton-pack.c and
kvm/va_layout.c of the versions from 5.10 on. Addresses that KVM gives itself at boot are
random and left as the file has them, unless the machine is described that far.
"""

from collections.abc import Callable, Iterable
from typing import Final

from engine.arch.aarch64.kernel_text_caps import Capabilities
from engine.arch.aarch64.kernel_text_hyp import hyp_addresses
from engine.arch.aarch64.kernel_text_keys import turned_keys
from engine.arch.kernel import KernelView
from engine.arch.kernelcpu import CpuModel
from engine.arch.kerneldiff import LiveBytes
from engine.arch.kernelsites import Alternative, BootedKernel, KernelSites, TextPatch

_NOP: Final = 0xD503201F
_SAVE_LINK: Final = 0xAA1E03E9  # mov x9, x30
_BRANCH, _CALL = 0x14000000, 0x94000000
_BRANCH_MASK: Final = 0xFC000000
_PAGE_MASK: Final = 0xFFF
_CALLBACK: Final = 0x8000
_WORD: Final = 4

_DISTANCES: Final = (
    (0x7C000000, 0x14000000, 0, 26),  # b, bl
    (0x7E000000, 0x34000000, 5, 19),  # cbz, cbnz
    (0xFF000000, 0x54000000, 5, 19),  # b.cond
    (0x7E000000, 0x36000000, 5, 14),  # tbz, tbnz
)
"""Mask, value, lowest bit and bits of the distance of instructions that branch."""
_ADRP_MASK, _ADRP = 0x9F000000, 0x90000000


class PatchedWords(BootedKernel):
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
        self._caps = Capabilities(view, cpu)
        self._keys = turned_keys(view, sites)
        self._hyp = hyp_addresses(view, cpu)
        self._vectors = view.symbol("__kvm_nvhe___kvm_hyp_vector")
        makers: dict[str, Callable[[LiveBytes, Alternative], None]] = {
            "alt_cb_patch_nops": self._nops,
            "spectre_v4_patch_fw_mitigation_enable": self._store_bypass,
            "spectre_bhb_patch_loop_iter": self._history_loop,
            "spectre_bhb_patch_clearbhb": self._history_clear,
            "kvm_update_va_mask": self._hyp_address,
            "kvm_patch_vector_branch": self._hyp_vector,
            "kvm_get_kimage_voffset": self._hyp_offset,
        }
        addresses = ((view.symbol(name), maker) for name, maker in makers.items())
        self._makers = {address: maker for address, maker in addresses if address is not None}
        for name, maker in makers.items():
            inner = view.symbol(f"__kvm_nvhe_{name}")
            if inner is not None:
                self._makers[inner] = maker

    def patches(self) -> tuple[TextPatch, ...]:
        """The places of the kernel's own text that differ from the file, in order."""
        start, end = self._kernel.symbol("_stext"), self._kernel.symbol("_etext")
        if start is None or end is None or end <= start:
            return ()
        return self.module_patches(self._kernel, self._sites, start, end)

    def module_patches(
        self, view: KernelView, sites: KernelSites, start: int, end: int
    ) -> tuple[TextPatch, ...]:
        """The places of a text that differ from the file, in order.

        Args:
            view: the image or module.
            sites: its tables.
            start: of its text.
            end: of its text.
        """
        live = LiveBytes(start, view.read(start, end - start))
        self._alternatives(view, sites, live)
        self._ftrace(sites, live)
        self._jump_labels(sites, live)
        return live.patches()

    def _alternatives(self, view: KernelView, sites: KernelSites, live: LiveBytes) -> None:
        """Instructions that the CPU's capabilities exchange, or a function makes anew."""
        has = self._caps.has_number
        for entry in sites.alternatives:
            if not live.start <= entry.address < live.end:
                continue
            if entry.feature & _CALLBACK or not entry.replacement_size:
                maker = self._makers.get(entry.replacement)
                if maker is not None and has(entry.feature & ~_CALLBACK):
                    maker(live, entry)
            elif has(entry.feature):
                code = view.read(entry.replacement, entry.size)
                made = b"".join(
                    _moved(code[i : i + _WORD], entry.address + i, entry.replacement + i, entry)
                    for i in range(0, len(code) & ~3, _WORD)
                )
                live.put(entry.address, made, "alternatives")

    def _nops(self, live: LiveBytes, entry: Alternative) -> None:
        """Nothing is left of the instructions."""
        nops = _NOP.to_bytes(_WORD, "little") * (entry.size // _WORD)
        live.put(entry.address, nops, "alternatives")

    def _store_bypass(self, live: LiveBytes, entry: Alternative) -> None:
        """The way to the firmware is open where programs choose for themselves."""
        if self._cpu.option("mitigations") != "off" and self._cpu.option("ssbd") in (
            None,
            "kernel",
        ):
            self._nops(live, entry)

    def _history_loop(self, live: LiveBytes, entry: Alternative) -> None:
        """The turns of the loop that clears the branch history: movz xN, #turns."""
        turns = self._caps.history_loop()
        word = int.from_bytes(live.read(entry.address, _WORD), "little")
        if turns:
            word = word & ~(0xFFFF << 5) | turns << 5
            live.put(entry.address, word.to_bytes(_WORD, "little"), "alternatives")

    def _history_clear(self, live: LiveBytes, entry: Alternative) -> None:
        """The instruction that clears the branch history stays where the CPU has it."""
        if not self._caps.has("clrbhb"):
            self._nops(live, entry)

    def _hyp_address(self, live: LiveBytes, entry: Alternative) -> None:
        """An address of KVM's is made from one of the kernel's."""
        words = _words(live, entry)
        if self._hyp is not None and len(words) == 5:
            _put_words(live, entry.address, self._hyp.translated(words))

    def _hyp_vector(self, live: LiveBytes, entry: Alternative) -> None:
        """KVM's vectors are gone to, where a hardened one stands before them."""
        if self._hyp is None or self._vectors is None or entry.size != 4 * _WORD:
            return
        if self._caps.hardens_vectors():
            _put_words(live, entry.address, self._hyp.vector(self._vectors, entry.address))

    def _hyp_offset(self, live: LiveBytes, entry: Alternative) -> None:
        """The distance of the kernel's addresses from physical ones is loaded."""
        words = _words(live, entry)
        if self._hyp is not None and len(words) == 4:
            _put_words(live, entry.address, self._hyp.kernel_offset(words))

    def _ftrace(self, sites: KernelSites, live: LiveBytes) -> None:
        """The link register is saved in front of each nop that a call may take the place of."""
        save, nop = (word.to_bytes(_WORD, "little") for word in (_SAVE_LINK, _NOP))
        pair = nop * 2
        for address in sites.ftrace:
            if live.read(address - _WORD, 8) == pair:
                live.put(address - _WORD, save, "ftrace")
            else:
                word = int.from_bytes(live.read(address, _WORD), "little")
                if word & _BRANCH_MASK == _CALL:
                    live.put(address, nop, "ftrace")

    def _jump_labels(self, sites: KernelSites, live: LiveBytes) -> None:
        """Branches and nops follow the keys, as far as the boot is known to turn them."""
        for label in sites.jump_labels:
            on = self._keys.get(label.key)
            if on is None:
                continue
            if on == label.likely:
                word = _NOP
            else:
                word = _BRANCH | (label.target - label.code) // _WORD & 0x3FFFFFF
            live.put(label.code, word.to_bytes(_WORD, "little"), "jump_labels")


def _words(live: LiveBytes, entry: Alternative) -> list[int]:
    """The instructions of an alternative as they are now."""
    code = live.read(entry.address, entry.size)
    return [int.from_bytes(code[i : i + _WORD], "little") for i in range(0, len(code), _WORD)]


def _put_words(live: LiveBytes, address: int, words: Iterable[int]) -> None:
    """Writes instructions."""
    code = b"".join(word.to_bytes(_WORD, "little") for word in words)
    live.put(address, code, "alternatives")


def _moved(code: bytes, address: int, origin: int, entry: Alternative) -> bytes:
    """An instruction that was made for one place, at another.

    Args:
        code: the instruction.
        address: of the place it goes to.
        origin: address it was made for.
        entry: that it belongs to; branches inside its replacement stay as they are.
    """
    word = int.from_bytes(code, "little")
    for mask, value, low, bits in _DISTANCES:
        if word & mask == value:
            field = (1 << bits) - 1
            distance = word >> low & field
            distance -= (distance & 1 << bits - 1) << 1
            target = origin + distance * _WORD
            if entry.replacement <= target <= entry.replacement + entry.replacement_size:
                return code
            distance = (target - address) // _WORD & field
            return (word & ~(field << low) | distance << low).to_bytes(_WORD, "little")
    if word & _ADRP_MASK == _ADRP:
        pages = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
        target = (origin & ~_PAGE_MASK) + (pages << 12)
        pages = (target - (address & ~_PAGE_MASK)) >> 12 & 0x1FFFFF
        word = word & ~0x60FFFFE0 | (pages & 3) << 29 | pages >> 2 << 5
        return word.to_bytes(_WORD, "little")
    return code
