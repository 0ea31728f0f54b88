"""Recorded runs of IA-64 guests, replayed without a processor, with backtraces at their steps.

A line of `tests/data/ia64/replay` is [bundle, slot, changed registers, whether the slot was a
taken call, memory writes, frames before it]; see `tests/data/ia64/README.md`.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.arch.ia64 import IA64
from engine.arch.ia64.returns import RETURNS
from engine.arch.ia64.rse import locals_size, skip_up
from engine.errors import GuestFaultError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.unwind.unwinder import Unwinder, UnwindGuest, Walk

DATA = Path(__file__).parents[1] / "data" / "ia64"
TRAMPOLINE = 0x2000_000F_0000_1000
_STACKS = ((0x9FFF_FFFF_7F60_0000, 0x9FFF_FFFF_8000_0000), (0x9FFF_FFFF_FF00_0000, 0xA << 60))


@dataclass(slots=True)
class Replay:
    """A guest as far as it has been replayed.

    Attributes:
        module: its file.
        registers: all general, branch and application registers.
        memory: written bytes.
        store: words of the backing store that calls have left behind.
        hooked: every function returns to `TRAMPOLINE`, as under return probes.
        link: b0 as recorded.
        pending: activation to its real return address.
    """

    module: Module
    registers: dict[str, int]
    memory: dict[int, int] = field(default_factory=dict)
    store: dict[int, int] = field(default_factory=dict)
    hooked: bool = False
    link: int = 0
    pending: dict[int, int] = field(default_factory=dict)

    def read(self, address: int, size: int) -> bytes:
        """Bytes of memory."""
        return bytes(self._byte(at) for at in range(address, address + size))

    def _byte(self, address: int) -> int:
        if address in self.memory:
            return self.memory[address]
        if address & -8 in self.store:
            return self.store[address & -8] >> 8 * (address & 7) & 255
        found = self.module.image.read_vaddr(address - self.module.bias, 1)
        if found:
            return found[0]
        if any(start <= address < end for start, end in _STACKS):
            return 0
        raise GuestFaultError(address, "read")

    def write(self, address: int, value: bytes) -> None:
        """Store bytes."""
        for at, byte in enumerate(value, address):
            self.memory[at] = byte

    def hide(self, value: int) -> int:
        """A word that a program with hooked returns would have in place of this one."""
        return TRAMPOLINE if self.hooked and value in self.pending.values() else value

    def resolve(self, address: int, key: int, met: int) -> int | None:
        """The real return address of an activation."""
        return self.pending.get(key) if address == TRAMPOLINE else None

    def change(self, registers: dict[str, str], call: bool) -> None:
        """Registers after a step; a call leaves the caller's locals in the backing store."""
        old = dict(self.registers)
        self.link = int(registers.get("b0", f"{self.link:x}"), 16)
        for name, value in registers.items():
            self.registers[name] = self.hide(int(value.lstrip("N"), 16))
        if call and self.hooked:
            key = RETURNS.keys.entered((old["r12"], self.registers["bsp"]))
            self.pending[key] = self.link
            self.registers["b0"] = TRAMPOLINE
        if call:
            for number in range(locals_size(self.registers["pfs"])):
                self.store[skip_up(old["bsp"], number)] = old[f"r{32 + number}"]


def replay(
    name: str, hooked: bool = False
) -> Iterator[tuple[Replay, Callable[[], Walk], list[Any]]]:
    """At each recorded backtrace: the guest, a function that unwinds it, the frames."""
    with gzip.open(DATA / "replay" / f"{name}.jsonl.gz", "rt") as lines:
        head = json.loads(next(lines))
        image = ElfImage.open(DATA / "guests" / head["guest"])
        module = Module(name, image, int(head["ip"], 16) - image.entry)
        zero = dict.fromkeys(
            (*(f"r{n}" for n in range(128)), *(f"b{n}" for n in range(8)), "pfs", "lc", "unat"), 0
        )
        guest = Replay(module, zero)
        guest.change(head["state"], False)
        guest.write(int(head["stack_at"], 16), bytes.fromhex(head["stack"]))
        guest.hooked = hooked
        view = UnwindGuest(
            IA64,
            lambda address: module if module.contains(address) else None,
            guest.read,
            lambda address, size: image.read_vaddr(address - module.bias, size),
            lambda address: bool(image.read_vaddr(address - module.bias, 1)),
            guest.resolve,
        )
        unwinder = Unwinder(view)
        for line in lines:
            bundle, slot, changed, call, writes, *frames = json.loads(line)
            if frames:
                guest.registers["ip"] = int(bundle, 16) + slot
                yield guest, lambda: unwinder.walk(guest.registers), frames[0]
            guest.change(changed, bool(call))
            for address, size, *words in writes:
                data = b"".join(guest.hide(int(w, 16)).to_bytes(8, "little") for w in words)
                guest.write(int(address, 16), data[:size])
