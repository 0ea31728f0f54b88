"""Follows a value from pointer to pointer, to the string, instruction or number at the end.

What pwndbg calls a telescope (pwndbg/chain.py): a register or a word of the stack says little
by itself, and much when it stands beside the thing that it leads to.
"""

from typing import Final, Literal

from engine.arch.base import Arch
from engine.cpu.ram import EXECUTE, PAGE
from engine.errors import EngineError, GuestFaultError
from engine.escaping import escaped
from engine.guest.mapping import Mapping
from engine.guest.modules import Module
from engine.image.pointers import pointer_text
from engine.linux.space import AddressSpace
from engine.session.guest.session import Session
from engine.session.protocol.views import PointerHop, Region, StackWord

_DEEP: Final = 5
"""Pointers that are followed."""
_TEXT: Final = 48
"""Bytes of a string that are shown."""
_WORDS: Final = 512
"""Words that are read at once."""
_SURE: Final = 3
"""A string of so many letters alone in a word may be a number."""
_WHITE: Final = frozenset(b"\t\n\r\x1b")
_SHF_EXECINSTR: Final = 4
_FRONT: Final = 1 << 16
"""Bytes of a function that are decoded at most to find the call in front of an address."""


class Telescope:
    """Follows values in one address space."""

    def __init__(self, session: Session, space: AddressSpace) -> None:
        """Look at the memory of `space`, as the guest finds it without what is planted."""
        self._session = session
        self._space = space
        self._arch: Arch = session.arch
        self._order: Literal["little", "big"] = (
            "little" if session.arch.byteorder == "little" else "big"
        )
        self._size = session.arch.bits // 8
        self._lowest = session.arch.plan.mmap_min

    def words(self, address: int, count: int) -> tuple[StackWord, ...]:
        """Words of memory from an address on, up to the first that cannot be read."""
        found = []
        for at in range(address, address + min(count, _WORDS) * self._size, self._size):
            word = self._word(at)
            if word is None:
                break
            found.append(StackWord(at, word, self.follow(word, pushed=True)))
        return tuple(found)

    def follow(
        self, value: int, *, returns: bool = False, pushed: bool = False
    ) -> tuple[PointerHop, ...]:
        """The hops from a value on; none where it points nowhere.

        Args:
            value: what a register or a word of memory holds.
            returns: a call stands in front of it, if it is code.
            pushed: it may be the address of code behind a call.
        """
        hops: list[PointerHop] = []
        seen: set[int] = set()
        while (mapping := self._mapping(value)) is not None:
            module = self._space.modules.at(value)
            if hops:
                returns = pushed = False
            elif pushed and module is not None:
                returns = self._is_returned_to(value, module)
            place = self._place(value, mapping, module, returns)
            if value in seen or len(hops) == _DEEP:
                hops.append(PointerHop(value, "", "", "..."))
                break
            seen.add(value)
            region = self._region(value, mapping, module)
            word = None if region == "code" else self._word(value)
            text = ""
            if region == "code":
                text = self._instruction(value)
            elif word is not None and self._mapping(word) is None:
                text = self._string(value)
            hops.append(PointerHop(value, region, place, text))
            if region == "code" or word is None:
                break
            if self._mapping(word) is None:
                if not text or word < 1 << 8 * _SURE:  # a number, perhaps a letter or two
                    hops[-1] = PointerHop(value, region, place)
                    hops.append(PointerHop(word, "", "", text))
                break
            value = word
        return tuple(hops)

    def _mapping(self, value: int) -> Mapping | None:
        """The mapping that a pointer points into; None for what is no pointer."""
        if value < self._lowest:
            return None
        mapping = self._space.memory.find(value)
        return mapping if mapping is not None and (mapping.perms or mapping.name) else None

    def _place(self, value: int, mapping: Mapping, module: Module | None, returns: bool) -> str:
        """The name of an address: symbol, section, or mapping."""
        if module is None:
            return self._space.modules.engine_name(value) or mapping.name
        link = value - module.bias
        return pointer_text(module.symbols, module.name, link, returns=returns)

    def _region(self, value: int, mapping: Mapping, module: Module | None) -> Region:
        """The kind of memory around an address."""
        if mapping.perms & EXECUTE:
            if module is None:
                return "code"
            link = value - module.bias
            section = next((s for s in module.image.sections if s.name and s.holds(link)), None)
            if section is None or section.flags & _SHF_EXECINSTR:
                return "code"
            return "data"
        if mapping.name.startswith("[stack"):
            return "stack"
        return "heap" if mapping.name == "[heap]" else "data"

    def _read(self, address: int, size: int) -> bytes:
        """Some bytes, or as many as the page has where the next one cannot be read."""
        for most in (size, PAGE - address % PAGE):
            try:
                return self._space.memory.read(address, min(most, size))
            except GuestFaultError:
                continue
        return b""

    def _word(self, address: int) -> int | None:
        """A word of memory, None where it cannot be read."""
        try:
            data = self._space.memory.read(address, self._size)
        except GuestFaultError:
            return None
        return int.from_bytes(data, self._order)

    def _string(self, address: int) -> str:
        """The string at an address in quotes, "" where there is none."""
        data = self._read(address, _TEXT + 4)
        text, zero, _ = data.partition(b"\0")
        cut = "" if zero else "..."
        if not zero:
            text = text[:_TEXT]
            while text and text[-1] & 0xC0 == 0x80:  # the rest of a character
                text = text[:-1]
            if text and text[-1] >= 0xC0:
                text = text[:-1]
        if not text or (cut and len(data) < _TEXT):
            return ""
        try:
            letters = text.decode()
        except UnicodeDecodeError:
            return ""
        if not all(each.isprintable() or ord(each) in _WHITE for each in letters):
            return ""
        return f'"{escaped(text, quoted=True)}"{cut}'

    def _instruction(self, address: int) -> str:
        """The instruction at an address as the program has it, "" for none."""
        arch = self._arch
        base = address & -arch.code_unit
        data = self._read(base, arch.insn_max)
        data = self._space.hooks.original(base, data) if data else data
        try:
            found = self._session.disassembler.decode(base, data)
        except EngineError:
            return ""
        return next((insn.text for insn in found if insn.address == address), "")

    def _is_returned_to(self, value: int, module: Module) -> bool:
        """True if a call ends where a symbol begins, and belongs to the symbol in front."""
        link = value - module.bias
        symbol = module.symbols.at(link)
        before = module.symbols.at(link - 1)
        if symbol is not None and symbol.address != link:
            return False  # it is named after this one in any case
        if before is None or link - before.address > _FRONT:
            return False
        start = before.address + module.bias & -self._arch.code_unit
        try:
            data = self._space.memory.read(start, value - start)
            found = self._session.disassembler.decode(
                start, self._space.hooks.original(start, data)
            )
        except (GuestFaultError, EngineError):
            return False
        last = found[-1] if found else None
        return last is not None and last.address + last.size == value and self._arch.is_call(last)
