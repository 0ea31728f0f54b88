"""The code of a file as BTF knows it: functions' parameters at their entries, and names.

BTF has no addresses: a function is known by the names of the symbol around an address. Nor has
it places: a parameter's is the calling convention's, which holds at the function's first
instruction and nowhere else.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from msgspec import Struct

from engine.arch import for_elf
from engine.errors import ImageError
from engine.image.dies import Unit
from engine.image.elf import ElfImage
from engine.image.expressions import VariableLocation, nowhere
from engine.image.kernel.btf import NAMED_TYPES, BtfKind
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.btftypes import BtfFunction, BtfType, BtfTypes
from engine.image.names import NamedEntry
from engine.image.scopes import Scope
from engine.image.symbols import SymbolTable

_C: Final = 0x0C  # DW_LANG_C99
_INSIDE: Final = nowhere("is known at the function's entry only: BTF does not tell more")
_UNTOLD: Final = nowhere("has no place that BTF tells")
_TYPES: Final = (*NAMED_TYPES, BtfKind.FWD)


class BtfVariable(Struct, frozen=True):
    """A parameter of a function, or a variable of the file; a `Variable`."""

    name: str
    is_parameter: bool
    type: BtfType
    location: VariableLocation

    @property
    def depth(self) -> int:
        """BTF does not tell of inlined functions."""
        return 0

    @property
    def is_result(self) -> bool:
        """C's results have no names."""
        return False

    @property
    def is_unset(self) -> bool:
        """BTF has no variables but parameters."""
        return False

    @property
    def line(self) -> int:
        """BTF tells no lines of parameters."""
        return 0

    @property
    def is_inlined(self) -> bool:
        """BTF does not tell of inlined functions."""
        return False

    @property
    def type_text(self) -> str:
        """The variable's type as C spells it; "?" where that is damaged."""
        try:
            return self.type.text
        except ImageError:
            return "?"

    @property
    def is_declaration(self) -> bool:
        """False: BTF describes variables where they are defined."""
        return False

    @property
    def is_fixed(self) -> bool:
        """False: the place holds at one instruction only."""
        return False

    @property
    def linker_name(self) -> str:
        """The variable's name in the symbol table."""
        return self.name


class BtfScopes:
    """Functions of one file by address.

    Attributes:
        names: at the top of the file.
    """

    def __init__(self, image: ElfImage, types: BtfTypes) -> None:
        """Nothing is read yet.

        Args:
            image: the file.
            types: that it carries.
        """
        self._image = image
        self._types = types
        self.names = BtfNames(image, types)

    @classmethod
    def of(cls, image: ElfImage) -> "BtfScopes | None":
        """The scopes of a file; None where it has no BTF, or damaged one, which is noted."""
        try:
            types = btf_of(image)
        except ImageError as error:
            image.damage.note(str(error))
            return None
        return None if types is None else cls(image, types)

    def scope(self, pc: int, pad: int = 0) -> Scope | None:
        """The parameters of the function around a link address; None where none is described.

        Args:
            pc: link address.
            pad: bytes of a landing pad at the function's start.

        Raises:
            ImageError: the section is damaged.
        """
        for symbol in self._symbols.covering(pc):
            function = self._types.function(symbol.name) if symbol.is_function else None
            if function is not None:
                start = symbol.address
                entry = pc == start or (pad > 0 and pc == start + pad)
                return self._scope(function, start, entry)
        return None

    def _scope(self, function: BtfFunction, start: int, entry: bool) -> Scope:
        types = [parameter.type for parameter in function.parameters]
        places = self._places(types, function.returns) if entry else [_INSIDE] * len(types)
        return Scope(
            function=function.name,
            inlined=(),
            start=start,
            entry=entry,
            language=_C,
            parameters=tuple(
                BtfVariable(parameter.name, True, parameter.type, place)
                for parameter, place in zip(function.parameters, places, strict=True)
            ),
            locals=(),
            returns=function.returns,
            frame_register=None,
            unit=None,
        )

    def _places(self, types: list[BtfType], returns: BtfType) -> list[VariableLocation]:
        image = self._image
        arch = for_elf(image.machine, image.bits, image.byteorder)
        convention = arch.abi.calls if arch is not None else None
        if convention is None:
            return [_UNTOLD] * len(types)
        from engine.image.callconv import entry_locations  # few probes ask for arguments

        return entry_locations(convention, types, returns, _C)

    @cached_property
    def _symbols(self) -> SymbolTable:
        return self._image.once(SymbolTable)


class BtfNames:
    """The names that one file's BTF has; a `FileNames`."""

    def __init__(self, image: ElfImage, types: BtfTypes) -> None:
        """Nothing is read yet."""
        self._image = image
        self._types = types

    def type(self, name: str, word: str = "", near: Unit | None = None) -> BtfType | None:
        """A type; None where there is none of the name.

        Args:
            name: of it, without keywords.
            word: "struct", "union", "class", "enum"; "" for all that needs no keyword.
            near: of no account.

        Raises:
            ImageError: the section is damaged.
        """
        return self._types.named(name, word)

    def variable(self, name: str, near: Unit | None = None) -> BtfVariable | None:
        """A variable; kernels describe those that each processor has one of."""
        kind = self._types.variable(name)
        return None if kind is None else BtfVariable(name, False, kind, _UNTOLD)

    def function(self, name: str, near: Unit | None = None) -> tuple[BtfType, int] | None:
        """A function's type and its link address."""
        found = self._types.function(name)
        address = self._address(name) if found is not None else None
        return None if found is None or address is None else (found.type, address)

    def _address(self, name: str) -> int | None:
        found = self._symbols.find_all(name)
        return next((symbol.address for symbol in found if symbol.is_function), None)

    @property
    def _symbols(self) -> SymbolTable:
        return self._image.once(SymbolTable)

    def enumerator(self, name: str, near: Unit | None = None) -> tuple[BtfType, int] | None:
        """An enumeration and the value that it has under a name."""
        return self._types.enumerator(name)

    def listed(self, kind: str) -> Iterator[NamedEntry]:
        """List all of a kind: function, variable, type, enumerator; BTF tells no source lines.

        Raises:
            ImageError: the section is damaged.
        """
        match kind:
            case "function":
                found = {s.name: s.address for s in self._symbols.functions()}
                for function in self._types.functions():
                    address = found.get(function.name)
                    if address is not None:
                        yield _entry(function.name, function.type, address)
            case "variable":
                for name in self._types.btf.names(BtfKind.VAR):
                    variable = self._types.variable(name)
                    if variable is not None:
                        yield _entry(name, variable)
            case "enumerator":
                for name in self._types.btf.enumerators:
                    constant = self._types.enumerator(name)
                    if constant is not None:
                        yield _entry(name, constant[0])
            case _:
                for each in _TYPES:
                    for name, number in self._types.btf.names(each).items():
                        one = self._types.type(number)
                        alias = one.aliased if each is BtfKind.TYPEDEF else None
                        yield _entry(name, one, alias=alias)


def _entry(
    name: str, kind: BtfType, address: int | None = None, alias: BtfType | None = None
) -> NamedEntry:
    return NamedEntry(name, kind, address, 0, 0, 0, True, alias)
