"""A kernel made by hand, patched as it would patch itself."""

import struct

from tableview import TableView

from engine.arch.kernelcpu import CpuModel
from engine.arch.x86_64.kernel_text import PatchedText
from engine.image.damage import Damage
from engine.image.kernel.sitetables import SiteTables

_BASE = 0xFFFFFFFF81000000
_TEXT_END = _BASE + 0x4000
_THUNK, _SRSO, _FENTRY = _BASE + 0x3000, _BASE + 0x3040, _BASE + 0x3080
_THUNKS = _BASE + 0x3200
_SPARE = _BASE + 0x7000
_DATA = _BASE + 0x8000
_NAMES = _BASE + 0x9000
_TABLES = _BASE + 0xA000
_POPCNT = 4 * 32 + 23
_WORDS = 22


class _Kernel:
    """An image with what every kernel has, and tables as tests fill them."""

    def __init__(self, version: tuple[int, int, int]) -> None:
        self.view = TableView(_BASE, bytes(0x20000))
        self.view.version = version
        self.view.symbols.update(
            _stext=_BASE,
            _etext=_TEXT_END,
            __x86_return_thunk=_THUNK,
            srso_return_thunk=_SRSO,
            __fentry__=_FENTRY,
            __x86_indirect_thunk_array=_THUNKS,
            x86_cap_flags=_NAMES,
            x86_bug_flags=_NAMES + _WORDS * 256,
            end_of_flags=_NAMES + _WORDS * 256 + 256,
        )
        self.view.put(_DATA, b"popcnt\0")
        self.view.put(_NAMES + 8 * _POPCNT, _DATA.to_bytes(8, "little"))
        self._next = _TABLES + 0x4000

    def table(self, start: str, end: str, data: bytes) -> None:
        """Puts a table behind the others."""
        self.view.symbols[start] = self._next
        self.view.symbols[end] = self._next + len(data)
        self.view.put(self._next, data)
        self._next += len(data) + 15 & ~15

    def sites(self, name: str, *addresses: int) -> None:
        """Puts a table of distances."""
        distances = (a - self._next - 4 * i for i, a in enumerate(addresses))
        self.table(name, f"{name}_end", struct.pack(f"<{len(addresses)}i", *distances))

    def alternative(self, address: int, feature: int, size: int, code: bytes) -> None:
        """Puts a table of one alternative."""
        self.view.put(_SPARE, code)
        wide = self.view.version >= (6, 3, 0)
        layout = "<iiIBB" if wide else "<iiHBB"
        at = self._next
        row = struct.pack(layout, address - at, _SPARE - at - 4, feature, size, len(code))
        self.view.layouts["alt_instr"] = {"": (0, len(row))}
        self.table("__alt_instructions", "__alt_instructions_end", row)

    def live(
        self,
        command_line: str = "",
        count: int = 2,
        **fields: str,
    ) -> dict[int, str]:
        """Address of each place that changes, to what stands there."""
        cpu = CpuModel({"vendor_id": "GenuineIntel", **fields}, count, tuple(command_line.split()))
        tables = SiteTables(self.view, sorted(self.view.symbols.values()), Damage())
        patches = PatchedText(self.view, tables, cpu).patches()
        for patch in patches:
            assert patch.before == self.view.read(patch.address, len(patch.before))
        return {patch.address: patch.after.hex() for patch in patches}

    def branch(self, address: int, opcode: int, target: int) -> None:
        """Puts a call or jump of five bytes."""
        distance = (target - address - 5).to_bytes(4, "little", signed=True)
        self.view.put(address, bytes((opcode,)) + distance)


def _branch(opcode: str, address: int, target: int) -> str:
    return opcode + (target - address - 5).to_bytes(4, "little", signed=True).hex()


def test_returns_are_plain_where_the_cpu_needs_no_thunk() -> None:
    kernel = _Kernel((6, 1, 0))
    kernel.branch(_BASE + 16, 0xE9, _THUNK)
    kernel.branch(_BASE + 32, 0xE9, _FENTRY)
    kernel.sites("__return_sites", _BASE + 16, _BASE + 32)
    assert kernel.live() == {_BASE + 16: "c3cccccccc"}


def test_a_kernel_that_is_a_program_leaves_its_text_alone() -> None:
    kernel = _Kernel((6, 1, 0))
    kernel.branch(_BASE + 16, 0xE9, _THUNK)
    kernel.sites("__return_sites", _BASE + 16)
    kernel.view.symbols["start_uml"] = _BASE + 0x100
    assert kernel.live() == {}


def test_returns_go_through_the_thunk_that_the_cpus_bug_asks_for() -> None:
    kernel = _Kernel((6, 1, 0))
    kernel.branch(_BASE + 16, 0xE9, _THUNK)
    kernel.sites("__return_sites", _BASE + 16)
    live = kernel.live(vendor_id="AuthenticAMD", bugs="srso spectre_v2")
    assert list(live) == [_BASE + 17]
    assert "e9" + live[_BASE + 17] == _branch("e9", _BASE + 16, _SRSO)[: 2 + len(live[_BASE + 17])]
    assert kernel.live("mitigations=off", bugs="srso") == {_BASE + 16: "c3cccccccc"}


def test_branches_through_thunks_stay_where_retpolines_are_needed() -> None:
    kernel = _Kernel((6, 1, 0))
    kernel.branch(_BASE + 16, 0xE8, _THUNKS)
    kernel.branch(_BASE + 32, 0xE9, _THUNKS + 9 * 32)
    kernel.view.put(_BASE + 48, bytes.fromhex("0f85"))
    distance = _THUNKS + 3 * 32 - _BASE - 54
    kernel.view.put(_BASE + 50, distance.to_bytes(4, "little", signed=True))
    kernel.sites("__retpoline_sites", _BASE + 16, _BASE + 32, _BASE + 48)
    assert kernel.live(bugs="spectre_v2") == {}
    assert kernel.live() == {
        _BASE + 16: "ffd00f1f",
        _BASE + 32: "41ffe1cc90",
        _BASE + 48: "7404ffe3cc90",
    }
    assert kernel.live("spectre_v2=retpoline,lfence")[_BASE + 16] == "0faee8ffd0"


def test_alternatives_follow_the_cpus_features() -> None:
    for version, absent in (((6, 1, 0), 0x8000), ((6, 12, 0), 0x10000)):
        kernel = _Kernel(version)
        kernel.view.put(_BASE + 16, bytes.fromhex("31c0909090"))
        kernel.alternative(_BASE + 16, _POPCNT, 5, bytes.fromhex("f30fb8c7"))
        assert kernel.live(flags="popcnt") == {_BASE + 16: "f30fb8c7"}
        assert kernel.live() == {_BASE + 18: "0f1f00"}
        kernel = _Kernel(version)
        kernel.view.put(_BASE + 16, bytes.fromhex("31c0909090"))
        kernel.alternative(_BASE + 16, _POPCNT | absent, 5, bytes.fromhex("f30fb8c7"))
        assert kernel.live() == {_BASE + 16: "f30fb8c7"}


def test_a_jump_in_a_replacement_is_short_where_it_can_be() -> None:
    for version, padding in (((6, 1, 0), "0f1f00"), ((6, 12, 0), "cccccc")):
        kernel = _Kernel(version)
        jump = bytes.fromhex(_branch("e9", _SPARE, _BASE + 64))
        kernel.view.put(_BASE + 16, b"\xff" * 5)
        kernel.alternative(_BASE + 16, _POPCNT, 5, jump)
        assert kernel.live(flags="popcnt") == {_BASE + 16: "eb2e" + padding}


def test_calls_through_operations_become_direct() -> None:
    kernel = _Kernel((6, 1, 0))
    operations = _DATA + 0x100
    kernel.view.symbols["pv_ops"] = operations
    kernel.view.symbols["_paravirt_nop"] = _BASE + 0x2000
    targets = (_BASE + 0x1000, _BASE + 0x2000)
    kernel.view.put(operations, struct.pack("<QQ", *targets))
    for i in range(2):
        kernel.view.put(_BASE + 16 * i, b"\xff\x15" + bytes(4))
    rows = [struct.pack("<QBB6x", _BASE + 16 * i, i, 6) for i in range(2)]
    kernel.table("__parainstructions", "__parainstructions_end", b"".join(rows))
    assert kernel.live() == {
        _BASE: _branch("e8", _BASE, _BASE + 0x1000) + "90",
        _BASE + 16: "660f1f44",
    }


def test_static_calls_lead_to_what_their_key_holds() -> None:
    kernel = _Kernel((6, 1, 0))
    full, empty = _DATA + 0x200, _DATA + 0x210
    kernel.view.put(full, (_BASE + 0x1000).to_bytes(8, "little"))
    at = kernel._next
    rows = []
    for i, (key, tail) in enumerate([(full, 0), (empty, 0), (full, 1), (empty, 1)]):
        kernel.branch(_BASE + 16 * i, 0xE9 if tail else 0xE8, _BASE + 0x3800)
        place = at + 8 * i
        rows.append(struct.pack("<ii", _BASE + 16 * i - place, key + tail - place - 4))
    kernel.table("__start_static_call_sites", "__stop_static_call_sites", b"".join(rows))
    assert kernel.live() == {
        _BASE + 2: "0f",
        _BASE + 16: "0f1f44",
        _BASE + 34: "0f",
        _BASE + 48: "c3cccccccc",
    }


def test_locks_go_where_there_is_one_processor() -> None:
    kernel = _Kernel((6, 1, 0))
    kernel.view.put(_BASE + 16, b"\xf0\x48")
    kernel.sites("__smp_locks", _BASE + 16)
    assert kernel.live() == {}
    assert kernel.live(count=1) == {_BASE + 16: "3e"}
    assert kernel.live("noreplace-smp", count=1) == {}


def test_calls_of_fentry_are_nops_and_seals_are_poisoned() -> None:
    kernel = _Kernel((6, 12, 0))
    kernel.view.put(_BASE + 16, bytes.fromhex("f30f1efa"))
    kernel.branch(_BASE + 20, 0xE8, _FENTRY)
    kernel.branch(_BASE + 64, 0xE8, _THUNK)
    kernel.sites("__ibt_endbr_seal", _BASE + 16)
    rows = struct.pack("<QQ", _BASE + 20, _BASE + 64)
    kernel.table("__start_mcount_loc", "__stop_mcount_loc", rows)
    assert kernel.live() == {_BASE + 16: "660f1f000f1f44"}


def test_a_key_that_boot_turns_turns_its_labels() -> None:
    kernel = _Kernel((6, 1, 0))
    key = _DATA + 0x300
    kernel.view.symbols["sched_clock_running"] = key
    kernel.view.put(_BASE + 16, bytes.fromhex("0f1f440000"))
    kernel.view.put(_BASE + 32, bytes.fromhex("6690"))
    kernel.view.put(_BASE + 48, bytes.fromhex("eb0e"))
    at = kernel._next
    rows = []
    for i, (code, likely) in enumerate([(16, 0), (32, 0), (48, 1)]):
        place = at + 16 * i
        target = _BASE + code + 64
        rows.append(
            struct.pack("<iiq", _BASE + code - place, target - place - 4, key + likely - place - 8)
        )
    kernel.table("__start___jump_table", "__stop___jump_table", b"".join(rows))
    assert kernel.live() == {_BASE + 16: "e93b00", _BASE + 32: "eb3e", _BASE + 48: "6690"}


def test_tables_full_of_nonsense_change_nothing() -> None:
    kernel = _Kernel((6, 12, 0))
    noise = bytes(range(256)) * 8
    for name in ("__return_sites", "__retpoline_sites", "__ibt_endbr_seal", "__smp_locks"):
        kernel.table(name, f"{name}_end", noise)
    kernel.table("__alt_instructions", "__alt_instructions_end", noise)
    kernel.table("__start_mcount_loc", "__stop_mcount_loc", noise)
    kernel.table("__start_static_call_sites", "__stop_static_call_sites", noise)
    assert set(kernel.live()) <= set(range(_BASE, _TEXT_END))


def _preemptible(code: str) -> _Kernel:
    """A kernel whose sched_init has some code and a call of sched_dynamic_update."""
    kernel = _Kernel((6, 1, 0))
    key, start, update = _DATA + 0x400, _BASE + 0x1000, _BASE + 0x2000
    kernel.view.symbols["__SCK__preempt_schedule"] = key
    kernel.view.symbols.update(sched_init=start, after=start + 64, sched_dynamic_update=update)
    kernel.view.put(key, (_BASE + 0x2800).to_bytes(8, "little"))
    kernel.view.put(start, bytes.fromhex(code))
    kernel.branch(start + len(code) // 2, 0xE8 if code else 0x90, update)
    kernel.branch(_BASE + 16, 0xE8, _BASE + 0x2800)
    at = kernel._next
    row = struct.pack("<ii", _BASE + 16 - at, key - at - 4)
    kernel.table("__start_static_call_sites", "__stop_static_call_sites", row)
    return kernel


def test_how_a_kernel_preempts_is_what_its_own_start_chooses() -> None:
    for code in ("bf01000000", "31ff"):
        assert _BASE + 16 in _preemptible(code).live()
        assert _preemptible(code).live("preempt=full") == {}
    assert _preemptible("").live() == {}
    assert _BASE + 16 in _preemptible("").live("preempt=none")
