"""The instruction of a thread that has last written to a register."""

import re
from collections.abc import Callable
from typing import Final

from engine.arch.base import Arch, Register
from engine.history.journal import WORDS, Entry, EntryCause, Op
from engine.history.timeline import Moment
from engine.linux import signals as sig
from engine.session.control.stretches import PastStretches
from engine.session.guest.past import PastSession
from engine.session.guest.watchpoints import call_text

_WIDEST: Final = 1 << 16
"""Ticks that are lived through before the newest write in them is known."""
_FLAGS: Final = frozenset({"rflags", "eflags", "nzcv"})
_VECTOR: Final = re.compile(r"[xyz]mm(\d+)|[vqdshb](\d+)")


class RegisterWrites:
    """Finds what has written to registers, by going through the past instruction by instruction.

    A write is an instruction whose encoding says so, be it that the register had that value
    before, and whatever the thread finds another value in the register behind. Where the decoder
    does not tell of registers (RISC-V, IA-64) only the latter is seen.
    """

    def __init__(self, session: PastSession, stretches: PastStretches) -> None:
        """Nothing is looked for yet."""
        self._session = session
        self._stretches = stretches
        self._known: dict[tuple[int, bytes], frozenset[str] | None] = {}

    def last(
        self, register: Register, tid: int, before: Moment, cut: Callable[[], bool]
    ) -> tuple[Moment, str] | None:
        """The last write of a thread's register in front of a moment, at which the guest stands.

        Args:
            register: it.
            tid: the thread.
            before: the moment.
            cut: True to give up.

        Returns:
            The moment in front of the write, and the call or the like that has written, in
            words, "" for an instruction; None if there is none, or it was cut.
        """
        session = self._session
        value: int | None
        if session.machine.current.tid == tid:  # even where it has ended
            value = session.cpu.read_register(register.name)
        elif (thread := session.machine.threads.get(tid)) is not None:
            with session.kernel.visit(thread):
                value = session.cpu.read_register(register.name)
        else:
            return None
        names = spellings(session.arch, register)
        for _, end in self._stretches.back(before, _WIDEST):
            found, value = self._within(register.name, names, tid, end, value, cut)
            if cut():
                return None
            if found is not None:
                return found
        return None

    def _within(
        self,
        name: str,
        names: frozenset[str],
        tid: int,
        end: Moment,
        behind: int | None,
        cut: Callable[[], bool],
    ) -> tuple[tuple[Moment, str] | None, int | None]:
        """The last write from here to a moment, and what the register holds here.

        Args:
            name: of the register.
            names: its spellings.
            tid: the thread.
            end: the moment.
            behind: what the thread finds in the register when it runs next from the moment on.
            cut: True to give up.
        """
        session, kernel = self._session, self._session.kernel
        cpu, machine = session.cpu, session.machine
        result = session.arch.linux.result
        found: tuple[Moment, str] | None = None
        first: int | None = None
        last: Moment | None = None  # of the thread
        held, writes, by = 0, False, ""
        now, at = self._stretches.timeline.now(), kernel.at
        steps = self._stretches.steps(end, cut)
        while True:
            if machine.current.tid == tid and machine.exit is None:
                value = cpu.read_register(name)
                if last is None:
                    first = value
                elif writes or value != held:
                    found = last, by
                last, held, by = now, value, ""
                if now >= end:
                    return found, first
                writes = self._writes(now.pc, names)
            before, at = now, kernel.at
            following = next(steps, None)
            if following is None:
                break
            now = following
            if kernel.at > at and last == before:
                entry = kernel.journal[at]
                writes = entry.cause == EntryCause.SYSCALL and name == result
                by = self._text(entry)
        if last is not None and behind is not None and (held != behind or (writes and by)):
            found = last, by
        return found, behind if first is None else first

    def _writes(self, pc: int, names: frozenset[str]) -> bool:
        """True if the instruction at an address says that it writes to a register."""
        session = self._session
        code = session.code_at(pc)
        key = pc, bytes(code)
        if key not in self._known:
            self._known[key] = session.disassembler.written(pc, code)
        written = self._known[key]
        return written is not None and not written.isdisjoint(names)

    def _text(self, entry: Entry) -> str:
        """The origin of an entry of the journal's, in words."""
        thread = self._session.machine.threads.get(entry.thread)
        if entry.cause == EntryCause.SYSCALL and thread is not None:
            return call_text(thread)
        signals = [op[1] for op in entry.ops if op[0] == Op.SIGNAL]
        if signals:
            return f"delivery of {sig.name(signals[0])}"
        return WORDS[EntryCause(entry.cause)]


def spellings(arch: Arch, register: Register) -> frozenset[str]:
    """The names by which a decoder may mean a register, or a part of it."""
    names = {register.name, *register.aliases}
    names.update(part for part, (whole, _, _) in arch.slices.items() if whole == register.name)
    if register.name == arch.roles.flags:
        names |= _FLAGS
    vector = _VECTOR.fullmatch(register.name)
    if vector is not None and register.group in ("vector", "float"):
        number = vector[1] or vector[2]
        names.update(f"{kind}{number}" for kind in ("xmm", "ymm", "zmm", *"vqdshb"))
    return frozenset(names)
