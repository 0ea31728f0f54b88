"""Returns through a trampoline that any unwinder understands, after Keith Owens (2005).

What Linux does leaves every backtrace that is not told of it at the trampoline. Here the return
address stays in the stack frame of the hooked call, and the trampoline, with unwind data of its
own, is a function that has called the hooked one: it gives everything back and returns. The
emulation of its breakpoint is that very code, so that handlers find the caller's frame as the
return leaves it. The architecture says how (`engine.arch.returns`).
"""

from typing import TYPE_CHECKING, Final

from engine.arch.returns import CarriedReturns
from engine.errors import CommandError, GuestFaultError
from engine.probes.frame_reader import FrameReader
from engine.probes.kretprobe import KretprobeInstance
from engine.probes.return_catcher import CatcherKind, ReturnCatcher, ReturnChanges
from engine.probes.target import ProbeTarget
from engine.probes.trampoline import TrampolineReturns

if TYPE_CHECKING:
    from engine.probes.return_probes import ReturnProbes


class AddressCarried:
    """Return addresses are replaced and kept in the program's stack; a `ReturnHijack`."""

    text = "gives the caller its frame back and goes on there"
    explained = True

    def __init__(self, target: ProbeTarget, way: CarriedReturns) -> None:
        """Take the architecture's way to do it."""
        self.code = way.trampoline
        self.changes = ReturnChanges(True, way.registers, way.size, way.scratch)
        self._way = way
        self._step = target.step

    def replace(
        self, frames: FrameReader, sp: int, address: int, made: list[KretprobeInstance]
    ) -> bool:
        """Move the stack pointer down, and put the return address where that makes room."""
        try:
            self._way.hook(self._step, address)
        except GuestFaultError:
            return False
        lowered = frames.frame()[0]
        for instance in made:
            instance.slot = lowered
        return True

    def give_back(self, address: int) -> None:
        """Do what the trampoline's own code does."""
        self._way.give_back(self._step, address)


def _build(host: "ReturnProbes", page: int) -> ReturnCatcher:
    ways = host.target.arch.returns
    if ways is None or ways.carried is None:
        raise CommandError(f"{host.target.arch.name} has no trampoline with unwind data")
    return TrampolineReturns(host, page, AddressCarried(host.target, ways.carried))


OWENS: Final = CatcherKind("owens", None, trampoline=True, build=_build)
