"""Motions of a debugger that end at a place: over a call, out of a function, to an address."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.arch.plan import Mode, Rules
from engine.errors import CommandError
from engine.probes.kprobe import Kprobe
from engine.session.control.stepping_thread import SteppingThread
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import TRAMPOLINE_NAME, Backtraces
from engine.session.protocol.frames import GuestFrame

Line = tuple[str, int]
_STUB: Final = "@plt"


class Motion(Struct, eq=False):
    """A run that ends at a place of its own.

    Attributes:
        probe: stands at the place.
        text: why the guest stops when it is reached.
        arrived: whether reaching the place is the end (a recursion reaches it too early).
        reached: whether it was.
    """

    probe: Kprobe
    text: str
    arrived: Callable[[], bool]
    reached: bool = False


class Motions:
    """The motions of one run of a guest."""

    def __init__(self, session: Session, backtraces: Backtraces) -> None:
        """Nothing moves yet."""
        self._session = session
        self._backtraces = backtraces

    def to(self, address: int, *, alone: bool = False) -> Motion:
        """Run to an address; `alone`: no other thread than that which runs now reaches it."""
        moved = SteppingThread(self._session) if alone else None
        return _motion(address, f"reached {address:#x}", lambda: moved is None or moved.runs)

    def over(self) -> Motion | None:
        """Run over the call at pc; None if none stands there."""
        session = self._session
        pc = session.cpu.read_register(session.arch.roles.pc)
        code = session.code_at(pc)
        insns = session.disassembler.decode(pc, code)
        if not insns or not session.arch.is_call(insns[0]):
            return None
        arch = session.arch
        guard = arch.probes.analyze(code, pc, Rules.KPROBE, Mode.STRICT, b"").predicate
        if guard and not session.cpu.read_register(guard):
            return None  # it will not be carried out
        moved, behind = SteppingThread(session), pc + insns[0].size
        behind += -behind % arch.code_unit  # where calls return to a unit's beginning
        return _motion(behind, "stepped", lambda: moved.has_left(moved.depth))

    def line(self) -> Line | None:
        """The source line of pc."""
        session = self._session
        pc = session.cpu.read_register(session.arch.roles.pc)
        module = session.seen.modules.at(pc)
        return module.line_at(pc) if module is not None else None

    def inlined(self, known: dict[int, int]) -> int:
        """The number of inlined calls that pc is in.

        Args:
            known: of the addresses that one step has come by, which loops come to again.
        """
        pc = self._session.cpu.read_register(self._session.arch.roles.pc)
        if pc not in known:
            module = self._session.seen.modules.at(pc)
            known[pc] = len(module.inlined_at(pc)) if module is not None else 0
        return known[pc]

    def left_line(self, start: Line) -> bool:
        """True if pc is at another line now (code without a line is none).

        A row of the table at which no statement begins is a part of what has been moved about, and
        no place to stop at, as in gdb (process_event_stop_test).
        """
        now = self.line()
        if now is None or now == start:
            return False
        pc = self._session.cpu.read_register(self._session.arch.roles.pc)
        module = self._session.seen.modules.at(pc)
        return module is None or not module.lines.begins_no_statement(pc - module.bias)

    def at_statement(self) -> bool:
        """True if a statement of the source begins at pc."""
        pc = self._session.cpu.read_register(self._session.arch.roles.pc)
        module = self._session.seen.modules.at(pc)
        return module is not None and module.lines.begins_statement(pc - module.bias)

    def line_call(self, *, over: bool, unknown: bool = False) -> Motion | None:
        """In a step by lines: how to pass the call at pc, if it is to be passed.

        A function without line information is passed even if the step goes into functions. Behind
        a linkage stub stands the function of another file: the dynamic linker is passed, not that.

        Args:
            over: no function is entered.
            unknown: those without line information are.
        """
        motion = self.over()
        if motion is None or over:
            return motion
        session = self._session
        pc = session.cpu.read_register(session.arch.roles.pc)
        target = session.arch.probes.target(session.code_at(pc), pc)
        module = session.seen.modules.at(target) if target is not None else None
        if target is None or (module is not None and module.line_at(target) is not None):
            return None
        behind = self._behind_stub(target)
        module = session.seen.modules.at(behind) if behind is not None else None
        if behind is None or not (unknown or (module and module.line_at(behind))):
            return None if unknown else motion
        moved = SteppingThread(session)
        return _motion(behind, "stepped", lambda: moved.runs)

    def _behind_stub(self, target: int) -> int | None:
        """The function that a linkage stub leads to; None for no stub, and where nobody knows."""
        modules, memory = self._session.seen.modules, self._session.seen.memory
        symbol = modules.locate(target).symbol
        if symbol is None or not symbol.name.endswith(_STUB):
            return None
        name = symbol.name.removesuffix(_STUB)
        starts = {one.name: one.start for one in reversed(memory.mappings)}
        for module in map(modules.at, reversed(starts.values())):
            if module is None:
                continue
            for found in module.symbols.find_all(name):
                if found.kind == "func" and found.binding != "local" and found.name == name:
                    return module.bias + found.address
        return None

    def has_caller(self) -> bool:
        """True if the current function was called by another one."""
        return len(self._callers()) > 1

    def _callers(self) -> list[GuestFrame]:
        """The current function's frame and its caller's, as far as they are known."""
        return [
            frame
            for frame in self._backtraces.take(limit=3).frames
            if not frame.inlined and frame.function != TRAMPOLINE_NAME and not frame.thread
        ]

    def out(self) -> Motion:
        """Run until the current function has returned.

        Raises:
            CommandError: nobody knows where to.
        """
        frames = self._callers()
        if len(frames) < 2 or frames[0].cfa is None:
            raise CommandError("the function's caller is not known")
        moved, returns = SteppingThread(self._session), self._session.arch.returns
        floor = moved.depth_of(frames[0].cfa)
        if returns is not None:
            others = [frames[0].registers[name] for name in returns.keys.entry[1:]]
            floor = returns.keys.entered([frames[0].cfa, *others])
        return _motion(frames[1].pc, "finished", lambda: moved.has_left(floor))


def _motion(address: int, text: str, arrived: Callable[[], bool]) -> Motion:
    probe = Kprobe(addr=address, mode=Mode.KERNEL, name=text, pre_handler=lambda probe, regs: None)
    probe.stops = probe.always = True
    return Motion(probe, text, arrived)
