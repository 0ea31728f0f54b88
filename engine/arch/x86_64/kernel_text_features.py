"""The features an x86-64 kernel finds in its CPU, by their numbers in that kernel.

Those that /proc/cpuinfo shows have their names in the image's own table. Others are hidden:
the kernel sets them itself, by the CPU's bugs, the command line and what it was built for
(arch/x86/kernel/cpu/bugs.c, amd.c, intel.c; numbers: arch/x86/include/asm/cpufeatures.h).
"""

from typing import Final, NamedTuple

from engine.arch.kernel import KernelView
from engine.arch.kernelcpu import CpuModel
from engine.arch.kernelsites import KernelSites

_WORD: Final = 32
_NAME_MOST: Final = 64
_TABLE_MOST: Final = 64 * _WORD * 8
_ALL: Final = (99, 0, 0)


class _Hidden(NamedTuple):
    """The number of a feature without a name, for versions of the kernel."""

    name: str
    word: int
    bit: int
    since: tuple[int, int, int] = (0, 0, 0)
    before: tuple[int, int, int] = _ALL


_HIDDEN: Final = (
    _Hidden("SYSCALL32", 3, 14),
    _Hidden("SYSENTER32", 3, 15),
    _Hidden("LFENCE_RDTSC", 3, 18, before=(6, 3, 0)),
    _Hidden("LFENCE_RDTSC", 20, 2, since=(6, 3, 0)),
    _Hidden("ALWAYS", 3, 21),
    _Hidden("XCOMPACTED", 7, 10, since=(5, 19, 0)),
    _Hidden("RETPOLINE", 7, 12, before=(5, 19, 0)),
    _Hidden("RETPOLINE_LFENCE", 7, 13, before=(5, 19, 0)),
    _Hidden("KERNEL_IBRS", 7, 12, since=(5, 19, 0)),
    _Hidden("RSB_VMEXIT", 7, 13, since=(5, 19, 0)),
    _Hidden("RSB_CTXSW", 7, 19),
    _Hidden("USE_IBPB", 7, 21),
    _Hidden("USE_IBRS_FW", 7, 22),
    _Hidden("SPEC_STORE_BYPASS_DISABLE", 7, 23),
    _Hidden("ZEN", 7, 28),
    _Hidden("XFD", 10, 4),
    _Hidden("FENCE_SWAPGS_USER", 11, 4),
    _Hidden("FENCE_SWAPGS_KERNEL", 11, 5),
    _Hidden("ENTRY_IBPB", 11, 10, since=(5, 19, 0)),
    _Hidden("RETPOLINE", 11, 12, since=(5, 19, 0)),
    _Hidden("RETPOLINE_LFENCE", 11, 13, since=(5, 19, 0)),
    _Hidden("RETHUNK", 11, 14, since=(5, 19, 0)),
    _Hidden("UNRET", 11, 15, since=(5, 19, 0)),
    _Hidden("CLEAR_CPU_BUF", 11, 18, before=(6, 2, 0)),
    _Hidden("CLEAR_CPU_BUF", 3, 18, since=(6, 3, 0)),
    _Hidden("SRSO", 11, 24),
    _Hidden("SRSO_ALIAS", 11, 25),
    _Hidden("APIC_MSRS_FENCE", 11, 27),
    _Hidden("SPEC_CTRL_SSBD", 18, 31),
    _Hidden("CLEAR_BHB_LOOP", 21, 1),
    _Hidden("CLEAR_BHB_HW", 21, 3),
    _Hidden("INDIRECT_THUNK_ITS", 21, 5, before=(6, 2, 0)),
    _Hidden("INDIRECT_THUNK_ITS", 21, 6, since=(6, 2, 0)),
)

_RETPOLINES: Final = {
    "retpoline": ("RETPOLINE",),
    "retpoline,generic": ("RETPOLINE",),
    "retpoline,lfence": ("RETPOLINE", "RETPOLINE_LFENCE"),
    "retpoline,amd": ("RETPOLINE", "RETPOLINE_LFENCE"),
    "eibrs": (),
    "eibrs,lfence": ("RETPOLINE", "RETPOLINE_LFENCE"),
    "eibrs,retpoline": ("RETPOLINE",),
    "ibrs": ("KERNEL_IBRS",),
}
"""Features that a value of spectre_v2= asks for."""

_BUFFERED: Final = frozenset(("mds", "taa", "mmio_stale_data", "rfds", "tsa"))
"""Bugs against which buffers are cleared on the way out of the kernel."""


class Features:
    """The features of one kernel on one CPU."""

    def __init__(self, view: KernelView, sites: KernelSites, cpu: CpuModel) -> None:
        """The features of `cpu` as the kernel in `view` counts them."""
        self._view = view
        self._cpu = cpu
        shown = _names(view, sites, "x86_cap_flags")
        bugs = _names(view, sites, "x86_bug_flags")
        self._flags = cpu.words("flags")
        self._bugs = cpu.words("bugs")
        self._hidden = self._found()
        self._numbers = {i for i, name in enumerate(shown) if name in self._flags}
        self._numbers |= {len(shown) + i for i, name in enumerate(bugs) if name in self._bugs}
        self._numbers |= {
            each.word * _WORD + each.bit
            for each in _HIDDEN
            if each.name in self._hidden and each.since <= view.version < each.before
        }

    def has(self, name: str) -> bool:
        """True for a flag by cpuinfo's name, or a hidden feature by the kernel's."""
        return name in self._hidden or name in self._flags

    def has_number(self, number: int) -> bool:
        """True for a feature or a bug by its number in this kernel."""
        return number in self._numbers

    def return_thunks(self) -> tuple[str, ...]:
        """Symbols of the return thunk in use, the first that exists is it."""
        if "SRSO_ALIAS" in self._hidden:
            return ("srso_alias_return_thunk", "__x86_return_thunk")
        if "SRSO" in self._hidden:
            return ("srso_return_thunk", "__x86_return_thunk")
        if "UNRET" in self._hidden:
            return ("retbleed_return_thunk", "zen_return_thunk", "__x86_return_thunk")
        if "INDIRECT_THUNK_ITS" in self._hidden:
            return ("its_return_thunk", "__x86_return_thunk")
        return ("__x86_return_thunk",)

    def _found(self) -> frozenset[str]:
        """The hidden features."""
        found = {"ALWAYS"}
        vendor = self._cpu.fields.get("vendor_id", "")
        amd = vendor in ("AuthenticAMD", "HygonGenuine")
        family = self._cpu.number("cpu family")
        found.add("SYSCALL32" if amd else "SYSENTER32")
        if "sse2" in self._flags:
            found.add("LFENCE_RDTSC")
        if not amd:
            found.add("APIC_MSRS_FENCE")
        if amd and family >= 0x17:
            found.add("ZEN")
        if self._flags & {"xsaves", "xsavec"}:
            found.add("XCOMPACTED")
        if "amx_tile" in self._flags:
            found.add("XFD")
        if not amd and "ssbd" in self._flags:
            found.add("SPEC_CTRL_SSBD")
        if self._cpu.option("mitigations") != "off":
            found |= self._mitigations(amd, family)
        return frozenset(found)

    def _mitigations(self, amd: bool, family: int) -> set[str]:
        """Features that are used against the CPU's bugs."""
        found: set[str] = set()
        option = self._cpu.option
        if "spectre_v1" in self._bugs and option("nospectre_v1") is None:
            found |= self._fences()
        if self._bugs & _BUFFERED and not all(
            option(name) == "off" for name in ("mds", "tsx_async_abort", "mmio_stale_data")
        ):
            found.add("CLEAR_CPU_BUF")
        branches = self._branches(amd)
        found |= branches
        retbleed = option("retbleed") != "off" and "retbleed" in self._bugs
        if retbleed and amd:
            found |= {"RETHUNK", "ENTRY_IBPB" if option("retbleed") == "ibpb" else "UNRET"}
        if "srso" in self._bugs and option("spec_rstack_overflow") not in ("off", "microcode"):
            found |= {"RETHUNK", "SRSO_ALIAS" if family == 0x19 else "SRSO"}
        if "its" in self._bugs and option("indirect_target_selection") != "off":
            found.add("RETHUNK")
            if "RETPOLINE" not in branches:
                found.add("INDIRECT_THUNK_ITS")
        exposed = "bhi" in self._bugs and "RETPOLINE" not in branches
        if exposed and option("spectre_bhi") != "off":
            found.add("CLEAR_BHB_HW" if "bhi_ctrl" in self._flags else "CLEAR_BHB_LOOP")
        return found

    def _fences(self) -> set[str]:
        """Fences at swapgs: where SMAP does not hold speculation off user memory."""
        held = "smap" in self._flags and "cpu_meltdown" not in self._bugs
        if held and "fsgsbase" not in self._flags:
            return set()
        if "swapgs" in self._bugs and "pti" not in self._flags:
            return {"FENCE_SWAPGS_USER", "FENCE_SWAPGS_KERNEL"}
        return {"FENCE_SWAPGS_KERNEL"}

    def _branches(self, amd: bool) -> set[str]:
        """Features that keep indirect branches from being trained."""
        option = self._cpu.option
        wanted = option("spectre_v2") or "auto"
        if option("nospectre_v2") is not None or wanted == "off":
            return set()
        if "spectre_v2" not in self._bugs and wanted == "auto":
            return set()
        enhanced = "ibrs_enhanced" in self._flags
        if wanted in _RETPOLINES:
            found = set(_RETPOLINES[wanted])
        elif enhanced:
            found = set()
        elif "retbleed" in self._bugs and not amd and option("retbleed") not in ("off", "stuff"):
            found = {"KERNEL_IBRS"}
        else:
            found = {"RETPOLINE"}
        if found or not enhanced:
            found |= {"RSB_CTXSW", "RSB_VMEXIT"}
        elif self._view.version < (6, 12, 0):
            found.add("RSB_CTXSW")
        if "ibpb" in self._flags:
            found.add("USE_IBPB")
        if "ibrs" in self._flags and not enhanced and "KERNEL_IBRS" not in found:
            found.add("USE_IBRS_FW")
        return found


def _names(view: KernelView, sites: KernelSites, symbol: str) -> list[str]:
    """The names in a table of pointers; "" where an entry has none."""
    start = view.symbol(symbol)
    bounds = sites.bounds(start) if start is not None else None
    if start is None or bounds is None or bounds[1] - start > _TABLE_MOST:
        return []
    table = view.read(start, bounds[1] - start)
    names = []
    for at in range(0, len(table) & ~7, 8):
        pointer = int.from_bytes(table[at : at + 8], "little")
        text = view.read(pointer, _NAME_MOST) if pointer else b""
        names.append(text.partition(b"\0")[0].decode("ascii", "replace"))
    return names
