"""Frames of functions that have ended in a jump, which the stack has no trace of.

A compiler notes each call, those by a jump among them (DWARF 5, 3.4). Where one way alone leads
from the function that was called to the one that runs, its jumps are frames as in gdb
(gdb/dwarf2/loc.c, call_site_find_chain_1; gdb/dwarf2/frame-tailcall.c).
"""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from engine.guest.modules import Module
from engine.image.callsites import CallSite
from engine.session.guest.session import Session
from engine.session.inspect.program_files import Files
from engine.session.protocol.frames import GuestFrame

TAIL: Final = "tail call"
"""The source of such a frame: see `GuestFrame.source`."""
_MOST: Final = 1000
"""Jumps that are looked at for one frame: functions that jump to each other have ways without
number."""
_DEEP: Final = 100
"""Frames that are found for one call."""
_CALL_SIZES: Final = (5, 4, 6)
"""Bytes of direct calls, of all architectures."""


class _UnknownError(Exception):
    """A jump leads somewhere that nobody tells of."""


class TailCalls:
    """Finds such frames in a guest."""

    def __init__(self, session: Session, files: Files) -> None:
        """Find those of a guest by its debug information."""
        self._session, self._files = session, files
        self._known: dict[tuple[int, int], tuple[int, ...]] = {}

    def between(self, inner: GuestFrame, outer: GuestFrame) -> list[GuestFrame]:
        """The frames between one and that of its caller, the innermost first."""
        modules = self._session.seen.modules
        here, there = modules.at(inner.pc), modules.at(outer.pc)
        if here is None or there is None or there is not here:
            return []
        symbol = here.symbol_at(inner.pc)
        if symbol is None:
            return []
        start, behind = symbol.address, outer.pc - there.bias
        if self._calls(outer.pc, start + here.bias):
            return []
        key = start, outer.pc
        if key not in self._known:
            try:
                self._known[key] = self._chain(here, behind, start)
            except _UnknownError:
                self._known[key] = ()
        role = self._session.arch.roles.pc
        # At the function's first instruction all registers are as the jump has left them.
        held = inner.registers if inner.pc == start + here.bias else outer.registers
        found: list[GuestFrame] = []
        for link in reversed(self._known[key]):
            pc = link + here.bias
            around = here.symbol_at(pc - 1)
            line = here.line_at(pc - 1)
            inlined = next(iter(here.inlined_at(pc - 1)), None)
            name = around.demangled if around is not None else ""
            found.append(
                replace(
                    outer,
                    pc=pc,
                    function=name if inlined is None else inlined.name,
                    offset=link - around.address if around is not None else 0,
                    file=line[0] if line is not None else "",
                    line=line[1] if line is not None else 0,
                    cfa=inner.cfa,
                    source=TAIL,
                    inlined=False,
                    registers={**(outer.registers if found else held), role: pc},
                )
            )
        return found

    def _calls(self, behind: int, start: int) -> bool:
        """True if the call in front of an address leads to a function, as most do."""
        session = self._session
        for size in _CALL_SIZES:
            code = session.code_at(behind - size, session.seen)[:size]
            if len(code) == size and session.arch.probes.target(code, behind - size) == start:
                return True
        return False

    def _chain(self, module: Module, behind: int, start: int) -> tuple[int, ...]:
        """The addresses behind the jumps from a call to a function, the first one first."""
        call = self._files.variables(module).call_at(behind)
        if call is None or call.tail:
            return ()
        left = iter(range(_MOST))
        chains = list(self._ways(module, self._target(module, call), start, (), left))
        if not chains:
            return ()
        common = chains[0]
        callers = callees = len(common)
        for chain in chains[1:]:
            shortest = min(len(chain), len(common))
            same = (n for n in range(shortest) if chain[n] != common[n])
            callers = min(callers, next(same, shortest))
            ends = (n for n in range(shortest) if chain[-1 - n] != common[-1 - n])
            callees = min(callees, next(ends, shortest))
        if callers + callees >= len(common):
            return common
        return (*common[:callers], *common[len(common) - callees :])

    def _ways(
        self,
        module: Module,
        target: int,
        start: int,
        before: tuple[int, ...],
        left: Iterator[int],
    ) -> Iterator[tuple[int, ...]]:
        """Find the ways by jumps from a function to another one."""
        if target == start:
            yield before
            return
        for link, site in self._jumps(module, target):
            if link in before:
                continue
            if len(before) > _DEEP or next(left, None) is None:
                raise _UnknownError
            onto = self._target(module, site)
            yield from self._ways(module, onto, start, (*before, link), left)

    def _jumps(self, module: Module, function: int) -> list[tuple[int, CallSite]]:
        symbol = module.symbols.at(function)
        if symbol is None or not symbol.size:
            return []
        sites = self._files.variables(module).calls_in(function, function + symbol.size)
        return [(link, site) for link, site in sites if site.tail]

    def _target(self, module: Module, site: CallSite) -> int:
        """The link address of the function that a call leads to."""
        if not site.callee:
            raise _UnknownError
        found = {
            symbol.address
            for name in site.callee
            for symbol in module.symbols.find_all(name)
            if symbol.is_function
        }
        if len(found) > 1:  # static functions of several files have one name
            info = self._files.variables(module).info
            near = {
                address
                for address in found
                if info is not None and site.unit in info.containing(address)
            }
            found = near or found
        if len(found) != 1:
            raise _UnknownError
        return found.pop()
