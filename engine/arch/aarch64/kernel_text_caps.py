"""The capabilities an AArch64 kernel finds in its CPU, by their numbers in that kernel.

The image has a record for each capability it knows: its number, the function that tells
whether a CPU has it, and what that function compares (arch/arm64/include/asm/cpufeature.h).
Functions have names in every image, so the records are found by them, errata are decided by
the image's own lists of CPUs, and features by the fields of the ID registers they ask for.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.arch.aarch64.kernel_text_tables import image_bytes
from engine.arch.kernel import KernelView
from engine.arch.kernelcpu import CpuModel

_RECORD: Final = 0x40
_MATCHES: Final = 16
_UNION: Final = 32
_LIST: Final = 56
_RANGE: Final = 12
_NUMBERS: Final = 1024
_RANGES_MOST: Final = 256
_MODEL_MASK: Final = 0xFF0FFFF0
_REVISION_MASK: Final = 0x00F0000F

_ALWAYS: Final = ("has_always",)
_RANGE_FUNCTIONS: Final = ("is_affected_midr_range",)
_LIST_FUNCTIONS: Final = ("is_affected_midr_range_list",)
_MULTIPLE: Final = ("cpucap_multi_entry_cap_matches", "multi_entry_cap_matches")
_FIELDS: Final = (
    "has_cpuid_feature",
    "has_useable_cnp",
    "has_address_auth_cpucap",
    "has_user_cpuid_feature",
)

_ARM: Final = 0x41
_A35, _A53, _A55, _A57, _A72, _A73, _A75 = 0xD04, 0xD03, 0xD05, 0xD07, 0xD08, 0xD09, 0xD0A
_AARCH32_KERNELS: Final = frozenset((_A35, _A53, _A55, _A57, _A72, _A73))
_V2_SAFE: Final = frozenset((_A35, _A53, _A55))
_V3A: Final = frozenset((_A57, _A72))
_V4_SAFE: Final = frozenset((_A35, _A53, _A55))
_PTI_SAFE: Final = frozenset((_A35, _A53, _A55, _A57, _A72, _A73))
_LOOPS: Final = {
    **dict.fromkeys((_A57, _A72), 8),
    **dict.fromkeys((0xD0B, 0xD0D, 0xD41, 0xD44, 0xD0C), 24),
    **dict.fromkeys((0xD46, 0xD47, 0xD48, 0xD40, 0xD49), 32),
}
"""Cores of Arm whose branch history a loop clears, to its turns (spectre_bhb_loop_affected)."""


class _RegisterField(NamedTuple):
    """A field of an ID register and what /proc/cpuinfo says of it.

    Attributes:
        register: sys_reg() of the ID register.
        position: lowest bit.
        values: pairs of a feature's name and the value it stands for.
    """

    register: int
    position: int
    values: tuple[tuple[str, int], ...]


_ISAR0, _ISAR1, _ISAR2 = 0x180600, 0x180620, 0x180640
_PFR0, _PFR1 = 0x180400, 0x180420
_MMFR0, _MMFR1, _MMFR2 = 0x180700, 0x180720, 0x180740
_V81, _V82, _V84, _V85 = "asimdrdm", "dcpop", "uscat", "sb"
"""Features that came with a version of the architecture, and so tell of others."""

_SHOWN: Final = (
    _RegisterField(_ISAR0, 16, (("crc32", 1),)),
    _RegisterField(_ISAR0, 20, (("atomics", 2),)),
    _RegisterField(_ISAR0, 56, ((_V84, 2),)),
    _RegisterField(_ISAR0, 60, (("rng", 1),)),
    _RegisterField(_ISAR1, 0, (("dcpop", 1), ("dcpodp", 2))),
    _RegisterField(_ISAR1, 4, (("paca", 1),)),
    _RegisterField(_ISAR1, 20, (("lrcpc", 1), ("ilrcpc", 2))),
    _RegisterField(_ISAR1, 24, (("pacg", 1),)),
    _RegisterField(_ISAR1, 36, (("sb", 1),)),
    _RegisterField(_ISAR2, 0, (("wfxt", 2),)),
    _RegisterField(_ISAR2, 16, (("mops", 1),)),
    _RegisterField(_PFR0, 28, ((_V82, 1),)),
    _RegisterField(_PFR0, 32, (("sve", 1),)),
    _RegisterField(_PFR1, 0, (("bti", 1),)),
    _RegisterField(_PFR1, 4, (("ssbs", 2),)),
    _RegisterField(_PFR1, 8, (("mte", 2), ("mte3", 3))),
    _RegisterField(_MMFR0, 60, (("ecv", 1),)),
    _RegisterField(_MMFR1, 20, ((_V81, 1), (_V85, 2))),
    _RegisterField(_MMFR2, 0, ((_V82, 1),)),
    _RegisterField(_MMFR2, 40, ((_V84, 1),)),
    _RegisterField(_MMFR2, 48, ((_V84, 1),)),
    _RegisterField(_MMFR2, 60, ((_V85, 1),)),
)


class Capabilities:
    """The capabilities of one kernel on one CPU."""

    def __init__(self, view: KernelView, cpu: CpuModel) -> None:
        """The capabilities of `cpu` by the records of the kernel in `view`."""
        self._view = view
        self._cpu = cpu
        self._features = cpu.words("Features")
        self._core = cpu.number("CPU part") if cpu.number("CPU implementer") == _ARM else 0
        self._midr = (
            cpu.number("CPU implementer") << 24
            | cpu.number("CPU variant") << 20
            | 0xF << 16
            | cpu.number("CPU part") << 4
            | cpu.number("CPU revision")
        )
        self._functions = self._known_functions()
        self._numbers = frozenset(self._found())

    def has_number(self, number: int) -> bool:
        """True for a capability by its number in this kernel."""
        return number in self._numbers

    def has(self, feature: str) -> bool:
        """True for a feature by cpuinfo's name."""
        return feature in self._features

    def hardens_vectors(self) -> bool:
        """True for cores whose exception vectors must not tell where KVM lies."""
        return self._core in _V3A

    def history_loop(self) -> int:
        """Turns of the loop that clears the branch history; 0 where it is not cleared so."""
        return _LOOPS.get(self._core, 0)

    def _known_functions(self) -> dict[int, str]:
        """Address to name of the functions that are understood."""
        names = (
            *_ALWAYS,
            *_RANGE_FUNCTIONS,
            *_LIST_FUNCTIONS,
            *_MULTIPLE,
            *_FIELDS,
            "has_spectre_v2",
            "has_spectre_v3a",
            "has_spectre_v4",
            "is_spectre_bhb_affected",
            "unmap_kernel_at_el0",
            "has_address_auth_metacap",
            "has_generic_auth",
            "has_no_fpsimd",
            "has_pan",
        )
        found = ((self._view.symbol(name), name) for name in names)
        return {address: name for address, name in found if address is not None}

    def _found(self) -> Iterator[int]:
        """The numbers of the capabilities the CPU has."""
        for at in self._records():
            number = self._number(at + 8, 2)
            if self._matches(at):
                yield number

    def _records(self) -> Iterator[int]:
        """Addresses of all records: those beside one with a known function."""
        start = self._view.symbol("_stext")
        if start is None:
            return
        data = image_bytes(self._view, start)
        begin = (self._view.symbol("_etext") or start) - start
        seen: set[int] = set()
        for address in self._functions:
            pattern = address.to_bytes(8, "little")
            at = begin
            while (at := data.find(pattern, at)) >= 0:
                record = at - _MATCHES
                at += 8
                if record & 7 or record in seen or not self._is_record(data, record):
                    continue
                while self._is_record(data, record - _RECORD):
                    record -= _RECORD
                while self._is_record(data, record) and record not in seen:
                    seen.add(record)
                    yield start + record
                    record += _RECORD

    def _is_record(self, data: bytes, at: int) -> bool:
        """True for what may be a record: a number, and a function that tells."""
        if not 0 <= at <= len(data) - _RECORD:
            return False
        number = int.from_bytes(data[at + 8 : at + 10], "little")
        function = int.from_bytes(data[at + _MATCHES : at + _MATCHES + 8], "little")
        kind = int.from_bytes(data[at + 10 : at + 12], "little")
        inside = self._view.symbol("_stext") or 0, self._view.symbol("_einittext") or 0
        return number < _NUMBERS and 0 < kind < _NUMBERS and inside[0] <= function < inside[1]

    def _matches(self, at: int) -> bool:
        """The answer of a record's function for the CPU."""
        name = self._functions.get(self._number(at + _MATCHES, 8), "")
        if name in _ALWAYS:
            return True
        if name in _RANGE_FUNCTIONS:
            return self._in_range(at + _UNION)
        if name in _LIST_FUNCTIONS:
            return self._in_ranges(self._number(at + _UNION, 8))
        if name in _MULTIPLE:
            return self._any_of(self._number(at + _LIST, 8))
        if name in _FIELDS:
            return self._has_field(at + _UNION)
        match name:
            case "has_spectre_v2":
                return self._core not in _V2_SAFE and not self.has(_V85)
            case "has_spectre_v3a":
                return self._core in _V3A
            case "has_spectre_v4":
                return self._core not in _V4_SAFE
            case "is_spectre_bhb_affected":
                return self._core in _LOOPS
            case "unmap_kernel_at_el0":
                return self._core not in _PTI_SAFE and not self.has(_V82)
            case "has_address_auth_metacap":
                return self.has("paca")
            case "has_generic_auth":
                return self.has("pacg")
            case "has_no_fpsimd":
                return not self.has("fp")
            case "has_pan":
                return self.has(_V81)
        return False

    def _in_range(self, at: int) -> bool:
        """True if the CPU is in a range: model, lowest and highest revision."""
        model, low, high = (self._number(at + offset, 4) for offset in (0, 4, 8))
        if self._midr & _MODEL_MASK != model:
            return False
        return low <= self._midr & _REVISION_MASK <= high

    def _in_ranges(self, at: int) -> bool:
        """True if the CPU is in one of the ranges of a list, which ends with a model of 0."""
        for place in range(at, at + _RANGE * _RANGES_MOST, _RANGE):
            if not self._number(place, 4):
                break
            if self._in_range(place):
                return True
        return False

    def _any_of(self, at: int) -> bool:
        """True if one of the records of a list matches; it ends with one without function."""
        for place in range(at, at + _RECORD * _RANGES_MOST, _RECORD):
            function = self._functions.get(self._number(place + _MATCHES, 8))
            if not self._number(place + _MATCHES, 8):
                break
            if function not in _MULTIPLE and self._matches(place):
                return True
        return False

    def _has_field(self, at: int) -> bool:
        """True if a field of an ID register has at least a record's value."""
        register, position = self._number(at, 4), self._number(at + 4, 1)
        wanted = self._number(at + 6, 1)
        if (register, position) == (_PFR0, 4):
            return wanted < 2 or self._core in _AARCH32_KERNELS
        for field in _SHOWN:
            if (field.register, field.position) == (register, position):
                values = [value for name, value in field.values if name in self._features]
                return max(values, default=0) >= wanted
        return False

    def _number(self, address: int, size: int) -> int:
        """A number of the image's data; 0 where there is none."""
        return int.from_bytes(self._view.read(address, size), "little")
