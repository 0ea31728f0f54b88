"""The processors that architectures can run on: the one list to extend."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch
from engine.cpu.base import Cpu, Decode
from engine.cpu.ram import Ram


class Needs(Struct, frozen=True):
    """The parts of a processor.

    Attributes:
        arch: what it runs.
        ram: the guest's physical memory.
        decode: disassembles, for processors that look at instructions themselves.
        counter: the guest's cycle counter.
        entropy: seeded random bytes.
        seed: of the run, for secrets that the kernel gives to a process.
    """

    arch: Arch
    ram: Ram
    decode: Decode
    counter: Callable[[], int]
    entropy: Callable[[int], bytes]
    seed: int


def _unicorn(needs: Needs) -> Cpu:
    from engine.cpu.unicorn_cpu import UnicornCpu  # loads a library of 20 MB

    secret = (needs.seed * 0x9E3779B97F4A7C15 + 0x1234567).to_bytes(80, "little")
    return UnicornCpu(
        needs.arch,
        needs.ram,
        needs.decode,
        counter=needs.counter,
        entropy=needs.entropy,
        secret=secret,
    )


def _ia64(needs: Needs) -> Cpu:
    from engine.cpu.ia64.core import Ia64Cpu

    return Ia64Cpu(
        needs.ram,
        classify_break=needs.arch.classify_trap,
        counter=needs.counter,
        entropy=needs.entropy,
        emulate_unaligned=True,
    )


CORES: Final[Mapping[str, Callable[[Needs], Cpu]]] = {"unicorn": _unicorn, "ia64": _ia64}
"""The makers of processors, by the names that architectures have for them."""


def make(needs: Needs) -> Cpu:
    """The processor of an architecture."""
    return CORES[needs.arch.core](needs)
