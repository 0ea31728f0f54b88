"""The value of a function that `finish` has run to its return, in gdb's words."""

from typing import Final

from engine.arch.frames import Flow
from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.session.debugger.debugger import Debugger
from engine.session.protocol.frames import GuestFrame

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
        kind, debugger = self._kind, self._debugger
        if kind is None or kind.kind is TypeKind.VOID:
            return
        scope = debugger.frames.scope(0)
        why = ""
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
            debugger.put(text)
            return
        text = debugger.frames.printer(scope).text(value)
        debugger.put_value(f"Value returned is ${debugger.remember(value)} = {text}")
