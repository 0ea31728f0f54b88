"""Rules for places that no kernel at hand has: checks of clang's CFI."""

import struct

from engine.arch.kernelprobes import KernelFunction
from engine.arch.x86_64.kernel_probes import X86KernelRules

TEXT, TABLE = 0xFFFFFFFF81000000, 0xFFFFFFFF82000000
CHECK = bytes.fromhex(
    "55"  # push rbp
    "41ba44332211"  # mov r10d, the negated type
    "450353fc"  # add r10d, [r11-4]
    "7402"  # je over the trap
    "0f0b"  # ud2
    "41ffd3"  # call r11
    "c3"
)
TRAP = TEXT + 13


class View:
    """A kernel with one trap in its table."""

    version = (6, 12, 0)
    is_module = False

    def __init__(self, trap: int) -> None:
        self._table = struct.pack("<i", trap - TABLE)

    def symbol(self, name: str) -> int | None:
        return {"__start___kcfi_traps": TABLE, "__stop___kcfi_traps": TABLE + 4}.get(name)

    def section(self, name: str) -> None:
        return None

    def read(self, address: int, size: int) -> bytes:
        return self._table[address - TABLE :][:size]

    def layout(self, record: str) -> None:
        return None


def refused(trap: int) -> list[int]:
    """The places of the check that no probe may be on, by their distance."""
    rules = X86KernelRules(View(trap))
    function = KernelFunction("f", TEXT, TEXT + len(CHECK), CHECK, ())
    places = [address for address, _ in rules.instructions(function)]
    found = [(address, rules.refusal(function, address)) for address in places]
    return [
        address - TEXT
        for address, refusal in found
        if refusal is not None and refusal.rule == "kernel.cfi"
    ]


def test_the_check_before_an_indirect_call_is_not_touched() -> None:
    assert refused(TRAP) == [1, 7]


def test_other_code_like_it_may_be() -> None:
    assert refused(TRAP + 1) == []
