"""The value of a function that `finish` has run to its return, in gdb's words."""

from collections.abc import Callable
from functools import partial
from typing import Final

from engine.arch.frames import Flow
from engine.errors import CommandError
from engine.escaping import escaped
from engine.image.datatypes import TypeKind
from engine.image.gotypes import shape_of
from engine.image.scopes import Scope
from engine.language.languages import GO
from engine.language.values import TypedValue
from engine.session.debugger.debugger import Debugger
from engine.session.inspect.go_results import GoResults
from engine.session.protocol.frames import GuestFrame

_AT_PRODUCER: Final = 0x25
_PROLOGUE: Final = 512
"""Bytes of code behind a function's entry in which it is looked for changes of a register."""


class ReturnedValue:
    """The result of a frame's function: made before the function goes on, told behind it."""

    def __init__(self, debugger: Debugger, number: int) -> None:
        """Note what is lost at the return.

        Args:
            debugger: the state behind all words.
            number: of the frame.
        """
        self._debugger = debugger
        frames = debugger.frames
        frame, scope = frames.all[number], frames.scope(number).scope
        known = scope is not None and not frame.inlined
        # gdb, too, tells the type behind typedefs here.
        self._kind = scope.returns.resolved if known and scope is not None else None
        self._language = scope.language if scope is not None else 0
        self._address = None if number else self._hidden_address(frame)
        self._results = scope if known and self._language == GO.code else None

    def _hidden_address(self, frame: GuestFrame) -> int | None:
        """The address of a result in memory, while it is where the function was given it.

        The registers of the ABI's results at the return tell it too where that is promised.
        """
        session = self._debugger.control.session
        results = session.arch.abi.results
        places = results() if results is not None else None
        if places is None or places.exit or session.arch.unwind is None:
            return None
        start = frame.pc - frame.offset
        if not frame.function or not 0 <= frame.offset <= _PROLOGUE:
            return None
        space = session.seen
        code = space.hooks.original(start, space.memory.peek(start, frame.offset))
        disassembler, at = session.disassembler, start
        for insn in disassembler.decode(start, code):
            raw = insn.raw
            accessed = disassembler.accessed(insn.address, raw)
            found = session.arch.unwind.read(raw, insn.address)
            straight = found is None or found.flow is Flow.NEXT
            if accessed is None or insn.unknown or not straight:
                return None
            written = {session.arch.slices.get(name, (name, 0, 0))[0] for name in accessed[1]}
            if places.entry in written:
                return None
            at = insn.address + insn.size
        return session.cpu.read_register(places.entry) if at == frame.pc else None

    def tell(self) -> None:
        """Print the value, now that the function has returned; nothing for void."""
        if self._results is not None:
            self._tell_go(self._results)
        else:
            self.tell_later()()

    def tell_later(self) -> Callable[[], None]:
        """Read the value, now that the function has returned: what is given prints it."""
        kind, debugger = self._kind, self._debugger
        if kind is None or kind.kind is TypeKind.VOID:
            return lambda: None
        scope = debugger.frames.scope(0)
        why = ""
        value: TypedValue | None
        try:
            value = scope.results.value(
                kind,
                debugger.control.session.cpu.read_register,
                language=self._language,
                address=self._address,
            )
        except CommandError as error:
            value, why = None, f": {error}"
        if value is None:
            text = f"Value returned has type: {kind.text}. Cannot determine contents{why}"
            return partial(debugger.put, text)
        value = value.remembered()
        return partial(self._tell_value, value)

    def _tell_value(self, value: TypedValue) -> None:
        debugger = self._debugger
        text = "<not displayed>"
        if debugger.settings["print finish"]:
            text = debugger.frames.printer(debugger.frames.scope(0)).text(value)
        debugger.put_value(f"Value returned is ${debugger.kept.remember(value)} = {text}")

    def _tell_go(self, function: Scope) -> None:
        """Print the results of a function of Go, which may be several."""
        debugger = self._debugger
        given = [one for one in function.parameters if not one.is_result]
        given = [*function.hidden, *given]
        results = [one for one in function.parameters if one.is_result]
        session, scope = debugger.control.session, debugger.frames.scope(0)
        unit = function.unit
        producer = unit.root.string(_AT_PRODUCER) or "" if unit is not None else ""
        try:
            found = GoResults(
                session.arch.abi.go,
                [one.type for one in given],
                [shape_of(one.type) for one in results],
                in_registers="regabi" in producer,
            ).values(
                session.cpu.read_register,
                scope.read,
                session.cpu.read_register(session.arch.roles.sp),
                scope.order,
            )
        except CommandError as error:
            debugger.put(f"Cannot determine the values returned: {error}")
            return
        printer = debugger.frames.printer(scope)
        if len(found) > 1:
            debugger.put("Values returned:")
        for variable, value in zip(results, found, strict=True):
            number = debugger.kept.remember(value)
            text = printer.text(value)
            one = len(found) == 1
            front = "Value returned is" if one else f"    {escaped(variable.name)}:"
            debugger.put_value(f"{front} ${number} = {text}")
