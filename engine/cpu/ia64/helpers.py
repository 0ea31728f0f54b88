"""Functions that generated code calls for the less frequent forms of access."""

from collections.abc import Callable
from typing import Any, Final

from engine.arch.ia64 import floatformats
from engine.arch.ia64.floatformats import Float
from engine.cpu.ia64 import integers
from engine.cpu.ia64.alat import Alat
from engine.cpu.ia64.floatops import fclass, from_integer, fselect, xma
from engine.cpu.ia64.floatpairs import MERGE, FloatPairs
from engine.cpu.ia64.memory import OFFSET, SHIFT, Ia64Memory
from engine.cpu.ia64.state import CCV, CSD, MASK, NATVAL, State
from engine.cpu.ia64.stops import (
    BreakInterruption,
    FloatTrap,
    Illegal,
    NarrowFrame,
    NatAppears,
    NatConsumption,
    OutOfMemory,
    PageFault,
    Privileged,
    Unaligned,
)
from engine.cpu.ram import PAGE, READ, WRITE

_CPUID: Final = (
    int.from_bytes(b"GenuineI", "little"),
    int.from_bytes(b"ntel", "little"),
    0,
    0x1F010504,  # 5 registers, model 1 of family 0x1f: Itanium 2
    1,  # brl is implemented
)


class Helpers:
    """Accesses that are more than one aligned word of the integer unit."""

    def __init__(
        self, state: State, memory: Ia64Memory, alat: Alat, counter: Callable[[], int]
    ) -> None:
        self.state, self.memory, self.alat = state, memory, alat
        self.counter = counter
        self.floats = FloatPairs(state.a)

    # -- speculation -----------------------------------------------------------------------

    def may_read(self, address: int, size: int) -> bool:
        """True if a speculative load is carried out rather than deferred."""
        aligned = not address & size - 1 or self.memory.emulate_unaligned
        return (
            aligned
            and self.memory.allowed(address, False)
            and (self.memory.allowed(address + size - 1, False))
        )

    def speculate(self, address: int, size: int) -> int | None:
        """A speculative load; None where it is deferred."""
        if not self.may_read(address, size):
            return None
        return self.memory.load(address, size)

    # -- 10 and 16 bytes ---------------------------------------------------------------------

    def _aligned(self, address: int, size: int, access: str) -> None:
        if address & size - 1:
            raise Unaligned(address, access)

    def load_pair(self, address: int, half: int) -> tuple[int, int]:
        """Two words."""
        if not self.memory.emulate_unaligned:
            self._aligned(address, 2 * half, "read")
        return self.memory.load(address, half), self.memory.load(address + half, half)

    def load16(self, address: int) -> tuple[int, int]:
        """ld16: low word, high word."""
        self._aligned(address, 16, "read")
        return self.memory.load(address, 8), self.memory.load(address + 8, 8)

    def store16(self, address: int, low: int, high: int) -> None:
        """`st16`."""
        self._aligned(address, 16, "write")
        self.memory.store(address, 8, low)
        self.memory.store(address + 8, 8, high)

    def load_extended(self, address: int) -> Float:
        """`ldfe`."""
        if not self.memory.emulate_unaligned:
            self._aligned(address, 16, "read")
        return floatformats.from_extended(
            self.memory.load(address, 8), self.memory.load(address + 8, 2)
        )

    def store_extended(self, address: int, value: Float) -> None:
        """`stfe`."""
        if not self.memory.emulate_unaligned:
            self._aligned(address, 16, "write")
        low, high = floatformats.to_extended(value)
        self._writable(address + 8, 2)
        self.memory.store(address, 8, low)
        self.memory.store(address + 8, 2, high)

    def load_filled(self, address: int) -> Float:
        """`ldf`.fill."""
        return floatformats.filled(*self.load16(address))

    def store_spilled(self, address: int, value: Float) -> None:
        """`stf`.spill."""
        self.store16(address, *floatformats.spilled(value))

    def _writable(self, address: int, size: int) -> None:
        try:
            self.memory.writable[size][address >> SHIFT]
        except PageFault:
            raise PageFault(address, "write") from None

    # -- semaphores ----------------------------------------------------------------------------

    def _semaphore(self, address: int, size: int) -> int:
        """The old value; the page must allow reading and writing."""
        self._aligned(address, size, "write")
        self.memory.physical(address >> SHIFT, READ, "read")
        self._writable(address, size)
        return self.memory.load(address, size)

    def _put(self, address: int, size: int, value: int) -> None:
        self.memory.store(address, size, value & (1 << 8 * size) - 1)
        if self.alat:
            self.alat.stored(address, size)

    def exchange(self, address: int, size: int, value: int) -> int:
        """`xchg`."""
        old = self._semaphore(address, size)
        self._put(address, size, value)
        return old

    def compare_exchange(self, address: int, size: int, value: int) -> int:
        """`cmpxchg`."""
        old = self._semaphore(address, size)
        if old == self.state.a[CCV]:
            self._put(address, size, value)
        return old

    def compare_exchange_16(self, address: int, value: int) -> int:
        """cmp8xchg16: compares 8 bytes, writes the 16 around them."""
        old = self._semaphore(address, 8)
        if old == self.state.a[CCV]:
            self._put(address & ~15, 8, value)
            self._put(address & ~15 | 8, 8, self.state.a[CSD])
        return old

    def fetch_add(self, address: int, size: int, value: int) -> int:
        """`fetchadd`."""
        old = self._semaphore(address, size)
        self._put(address, size, old + value)
        return old

    # -- control registers -----------------------------------------------------------------------

    def stack_control(self, value: int) -> int:
        """The new value of ar.rsc: the privilege level cannot be raised."""
        if value & ~0x3FFF001F:
            raise Illegal("reserved bits of ar.rsc")
        return value | 0xC

    def float_status(self, value: int) -> int:
        """The new value of ar.fpsr."""
        bad = value >> 58 or value >> 12 & 1
        if bad or any(value >> (8 + 13 * sf) & 3 == 1 for sf in range(4)):
            raise Illegal("reserved values in ar.fpsr")
        return value

    def cpuid(self, index: int) -> int:
        """A processor identification register."""
        if index & 0xFF >= len(_CPUID):
            raise Illegal("a reserved cpuid register")
        return _CPUID[index & 0xFF]

    def trap(self) -> None:
        """An unmasked exception behind an operation that has been carried out."""
        flags = self.floats.pending.pop()
        self.floats.pending.clear()
        raise FloatTrap(flags)

    def namespace(self, clock: list[int]) -> dict[str, Any]:
        """Names that generated code uses; `clock` holds the expected address."""
        state, memory, numbers = self.state, self.memory, self.floats
        return {
            "g": state.g,
            "n": state.n,
            "p": state.p,
            "f": state.f,
            "b": state.b,
            "A": state.a,
            "F": state.frame,
            "U": state.um,
            "S": state,
            "L": self.alat,
            "C": clock,
            "X": numbers.pending,
            "NATVAL": NATVAL,
            "PAGE": PAGE,
            "MASK": MASK,
            "OFFSET": OFFSET,
            **{f"R{size}": views for size, views in memory.readable.items()},
            **{f"W{size}": views for size, views in memory.writable.items()},
            "load": memory.load,
            "store": memory.store,
            "store_unaligned": memory.store_unaligned,
            "allowed": memory.allowed,
            "counter": self.counter,
            **{
                name: getattr(self, name)
                for name in (
                    *("may_read", "speculate", "load_pair", "load16", "store16"),
                    *("load_extended", "store_extended", "load_filled", "store_spilled"),
                    *("exchange", "compare_exchange", "compare_exchange_16", "fetch_add"),
                    *("stack_control", "float_status", "cpuid", "trap"),
                )
            },
            **{
                name: getattr(numbers, name)
                for name in (
                    *("fma", "fcmp", "frcpa", "frsqrta", "to_integer", "fsetc", "fchkf"),
                    *("parallel_fma", "parallel_frcpa", "parallel_frsqrta"),
                    "parallel_to_integer",
                )
            },
            "TWO": numbers.with_status(),
            "MERGE": MERGE,
            "xma": xma,
            "fselect": fselect,
            "fclass": fclass,
            "from_integer": from_integer,
            "integer": floatformats.integer,
            "from_single": floatformats.from_single,
            "from_double": floatformats.from_double,
            "to_single": floatformats.to_single,
            "to_double": floatformats.to_double,
            "PARALLEL": integers.PARALLEL,
            **{
                name: getattr(integers, name)
                for name in (
                    *("shift_add", "multiply_shift", "mux1", "mux2", "parallel_shift"),
                    "count_zero",
                )
            },
            "Illegal": Illegal,
            "Privileged": Privileged,
            "NatConsumption": NatConsumption,
            "NatAppears": NatAppears,
            "NarrowFrame": NarrowFrame,
            "BreakInterruption": BreakInterruption,
            "OutOfMemory": OutOfMemory,
            "WRITE": WRITE,
        }
