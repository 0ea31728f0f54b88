"""Code that nobody calls: where return probes by a trampoline damage the program.

A trampoline's address takes the place of a return address. At an entry point something else
stands there, by the ABI: argc on x86-64. Where calls leave the return address in a register
nothing is lost: Linux clears it in front of an entry point, and a signal's return restores it.
"""

from engine.arch.base import Arch
from engine.arch.uprobe_faults import NO_CALLER
from engine.image import ElfImage
from engine.probes.return_catcher import ReturnChanges


def no_caller(arch: Arch, image: ElfImage, address: int) -> str:
    """Say why no return address is at hand where some code is entered; "" where there is one.

    Args:
        arch: of the file.
        image: the file.
        address: of the code's first instruction, as in the file.
    """
    if address == image.entry:
        return "nobody calls an entry point"
    codes = [code for code, _ in arch.unwind.sigreturn] if arch.unwind is not None else []
    begins = image.read_vaddr(address, max(map(len, codes), default=0))
    if any(begins.startswith(code) for code in codes):
        return "nobody calls a signal's restorer, which handlers return to"
    return ""


def spoils_entry(arch: Arch, changes: ReturnChanges) -> bool:
    """True if a catcher of returns changes what such code finds on its stack."""
    on_stack = changes.return_address and arch.roles.link is None
    return bool(on_stack or changes.stack or changes.scratch)


def refusal(why: str) -> str:
    """The reason of a refusal, in words."""
    return (
        f"{NO_CALLER.rule}: {why}: the trampoline would overwrite what stands there on the stack"
    )
