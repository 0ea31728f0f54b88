"""Places where a return probe by a trampoline damages the program, and why.

A trampoline's address takes the place of a return address. Some code has something else there, and
some functions do more with their return address than to return to it. No probe whose returns are
watched (`engine.probes.return_sites`) changes either.
"""

from typing import Final

from engine.arch.base import Arch
from engine.arch.uprobe_faults import KEPT, MOVED, NO_CALLER, NO_ENTRY, UprobeFault
from engine.image import ElfImage, SymbolTable, find_fde
from engine.image.gofunctions import go_functions, has_go
from engine.probes.return_catcher import ReturnChanges
from engine.session.program.places import Place
from engine.unwind.program import rows
from engine.unwind.rows import AtCfa, CfaExpression, CfaRegister, CfiRow, SameValue, Undefined

# What gcc takes for functions that return twice (special_function_p() of gcc/calls.cc), but vfork,
# whose second return finds the call as it was, and savectx, which no C library has.
_TWICE: Final = ("setjmp", "_setjmp", "__setjmp", "sigsetjmp", "_sigsetjmp", "__sigsetjmp")
_CONTEXTS: Final = ("getcontext", "__getcontext", "swapcontext", "__swapcontext")
# The loader's, which look up who has called (RETURN_ADDRESS() of glibc's dlfcn).
_CALLER: Final = ("dlopen", "dlmopen", "dlsym", "dlvsym", "__libc_dlopen_mode")

# glibc's, which begin by a return or a jump.
_REACHED: Final = {
    "__start_context": "nobody calls what a context's function returns to",
    "_dl_start_user": "nobody calls what the loader's entry point goes on with",
}
_KEEPERS: Final = {
    **dict.fromkeys(_TWICE, "keeps its return address for longjmp"),
    **dict.fromkeys(_CONTEXTS, "keeps its return address for setcontext"),
    **dict.fromkeys(_CALLER, "goes by its return address, which says who calls"),
}


def spoiled_return(
    arch: Arch, place: Place, changes: ReturnChanges | None = None
) -> tuple[UprobeFault, str] | None:
    """The fault that a return probe by a trampoline has at a place, and why; None without one.

    Args:
        arch: of the file.
        place: where calls would be caught.
        changes: of the trampoline; None = those of Linux's uprobes.
    """
    image, link = place.image, place.link
    on_stack = arch.roles.link is None
    if changes is None:
        if arch.name not in KEPT.arches:
            return None
    else:
        on_stack = bool((changes.return_address and on_stack) or changes.stack or changes.scratch)
    if changes is None or changes.return_address:
        table = image.once(go_functions) if has_go(image) else None
        if table is not None and table.start <= link < table.end:
            return MOVED, "Go's runtime finds the trampoline where it unwinds or moves the stack"
    if on_stack:
        why = _without_caller(arch, image, link)
        if why:
            return NO_CALLER, why
    start = link if place.function is None else place.function[0]
    if link - start <= _pad(arch, image, start):
        keeper = image.once(_keepers).get(start)
        if keeper is not None:
            name, does = keeper
            return KEPT, f"{name} {does}"
    row = _row(arch, image, link)
    if row is not None and not _as_called(arch, row):
        return NO_ENTRY, "by the unwind table the return address is not where a call leaves it"
    return None


def refusal(fault: UprobeFault, why: str) -> str:
    """The reason of a refusal, in words."""
    return (
        f"{fault.rule}: {why}; a trampoline would damage the program, and --returns watched, the "
        "usual way of strict mode, does not"
    )


def _without_caller(arch: Arch, image: ElfImage, address: int) -> str:
    """Say why no return address is at hand where some code is entered; "" where there is one.

    At an entry point something else stands there, by the ABI: argc on x86-64. Where calls leave
    the return address in a register nothing is lost: Linux clears it in front of an entry point,
    and a signal's return restores it.
    """
    if address == image.entry:
        return "nobody calls an entry point"
    codes = [code for code, _ in arch.unwind.sigreturn] if arch.unwind is not None else []
    begins = image.read_vaddr(address, max(map(len, codes), default=0))
    if any(begins.startswith(code) for code in codes):
        return "nobody calls a signal's restorer, which handlers return to"
    return image.once(_reached).get(address, "")


def _pad(arch: Arch, image: ElfImage, start: int) -> int:
    if not arch.probes.skips_landing_pad:
        return 0
    return arch.probes.landing_pad(image.read_vaddr(start, arch.insn_max))


def _reached(image: ElfImage) -> dict[int, str]:
    """Link addresses of code that begins with no return address at hand, and why."""
    table = image.once(SymbolTable)
    return {
        symbol.address: why for name, why in _REACHED.items() for symbol in table.find_all(name)
    }


def _keepers(image: ElfImage) -> dict[int, tuple[str, str]]:
    """Link address to name of the functions that use their return address, and what they do."""
    table = image.once(SymbolTable)
    found: dict[int, tuple[str, str]] = {}
    for name, does in _KEEPERS.items():
        for symbol in table.find_all(name):
            if symbol.is_function and symbol.name == name:
                found.setdefault(symbol.address, (name, does))
    return found


def _row(arch: Arch, image: ElfImage, link: int) -> CfiRow | None:
    """The rules of the unwind table at an instruction; None where there are none."""
    fde = find_fde(image, link)
    if fde is None or not fde.start <= link < fde.start + fde.size:
        return None
    names = {r.dwarf: r.name for r in arch.registers if r.dwarf is not None}
    starts, table = rows(fde, names, image.bits, image.layout.order)
    return next(
        (row for at, row in zip(starts[::-1], table[::-1], strict=True) if at <= link), None
    )


def _as_called(arch: Arch, row: CfiRow) -> bool:
    """True if a call has left the return address just where it leaves all: it is a function's."""
    roles = arch.roles
    word = arch.bits // 8 if roles.link is None else 0
    if row.signal_frame:
        return False
    if isinstance(row.cfa, CfaExpression):
        return True  # linkage stubs, at whose start the return address is in place
    if row.cfa != CfaRegister(roles.sp, word):
        return False
    rule = row.rules.get(row.return_register)
    if roles.link is None:
        return rule == AtCfa(-word)
    # Where nobody calls, the register holds nothing that would be lost.
    return rule is None or isinstance(rule, SameValue | Undefined)
