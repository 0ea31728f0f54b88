"""The thread that a motion moves: others pass its places meanwhile, and do not end it.

In a program of Go a goroutine takes the thread's part: a call may return in another thread, and
on a stack that has been moved to another place.
"""

from engine.image.gofunctions import has_go
from engine.probes.goroutines import GoroutineStacks
from engine.session.guest.session import Session


class SteppingThread:
    """The thread, or goroutine, that runs when this is made.

    Attributes:
        depth: of its stack then, see `depth_of`.
    """

    def __init__(self, session: Session) -> None:
        """Remember who runs now."""
        self._session = session
        main, self._stacks = session.seen.modules.main, None
        go = session.arch.abi.go
        if go is not None and main is not None and main.image.once(has_go):
            self._goroutine = go.goroutine
            self._stacks = GoroutineStacks(session.arch, session.cpu, session.seen.memory)
        self._who, self._base, self.depth = self._now()

    @property
    def runs(self) -> bool:
        """True if it runs now."""
        return self._now()[0] == self._who

    def depth_of(self, sp: int) -> int:
        """The depth of a stack pointer: more with each return, and the same if a stack moves."""
        return sp - self._base

    def has_left(self, floor: int) -> bool:
        """True if it runs now, and its stack is no deeper than it was once."""
        who, _, depth = self._now()
        return who == self._who and depth >= floor

    def _now(self) -> tuple[object, int, int]:
        """The thread that runs, where its depths begin, and its depth."""
        session = self._session
        cpu, returns, thread = session.cpu, session.arch.returns, session.machine.current.tid
        if returns is not None:
            return thread, 0, returns.keys.returned(cpu.read_registers(returns.keys.exit))
        sp = cpu.read_register(session.arch.roles.sp)
        if self._stacks is not None:
            goroutine = cpu.read_register(self._goroutine)
            bounds = self._stacks.bounds(goroutine)
            if bounds is not None and bounds[0] <= sp < bounds[1]:
                return ("goroutine", goroutine), bounds[1], sp - bounds[1]
        return thread, 0, sp
