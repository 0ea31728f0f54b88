"""Actions of breakpoints by address: one table for each address space."""

from collections.abc import Callable, Iterable
from typing import SupportsIndex

from engine.cpu.base import LEAVE, MakeAction, TrapAction
from engine.cpu.leads import LeadTable


class TrapActions:
    """The breakpoints of one address space; satisfies `engine.cpu.base.TrapTable`.

    Attributes:
        actions: by the address at which a processor reports the trap: the action, and the
            program's own address behind the instruction at hand.
        leads: those of them that need no action, for host code.
    """

    __slots__ = ("_back", "_keep", "_make", "_planted", "actions", "leads")

    def __init__(
        self,
        back: int = 0,
        planted: Callable[[], bool] = lambda: False,
        keep: Callable[[int], None] = lambda where: None,
    ) -> None:
        """Nothing is planted.

        Args:
            back: by how much a reported address is behind that of the breakpoint.
            planted: called when something is; tells whether host code can do what `keep` does.
            keep: (host address) saves `ArchJumps.scratch` there.
        """
        self._keep = keep
        self.actions: dict[int, tuple[TrapAction, SupportsIndex]] = {}
        self.leads = LeadTable()
        self._make: MakeAction = lambda address: None
        self._back = back
        self._planted = planted

    def plant(self, address: int, action: TrapAction, follow: SupportsIndex) -> None:
        """Let an action deal with a breakpoint; never from inside an action.

        Args:
            address: where it stands.
            action: returns the address to go on at, LEAVE to leave it to the engine.
            follow: the program's own address behind the instruction at hand: going on there
                takes no time; or what says it once the action is over.
        """
        pc = address + self._back
        self.actions[pc] = (action, follow)
        self.leads.drop(pc)
        self._planted()

    def ask(self, make: MakeAction) -> None:
        """Have somebody plant actions at the first hit; see `TrapTable.ask`."""
        self._make = make

    def expect(self, address: int) -> None:
        """Have the action of a breakpoint made when it is hit; never from inside an action."""
        self.remove(address)
        self._planted()

    def expect_each(self, addresses: Iterable[int]) -> None:
        """The same for many of them."""
        for address in addresses if self.actions or len(self.leads) else ():
            self.remove(address)
        self._planted()

    def find(self, pc: int) -> tuple[TrapAction, SupportsIndex] | None:
        """The action for the address that a trap has left, made if it is due, and what follows."""
        found = self.actions.get(pc)
        if found is None:
            found = self._make(pc - self._back) or self.actions.get(pc)
        return found

    def hit(self, address: int) -> int:
        """Inside an action: do what is done at another breakpoint; where the guest goes on.

        LEAVE where the engine has to see to it, or nothing is done there.
        """
        found = self.find(address + self._back)
        return LEAVE if found is None else found[0]()

    def lead(self, address: int, target: int, follow: int, saves: int = 0) -> None:
        """Let the guest go on elsewhere at a breakpoint, with nobody asked; never in an action.

        Args:
            address: where it stands.
            target: where the guest goes on.
            follow: as above.
            saves: host address at which `ArchJumps.scratch` is saved, 0 where it need not be.
        """
        keep = self._keep

        def go() -> int:
            if saves:
                keep(saves)
            return target

        self.plant(address, go, follow)
        if not saves or self._planted():
            self.leads.put(address + self._back, target, follow, saves)
            self._planted()

    def remove(self, address: int) -> None:
        """Forget a breakpoint; its exception is the engine's again."""
        pc = address + self._back
        self.actions.pop(pc, None)
        self.leads.drop(pc)
