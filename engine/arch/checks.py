"""Checks of an architecture's record, made when it is: a gap is told there, not met in a run.

Only what one part says of another is looked at; types are mypy's business.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.arch.base import AddressPlan, Arch

_NUMBERS: Final = 256
"""Exception numbers that an emulator may give."""
_ARGUMENTS: Final = 6
"""Of a system call."""


def check(arch: "Arch") -> None:
    """Check a whole record.

    Raises:
        EngineError: parts are missing or contradict each other; it names all of them.
    """
    found = [
        *_registers(arch),
        *_names(arch),
        *_dwarf_numbers(arch),
        *_code(arch),
        *_addresses(arch),
        *_engines(arch),
    ]
    if found:
        raise EngineError(f"the record of {arch.name or 'an architecture'}: {'; '.join(found)}")


def _registers(arch: "Arch") -> Iterator[str]:
    """Names, aliases and DWARF numbers belong to one register each."""
    names = Counter(register.name for register in arch.registers)
    names.update({alias for register in arch.registers for alias in register.aliases})
    aliases = Counter(alias for register in arch.registers for alias in register.aliases)
    for name, times in (names | aliases).items():
        if times > 1:
            yield f"{times} registers are called {name}"
    numbers = Counter(one.dwarf for one in arch.registers if one.dwarf is not None)
    for number, times in numbers.items():
        if times > 1:
            yield f"{times} registers have the DWARF number {number}"


def _names(arch: "Arch") -> Iterator[str]:
    """Whatever names a register names one of them."""
    known = {register.name for register in arch.registers}.union(arch.parts)
    for what, names in _named(arch):
        missing = [name for name in names if name not in known]
        if missing:
            yield f"{what} names no register: {', '.join(map(repr, missing))}"
    if len(arch.linux.arguments) != _ARGUMENTS:
        yield f"linux.arguments has {len(arch.linux.arguments)} registers, not {_ARGUMENTS}"


def _named(arch: "Arch") -> Iterator[tuple[str, Iterable[str]]]:
    roles, linux, probes = arch.roles, arch.linux, arch.probes
    for role in ("pc", "sp", "fp", "flags", "tls"):
        yield f"roles.{role}", (getattr(roles, role),)
    if roles.link is not None:
        yield "roles.link", (roles.link,)
    yield "linux.number", (linux.number,)
    yield "slices", (whole for whole, _, _ in arch.slices.values())
    yield "linux.arguments", linux.arguments
    yield "linux.result", (linux.result,)
    yield "linux.clobbers", (name for pair in linux.clobbers for name in pair)
    yield "linux.error", (linux.error,) if linux.error else ()
    yield "linux.second", (linux.second,) if linux.second else ()
    yield "linux.start", (name for name, _ in linux.start)
    yield "probes.arguments", probes.arguments
    yield "probes.retval", (probes.retval,)
    yield "probes.fetch_registers", probes.fetch_registers.values()
    yield "bpftrace", arch.bpftrace
    if arch.unwind is not None:
        yield "unwind.preserved", arch.unwind.preserved
        yield "unwind.saved", arch.unwind.saved
        yield "unwind.stacks", arch.unwind.stacks


def _dwarf_numbers(arch: "Arch") -> Iterator[str]:
    calls = arch.abi.calls
    if calls is None:
        return
    known = {register.dwarf for register in arch.registers}
    for number in (*calls.general, calls.stack[0]):
        if number not in known:
            yield f"abi.calls: no register has the DWARF number {number}"


def _code(arch: "Arch") -> Iterator[str]:
    """Sizes of code, and what is planted in it."""
    if arch.bits not in (32, 64):
        yield f"bits is {arch.bits}, not 32 or 64"
    if arch.byteorder not in ("little", "big"):
        yield f"byteorder is {arch.byteorder!r}, not little or big"
    if not 0 < arch.insn_align <= arch.insn_max:
        yield f"insn_align is {arch.insn_align}, insn_max {arch.insn_max}"
    planted = {
        "breakpoint": arch.breakpoint,
        "probes.kprobe": arch.probes.kprobe,
        "probes.uprobe": arch.probes.uprobe,
    }
    for what, code in planted.items():
        if not code:
            yield f"{what} is empty"
    if not arch.linux.syscalls:
        yield "linux.syscalls is empty"
    if arch.bench is not None:
        for name in arch.bench.fetches:
            if name.removeprefix("%") not in arch.probes.fetch_registers:
                yield f"bench.fetches: {name} is none of probes.fetch_registers"


def _addresses(arch: "Arch") -> Iterator[str]:
    """The engine's windows are whole pages of user space and do not overlap."""
    yield from _windows(arch.plan, "plan")
    if (arch.kernel_plan is None) is not (arch.kernel_calls is None):
        yield "kernel_calls and kernel_plan are given together"
    if arch.kernel_plan is not None:
        yield from _windows(arch.kernel_plan, "kernel_plan")


def _windows(plan: "AddressPlan", name: str) -> Iterator[str]:
    windows = {
        f"{name}.xol": plan.xol,
        f"{name}.trampoline": plan.trampoline,
        f"{name}.detour": plan.detour,
        f"{name}.register_stack": plan.register_stack,
    }
    end, before = 0, ""
    for what, (start, size) in sorted(windows.items(), key=lambda item: item[1]):
        if not size:
            continue
        if start % plan.page_size or size % plan.page_size:
            yield f"{what} is not made of pages"
        if start < end:
            yield f"{what} overlaps {before}"
        end, before = start + size, what
        if end > plan.task_size:
            yield f"{what} leaves user space"


def _engines(arch: "Arch") -> Iterator[str]:
    """Somebody decodes it; where Unicorn runs it, a breakpoint is an exception of its."""
    engines = arch.engines
    if arch.decode is None and engines.capstone is None:
        yield "neither decode nor engines.capstone is given"
    if arch.core != "unicorn":
        return
    if engines.unicorn is None:
        yield "engines.unicorn is missing"
        return
    kinds = {arch.classify_trap(number).name for number in range(_NUMBERS)}
    if "BREAKPOINT" not in kinds and not engines.unicorn.refused_breakpoints:
        yield "classify_trap knows no breakpoint"
    known = {register.name for register in arch.registers}
    names = (*engines.unicorn.registers, *engines.unicorn.writable)
    for name in dict.fromkeys(one[0] for one in names):
        if name not in known:
            yield f"engines.unicorn names no register: {name!r}"
