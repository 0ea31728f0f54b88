"""Results of functions that have just returned, by the classes of the processor's ABI."""

from collections.abc import Callable, Sequence
from typing import Final, cast

from engine.arch.abivalues import Bank, RegisterPart, ResultPlaces
from engine.arch.base import Arch
from engine.errors import CommandError
from engine.image.datatypes import DataType, TypeKind
from engine.image.rust_passing import RUST, rust_parts
from engine.image.valueshapes import UnknownShapeError, shape_of
from engine.language.value_types import CType
from engine.language.values import MemoryPlace, Order, TypedValue

_WORD: Final = 8


class FunctionResults:
    """Finds results in registers, and in the memory that the caller gave room in."""

    def __init__(self, arch: Arch, read_memory: Callable[[int, int], bytes]) -> None:
        """Find nothing yet.

        Args:
            arch: the processor.
            read_memory: (address, size) to bytes.
        """
        self._arch = arch
        self._read_memory = read_memory
        self._order: Order = "little" if arch.byteorder == "little" else "big"

    def registers(self, kind: CType, language: int = 0) -> tuple[str, ...]:
        """The registers that hold a result, further halves of vectors included.

        Of a result in memory it is the one with its address; () where none is left with it.

        Raises:
            CommandError: it is not known where such a result is.
        """
        places, parts = self._placed(kind, language)
        if parts is None:
            return (places.exit,) if places.exit else ()
        return tuple(
            name for register, part in parts for name in self._whole(places, register, part)
        )

    def only_register(self, kind: CType) -> str:
        """The register that holds a result alone, as it is in memory.

        Raises:
            CommandError: there is none.
        """
        parts = self._placed(kind, 0)[1]
        if parts is None or len(parts) != 1 or (kind.size or 0) > _WORD:
            raise CommandError(f"A result of type {kind.text} has no register of its own.")
        return parts[0][0]

    def is_in_memory(self, kind: CType, language: int = 0) -> bool:
        """True for a result that the caller gives room for.

        Raises:
            CommandError: it is not known where such a result is.
        """
        return self._placed(kind, language)[1] is None

    def value(
        self,
        kind: CType,
        registers: Callable[[str], int],
        *,
        language: int = 0,
        address: int | None = None,
    ) -> TypedValue | None:
        """A result; None if it is in memory at an address that nobody has kept.

        Args:
            kind: the type that the function returns.
            registers: the values of registers at the return.
            language: DW_LANG_* of the function.
            address: of a result in memory, if it is known from the function's entry.

        Raises:
            CommandError: it is not known where such a result is.
        """
        places, parts = self._placed(kind, language)
        size, order = kind.size or 0, self._order
        if parts is None:
            if address is None:
                if not places.exit:
                    return None
                address = registers(places.exit)
            at = address
            return TypedValue(
                kind, lambda: self._read_memory(at, size), MemoryPlace(at), order=order
            )
        raw = bytearray(size)
        for register, part in parts:
            content = 0
            for number, name in enumerate(self._whole(places, register, part)):
                content |= registers(name) << number * self._bits(name)
            if part.bank is Bank.FLOAT:
                data = places.decode(content, part.size)
            else:  # the x87 has 80 bits for the 128 in memory
                data = (content & (1 << 8 * part.size) - 1).to_bytes(part.size, "little")
            raw[part.offset : part.offset + part.size] = data
        held = bytes(raw)
        return TypedValue(kind, lambda: held, order=order)

    def _placed(
        self, kind: CType, language: int
    ) -> tuple[ResultPlaces, list[tuple[str, RegisterPart]] | None]:
        """The parts of a result, each with its register; None for one in memory."""
        abi = self._arch.abi
        if abi.divide is None or abi.results is None:
            raise CommandError(f"results of functions are not known on {self._arch.name}")
        try:
            if language == RUST and kind.resolved.kind is TypeKind.RECORD:
                parts = rust_parts(cast("DataType", kind.resolved), is_result=True)
            else:
                parts = abi.divide(shape_of(kind))
        except UnknownShapeError as error:
            raise CommandError(str(error)) from error
        places = abi.results()
        if parts is None:
            return places, None
        left = {bank: list(names) for bank, names in places.banks.items()}
        found: list[tuple[str, RegisterPart]] = []
        for part in parts:
            names = left.get(part.bank)
            if not names:
                raise CommandError(f"{kind.text}: it needs more registers than there are")
            found.append((names.pop(0), part))
        for name, part in found:
            if part.bank is Bank.FLOAT and self._capacity(places, name) < part.size:
                raise CommandError(f"{kind.text}: it is in a register that is not here")
        return places, found

    def _bits(self, name: str) -> int:
        return next(item.bits for item in self._arch.registers if item.name == name)

    def _capacity(self, places: ResultPlaces, name: str) -> int:
        upper = places.upper.get(name)
        bits = self._bits(name) + (self._bits(upper) if upper else 0)
        return 16 if bits == 82 else bits // 8

    def _whole(self, places: ResultPlaces, name: str, part: RegisterPart) -> Sequence[str]:
        upper = places.upper.get(name)
        longer = part.bank is Bank.FLOAT and 8 * part.size > self._bits(name)
        return (name, upper) if upper and longer else (name,)
