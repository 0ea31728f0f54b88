"""A kernel's surroundings while its functions are called: who calls them, and what they lack.

Calls wait in a queue and are made one after the other: the first begins when the guest is let
go, the next one where a function returns, which is a trap in a page of its own. What else a
running kernel would see to is done here: faults that its exception table knows, privileged
instructions that a function can do without, the traps of WARN. Code runs unprivileged, and
reaches nothing but the memory that it was given.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.arch.base import TrapKind
from engine.cpu.base import Stop, StopKind
from engine.cpu.ram import EXECUTE
from engine.errors import CommandError, GuestFaultError
from engine.escaping import escaped
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.btftypes import BtfFunction, BtfType, BtfTypes
from engine.insn.disasm import Disassembler
from engine.linux.thread import Thread
from engine.session.kernel.call_arguments import ArgumentMaker, ImageTypes, PlacedArguments
from engine.session.kernel.call_results import CallResult, ResultTexts
from engine.session.kernel.call_syntax import WrittenCall, read_call
from engine.session.kernel.kernel_memory import KernelMemory, rests
from engine.session.kernel.opened import OpenedKernel

PRINTED: Final = 0x80
"""The return address of a text's formatting; nothing can be mapped there."""
FAILED: Final = 0xC0
"""The place where a function goes on that cannot be served."""
_TEXT_MAX: Final = 4096
_PRINTED_MAX: Final = 1 << 20
_WARNING: Final = 1
"""BUGFLAG_WARNING (asm-generic/bug.h)."""
_MASK: Final = (1 << 64) - 1


class _Printing(Struct, frozen=True):
    """A text that is being formatted: where it goes, and the registers of its caller."""

    text: int
    registers: dict[str, int]


class KernelSupervisor:
    """Calls functions of one image in one thread.

    Attributes:
        end: the return address of each call.
        memory: what the functions find there.
        arguments: makes what they are given.
        calls: those that wait.
        running: the call at hand; None between two.
        failure: why the call at hand cannot go on; "" while it can.
        aside: somebody else calls a function: nothing that happens then is the call's.
        returned: told of each call that is over, well or not.
        idle: told that no call is left, or that none is to follow the one that is over.
        pauses: none is to.
        failed: told that one cannot go on, and why.
        print: takes a line that the kernel prints.
        refused: told of a call that cannot be made, and why; it is passed over. None: such a call
            is an error.
    """

    def __init__(self, opened: OpenedKernel, thread: Thread, path: str) -> None:
        """Map an image into a thread's memory; nothing is called yet.

        Args:
            opened: the image.
            thread: it runs the functions.
            path: guest path of the image.
        """
        self._opened = opened
        self._thread = thread
        self._arch = opened.guest_arch
        self._rules = opened.calls
        self._cpu = thread.cpu
        space = thread.space
        self._space = space
        self.memory = KernelMemory(opened, space.memory, space.modules, path)
        self.end = self.memory.end
        self._types = _types_of(opened)
        find = opened.names.find
        names = ImageTypes(self._named_type, self._enumerator, find, self._is_code)
        self.arguments = ArgumentMaker(self.memory, self._rules, names)
        self._texts = ResultTexts(space.memory, self._shown_address, self._types)
        self._disassembler = Disassembler(self._arch)
        self.calls: deque[WrittenCall] = deque()
        self.running: WrittenCall | None = None
        self.failure = ""
        self.aside = self.pauses = False
        self.returned: Callable[[CallResult], object] = lambda result: None
        self.idle: Callable[[], object] = lambda: None
        self.failed: Callable[[str], object] = lambda why: None
        self.print: Callable[[str], object] = lambda line: None
        self.refused: Callable[[str, str], object] | None = None
        self._known: BtfFunction | None = None
        self._result: int | None = None
        self._before: dict[str, bytes] = {}
        self._printing: list[_Printing] = []
        self._printed: list[str] = []
        self._line = ""
        self._stubs: dict[str, None] = {}
        self._refusal = 0, ""
        self._rules.start(self._cpu, self.memory.percpu, self.memory.task)
        self._cpu.write_register(self._arch.roles.pc, self.memory.trap)
        self._cpu.write_register(self._arch.roles.sp, self.memory.stack)

    # -- types and names ----------------------------------------------------------------

    def _named_type(self, name: str, word: str) -> BtfType | None:
        found = (types.named(name, word) for types in self._types)
        return next((one for one in found if one is not None), None)

    def _enumerator(self, name: str) -> int | None:
        for types in self._types:
            found = types.enumerator(name)
            if found is not None:
                return found[1]
        return None

    def _function(self, name: str) -> BtfFunction | None:
        found = (types.function(name) for types in self._types)
        return next((one for one in found if one is not None), None)

    def _is_code(self, address: int) -> bool:
        mapping = self._space.memory.find(address)
        return mapping is not None and bool(mapping.perms & EXECUTE)

    def named(self, address: int) -> str:
        """An address as SYMBOL+OFF."""
        if address == self.end:
            return "the call itself"
        found = self._opened.names.bounds(address)
        return f"{address:#x}" if found is None else f"{found[0]}+{address - found[1]:#x}"

    def rests(self, pc: int) -> bool:
        """True if no function is called where pc stands."""
        return rests(self._rules, pc)

    def engine_name(self, address: int) -> str:
        """The name of a place that is no function's; "" for none."""
        if self.rests(address):
            return "[end of calls]"
        return "[printk]" if address == PRINTED else ""

    def _shown_address(self, address: int) -> str:
        """The words behind an address that say what lies there; "" for nothing that is known."""
        for name, buffer in self.arguments.buffers.items():
            if buffer.address <= address < buffer.address + max(buffer.size, 1):
                return f"({name}+{address - buffer.address:#x})"
        found = self._opened.names.bounds(address)
        return "" if found is None else f"<{self.named(address)}>"

    # -- calls --------------------------------------------------------------------------

    def add(self, texts: Sequence[str]) -> None:
        """Have calls made behind those that wait.

        Raises:
            CommandError: one is none, or the image has no such function.
        """
        written = [read_call(text) for text in texts]
        for each in written if self.refused is None else ():
            self._entry(each)
        self.calls.extend(written)

    def enter(self, text: str) -> None:
        """Have a call made next, before those that wait.

        Raises:
            CommandError: another call is at hand and can go on; or as `add`.
        """
        if self.running is not None and not self.failure:
            raise CommandError(
                f"in the middle of {self.running.text}; let it return first, or start afresh"
            )
        written = read_call(text)
        self._entry(written)
        self.give_up()
        self.calls.appendleft(written)

    def _entry(self, written: WrittenCall) -> int:
        """Address of the function that is called."""
        address = self._opened.names.find(written.function)
        if address is None:
            raise CommandError(f"{written.text}: no function {written.function} in the image")
        return address

    def begin(self) -> bool:
        """Enter the next call that can be made; False if there is none.

        Raises:
            CommandError: arguments are not of the function's types, and nobody is told of that.
        """
        while self.calls:
            written = self.calls.popleft()
            try:
                address = self._entry(written)
                placed = self.arguments.place(written, self._function(written.function))
            except CommandError as error:
                if self.refused is None:
                    raise
                self.refused(written.text, str(error))
                continue
            self._begin(written, address, placed)
            return True
        return False

    def _begin(self, written: WrittenCall, address: int, placed: PlacedArguments) -> None:
        self.running, self.failure = written, ""
        self._known, self._result = placed.known, placed.result
        buffers = self.arguments.buffers
        self._before = {name: self._peek(b.address, b.size) for name, b in buffers.items()}
        self._printed, self._stubs = [], {}
        cpu, rules = self._cpu, self._rules
        for name, value in zip(rules.arguments, placed.registers, strict=False):
            cpu.write_register(name, value)
        if placed.result is not None:
            cpu.write_register(rules.large_result, placed.result)
        stack = (self.memory.stack - len(placed.stack)) & -16
        self.memory.poke(stack, placed.stack)
        self._enter(address, stack, self.end)

    def _enter(self, address: int, stack: int, back: int) -> None:
        """Be at the first instruction of a function that returns to an address."""
        cpu, rules = self._cpu, self._rules
        if rules.link:
            cpu.write_register(rules.link, back)
        else:
            stack -= 8
            self.memory.poke(stack, back.to_bytes(8, "little"))
        cpu.write_register(self._arch.roles.sp, stack)
        cpu.write_register(self._arch.roles.pc, address)

    def _over(self) -> None:
        """The call at hand has returned, or none was at hand: go on with the next."""
        if self.running is not None:
            first, second = (self._cpu.read_register(name) for name in self._rules.results)
            raw = first.to_bytes(8, "little") + second.to_bytes(8, "little")
            if self._result is not None:
                raw = self._peek(self._result, self._known.returns.size or 0 if self._known else 0)
            self._tell(raw, "")
            self.running = None
        if self.pauses or not self.begin():
            self._cpu.write_register(self._arch.roles.pc, self.memory.trap)
            self._cpu.write_register(self._arch.roles.sp, self.memory.stack)
            self.idle()

    def fail(self, why: str) -> None:
        """The call at hand cannot go on."""
        first, self.failure = not self.failure, why
        if first and self.running is not None:
            self._tell(b"", why)
        self.failed(why)

    def give_up(self) -> None:
        """Leave the call at hand, if there is one; memory stays as it is."""
        self.running, self.failure = None, ""
        self._printing.clear()
        self._cpu.write_register(self._arch.roles.pc, self.memory.trap)
        self._cpu.write_register(self._arch.roles.sp, self.memory.stack)

    def _tell(self, raw: bytes, failure: str) -> None:
        written = self.running
        assert written is not None, "a call is over"
        if self._line:
            self._print_line()
        value, shown, kind = None, "", ""
        if not failure:
            value, shown, kind = self._texts.result(self._known, raw)
        buffers = []
        for name, buffer in self.arguments.buffers.items():
            data = self._peek(buffer.address, buffer.size)
            changed = data != self._before.get(name)
            buffers.append(self._texts.buffer(name, buffer, data, changed=changed))
        self.returned(
            CallResult(
                written.text,
                kind,
                value,
                shown,
                tuple(buffers),
                "".join(self._printed),
                tuple(self._stubs),
                failure,
            )
        )

    def _peek(self, address: int, size: int) -> bytes:
        return self._space.memory.peek(address, size)

    # -- exceptions ---------------------------------------------------------------------

    def excepted(self, stop: Stop) -> bool:
        """See to an exception of the processor; False if it is not the kernel's."""
        pc = self._thread.pc()
        if stop.kind is StopKind.FAULT:
            if stop.access == "execute" and pc == stop.address:
                if pc == PRINTED and self._printing:
                    self._formatted()
                    return True
                if pc == FAILED:
                    self._cpu.write_register(self._arch.roles.pc, self._refusal[0])
                    self.fail(self._refusal[1])
                    return True
            if self._fix_up(pc, stop.address):
                return True
        elif stop.trap is TrapKind.BREAKPOINT and pc - self._rules.trapped_at == self.memory.trap:
            self._over()
            return True
        elif stop.trap in (TrapKind.PRIVILEGED, TrapKind.ILLEGAL) and self._trapped(pc):
            return True
        if self.aside:
            return False
        self.fail(self._why(stop, pc))
        return True

    def _fix_up(self, pc: int, address: int) -> bool:
        """Go on where the exception table says, if it knows the instruction."""
        for opened in (self._opened, self._opened.base):
            entries = opened.sites.exceptions if opened is not None else ()
            at = bisect_left(entries, pc, key=lambda entry: entry.insn)
            if at < len(entries) and entries[at].insn == pc:
                memory = self._space.memory
                try:
                    self._rules.fix_up(self._cpu, memory, entries[at], address)
                except GuestFaultError:
                    return False
                return True
        return False

    def _trapped(self, pc: int) -> bool:
        """Carry out a privileged instruction, or pass a WARN by."""
        raw = self._code(pc)
        taken = self._rules.emulate(self._cpu, raw, self.memory.task)
        for opened in (self._opened, self._opened.base) if not taken else ():
            bugs = opened.sites.bugs if opened is not None else ()
            at = bisect_left(bugs, pc, key=lambda bug: bug.address)
            if at < len(bugs) and bugs[at].address == pc and bugs[at].flags & _WARNING:
                self._say(f"WARNING: at {self._place_of(bugs[at].file, bugs[at].line, pc)}\n")
                insns = self._disassembler.decode(pc, raw)
                taken = insns[0].size if insns else 0
        if taken:
            self._cpu.write_register(self._arch.roles.pc, pc + taken)
        return bool(taken)

    def _place_of(self, file: int, line: int, pc: int) -> str:
        try:
            name = self._space.memory.read_cstring(file, 256).decode("utf-8", "replace")
        except GuestFaultError:
            name = ""
        return f"{escaped(name)}:{line} {self.named(pc)}" if name else self.named(pc)

    def _code(self, address: int) -> bytes:
        try:
            raw = self._space.memory.peek(address, self._arch.insn_max)
        except GuestFaultError:
            return b""
        return self._space.hooks.original(address, raw)

    def _why(self, stop: Stop, pc: int) -> str:
        """A stop that is no end, in words."""
        where = self.named(pc)
        if stop.kind is StopKind.FAULT:
            mapping = self._space.memory.find(stop.address)
            what = "where nothing is mapped"
            if mapping is not None:
                what = f"in {mapping.name.rsplit('/', 1)[-1] or 'memory'}, which refuses that"
            return f"{stop.access} of {stop.address:#x}, {what}, at {where}"
        for opened in (self._opened, self._opened.base):
            bugs = opened.sites.bugs if opened is not None else ()
            at = bisect_left(bugs, pc, key=lambda bug: bug.address)
            if at < len(bugs) and bugs[at].address == pc:
                return f"kernel BUG at {self._place_of(bugs[at].file, bugs[at].line, pc)}"
        insns = self._disassembler.decode(pc, self._code(pc))
        text = insns[0].text if insns else "no instruction"
        kind = stop.trap.name.lower() if stop.kind is StopKind.TRAP else stop.kind.name.lower()
        hardware = ": it needs the hardware" if stop.trap is TrapKind.PRIVILEGED else ""
        return f"{kind} trap of '{text}' at {where}{hardware}"

    # -- what is served -----------------------------------------------------------------

    def stub(self, name: str) -> int:
        """An import that nobody exports is called."""
        self._stubs[name] = None
        return 0

    def refuse(self, what: str) -> None:
        """A function that cannot be served is entered: the guest goes on to the report."""
        text = f"{what}; called from {self.named(self.return_address())}"
        self._refusal = self._thread.pc(), text
        self._cpu.write_register(self._arch.roles.pc, FAILED)

    def return_address(self) -> int:
        """The address that a function returns to, at its first instruction."""
        if self._rules.link:
            return self._cpu.read_register(self._rules.link)
        sp = self._cpu.read_register(self._arch.roles.sp)
        return int.from_bytes(self._peek(sp, 8), "little")

    def leave(self, result: int) -> None:
        """Return from a function at its first instruction."""
        cpu, rules = self._cpu, self._rules
        cpu.write_register(rules.results[0], result & _MASK)
        back = self.return_address()
        if not rules.link:
            sp = self._arch.roles.sp
            cpu.write_register(sp, cpu.read_register(sp) + 8)
        cpu.write_register(self._arch.roles.pc, back)

    def argument(self, number: int) -> int:
        """An argument, at the first instruction of a function."""
        return self._cpu.read_register(self._rules.arguments[number])

    def format(self, form: int, values: int) -> bool:
        """Have the kernel's own vsnprintf format a text for printk; False if it has none.

        Args:
            form: address of the format.
            values: address of the va_list.
        """
        function = self._opened.names.find("vsnprintf")
        text = self.memory.room(_TEXT_MAX)
        if function is None or not text:
            return False
        roles, cpu = self._arch.roles, self._cpu
        names = (roles.sp, roles.pc, *((self._rules.link,) if self._rules.link else ()))
        kept = {name: cpu.read_register(name) for name in names}
        self._printing.append(_Printing(text, kept))
        for name, value in zip(
            self._rules.arguments, (text, _TEXT_MAX, form, values), strict=False
        ):
            cpu.write_register(name, value)
        self._enter(function, (kept[roles.sp] - 16) & -16, PRINTED)
        return True

    def _formatted(self) -> None:
        """A text is formatted: print it, and return from printk."""
        done = self._printing.pop()
        raw = self._peek(done.text, _TEXT_MAX).split(b"\0")[0]
        for name, value in done.registers.items():
            self._cpu.write_register(name, value)
        text = _without_level(raw).decode("utf-8", "replace")
        self._say(text)
        self.leave(len(text))

    def _say(self, text: str) -> None:
        if sum(map(len, self._printed)) < _PRINTED_MAX:
            self._printed.append(text)
        self._line += text
        while "\n" in self._line:
            self._print_line()

    def _print_line(self) -> None:
        line, _, self._line = self._line.partition("\n")
        self.print(line)


def _types_of(opened: OpenedKernel) -> tuple[BtfTypes, ...]:
    """The types of an image, a module's own first."""
    images = (opened.image, opened.image.kernel)
    found = [btf_of(image.elf) for image in images if image is not None and image.btf is not None]
    return tuple(types for types in found if types is not None)


def _without_level(raw: bytes) -> bytes:
    """A printed text without the level in front (KERN_SOH)."""
    return raw[2:] if raw[:1] == b"\x01" else raw
