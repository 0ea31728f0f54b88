"""The parts of a run's CPU time, by what this process was doing: `--debug`.

Addresses that were interrupted are told apart by the memory they lie in: translated code, the
engine's own host code, Python; and those in the emulator's library by the function. Functions of
Unicorn 2.1, which is QEMU's: translation in accel/tcg/translate-all.c, tcg/ and
target/*/translate.c, the way from block to block in accel/tcg/cpu-exec.c, what translated code
calls in accel/tcg/cputlb.c, target/*/*_helper.c and fpu/softfloat.c.
"""

import os
import re
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from engine.cpu.host_samples import HostSamples
from engine.image.elf import ElfImage
from engine.image.symbols import SymbolTable

RUN: Final = "translated code"
TRANSLATE: Final = "translation"
LOOK_UPS: Final = "look-ups of blocks"
CALLS: Final = "functions that translated code calls"
CALLBACKS: Final = "callbacks in host code"
PYTHON: Final = "Python and its modules"
C_LIBRARY: Final = "the C library and system calls of the host"
LEAVING: Final = "ways out of translated code at exceptions and calls"
EMULATOR: Final = "the emulator otherwise"
ELSEWHERE: Final = "elsewhere"
KINDS: Final = (
    *(RUN, TRANSLATE, LOOK_UPS, LEAVING, CALLS, CALLBACKS, PYTHON, C_LIBRARY, EMULATOR, ELSEWHERE),
)

_TARGET: Final = re.compile(r"@plt$|\.(isra|part|constprop|cold)[.\d]*$")
_ARCH: Final = re.compile(r"_(x86_64|aarch64|riscv64)$")
_FUNCTIONS: Final = (
    (
        LEAVING,
        r"tb_tc_cmp|g_tree_lookup|g_direct_hash|tcg_tb_lookup|cpu_restore_state|"
        r"restore_state_to_opc|cpu_loop_exit|raise_|uc_reg_|uc_emu_|reg_(read|write)",
    ),
    (
        LOOK_UPS,
        r"helper_lookup_tb_ptr|tb_htable_lookup|tb_lookup|tb_find|lookup_tb_ptr|qht_lookup|"
        r"cpu_exec|cpu_tb_exec|cpu_get_tb_cpu_state|tb_add_jump",
    ),
    (
        TRANSLATE,
        r"tcg_|tb_|gen_|disas|trans_|decode|translat|optimize|temp_|liveness|la_|reg_alloc|"
        r"page_(find|lock|unlock|collection)|do_gen|do_tb|do_constant|ts_|patch_reloc|tgen_|"
        r"save_globals|sync_globals|uc_(hook|tb|gen)_|x86_(tr|ldub|ldl)|i386_tr|aarch64_tr|"
        r"riscv_tr|insn_get|g_tree|tree_|cpu_ld\w*_code|get_page_addr_code|ldub_code|qht_|qdist_|"
        r"probe_access|advance_pc|copy_|init_ts|fold_|swap_|sizemask|is_const|arg_|alloc_",
    ),
    (
        CALLS,
        r"helper_|(load|store)_helper|full_(le|be|ld|st)|.*_mmu$|tlb_|victim_tlb|io_(read|write)|"
        r"float|soft|round_|parts_|pick_|normalize|propagate|cpu_(ld|st|cc|atomic|compute)|"
        r"compute_|atomic_|memory_|unicorn_fill_tlb|find_memory|qemu_(ram|map|get_ram)|notdirty|"
        r"address_space|flatview|unassigned|phys_page|probe_|"
        r"get_physical|x86_cpu_tlb|handle_even|crc32|aes|do_(add|sub|mul|div|sse|cpuid|int)",
    ),
)
_NAMED: Final = tuple((kind, re.compile(text)) for kind, text in _FUNCTIONS)
_MOST: Final = 8
"""Functions of the emulator that are told by name."""
_C_LIBRARY: Final = re.compile(r"/(libc|libm|libpthread|ld-linux[\w-]*|ld-musl[\w-]*)[.-]")


class _CodeMapping(Struct, frozen=True):
    """An executable mapping of this process: [start, end), offset in a file, path."""

    start: int
    end: int
    offset: int
    path: str


class SelfProfile:
    """Samples this process from the start of a run to its end."""

    def __init__(self) -> None:
        """Begin, if the host can."""
        self._samples = HostSamples()
        self._began = time.process_time()
        self._can = self._samples.start()

    def lines(self) -> Iterator[str]:
        """End; the parts of the time in words, the largest ones first."""
        spent = time.process_time() - self._began
        if not self._can:
            yield "where the time went is not known: no host code to sample it with"
            return
        found = self._samples.stop()
        if not found:
            yield f"where the time went is not known: {spent * 1e3:.0f} ms are too few to sample"
            return
        kinds, functions = divided(found)
        yield f"where {spent:.2f} s of CPU time went, by {len(found)} samples:"
        for kind, count in kinds.most_common():
            yield f"{count / len(found):>7.1%} {kind}"
        named = [
            f"{name} {count / len(found):.1%}" for name, count in functions.most_common(_MOST)
        ]
        if named:
            yield f"the emulator's functions: {', '.join(named)}"


def divided(addresses: Sequence[int]) -> tuple[Counter[str], Counter[str]]:
    """Count addresses by kind of work, and those in the emulator by function."""
    with open("/proc/self/maps") as lines:
        mappings = list(executable(lines))
    starts = [mapping.start for mapping in mappings]
    kinds: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    emulator: Callable[[int], str] | None = None
    for address, count in Counter(addresses).items():
        at = bisect_right(starts, address) - 1
        mapping = mappings[at] if at >= 0 and address < mappings[at].end else None
        if mapping is None or "/libunicorn" not in mapping.path:
            kinds[_kind(mapping)] += count
            continue
        if emulator is None:
            emulator = _names(mapping.path)
        name = emulator(address - mapping.start + mapping.offset)
        functions[name] += count
        kinds[kind_of(name)] += count
    return kinds, functions


def executable(lines: "Iterator[str] | Sequence[str]") -> "Iterator[_CodeMapping]":
    """The executable mappings among the lines of a process's maps."""
    for line in lines:
        span, permissions, offset, _, _, *path = line.split(maxsplit=5)
        if "x" in permissions:
            low, high = (int(word, 16) for word in span.split("-"))
            yield _CodeMapping(low, high, int(offset, 16), path[0].strip() if path else "")


def kind_of(function: str) -> str:
    """The kind of work that a function of the emulator belongs to, by its name."""
    return next((kind for kind, names in _NAMED if names.match(function)), EMULATOR)


def _kind(mapping: _CodeMapping | None) -> str:
    """The kind of work in a mapping, not of the emulator's library."""
    if mapping is None:
        return ELSEWHERE
    path = mapping.path
    if not path:
        return RUN  # the emulator's buffer is the one that belongs to no file and is not shared
    if path.startswith("/dev/zero"):
        return CALLBACKS  # `native.place` and `hostmemory.distant` share theirs
    if path.startswith("[") or _C_LIBRARY.search(path):
        return C_LIBRARY
    if ".so" in path or os.path.realpath(sys.executable) == path:
        return PYTHON
    return ELSEWHERE


def _names(path: str) -> Callable[[int], str]:
    """The name of the function at an offset of a library, without what tells targets apart."""
    image = ElfImage.open(path, runnable=False)
    symbols = SymbolTable(image, ())

    def name(offset: int) -> str:
        link = image.vaddr_of(offset)
        symbol = None if link is None else symbols.at(link)
        return "?" if symbol is None else _ARCH.sub("", _TARGET.sub("", symbol.name))

    return name
