"""Surroundings of an expression that are a few bytes of memory, a register and some variables."""

from collections.abc import Mapping
from types import MappingProxyType

from engine.errors import CommandError, GuestFaultError
from engine.language import value_types as ct
from engine.language.convenience_functions import FUNCTIONS, ConvenienceFunction
from engine.language.languages import C
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, Order, Place, RegisterPlace, TypedValue


class MemoryScope:
    """Names for places in a stretch of memory."""

    order: Order = "little"
    pointer = 8
    language = C
    go = None
    is_cpp = False
    printers = None
    pages: Mapping[int, bytes] = MappingProxyType({})

    def __init__(self, memory: bytes = bytes(range(64)), start: int = 0) -> None:
        self.memory = bytearray(memory)
        self.start = start
        self.registers = {"r1": 0x1122334455667788}
        self.own: dict[str, TypedValue] = {}
        self.values: list[TypedValue] = []

    def variable(self, name: str, scope: str = "") -> TypedValue | None:
        known: Mapping[str, tuple[CType, int]] = {
            "number": (ct.INT, 4),
            "row": (ct.array_of(ct.INT, 4), 16),
            "words": (ct.array_of(ct.CHAR, 8), 32),
            "place": (ct.pointer_to(ct.INT), 40),
        }
        if name not in known or scope:
            return None
        kind, address = known[name]
        size = kind.size or 0
        return TypedValue(kind, lambda: self.read(address, size), MemoryPlace(address))

    def type(self, words: tuple[str, ...]) -> CType | None:
        return ct.LONG if words == ("word_t",) else None

    def at_entry(self, name: str) -> TypedValue:
        raise CommandError(f'No symbol "{name}" in current context.')

    def prefers_type(self, name: str) -> bool:
        return False

    def type_of_vtable(self, address: int) -> CType | None:
        return None

    def symbol(self, address: int) -> str:
        return ""

    def expanded(self, text: str) -> str:
        return text

    def afterwards(self, pages: Mapping[int, bytes]) -> "MemoryScope":
        return self

    def local(self, name: str) -> TypedValue | None:
        return None

    def functions(self, name: str, *, nearest: bool = True) -> list[TypedValue]:
        return []

    def is_namespace(self, name: str) -> bool:
        return False

    def linked(self, name: str) -> int | None:
        return None

    def register(self, name: str) -> TypedValue | None:
        if name not in self.registers:
            return None
        raw = self.registers[name].to_bytes(8, "little")
        return TypedValue(ct.LONG, lambda: raw, RegisterPlace(name))

    def convenience(self, name: str) -> TypedValue | None:
        return self.own.get(name)

    def function(self, name: str) -> ConvenienceFunction | None:
        return FUNCTIONS.get(name)

    def set_convenience(self, name: str, value: TypedValue) -> None:
        self.own[name] = value

    def history(self, number: int) -> TypedValue:
        return self.values[number - 1]

    def read(self, address: int, size: int) -> bytes:
        at = address - self.start
        if at < 0 or at + size > len(self.memory):
            raise GuestFaultError(address, "read")
        return bytes(self.memory[at : at + size])

    def store(self, place: Place, data: bytes) -> None:
        if isinstance(place, MemoryPlace):
            at = place.address - self.start
            self.memory[at : at + len(data)] = data
        elif isinstance(place, RegisterPlace):
            self.registers[place.name] = int.from_bytes(data, "little")

    def construct(self, address: int, kind: CType, arguments: list[TypedValue]) -> TypedValue:
        raise CommandError(f"constructed at {address:#x}")

    def call(self, address: int, result: CType, arguments: list[TypedValue]) -> TypedValue:
        raise CommandError(f"called at {address:#x}")
