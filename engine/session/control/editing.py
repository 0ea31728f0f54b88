"""Changes a user makes to a standing guest: registers, memory, code; and taking them back."""

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from engine.cpu.ram import PAGE
from engine.errors import CommandError, GuestFaultError
from engine.session.control.focus import Focus
from engine.session.guest.session import Session
from engine.session.inspect.backtrace import LOOKED_AT

_KEPT: Final = 200
_READ_MAX: Final = 1 << 24


class UndoableChange(Struct, frozen=True):
    """A change of a guest or of the list of probes: how it is taken back and done again.

    Attributes:
        text: the change in words.
        back: takes it back.
        forth: does it again.
        of_list: it is one of the list of probes.
    """

    text: str
    back: Callable[[], object]
    forth: Callable[[], object]
    of_list: bool = False


class ChangeHistory:
    """The changes of one guest that can be taken back, those of its list of probes included."""

    def __init__(self) -> None:
        """Begin without changes."""
        self._done: list[UndoableChange] = []
        self._undone: list[UndoableChange] = []

    def note(self, change: UndoableChange) -> None:
        """Remember a change that was made."""
        self._done.append(change)
        del self._done[:-_KEPT]
        self._undone.clear()

    @property
    def undo_text(self) -> str:
        """The change that `Undo` would take back, "" for none."""
        return self._done[-1].text if self._done else ""

    @property
    def redo_text(self) -> str:
        """The change that `Redo` would do again, "" for none."""
        return self._undone[-1].text if self._undone else ""

    @property
    def undoes_list(self) -> bool:
        """True if `Undo` would take back a change of the list of probes."""
        return bool(self._done) and self._done[-1].of_list

    @property
    def redoes_list(self) -> bool:
        """True if `Redo` would do a change of the list of probes again."""
        return bool(self._undone) and self._undone[-1].of_list

    def undo(self) -> str:
        """Take the last change back; what it was, in words.

        Raises:
            CommandError: there is none, or it cannot be taken back.
        """
        if not self._done:
            raise CommandError("nothing to undo")
        change = self._done[-1]
        change.back()
        self._undone.append(self._done.pop())
        return f"undone: {change.text}"

    def redo(self) -> str:
        """Do again what was taken back; what it was, in words.

        Raises:
            CommandError: there is nothing, or it cannot be done again.
        """
        if not self._undone:
            raise CommandError("nothing to redo")
        change = self._undone[-1]
        change.forth()
        self._done.append(self._undone.pop())
        return f"done again: {change.text}"


class Editing:
    """Carries changes of a standing guest out."""

    def __init__(self, session: Session, focus: Focus, history: ChangeHistory) -> None:
        """Change what belongs to the thread in sight.

        Args:
            session: the guest.
            focus: the thread in sight.
            history: remembers the changes.
        """
        self._session = session
        self._focus = focus
        self._history = history

    def read(self, address: int, size: int, original: bool) -> tuple[tuple[int, bytes], ...]:
        """Read what can be read of a range, in stretches.

        Raises:
            CommandError: the range is too long.
        """
        if size > _READ_MAX:
            raise CommandError(f"{size} bytes at once are too many")
        space, users = self._focus.seen, self._session.user_programs
        elsewhere, original_of = self._focus.elsewhere, space.hooks.original
        read: Callable[[int, int], bytes] = space.memory.read
        if elsewhere is not None and users is not None:
            read = partial(self._read_of, partial(users.read, elsewhere))
        pieces: list[tuple[int, bytes]] = []
        at, end = max(address, 0), address + size
        while at < end:
            stop = min(end, (at & -PAGE) + PAGE)
            try:
                data = read(at, stop - at)
                if original:
                    data = original_of(at, data)
            except GuestFaultError:
                at = stop
                continue
            if pieces and pieces[-1][0] + len(pieces[-1][1]) == at:
                pieces[-1] = (pieces[-1][0], pieces[-1][1] + data)
            else:
                pieces.append((at, data))
            at = stop
        return tuple(pieces)

    def _read_of(self, read: Callable[[int, int], bytes], address: int, size: int) -> bytes:
        """Memory of a program; where that has none, of the kernel that it has called."""
        try:
            return read(address, size)
        except GuestFaultError:
            memory, hooks = self._focus.space.memory, self._focus.space.hooks
            return hooks.original(address, memory.read(address, size))

    # -- changes --------------------------------------------------------------------------

    def write_register(self, name: str, value: int) -> str:
        """Write a register of the thread in sight; what was done, in words.

        Raises:
            CommandError: there is no such register, or nothing can be changed.
        """
        self._check()
        cpu, arch = self._session.cpu, self._session.arch
        found = next((r for r in arch.registers if name in (r.name, *r.aliases)), None)
        if found is None:
            raise CommandError(f"there is no register {name}")
        old, value = cpu.read_register(found.name), value & (1 << found.bits) - 1
        session, thread = self._session, self._focus.thread

        def put(number: int) -> None:
            if thread.ended:
                raise CommandError(f"thread {thread.tid} has ended")
            with session.kernel.visit(thread):
                session.machine.registers.write_register(found.name, number)  # seen by a recorder

        return self._do(f"{found.name} = {value:#x}", lambda: put(old), lambda: put(value))

    def write_memory(self, address: int, data: bytes, what: str = "") -> str:
        """Write memory; what was done, in words.

        Args:
            address: where.
            data: the bytes.
            what: they are, in words; how many if "".

        Raises:
            CommandError: there is no memory, or nothing can be changed.
        """
        self._check()
        space = self._focus.space
        probed = self._session.probes().spaces.get(space)
        read: Callable[[int, int], bytes] = space.memory.peek
        write: Callable[[int, bytes], None] = space.memory.poke
        if probed is not None:  # a probe on changed code is armed again or given up
            read, write = probed.overlay.original, probed.overlay.rewrite
        try:
            old = read(address, len(data))
        except GuestFaultError as error:
            raise CommandError(str(error)) from error
        where = f"{what or f'{len(data)} bytes'} at {address:#x}"
        return self._do(where, lambda: write(address, old), lambda: write(address, data))

    def assemble(self, address: int, text: str) -> str:
        """Put instructions in the place of others; what was done, in words.

        Raises:
            CommandError: they do not fit, there is no memory, or nothing can be changed.
        """
        self._check()
        session = self._session
        from engine.insn.asm import assemble  # few sessions assemble

        code = assemble(session.arch, address, text)
        size = 0
        while size < len(code):  # whole instructions are replaced
            insns = session.disassembler.decode(address + size, session.code_at(address + size))
            size += insns[0].size if insns else session.arch.insn_align
        nop = session.arch.probes.nop
        rest = size - len(code)
        if rest % len(nop):
            raise CommandError(f"{text}: {rest} bytes are left over that no nop fills")
        return self.write_memory(address, code + nop * (rest // len(nop)), text)

    def _do(self, text: str, back: Callable[[], object], forth: Callable[[], object]) -> str:
        forth()
        self._history.note(UndoableChange(text, back, forth))
        return text

    def _check(self) -> None:
        """Refuse changes where the memory of another program is looked at.

        Raises:
            CommandError: a frame of the program that has called the kernel is.
        """
        if self._focus.elsewhere is not None:
            raise CommandError(LOOKED_AT)
