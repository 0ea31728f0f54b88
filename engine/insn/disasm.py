"""Bytes to instructions: by Capstone, or by the architecture's own decoder."""

from collections.abc import Callable
from functools import cached_property, lru_cache, reduce
from operator import or_

from msgspec import structs

from engine.arch.base import Arch
from engine.arch.engines import CapstoneNames
from engine.arch.machine import Insn
from engine.errors import EngineError
from engine.insn.capstone_library import Capstone, CapstoneError, number


@lru_cache(maxsize=8)
def _capstone(names: CapstoneNames) -> Capstone:
    """The engine of these names; a combination that this Capstone lacks is an EngineError."""
    try:
        mode = reduce(or_, map(number, names.modes), 0)
        options = [(number(option), number(value)) for option, value in names.options]
        return Capstone(number(names.arch), mode, options)
    except CapstoneError as error:
        raise EngineError(f"no disassembler for {names.arch}: {error}") from error


@lru_cache(maxsize=8)
def _detailed(names: CapstoneNames) -> Capstone:
    """The same, which tells of registers too."""
    detail = ("CS_OPT_DETAIL", "CS_OPT_ON")
    return _capstone(structs.replace(names, options=(*names.options, detail)))


class Disassembler:
    """Decodes one architecture's instructions."""

    def __init__(self, arch: Arch) -> None:
        self._arch = arch
        self._own = arch.decode
        self._names = arch.engines.capstone
        self._respell: Callable[[Insn], Insn] | None = (
            None if self._names is None else self._names.respell
        )

    @cached_property
    def _told(self) -> "Callable[[Insn], tuple[frozenset[str], frozenset[str]]] | None":
        """Tells of the registers of an instruction in Capstone's stead."""
        flow = self._arch.data_flow
        return None if flow is None else flow().accessed

    def decode(self, address: int, raw: bytes) -> tuple[Insn, ...]:
        """All instructions from the start of the bytes up to the first that does not decode.

        Where bundles are decoded as a whole, the bytes begin at the one around the address.

        Raises:
            EngineError: this Capstone does not have the architecture.
        """
        if self._own is not None:
            return self._own(address, raw)
        assert self._names is not None, "a record has the one or the other"
        engine = _capstone(self._names)
        found = tuple(
            Insn(at, raw[at - address : at - address + size], mnemonic, operands)
            for at, size, mnemonic, operands in engine.disassemble(raw, address)
        )
        return found if self._respell is None else tuple(map(self._respell, found))

    def accessed(self, address: int, raw: bytes) -> tuple[frozenset[str], frozenset[str]] | None:
        """The registers that an instruction (reads, writes), by the decoder's names: eax, w0.

        None where nobody knows: nothing decodes there, or neither Capstone nor the architecture
        tells of its registers.
        """
        if self._told is not None:
            insn = next(iter(self.decode(address, raw)), None)
            return None if insn is None or insn.unknown else self._told(insn)
        if self._own is not None or self._names is None:
            return None
        try:
            reads, writes = _detailed(self._names).accessed(raw, address)
        except CapstoneError:
            return None
        beside = self._names.beside
        return reads, writes if beside is None else writes | beside(raw, writes)
