"""Bytes to instructions without a rest: what is no instruction is told as bytes."""

from collections.abc import Iterator
from typing import Final

from engine.arch.base import Arch
from engine.arch.machine import Insn
from engine.insn.disasm import Disassembler

_CHUNK: Final = 1 << 14


class Decoder:
    """Decodes any bytes: what is no instruction becomes `.byte`."""

    def __init__(self, arch: Arch) -> None:
        self._disassembler = Disassembler(arch)
        self._align = arch.insn_align
        self._longest = arch.insn_max
        self._unit = arch.code_unit

    def all(self, address: int, data: bytes) -> Iterator[Insn]:
        """Every instruction of `data` from its first byte on."""
        at, end = 0, len(data)
        while at < end:
            chunk = data[at : at + _CHUNK]
            # An instruction that the chunk cuts off may decode to something shorter.
            safe = end if at + len(chunk) == end else at + len(chunk) - self._longest
            begun = at
            for insn in self._disassembler.decode(address + at, chunk):
                if at > safe and not (address + at) % self._unit:
                    break
                yield insn
                at += insn.size
            if at == begun or (at < safe and at < end):
                raw = data[at : at + self._align]
                yield Insn(address + at, raw, ".byte", ", ".join(f"{byte:#04x}" for byte in raw))
                at += len(raw)
