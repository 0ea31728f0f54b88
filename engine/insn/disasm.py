"""Bytes to instructions: by Capstone, or by the architecture's own decoder."""

from functools import lru_cache
from typing import Any

from engine.arch.base import Arch, Insn
from engine.errors import EngineError


@lru_cache(maxsize=8)
def _capstone(name: str) -> Any:
    import capstone  # 60 ms that a run without screening does not pay

    modes = {
        "X86": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "ARM64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN),
    }
    if name not in modes:
        raise EngineError(f"no disassembler for {name}")
    return capstone.Cs(*modes[name])


class Disassembler:
    """Decodes one architecture's instructions."""

    def __init__(self, arch: Arch) -> None:
        self._arch = arch

    def decode(self, address: int, raw: bytes) -> tuple[Insn, ...]:
        """All instructions from the start of the bytes up to the first that does not decode.

        Where bundles are decoded as a whole, the bytes begin at the one around the address.
        """
        if self._arch.decode is not None:
            return self._arch.decode(address, raw)
        engine = _capstone(self._arch.engines.capstone)
        return tuple(
            Insn(at, raw[at - address : at - address + size], mnemonic, operands)
            for at, size, mnemonic, operands in engine.disasm_lite(raw, address)
        )
