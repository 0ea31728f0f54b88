"""Instructions of a guest around an address, as many as were asked for."""

from itertools import takewhile
from typing import Final

from engine.arch.machine import Insn
from engine.insn.decoder import Decoder
from engine.session.debugger.debugger import Debugger
from engine.session.serve.dap.bodies import DisassembledInstruction
from engine.session.serve.dap.sources import SourceNames
from engine.session.serve.programmemory import ProgramMemory

_TOP: Final = 1 << 64
_TRIES: Final = 16
"""Places in front of an address at which decoding may begin, where no symbol says."""
_FUNCTION_MOST: Final = 1 << 16
_PAGE: Final = 4096
_ENOUGH: Final = 1 << 19
"""Bytes decoded in search of instructions, after which each place in front stands for itself."""


class CodeListing:
    """Decodes what the program has in its memory."""

    def __init__(self, debugger: Debugger, memory: ProgramMemory, sources: SourceNames) -> None:
        """Decode the code of a debugger's guest."""
        self._debugger, self._memory, self._sources = debugger, memory, sources

    def around(self, address: int, first: int, count: int) -> list[DisassembledInstruction]:
        """Instructions: exactly `count`, what is none among them.

        Args:
            address: of an instruction.
            first: number of the first one, 0 for that at the address.
            count: of them.
        """
        before = self._before(address, -first) if first < 0 else []
        found: list[Insn | int] = list(before[:count])
        if len(found) < count:
            passed = max(first, 0)
            found += self._behind(address, passed + count - len(found))[passed:]
        return self._told(found)

    # -- decoding ---------------------------------------------------------------------------

    def _behind(self, address: int, count: int) -> list[Insn | int]:
        """From an address on; addresses stand for what cannot be read."""
        arch = self._debugger.control.session.arch
        found: list[Insn | int] = []
        at = address
        while len(found) < count:
            wanted = (count - len(found)) * arch.insn_max
            begin = at & -arch.code_unit
            data = self._memory.readable(begin, min(wanted, _FUNCTION_MOST) + arch.code_unit)
            insns = [one for one in Decoder(arch).all(begin, data) if one.address >= at]
            if len(data) > arch.insn_max and len(insns) > 1 and not arch.code_unit > 1:
                insns.pop()  # its end may be missing
            if not insns:
                size = arch.insn_align if data else _PAGE - at % _PAGE
                gap = range(at, at + size, arch.insn_align)[: count - len(found)]
                found += gap
                at = (at + len(gap) * arch.insn_align) % _TOP
                continue
            found += insns[: count - len(found)]
            at = insns[-1].address + insns[-1].size
        return found

    def _before(self, address: int, count: int) -> list[Insn | int]:
        """In front of an address: exactly so many, by address."""
        align = self._debugger.control.session.arch.insn_align
        pieces: list[list[Insn | int]] = []
        at, left, decoded = address, count, 0
        while left > 0:
            insns: list[Insn] = []
            searches = decoded < _ENOUGH
            if searches:
                insns, size = self._run_up(at)
                decoded += size
            if insns:
                piece: list[Insn | int] = [*insns]
                at = insns[0].address
            else:
                steps = 1 if searches else left
                if not self._memory.readable((at - 1) % _TOP, 1):
                    steps = min(left, (at - 1) % _PAGE // align + 1)
                piece = [(at - step * align) % _TOP for step in range(steps, 0, -1)]
                at = (at - steps * align) % _TOP
            pieces.append(piece)
            left -= len(piece)
        found = [one for piece in reversed(pieces) for one in piece]
        return found[len(found) - count :]

    def _run_up(self, end: int) -> tuple[list[Insn], int]:
        """Instructions up to an address: the last one ends there; none where nobody knows.

        And the bytes that were decoded for that.
        """
        arch = self._debugger.control.session.arch
        module = self._debugger.control.session.seen.modules.at(end - 1)
        symbol = module.symbol_at(end - 1) if module is not None else None
        starts: list[int] = []
        if symbol is not None and module is not None:
            start = symbol.address + module.bias
            if end - start <= _FUNCTION_MOST:
                starts.append(start)
        near = end - _TRIES * arch.insn_max
        starts += range(max(near, 0) & -arch.code_unit, end, arch.insn_align)
        decoded = 0
        for start in starts:
            data = self._memory.readable(start, end - start)
            decoded += end - start
            if len(data) < end - start:
                continue
            insns = [one for one in Decoder(arch).all(start, data) if one.address < end]
            if insns and insns[-1].address + insns[-1].size == end:
                # Behind what is no instruction, which is one by itself.
                tail = takewhile(lambda one: one.mnemonic != ".byte", reversed(insns))
                return [*tail][::-1] or insns[-1:], decoded
        return [], decoded

    # -- telling ----------------------------------------------------------------------------

    def _told(self, found: list[Insn | int]) -> list[DisassembledInstruction]:
        debugger = self._debugger
        target = debugger.control.session.arch.probes.target
        told: list[DisassembledInstruction] = []
        file, line = "", 0
        for one in found:
            if isinstance(one, int):
                told.append(
                    DisassembledInstruction(
                        address=f"{one:#x}", instruction="??", presentation_hint="invalid"
                    )
                )
                continue
            place = debugger.places.at(one.address)
            leads = target(one.raw, one.address)
            name = debugger.bare_scope.symbol(leads) if leads is not None else ""
            fresh = bool(place.line) and (place.file, place.line) != (file, line)
            told.append(
                DisassembledInstruction(
                    address=f"{one.address:#x}",
                    instruction=f"{one.text} <{name}>" if name else one.text,
                    instruction_bytes=one.raw.hex(" "),
                    symbol="" if "+" in place.symbol else place.symbol,
                    location=self._sources.source(place.file) if fresh else None,
                    line=place.line if fresh else 0,
                    presentation_hint="invalid" if one.mnemonic == ".byte" else "",
                )
            )
            if place.line:
                file, line = place.file, place.line
        return told
