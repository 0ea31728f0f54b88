"""Actions of breakpoints by address: one table for each address space."""

from collections.abc import Callable

from engine.cpu.base import TrapAction


class TrapActions:
    """The breakpoints of one address space; satisfies `engine.cpu.base.TrapTable`.

    Attributes:
        actions: by the address at which a processor reports the trap: the action, and the
            program's own address behind the instruction at hand.
    """

    __slots__ = ("_back", "_planted", "actions")

    def __init__(self, back: int = 0, planted: Callable[[], None] = lambda: None) -> None:
        """Nothing is planted.

        Args:
            back: by how much a reported address is behind that of the breakpoint.
            planted: called when something is.
        """
        self.actions: dict[int, tuple[TrapAction, int]] = {}
        self._back = back
        self._planted = planted

    def plant(self, address: int, action: TrapAction, follow: int) -> None:
        """Let an action deal with a breakpoint; never from inside an action.

        Args:
            address: where it stands.
            action: returns the address to go on at, LEAVE to leave it to the engine.
            follow: the program's own address behind the instruction at hand: going on there
                takes no time.
        """
        self.actions[address + self._back] = (action, follow)
        self._planted()

    def remove(self, address: int) -> None:
        """Forget a breakpoint; its exception is the engine's again."""
        self.actions.pop(address + self._back, None)
