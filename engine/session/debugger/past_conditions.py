"""Expressions that are asked for when they were true, and the values of frames long ago."""

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import CommandError
from engine.language.evaluation import evaluator_of, tree_of
from engine.language.syntax import Expression
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.output import TROUBLE
from engine.session.inspect.frame_registers import Uses
from engine.session.inspect.frame_scope import FrameScope
from engine.session.inspect.watched_expressions import dependence
from engine.session.protocol.frames import GuestFrame

if TYPE_CHECKING:
    from engine.session.control.past.conditions import Condition, Pieces


class _Asked(Struct, frozen=True):
    """An expression, and where the user stood who has asked for its times.

    Attributes:
        frame: the frame that was looked at, with all that is known of its registers.
        number: of it.
        exact: its pc is where it goes on.
        depth: how many functions were inlined into each other down to it.
        registers: those that are read at each moment.
        local: some of its bytes live with the call.
        tid: the thread.
        pid: its process.
    """

    frame: GuestFrame | None
    number: int
    exact: bool
    depth: int
    registers: tuple[str, ...]
    local: bool
    tid: int
    pid: int


class PastConditions:
    """Gives expressions a meaning at other moments than the one at which the user has typed them.

    Names are those of where the user stood. A variable of a function is the bytes in which it is
    in that very call, from whose begin on it is looked for; one that is in a register there has
    the value that it has there.
    """

    def __init__(self, debugger: Debugger) -> None:
        """Nothing is asked for."""
        self._debugger = debugger
        self._asked: _Asked | None = None
        debugger.control.questions.condition = self._condition

    def ask(self, text: str) -> None:
        """Look at an expression where the user stands.

        Raises:
            CommandError: it means nothing, or nothing that other moments have.
        """
        debugger = self._debugger
        self._asked = None
        found = dependence(text, debugger.scope)
        uses, session = found.uses, debugger.control.session
        if found.constant:
            raise CommandError(f"`{text}' is constant: it is as true at any moment.")
        held = uses.local and bool(uses.registers)
        if held:
            self._take_held(text, uses)
        frames, at = debugger.frames, debugger.frames.selected
        machine = session.machine
        thread = machine.threads.get(debugger.thread, machine.current)
        frame = debugger.frame
        if frame is not None and not at:
            with debugger.control.sight.visit():
                known = {
                    one.name: session.cpu.read_register(one.name)
                    for one in session.arch.registers
                    if one.dwarf is not None
                }
            frame = replace(frame, registers={**known, **frame.registers})
        exact, depth = True, 0
        if frame is not None:
            exact, depth = frames.exact(at), frames.depth(at)
        local = uses.local and (not held or self._in_frame(frame, uses))
        registers = () if held else tuple(uses.registers)
        self._asked = _Asked(frame, at, exact, depth, registers, local, thread.tid, thread.pid)

    def _take_held(self, text: str, uses: Uses) -> None:
        """Say that variables in registers are those of now.

        Raises:
            CommandError: nothing else is read, or registers are by their names, too.
        """
        names = ", ".join(f"${name}" for name in uses.registers)
        if "$" in text:
            raise CommandError(
                f"'{text}' reads registers by name and variables of this call, which have no "
                "moments in common to look at: ask for one or the other"
            )
        if not uses.memory:
            raise CommandError(
                f"'{text}' is in registers here ({names}), which hold other things at other "
                "moments: ask for a register by its name, or for memory"
            )
        self._debugger.put(f"Variables that are in registers here ({names}) are as they are now.")

    def _in_frame(self, frame: GuestFrame | None, uses: Uses) -> bool:
        """True if some bytes are those of the frame's own stretch of the stack."""
        if frame is None or frame.cfa is None:
            return False
        sp = frame.registers.get(self._debugger.control.session.arch.roles.sp, frame.cfa)
        return any(sp <= address < frame.cfa for address, _ in uses.memory)

    def _condition(self, text: str) -> "Condition":
        """Make the expression a condition of the guest that is looked at now.

        Raises:
            CommandError: there is nothing to ask.
        """
        from engine.session.control.past.conditions import Condition  # few go back

        debugger, asked = self._debugger, self._asked
        if asked is None:
            self.ask(text)
            asked = self._asked
        assert asked is not None, "it has been asked for"
        debugger.follow()
        frame, number = asked.frame, asked.number
        if asked.registers:
            scope = debugger.scope_of(None, 0)
        else:
            scope = debugger.scope_of(frame, number, exact=asked.exact, depth=asked.depth)
        call = None
        if asked.local and frame is not None and frame.cfa is not None:
            call = frame.pc, frame.cfa
        node = tree_of(text, scope)
        return Condition(
            text,
            partial(_look, node, scope),
            asked.tid,
            asked.pid,
            asked.registers,
            call,
        )


def _look(node: Expression, scope: FrameScope) -> "tuple[bool, Pieces]":
    """True if an expression is, and the bytes that its value is read from."""
    scope.uses = uses = Uses()
    try:
        holds = evaluator_of(scope).value(node).loaded().truth
    except TROUBLE:
        holds = False
    finally:
        scope.uses = None
    return holds, tuple(uses.memory)
