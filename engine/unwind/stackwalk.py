"""Instructions carried out on unknown values: where registers are, told by where they were.

A value is (what it counts from, distance). The same steps serve both directions of the
prologue analysis: from a function's entry to a place in it, and from there to its return.
"""

from collections.abc import Hashable
from typing import Final, TypeVar

from msgspec import Struct, field

from engine.arch.frames import Add, Constant, Copy, Effect, Load, Store

Value = tuple[Hashable, int]
_Key = TypeVar("_Key", bound=Hashable)

CFA: Final = "cfa"
"""The base of values that are a distance from the CFA."""
NUMBER: Final = "number"
"""The base of plain numbers."""


class StackState(Struct):
    """The known values of registers and words of the stack.

    Attributes:
        registers: by name.
        memory: by the value of the address.
        reads: unknown words become values of their own, named after their address.
    """

    registers: dict[str, Value]
    memory: dict[Value, Value] = field(default_factory=dict)
    reads: bool = False

    def copy(self) -> "StackState":
        """An independent copy."""
        return StackState(dict(self.registers), dict(self.memory), self.reads)

    def merge(self, other: "StackState") -> bool:
        """Keep what both agree on; whether anything was lost."""
        before = len(self.registers) + len(self.memory)
        self.registers = _common(self.registers, other.registers)
        self.memory = _common(self.memory, other.memory)
        return len(self.registers) + len(self.memory) != before

    def apply(self, effects: tuple[Effect, ...]) -> None:
        """Carry out what an instruction does."""
        for effect in effects:
            if isinstance(effect, Store):
                self._store(effect)
            else:
                value = self._value(effect)
                if value is None:
                    self.registers.pop(effect.target, None)
                else:
                    self.registers[effect.target] = value

    def call(self, kept: tuple[str, ...]) -> None:
        """A call: only `kept` registers still hold what they held."""
        self.registers = {name: self.registers[name] for name in kept if name in self.registers}

    def _value(self, effect: Copy | Constant | Add | Load) -> Value | None:
        registers = self.registers
        if isinstance(effect, Constant):
            return NUMBER, effect.value
        if isinstance(effect, Copy):
            source = registers.get(effect.source)
            return None if source is None else (source[0], source[1] + effect.offset)
        if isinstance(effect, Add):
            left, right = registers.get(effect.left), registers.get(effect.right)
            if left is None or right is None or right[0] != NUMBER:
                return None
            return left[0], left[1] + effect.sign * right[1]
        base = registers.get(effect.base)
        if base is None:
            return None
        address = base[0], base[1] + effect.offset
        found = self.memory.get(address)
        if found is None and self.reads:
            return ("word", address), 0
        return found

    def _store(self, effect: Store) -> None:
        base = self.registers.get(effect.base)
        if base is None:
            return
        address = base[0], base[1] + effect.offset
        value = self.registers.get(effect.source)
        if value is None:
            self.memory.pop(address, None)
            if self.reads:
                self.memory[address] = (("stored", address), 0)
        else:
            self.memory[address] = value


def _common(mine: dict[_Key, Value], theirs: dict[_Key, Value]) -> dict[_Key, Value]:
    return {key: value for key, value in mine.items() if theirs.get(key) == value}
