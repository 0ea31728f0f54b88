"""A kernel made by hand, patched as it would patch itself."""

import struct

from tableview import TableView

from engine.arch.aarch64.kernel_text import PatchedWords
from engine.arch.kernelcpu import CpuModel
from engine.image.damage import Damage
from engine.image.kernel.sitetables import SiteTables

_BASE = 0xFFFF800008010000
_END = _BASE + 0x10000
_FUNCTIONS = _BASE + 0xF000
_RECORDS = _BASE + 0x14000
_LISTS = _BASE + 0x16000
_TABLES = _BASE + 0x18000
_DATA = _BASE + 0x1C000
_NOP, _SAVE = 0xD503201F, 0xAA1E03E9
_SIZE = 0x40
_A57 = {"CPU implementer": "0x41", "CPU variant": "0x1", "CPU part": "0xd07", "CPU revision": "0"}


class _Kernel:
    """An image with records of capabilities, and tables as tests fill them."""

    def __init__(self) -> None:
        self.view = TableView(_BASE, bytes(0x20000))
        self.view.symbols.update(_stext=_BASE, _etext=_END, _einittext=_END)
        self._next = _TABLES
        self._records = 0

    def function(self, name: str) -> int:
        """The address of a function without code of interest."""
        if name not in self.view.symbols:
            self.view.symbols[name] = _FUNCTIONS + 16 * len(self.view.symbols)
        return self.view.symbols[name]

    def capability(self, number: int, function: str, rest: bytes = b"") -> None:
        """Puts a record: a feature whose function compares what follows."""
        row = struct.pack("<QHH4xQQ", 0, number, 0x12, self.function(function), 0) + rest
        self.view.put(_RECORDS + _SIZE * self._records, row)
        self._records += 1

    def table(self, start: str, end: str, data: bytes) -> int:
        """Puts a table behind the others, and tells where."""
        at = self._next
        self.view.symbols[start] = at
        self.view.symbols[end] = at + len(data)
        self.view.put(at, data)
        self._next += len(data) + 15 & ~15
        return at

    def alternatives(self, *rows: tuple[int, int, int, int, int]) -> None:
        """Puts a table of (address, replacement, feature, size, size)."""
        data = b""
        for address, replacement, *rest in rows:
            at = self._next + len(data)
            data += struct.pack("<iiHBB", address - at, replacement - at - 4, *rest)
        self.view.layouts["alt_instr"] = {"": (0, 12)}
        self.table("__alt_instructions", "__alt_instructions_end", data)

    def words(self, address: int, *words: int) -> None:
        """Puts instructions."""
        self.view.put(address, struct.pack(f"<{len(words)}I", *words))

    def live(self, features: str = "fp", command_line: str = "", **fields: str) -> bytes:
        """The text after boot."""
        cpu = CpuModel(_A57 | {"Features": features} | fields, 1, tuple(command_line.split()))
        tables = SiteTables(self.view, sorted(self.view.symbols.values()), Damage())
        text = bytearray(self.view.read(_BASE, _END - _BASE))
        for patch in PatchedWords(self.view, tables, cpu).patches():
            at = patch.address - _BASE
            assert text[at : at + len(patch.before)] == patch.before
            text[at : at + len(patch.after)] = patch.after
        return bytes(text)

    def word(self, address: int, **options: str) -> int:
        """An instruction after boot."""
        at = address - _BASE
        return int.from_bytes(self.live(**options)[at : at + 4], "little")


def test_errata_are_those_of_the_images_own_lists() -> None:
    kernel = _Kernel()
    kernel.words(_BASE, _NOP, _NOP)
    kernel.words(_BASE + 0x100, 0x11, 0x22)
    ranges = struct.pack("<9I", 0x410FD080, 0, 0xF0000F, 0x410FD070, 0, 0x100002, 0, 0, 0)
    kernel.view.put(_LISTS, ranges)
    kernel.capability(7, "is_affected_midr_range", struct.pack("<III", 0x410FD070, 0, 0x100000))
    kernel.capability(8, "is_affected_midr_range_list", struct.pack("<Q", _LISTS))
    kernel.alternatives((_BASE, _BASE + 0x100, 7, 4, 4), (_BASE + 4, _BASE + 0x104, 8, 4, 4))
    assert kernel.live()[:8] == struct.pack("<II", 0x11, 0x22)
    late = {"CPU revision": "2"}
    assert kernel.live("fp", "", **late)[:8] == struct.pack("<II", _NOP, 0x22)
    other = {"CPU part": "0xd03"}
    assert kernel.live("fp", "", **other)[:8] == struct.pack("<II", _NOP, _NOP)


def test_features_are_fields_of_registers_that_cpuinfo_tells_of() -> None:
    kernel = _Kernel()
    kernel.words(_BASE, _NOP)
    kernel.words(_BASE + 0x100, 0x11)
    kernel.capability(14, "has_cpuid_feature", struct.pack("<IBBBB", 0x180600, 16, 4, 1, 0))
    kernel.capability(15, "has_always")
    kernel.alternatives((_BASE, _BASE + 0x100, 14, 4, 4))
    assert kernel.word(_BASE, features="fp crc32") == 0x11
    assert kernel.word(_BASE, features="fp") == _NOP


def test_branches_out_of_a_replacement_are_moved() -> None:
    kernel = _Kernel()
    kernel.capability(0, "has_always")
    replacement = _BASE + 0x1000
    kernel.words(_BASE, *(_NOP,) * 6)
    kernel.words(
        replacement,
        0x14000010,  # b .+64
        0xB4000200,  # cbz x0, .+64
        0x54000201,  # b.ne .+64
        0x37000200,  # tbnz w0, #0, .+64
        0x17FFFFFD,  # b .-12
        0x90000000,  # adrp x0, .
    )
    kernel.alternatives((_BASE, replacement, 0, 24, 24))
    moved = 0x1000 // 4
    assert kernel.live()[:24] == struct.pack(
        "<6I",
        0x14000010 + moved,
        0xB4000200 + (moved << 5),
        0x54000201 + (moved << 5),
        0x37000200 + (moved << 5),
        0x17FFFFFD,
        0xB0000000,
    )


def test_functions_make_what_depends_on_the_machine() -> None:
    kernel = _Kernel()
    kernel.capability(1, "has_always")
    kernel.words(_BASE, 0x14000002, 0x14000004, 0xD280041E)
    kernel.alternatives(
        (_BASE, kernel.function("alt_cb_patch_nops"), 0x8001, 4, 0),
        (_BASE + 4, kernel.function("spectre_v4_patch_fw_mitigation_enable"), 0x8001, 4, 0),
        (_BASE + 8, kernel.function("spectre_bhb_patch_loop_iter"), 0x8001, 4, 0),
    )
    assert kernel.live()[:12] == struct.pack("<III", _NOP, _NOP, 0xD280011E)
    assert kernel.word(_BASE + 4, command_line="ssbd=force-on") == 0x14000004


def test_a_traced_function_saves_its_link() -> None:
    kernel = _Kernel()
    kernel.capability(1, "has_always")
    kernel.words(_BASE, _NOP, _NOP)
    kernel.table("__start_mcount_loc", "__stop_mcount_loc", struct.pack("<Q", _BASE + 4))
    assert kernel.live()[:8] == struct.pack("<II", _SAVE, _NOP)


def test_a_key_is_known_by_the_function_that_asks_it() -> None:
    kernel = _Kernel()
    kernel.capability(1, "has_always")
    kernel.view.symbols.update(rng_is_initialized=_BASE, next_function=_BASE + 0x40)
    kernel.words(_BASE, _NOP)
    at = kernel.table("__start___jump_table", "__stop___jump_table", bytes(16))
    kernel.view.put(at, struct.pack("<iiq", _BASE - at, _BASE + 0x20 - at - 4, _DATA - at - 8))
    assert kernel.word(_BASE) == 0x14000008
    kernel.view.put(_DATA, b"\1")
    assert kernel.word(_BASE) == _NOP
