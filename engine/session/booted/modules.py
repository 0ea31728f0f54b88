"""Probes of modules that a booted kernel loads: they are placed before the module begins."""

from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from engine.arch.base import Arch
from engine.errors import GuestFaultError
from engine.insn.disasm import Disassembler
from engine.machine.addresses import KernelAddresses
from engine.machine.kernelmodules import LoadedModule, ModuleFunction
from engine.session.booted.probes import BootProbe, WaitingProbe
from engine.session.protocol.report import Report
from engine.session.tracing.output import some_lines

_PADS: Final = (bytes.fromhex("f30f1efa"), bytes.fromhex("660f1f00"))
"""A landing pad, and what the kernel makes of one that nobody needs."""
_NO_CALL: Final = bytes.fromhex("0f1f440000")
_CALL: Final = 0xE8
_LONGEST: Final = 1 << 16
"""Bytes of a function in which a place behind its entry is looked for."""
_PLACED_MOST: Final = 1 << 12
"""Probes inside of functions that are placed in all: a kernel may load a module again and again,
and the emulator keeps a hook of each."""
_REFUSED_MOST: Final = 1 << 10
"""Reasons that are kept."""


class BootModules:
    """The waiting probes of one trace."""

    def __init__(
        self,
        arch: Arch,
        addresses: KernelAddresses,
        waiting: Sequence[WaitingProbe],
        place: Callable[[WaitingProbe, BootProbe], None],
        take_out: Callable[[LoadedModule], None],
    ) -> None:
        """None is placed yet.

        Args:
            arch: of the kernel.
            addresses: the memory as the kernel sees it.
            waiting: the probes, to which more may be added.
            place: places one.
            take_out: takes those of a module out, whose memory goes.
        """
        self._disassembler = Disassembler(arch)
        self._addresses, self._waiting = addresses, waiting
        self._place, self.going = place, take_out
        self._placed: set[int] = set()
        self._refused: dict[str, None] = {}
        self._left = _PLACED_MOST

    def coming(self, module: LoadedModule, only: Collection[WaitingProbe] = ()) -> None:
        """Place the probes of a module that is about to begin.

        Args:
            module: the module.
            only: of the probes; none for all.
        """
        for number, waiting in enumerate(self._waiting):
            if only and waiting not in only:
                continue
            if waiting.module.replace("-", "_") != module.name.replace("-", "_"):
                continue
            found = list(self._matching(module, waiting))
            if not found:
                self._refuse(f"{waiting.told}: the module has no such function")
            for function in found:
                probe = self._probe(waiting, function)
                if isinstance(probe, str):
                    self._refuse(f"{waiting.told}: {function.name}: {probe}")
                elif probe.begins is None and not self._left:
                    self._refuse(f"{waiting.told}: it was placed {_PLACED_MOST} times")
                else:
                    self._left -= probe.begins is None
                    self._placed.add(number)
                    self._place(waiting, probe)

    def remarks(self) -> Iterator[Report]:
        """The probes that were refused, and those whose modules were not loaded."""
        if self._refused:
            yield some_lines("no probe on these:", self._refused)
        told = [one.told for number, one in enumerate(self._waiting) if number not in self._placed]
        if told:
            yield some_lines("never placed, as their modules were not loaded:", told)

    def _refuse(self, why: str) -> None:
        if len(self._refused) < _REFUSED_MOST:
            self._refused[why] = None

    def _matching(self, module: LoadedModule, waiting: WaitingProbe) -> Iterator[ModuleFunction]:
        if waiting.event:
            found = module.find(waiting.function)
            return iter(() if found is None else (found,))
        return (one for one in module.functions if fnmatchcase(one.name, waiting.function))

    def _probe(self, waiting: WaitingProbe, function: ModuleFunction) -> BootProbe | str:
        """The probe on a function, or why there is none: the kernel's rules, on its live text."""
        start, size = function.start, min(function.end - function.start, _LONGEST)
        try:
            code = self._addresses.read(start, size)
        except GuestFaultError:
            return "its code is not in memory"
        pad = len(_PADS[0]) if code.startswith(_PADS) else 0
        if code[pad : pad + 1] != bytes((_CALL,)) and not code.startswith(_NO_CALL, pad):
            return "it is notrace: it has no site of ftrace"
        offset = waiting.offset or pad
        on_entry = offset == pad
        if waiting.is_return and not on_entry:
            return "no function's entry"
        if not on_entry:
            starts = {insn.address for insn in self._disassembler.decode(start, code)}
            if start + offset not in starts:
                return "not an instruction boundary"
            if pad <= offset < pad + len(_NO_CALL):
                return "inside of ftrace's site"
        return waiting.placed(function.name, start + offset, start if on_entry else None)
