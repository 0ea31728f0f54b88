"""Backtraces of a session's guest: the unwinder's frames with names, lines, inlined functions.

A system call that is being made is the top frame, so that program, library and kernel stand in
one trace.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.cpu.base import RegisterStack
from engine.cpu.ram import EXECUTE
from engine.errors import CommandError, GuestFaultError
from engine.guest.hooks import SpaceHooks
from engine.guest.memory import Memory
from engine.image.gofunctions import go_name, has_go
from engine.linux.space import AddressSpace
from engine.probes.trampoline import NAME
from engine.session.guest.session import Session
from engine.session.protocol.frames import CALLED, GuestFrame
from engine.unwind.compare import UNWINDERS, Comparison, by_name
from engine.unwind.expression import ReadMemory
from engine.unwind.returnchain import ReturnChain
from engine.unwind.unwinder import LIMIT, EndReason, Frame, Unwinder, UnwindGuest

if TYPE_CHECKING:
    from engine.session.guest.user_programs import UserPrograms, UserState
    from engine.session.inspect.go_stacks import GoStacks
    from engine.session.inspect.goroutines import Goroutine

TRAMPOLINE_NAME: Final = NAME
KERNEL_NAME: Final = "[kernel]"
LOOKED_AT: Final = "the frame is of a program that has called the kernel: it is looked at only"
"""Why nothing is changed there."""
_KEPT: Final = 8
"""Processes whose tables and code are kept at a time."""
_PAGE: Final = 4096
"""The first page of the window has the signal return code."""


class Backtrace(Struct, frozen=True):
    """The frames, innermost first, and why there are no more."""

    frames: tuple[GuestFrame, ...]
    reason: EndReason
    end: str

    def as_json(self) -> dict[str, Any]:
        """The form of `bt --json`."""
        return {"frames": [frame.as_json() for frame in self.frames], "end": self.end}

    def lines(self) -> Iterator[str]:
        """The form of `bt`."""
        for number, frame in enumerate(self.frames):
            yield frame.text(number)
        yield f"(end: {self.end})"


class Backtraces:
    """Takes backtraces of one session; keeps what was read of tables and code."""

    def __init__(self, session: Session) -> None:
        """Nothing is read yet."""
        self._session = session
        arch = session.arch
        self._views: dict[AddressSpace, tuple[UnwindGuest, Unwinder]] = {}
        self.names = tuple(r.name for r in arch.registers if r.group in ("general", "flags"))
        self._chain: ReturnChain | None = None
        self._read: Callable[[], tuple[int, ...]] = tuple

    @cached_property
    def _go(self) -> "GoStacks":
        from engine.session.inspect.go_stacks import GoStacks  # few programs are Go's

        return GoStacks(self._session)

    @property
    def view(self) -> UnwindGuest:
        """The process that runs as the unwinder sees it."""
        return self._of_process()[0]

    def _of_process(self, space: AddressSpace | None = None) -> tuple[UnwindGuest, Unwinder]:
        """A process, by its address space, and its unwinder; the one that runs if not given."""
        users = self._session.user_programs
        if space is None:
            space = self._session.seen
            if users is not None and users.owns(self._session.machine.current):
                users.find()
        found = self._views.get(space)
        if found is None:
            while len(self._views) >= _KEPT:  # of processes that may be gone
                del self._views[next(iter(self._views))]
            view = self._view_of(space)
            found = self._views[space] = view, Unwinder(view)
        return found

    def _view_of(self, space: AddressSpace) -> UnwindGuest:
        hooks, memory = space.hooks, space.memory
        users = self._session.user_programs
        if users is not None and users.knows(space):
            return self._user_view(users, space)
        stacks = self._session.kernel_stacks if space is self._session.space else None
        return UnwindGuest(
            self._session.arch,
            space.modules.at,
            self._reader(memory.read),
            lambda address, size: _code(memory.read, hooks, address, size),
            lambda address: _executable(memory, address),
            lambda address, slot, met: hooks.resolve_return(address, slot, met),
            lambda address: hooks.original_pc(address),
            lambda address: hooks.unwind_info(address),
            lambda: memory.table.layout,
            None if self._session.supervisor is None else self._session.supervisor.end,
            None if stacks is None else stacks.is_end,
            ends_in=self._go.ends_in(space) if _has_go(space) else None,
        )

    def _user_view(self, users: "UserPrograms", space: AddressSpace) -> UnwindGuest:
        """The same of a program of a kernel which is a guest."""
        hooks = space.hooks
        return UnwindGuest(
            self._session.arch,
            space.modules.at,
            lambda address, size: users.read(space, address, size),
            lambda address, size: _code(partial(users.code, space), hooks, address, size),
            lambda address: users.executable(space, address),
            lambda address, slot, met: hooks.resolve_return(address, slot, met),
            lambda address: hooks.original_pc(address),
            lambda address: hooks.unwind_info(address),
            lambda: space.memory.table.layout,
        )

    def _reader(self, read: ReadMemory) -> ReadMemory:
        """Memory as it is once a register stack has been written out."""
        cpu = self._session.cpu
        if not isinstance(cpu, RegisterStack):
            return read
        with_stack = cpu.with_stack
        return lambda address, size: with_stack(address, read(address, size))

    @property
    def trampoline(self) -> int:
        """The return probes' trampoline, or the address where it would be."""
        probing = self._session.probing
        known = probing.manager.returns.trampoline if probing is not None else None
        return known[0] if known is not None else self._session.arch.plan.trampoline[0] + _PAGE

    def registers(self) -> dict[str, int]:
        """The registers now."""
        values = self._session.cpu.read_registers(self.names)
        return dict(zip(self.names, values, strict=True))

    def remembered(
        self, place: int, *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...] | None:
        """Addresses of the frames of a stack that has been walked before; None for any other.

        Args:
            place: where it stands, by the program's own addresses.
            syscall: see `take`.
            limit: of frames.
        """
        if self._session.user_programs is not None:
            return None
        chain = self._of_process()[1].chain
        if chain is None:
            return None
        if chain is not self._chain:
            self._chain, self._read = chain, self._session.cpu.traps.reader(chain.names)
        return chain.remembered(place, self._read(), limit=limit, exact=not syscall)

    def places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[int, ...]:
        """Addresses of the frames alone, innermost first, without those of inlined functions.

        See `take`.
        """
        return self.divided_places(registers, syscall=syscall, limit=limit)[0]

    def divided_places(
        self, registers: Mapping[str, int], *, syscall: str = "", limit: int = LIMIT
    ) -> tuple[tuple[int, ...], int]:
        """The same, and how many of them, the first ones, are frames of a kernel."""
        found, whole = self._of_process()[1].stack(registers, limit=limit, exact=not syscall)
        kernel = len(found) if self._session.runs_kernel else 0
        user = self._user(registers) if whole and not syscall else None
        below = () if user is None else self.user_places(user, limit - len(found))
        return found + below, kernel

    def user_places(self, user: "UserState", limit: int = LIMIT) -> tuple[int, ...]:
        """The same of a program that has called a kernel which is a guest."""
        unwinder = self._of_process(user.thread.space)[1]
        return unwinder.places(user.registers, limit=limit, exact=not user.calling)

    def _user(self, registers: Mapping[str, int]) -> "UserState | None":
        """The program below the stack of a kernel which is a guest; None for none.

        While that begins a program its memory is new, but the registers are still the old ones.
        """
        session = self._session
        users = session.user_programs if session.seen is session.space else None
        user = None if users is None else users.below(registers[session.arch.roles.sp])
        if users is None or user is None:
            return None
        pc = user.registers[session.arch.roles.pc]
        return user if users.executable(user.thread.space, pc) else None

    def take(
        self,
        registers: Mapping[str, int] | None = None,
        *,
        syscall: str = "",
        unwinder: str = UNWINDERS[0].name,
        limit: int = LIMIT,
        is_last: Callable[[GuestFrame], bool] | None = None,
    ) -> Backtrace:
        """The backtrace of the guest as it stands.

        Args:
            registers: to begin with others than those of now.
            syscall: name of the system call that is being made, "" for none; pc stands behind
                its instruction then.
            unwinder: which one, of `engine.unwind.compare.UNWINDERS`.
            limit: of frames, inlined ones not counted.
            is_last: tells of each frame whether those that called it are left out; files of
                theirs are not read then.

        Raises:
            CommandError: there is no such unwinder.
        """
        known = self.registers() if registers is None else registers
        supervisor = self._session.supervisor
        if supervisor is not None and supervisor.rests(known[self._session.arch.roles.pc]):
            return Backtrace((), EndReason.OUTERMOST, "no function is called")
        chosen = comparison(unwinder)
        if chosen is UNWINDERS[0]:
            view, found = self._of_process()
            walk = found.walk(known, limit=limit, exact=not syscall)
            if view.ends_in is not None:
                walk = self._go.joined(
                    walk,
                    self._session.seen,
                    lambda registers, more: found.walk(registers, limit=more),
                    limit,
                )
            if self._session.calls:
                from engine.session.inspect.called_functions import joined  # few are called

                walk = joined(
                    self._session.arch,
                    self._session.calls,
                    walk,
                    lambda registers, more: found.walk(registers, limit=more),
                    limit,
                )
        else:
            walk = chosen.walk(self.view, self.trampoline, known, limit)
        frames = [self._kernel_frame(syscall, known)] if syscall else []
        for frame in walk.frames:
            self._add(frames, frame)
            if is_last is not None and is_last(frames[-1]):
                return Backtrace(tuple(frames), walk.end.reason, walk.end.text)
        whole = walk.end.reason is EndReason.OUTERMOST
        user = self._user(known) if whole and not syscall else None
        if user is None or len(walk.frames) >= limit:
            return Backtrace(tuple(frames), walk.end.reason, walk.end.text)
        space, left = user.thread.space, limit - len(walk.frames)
        walk = self._of_process(space)[1].walk(user.registers, limit=left, exact=not user.calling)
        for frame in walk.frames:
            self._add(frames, frame, user)
        return Backtrace(tuple(frames), walk.end.reason, walk.end.text)

    def registers_of(self, goroutine: "Goroutine") -> dict[str, int]:
        """The registers that a goroutine has which no thread runs."""
        roles = self._session.arch.roles
        return {roles.pc: goroutine.pc, roles.sp: goroutine.sp, roles.fp: goroutine.fp}

    def parked(
        self,
        goroutine: "Goroutine",
        *,
        unwinder: str = UNWINDERS[0].name,
        limit: int = LIMIT,
    ) -> Backtrace:
        """The backtrace of a goroutine that no thread runs, in the memory of the running thread.

        Args:
            goroutine: the goroutine.
            unwinder: see `take`.
            limit: of frames.

        Raises:
            CommandError: there is no such unwinder.
        """
        trace = self.take(self.registers_of(goroutine), unwinder=unwinder, limit=limit)
        frames = tuple(replace(frame, parked=True) for frame in trace.frames)
        return Backtrace(frames, trace.reason, trace.end)

    def _kernel_frame(self, name: str, registers: Mapping[str, int]) -> GuestFrame:
        """The frame of a system call that is being made."""
        roles = self._session.arch.roles
        return GuestFrame(
            registers[roles.pc],
            name,
            module=KERNEL_NAME,
            cfa=registers[roles.sp],
            source="syscall",
            registers=registers,
        )

    def _add(self, views: list[GuestFrame], frame: Frame, user: "UserState | None" = None) -> None:
        """Append a frame, behind the frames of the functions inlined there.

        Args:
            views: gets the frames.
            frame: the frame as it was unwound.
            user: the program that the frame is of, where a kernel which is the guest runs that.
        """
        modules = self._session.seen.modules if user is None else user.thread.space.modules
        thread = 0 if user is None else user.thread.tid
        location = modules.locate(frame.place)
        module, symbol = location.module, location.symbol
        module = module if frame.source != CALLED else None
        path = module.name if module is not None else ""
        line = module.line_at(frame.lookup) if module is not None else None
        file, number = line or ("", 0)
        trampoline = frame.trampoline
        for call in module.inlined_at(frame.lookup) if module is not None else ():
            views.append(
                GuestFrame(
                    frame.pc,
                    call.name,
                    0,
                    path,
                    file,
                    number,
                    len(views),
                    frame.cfa,
                    frame.source,
                    trampoline,
                    True,
                    False,
                    frame.registers,
                    thread,
                )
            )
            file, number, trampoline = call.file, call.line, False
        name = symbol.demangled if symbol is not None else location.engine.partition("+")[0]
        name = go_name(name) if frame.source != CALLED else ""
        if not name and frame.pc == self.trampoline:
            name = TRAMPOLINE_NAME
        if not name and self._session.supervisor is not None:
            name = self._session.supervisor.engine_name(frame.pc)
        offset = location.offset + frame.pc - frame.place if module is not None else 0
        views.append(
            GuestFrame(
                frame.pc,
                name,
                offset,
                path,
                file,
                number,
                len(views),
                frame.cfa,
                frame.source,
                trampoline,
                False,
                frame.signal,
                frame.registers,
                thread,
            )
        )


def _has_go(space: AddressSpace) -> bool:
    """True if the program in an address space is Go's."""
    main = space.modules.main
    return main is not None and main.image.once(has_go)


def space_of(session: Session, frame: GuestFrame) -> AddressSpace | None:
    """The address space of a frame's addresses, where that is not the one of the running thread.

    None for the latter, and where the thread has ended.
    """
    thread = session.machine.threads.get(frame.thread) if frame.thread else None
    return None if thread is None else thread.space


def _code(read: ReadMemory, hooks: SpaceHooks, address: int, size: int) -> bytes:
    """Original code; fewer bytes where the memory ends."""
    for count in range(size, 0, -1):
        try:
            return hooks.original(address, read(address, count))
        except GuestFaultError:
            continue
    return b""


def _executable(memory: Memory, address: int) -> bool:
    mapping = memory.find(address)
    return mapping is not None and bool(mapping.perms & EXECUTE)


def comparison(name: str) -> Comparison:
    """The unwinder of a name.

    Raises:
        CommandError: there is none.
    """
    try:
        return by_name(name)
    except KeyError:
        known = ", ".join(unwinder.name for unwinder in UNWINDERS)
        raise CommandError(f"no unwinder {name!r}; there are {known}") from None
