"""Follows values in a machine's memory: to a symbol, a string, an instruction, or a number.

What `inspect.telescope` does for programs, by the addresses that the kernel uses.
"""

from typing import Final

from engine.errors import EngineError
from engine.escaping import escaped
from engine.insn.disasm import Disassembler
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.protocol.views import PointerHop, Region, StackWord

_DEEP: Final = 5
"""Pointers that are followed."""
_TEXT: Final = 48
"""Bytes of a string that are shown."""
_WORDS: Final = 512
"""Words that are read at once."""
_WORD: Final = 8
_LOWEST: Final = 1 << 12
_PROGRAMS: Final = 1 << 47
"""End of the addresses of programs."""
_STACK: Final = 1 << 14
"""THREAD_SIZE of x86-64."""


class MachineTelescope:
    """Follows values at the moment at which a machine stands."""

    def __init__(self, boot: ControlledBoot) -> None:
        """Look at the memory of a boot."""
        self._boot, self._read = boot, boot.machine.read
        self._disassembler = Disassembler(boot.opened.arch)
        self._insn_max = boot.opened.arch.insn_max
        self._sp = boot.machine.register(boot.opened.arch.roles.sp)

    def words(self, address: int, count: int) -> tuple[StackWord, ...]:
        """Words of memory from an address on, up to the first that cannot be read."""
        data = self._read(address, min(count, _WORDS) * _WORD)
        found = []
        for at in range(0, len(data) - _WORD + 1, _WORD):
            value = int.from_bytes(data[at : at + _WORD], "little")
            found.append(StackWord(address + at, value, self.follow(value)))
        return tuple(found)

    def follow(self, value: int) -> tuple[PointerHop, ...]:
        """The hops from a value on; none where it points nowhere."""
        hops: list[PointerHop] = []
        seen: set[int] = set()
        while value >= _LOWEST and (data := self._read(value, _TEXT + 1)):
            place, region = self.named(value)
            if value in seen or len(hops) == _DEEP:
                hops.append(PointerHop(value, "", "", "..."))
                break
            seen.add(value)
            if region == "code":
                hops.append(PointerHop(value, region, place, self._instruction(value)))
                break
            text, word = _string(data), int.from_bytes(data[:_WORD], "little")
            leads = len(data) >= _WORD and word >= _LOWEST and bool(self._read(word, 1))
            hops.append(PointerHop(value, region, place, "" if leads else text))
            if len(data) < _WORD:
                break
            if not leads:
                if not text:
                    hops.append(PointerHop(word, "", "", ""))
                break
            value = word
        return tuple(hops)

    def named(self, address: int) -> tuple[str, Region]:
        """The name of an address and the kind of memory there."""
        opened, modules = self._boot.opened, self._boot.machine.modules
        bounds = opened.names.bounds(address)
        if bounds is not None:
            tables = opened.tables
            text = any(low <= address < high for low, high in (*tables.text, *tables.gone))
            return f"{bounds[0]}+{address - bounds[1]:#x}", "code" if text else "data"
        found = modules.at(address) if modules is not None else None
        if found is not None:
            name = f"{found[1].name}+{address - found[1].start:#x} [{found[0].name}]"
            return escaped(name), "code"
        if address & -_STACK == self._sp & -_STACK:
            return "[stack]", "stack"
        has_programs = self._boot.in_program or self._boot.machine.task_address()
        return ("[program]" if has_programs and address < _PROGRAMS else ""), "data"

    def _instruction(self, address: int) -> str:
        try:
            found = self._disassembler.decode(address, self._read(address, self._insn_max))
        except EngineError:
            return ""
        return found[0].text if found else ""


def _string(data: bytes) -> str:
    """The string that bytes begin with, in quotes; "" where there is none."""
    text, zero, _ = data.partition(b"\0")
    cut = "" if zero else "..."
    text = text[:_TEXT]
    if not text or not all(0x20 <= each < 0x7F or each in b"\t\n\r\x1b" for each in text):
        return ""
    return f'"{escaped(text.decode("ascii"), quoted=True)}"{cut}'
