"""Records are complete, and one that is not says so when it is made."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from engine import arch as architectures
from engine.arch import ListedArch, by_name
from engine.arch.base import Arch, TrapKind
from engine.arch.engines import EngineNames
from engine.errors import EngineError

RECORD = by_name("x86_64")


def _without(arch: Arch, name: str) -> Arch:
    return replace(arch, registers=tuple(one for one in arch.registers if one.name != name))


def _twice(arch: Arch) -> Arch:
    first, second, *rest = arch.registers
    return replace(arch, registers=(first, replace(second, dwarf=first.dwarf), *rest))


def _called_twice(arch: Arch) -> Arch:
    first, second, *rest = arch.registers
    return replace(arch, registers=(first, replace(second, aliases=(first.name,)), *rest))


def _linux(arch: Arch, **changes: object) -> Arch:
    return replace(arch, linux=replace(arch.linux, **changes))


def _probes(arch: Arch, **changes: object) -> Arch:
    return replace(arch, probes=replace(arch.probes, **changes))


def _unicorn(arch: Arch, **changes: object) -> Arch:
    names = arch.engines.unicorn
    assert names is not None
    changed = replace(names, **changes)
    return replace(arch, engines=replace(arch.engines, unicorn=changed))


def _unwind(arch: Arch, **changes: object) -> Arch:
    assert arch.unwind is not None
    return replace(arch, unwind=replace(arch.unwind, **changes))


def _calls(arch: Arch, **changes: object) -> Arch:
    assert arch.abi.calls is not None
    calls = replace(arch.abi.calls, **changes)
    return replace(arch, abi=replace(arch.abi, calls=calls))


def _bench(arch: Arch, **changes: object) -> Arch:
    assert arch.bench is not None
    return replace(arch, bench=replace(arch.bench, **changes))


BREAKS: dict[str, Callable[[Arch], Arch]] = {
    "2 registers have the DWARF number 0": _twice,
    "2 registers are called rax": _called_twice,
    "roles.sp names no register: 'sp'": lambda a: replace(a, roles=replace(a.roles, sp="sp")),
    "roles.tls names no register: ''": lambda a: replace(a, roles=replace(a.roles, tls="")),
    "roles.link names no register: 'ra'": lambda a: replace(a, roles=replace(a.roles, link="ra")),
    "roles.fp names no register: 'rbp'": lambda a: _without(a, "rbp"),
    "linux.number names no register": lambda a: _linux(a, number="v0"),
    "linux.arguments names no register: 'a0', 'a1'": lambda a: _linux(
        a, arguments=("a0", "a1", "rdx", "r10", "r8", "r9")
    ),
    "linux.arguments has 5 registers, not 6": lambda a: _linux(a, arguments=a.linux.arguments[:5]),
    "linux.result names no register": lambda a: _linux(a, result="a0"),
    "linux.clobbers names no register: 'r99'": lambda a: _linux(a, clobbers=(("r99", "rip"),)),
    "linux.error names no register": lambda a: _linux(a, error="a3"),
    "linux.second names no register": lambda a: _linux(a, second="v1"),
    "linux.start names no register": lambda a: _linux(a, start=(("bsp", 1),)),
    "linux.syscalls is empty": lambda a: _linux(a, syscalls={}),
    "probes.arguments names no register: 'a0'": lambda a: _probes(a, arguments=("a0",)),
    "probes.retval names no register": lambda a: _probes(a, retval="a0"),
    "probes.fetch_registers names no register": lambda a: _probes(
        a, fetch_registers={**a.probes.fetch_registers, "zz": "zz"}
    ),
    "probes.kprobe is empty": lambda a: _probes(a, kprobe=b""),
    "probes.uprobe is empty": lambda a: _probes(a, uprobe=b""),
    "breakpoint is empty": lambda a: replace(a, breakpoint=b""),
    "bits is 48": lambda a: replace(a, bits=48),
    "byteorder is 'middle'": lambda a: replace(a, byteorder="middle"),
    "insn_align is 0": lambda a: replace(a, insn_align=0),
    "insn_align is 16, insn_max 15": lambda a: replace(a, insn_align=16),
    "unwind.preserved names no register": lambda a: _unwind(a, preserved=("s0",)),
    "unwind.saved names no register": lambda a: _unwind(a, saved={"s0": 8}),
    "unwind.stacks names no register": lambda a: _unwind(a, stacks=("bsp",)),
    "abi.calls: no register has the DWARF number 200": lambda a: _calls(a, general=(200,)),
    "abi.calls: no register has the DWARF number 201": lambda a: _calls(a, stack=(201, 0)),
    "bpftrace names no register: 'x0'": lambda a: replace(a, bpftrace={"x0": "r0"}),
    "bench.fetches: %zz is none of": lambda a: _bench(a, fetches=("%zz",)),
    "plan.xol is not made of pages": lambda a: replace(
        a, plan=replace(a.plan, xol=(a.plan.xol[0] + 1, 4096))
    ),
    "plan.xol overlaps plan.trampoline": lambda a: replace(
        a, plan=replace(a.plan, xol=(a.plan.trampoline[0] + 4096, 4096))
    ),
    "plan.detour leaves user space": lambda a: replace(
        a, plan=replace(a.plan, detour=(a.plan.task_size, 4096))
    ),
    "engines.unicorn is missing": lambda a: replace(
        a, engines=EngineNames(capstone=a.engines.capstone)
    ),
    "neither decode nor engines.capstone": lambda a: replace(
        a, engines=replace(a.engines, capstone=None)
    ),
    "engines.unicorn names no register: 'psw'": lambda a: _unicorn(a, writable=(("psw", 1, 1),)),
    "classify_trap knows no breakpoint": lambda a: replace(
        a, classify_trap=lambda number: TrapKind.OTHER
    ),
}


@pytest.mark.parametrize("message", BREAKS)
def test_a_gap_is_told_when_the_record_is_made(message: str) -> None:
    with pytest.raises(EngineError) as caught:
        BREAKS[message](RECORD)
    text = str(caught.value)
    assert text.startswith("the record of x86_64: ")
    assert message in text


def test_all_gaps_are_told_at_once() -> None:
    with pytest.raises(EngineError, match="bits is 1, not 32 or 64; byteorder is ''"):
        replace(RECORD, bits=1, byteorder="")


@pytest.mark.parametrize("listed", architectures.ARCHES, ids=lambda listed: listed.name)
def test_a_record_is_what_the_list_says(listed: ListedArch) -> None:
    arch = listed.record
    assert arch is architectures.by_name(listed.name)
    assert arch is architectures.for_elf(arch.elf_machine, arch.bits, arch.byteorder)
    assert arch.bits in architectures.classes_of(arch.elf_machine)
    with pytest.raises(EngineError, match=f"the record of {arch.name} is not that of the list's"):
        assert replace(listed, elf_machine=0).record


def test_names_that_are_not_listed() -> None:
    assert architectures.for_elf(0xF00D, 64, "little") is None
    assert not architectures.classes_of(0xF00D)
    with pytest.raises(KeyError):
        architectures.by_name("vax")


@pytest.mark.parametrize("name", architectures.names())
def test_only_the_record_that_is_wanted_is_imported(name: str) -> None:
    code = (
        "import sys; from engine import arch\n"
        f"record = arch.by_name({name!r})\n"
        "print(*[n for n in arch.names() if f'engine.arch.{n}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().split() == [name]
