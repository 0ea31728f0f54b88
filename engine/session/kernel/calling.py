"""Functions of a kernel image or a module called, one after the other, in an emulator.

The image is mapped at its own addresses, with the text as it runs and its per-CPU data beside; a
stack, a heap and an end for the calls lie in the lower half. Code runs unprivileged: it reaches
nothing but this memory. Functions that need a running kernel's allocator are served here
(`_ALLOCATORS`), what is printed is formatted by the kernel's own snprintf.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from engine.arch.base import Arch, TrapKind
from engine.arch.kernelcalls import KernelCalls
from engine.cpu import cores
from engine.cpu.base import Stop, StopKind
from engine.cpu.ram import EXECUTE, READ, WRITE, Ram
from engine.errors import CommandError, GuestFaultError, ImageError
from engine.guest.memory import Memory
from engine.image.datatypes import TypeKind
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.btftypes import BtfFunction, BtfType
from engine.image.kernel.kernelimage import KernelImage
from engine.image.kernel.modules import STUBS
from engine.insn.disasm import Disassembler
from engine.session.kernel.call_syntax import Argument, Buffer, Contents, Named, WrittenCall
from engine.session.kernel.opened import OpenedKernel

_BASE: Final = 0x2000_0000_0000
_END = _BASE
_STACK, _STACK_SIZE = _BASE + 0x1000_0000, 1 << 16
_PERCPU: Final = _BASE + 0x2000_0000
_TASK, _TASK_SIZE = _BASE + 0x3000_0000, 1 << 16
_HEAP, _HEAP_SIZE = _BASE + 0x4000_0000, 256 << 20
_PERCPU_MOST: Final = 1 << 24
_ROOM: Final = 1 << 30
_PAGE: Final = 4096
_ALIGN: Final = 64
_QUANTUM: Final = 200_000
_TEXT_MAX: Final = 4096
_PRINTED_MAX: Final = 1 << 20
_WORDS_ON_STACK: Final = 8
_MASK: Final = (1 << 64) - 1

_SIZED_FIRST: Final = (
    *("__kmalloc", "__kmalloc_noprof", "__kmalloc_node", "__kmalloc_node_noprof", "kmalloc_large"),
    *("__kmalloc_large_noprof", "kvmalloc_node", "__kvmalloc_node_noprof", "vmalloc", "vzalloc"),
    *("vmalloc_noprof", "vzalloc_noprof", "__vmalloc", "__vmalloc_noprof"),
    *("__kmalloc_node_track_caller", "__kmalloc_node_track_caller_noprof"),
)
_SIZED_THIRD: Final = ("kmalloc_trace", "__kmalloc_cache_noprof")
_FREEING: Final = ("kfree", "kvfree", "vfree", "kfree_sensitive", "kmem_cache_free")
_PRINTING: Final = ("_printk", "printk")
_SLEEPING: Final = {
    "schedule": "it sleeps",
    "schedule_timeout": "it sleeps",
    "__schedule": "it sleeps",
    "wait_for_completion": "it waits for somebody else",
    "msleep": "it sleeps",
    "panic": "the kernel panics",
    "__stack_chk_fail": "the stack was overwritten (stack protector)",
}


class CalledBuffer(Struct, frozen=True):
    """A buffer behind a call.

    Attributes:
        name: of it.
        data: its bytes.
        changed: the call changed it.
    """

    name: str
    data: bytes
    changed: bool


class CallResult(Struct, frozen=True):
    """The outcome of a call.

    Attributes:
        text: the call as written.
        type: of the result in C; "" where the image has no types of the function.
        value: the result as a number of its type; None for void, and where it did not return.
        shown: the result in C's words.
        buffers: those that were named so far.
        printed: text that the kernel printed.
        stubs: names of imports without a function behind them that were called.
        failure: why it did not return; "" where it did.
    """

    text: str
    type: str
    value: int | None
    shown: str
    buffers: tuple[CalledBuffer, ...]
    printed: str
    stubs: tuple[str, ...]
    failure: str


class KernelCaller:
    """One image in an emulator; what calls leave in memory stays for the next one."""

    def __init__(self, opened: OpenedKernel, blocks_max: int) -> None:
        """Map the image and what its functions need.

        Args:
            opened: the image.
            blocks_max: basic blocks that one call may take.

        Raises:
            ImageError: functions of its architecture cannot be called.
        """
        arch = opened.arch
        if arch.kernel_calls is None:
            raise ImageError(f"{opened.image.elf.name}: functions of {arch.name} cannot be called")
        self._opened = opened
        self._arch: Arch = arch
        self._rules: KernelCalls = arch.kernel_calls()
        self._blocks_max = blocks_max
        self._disassembler = Disassembler(arch)
        ram = Ram(budget=_ROOM)
        self._cpu = cores.make(
            cores.Needs(arch, ram, self._disassembler.decode, lambda: 0, os.urandom, 0)
        )
        self._memory = memory = Memory(arch.plan, ram, self._cpu)
        images = [image for image in (opened.image.kernel, opened.image) if image is not None]
        # Where the first processor has its area until the others come (setup_percpu.c).
        self._percpu = images[0].symbol("__per_cpu_load") or _PERCPU
        for image in images:
            self._map(image)
        end = self._rules.trap * 8
        for start, size, perms in (
            (_END, _PAGE, READ | EXECUTE),
            (_STACK - _STACK_SIZE, _STACK_SIZE, READ | WRITE),
            (_TASK, _TASK_SIZE, READ | WRITE),
            (_HEAP, _HEAP_SIZE, READ | WRITE),
        ):
            memory.map(start, size, perms, name="call")
        memory.poke(_END, end)
        self._served: dict[int, Callable[[], int | None]] = {}
        self._stub_names: dict[int, str] = {}
        for image in images:
            self._serve(image)
        memory.activate()
        self._cpu.count_blocks(True)
        self._rules.start(self._cpu, self._percpu, _TASK)
        self._free = _HEAP
        self._buffers: dict[str, tuple[int, int]] = {}
        self._printed: list[str] = []
        self._stubs: dict[str, None] = {}
        self._failure = ""

    # -- memory ------------------------------------------------------------------------

    def _place(self, address: int) -> int:
        """The place of a segment: that of per-CPU data, linked at 0, is the first CPU's area."""
        return address if address >= _PERCPU_MOST else address + self._percpu

    def _map(self, image: KernelImage) -> None:
        elf = image.elf
        spans: list[list[int]] = []
        for segment in sorted(elf.load_segments, key=lambda each: self._place(each.vaddr)):
            start = self._place(segment.vaddr)
            low = start // _PAGE * _PAGE
            high = -(-(start + segment.memsz) // _PAGE) * _PAGE
            if spans and low <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], high)
            else:
                spans.append([low, high])
        for low, high in spans:
            self._memory.map(low, high - low, READ | WRITE | EXECUTE, name="kernel")
        for segment in elf.load_segments:
            start = self._place(segment.vaddr)
            self._memory.poke(start, elf.data(segment.offset, segment.filesz))
        if image is self._opened.image:
            for low, text in self._opened.live.parts():
                self._memory.poke(low, text)

    def _serve(self, image: KernelImage) -> None:
        """Have functions that need a running kernel served here, by breakpoints."""
        first, third = partial(self._allocate, 0), partial(self._allocate, 2)
        served: dict[str, Callable[[], int | None]] = {
            **dict.fromkeys(_SIZED_FIRST, first),
            **dict.fromkeys(_SIZED_THIRD, third),
            **dict.fromkeys(_FREEING, lambda: 0),
            **dict.fromkeys(_PRINTING, self._print),
            **{name: partial(self._refuse, why) for name, why in _SLEEPING.items()},
        }
        for name, action in served.items():
            address = image.symbol(name)
            if address is not None:
                self._served[address] = action
        stubs = image.elf.section(STUBS)
        if stubs is not None:
            for name in image.unresolved:
                address = image.symbol(name)
                if address is not None:
                    self._stub_names[address] = name
                    self._served.setdefault(address, served.get(name) or partial(self._stub, name))
        for address in self._served:
            self._memory.poke(address, self._rules.trap)

    def _room(self, size: int) -> int:
        """Zeroed memory of a size; 0 where there is no more."""
        address = self._free
        if size < 0 or address + size > _HEAP + _HEAP_SIZE:
            return 0
        self._free = -(-(address + max(size, 1)) // _ALIGN) * _ALIGN
        return address

    # -- what is served ----------------------------------------------------------------

    def _given(self, number: int) -> int:
        return self._cpu.read_register(self._rules.arguments[number])

    def _allocate(self, number: int) -> int:
        return self._room(self._given(number))

    def _stub(self, name: str) -> int:
        self._stubs[name] = None
        return 0

    def _refuse(self, why: str) -> None:
        self._failure = why

    def _print(self) -> int:
        """Format what is printed with the kernel's own snprintf."""
        image = self._opened.image.kernel or self._opened.image
        function = image.symbol("snprintf")
        text = self._room(_TEXT_MAX)
        if function is None or not text:
            return 0
        registers = [self._given(number) for number in range(len(self._rules.arguments))]
        sp = self._arch.roles.sp
        pc = self._arch.roles.pc
        kept = [(name, self._cpu.read_register(name)) for name in (sp, pc)]
        if self._rules.link:
            kept.append((self._rules.link, self._cpu.read_register(self._rules.link)))
        above = kept[0][1] + (0 if self._rules.link else 8)
        more = self._memory.peek(above, 8 * _WORDS_ON_STACK)
        words = [int.from_bytes(more[at : at + 8], "little") for at in range(0, len(more), 8)]
        self._enter(function, [text, _TEXT_MAX, *registers, *words], kept[0][1] - 512)
        if not self._run():
            raw = self._memory.peek(text, _TEXT_MAX).split(b"\0")[0]
            if sum(map(len, self._printed)) < _PRINTED_MAX:
                self._printed.append(_without_level(raw).decode("utf-8", "replace"))
        for name, value in kept:
            self._cpu.write_register(name, value)
        return 0

    # -- calls -------------------------------------------------------------------------

    def call(self, written: WrittenCall) -> CallResult:
        """Call a function.

        Raises:
            CommandError: there is no such function, or its arguments are not of its types.
        """
        opened = self._opened
        address = opened.names.find(written.function)
        if address is None:
            raise CommandError(f"{written.text}: no function {written.function} in the image")
        known = self._function(written.function)
        if known is not None and not known.parameters and written.arguments:
            known = None  # assembly, whose prototype is empty
        if known is not None:
            count = len(known.parameters)
            if len(written.arguments) < count or (
                len(written.arguments) > count and not known.variadic
            ):
                wanted = ", ".join(f"{p.type.text} {p.name}".strip() for p in known.parameters)
                raise CommandError(
                    f"{written.text}: {len(written.arguments)} arguments; {written.function}"
                    f" takes {count}: ({wanted or 'void'})"
                )
        values = [self._value(each, written) for each in written.arguments]
        before = {name: self._memory.peek(*place) for name, place in self._buffers.items()}
        self._printed, self._stubs, self._failure = [], {}, ""
        self._enter(address, values, _STACK - 1024)
        failure = self._run()
        value, shown, kind = None, "", ""
        if not failure:
            raw = self._cpu.read_register(self._rules.result)
            value, shown, kind = self._result(known, raw)
        buffers = tuple(
            CalledBuffer(name, data, data != before[name])
            for name, place in self._buffers.items()
            for data in (self._memory.peek(*place),)
        )
        printed = "".join(self._printed)
        return CallResult(
            written.text, kind, value, shown, buffers, printed, tuple(self._stubs), failure
        )

    def _function(self, name: str) -> BtfFunction | None:
        for image in (self._opened.image, self._opened.image.kernel):
            types = btf_of(image.elf) if image is not None else None
            found = types.function(name) if types is not None else None
            if found is not None:
                return found
        return None

    def _value(self, argument: Argument, written: WrittenCall) -> int:
        if isinstance(argument, int):
            return argument
        if isinstance(argument, Named):
            if argument.name in self._buffers:
                return self._buffers[argument.name][0]
            address = self._opened.names.find(argument.name)
            if address is None:
                raise CommandError(
                    f"{written.text}: {argument.name}: neither a buffer nor a symbol"
                )
            return address
        size = argument.size if isinstance(argument, Buffer) else len(argument.data)
        if isinstance(argument, Buffer) and argument.name in self._buffers:
            address, old = self._buffers[argument.name]
            if size > old:
                raise CommandError(f"{written.text}: {argument.name} has {old} bytes")
            return address
        address = self._room(size)
        if not address:
            raise CommandError(f"{written.text}: no memory left for {size} bytes")
        if isinstance(argument, Contents):
            self._memory.poke(address, argument.data)
        else:
            self._buffers[argument.name] = address, size
        return address

    def _enter(self, address: int, values: list[int], stack: int) -> None:
        """Put registers and stack as at the first instruction of a function."""
        cpu, rules = self._cpu, self._rules
        count = len(rules.arguments)
        for name, value in zip(rules.arguments, values, strict=False):
            cpu.write_register(name, value)
        rest = b"".join(value.to_bytes(8, "little") for value in values[count:])
        stack = (stack - len(rest)) // 16 * 16
        self._memory.poke(stack, rest)
        if rules.link:
            cpu.write_register(rules.link, _END)
        else:
            stack -= 8
            self._memory.poke(stack, _END.to_bytes(8, "little"))
        cpu.write_register(self._arch.roles.sp, stack)
        cpu.write_register(self._arch.roles.pc, address)

    def _run(self) -> str:
        """Run up to the end of the call; the reason where it does not come to it."""
        cpu, rules, pc = self._cpu, self._rules, self._arch.roles.pc
        first = cpu.blocks()
        while True:
            left = self._blocks_max - (cpu.blocks() - first)
            if left <= 0:
                return f"it did not return within {self._blocks_max} blocks"
            stop = cpu.run(min(left, _QUANTUM))
            at = cpu.read_register(pc)
            if stop.kind is StopKind.QUANTUM:
                continue
            if stop.kind is StopKind.TRAP and stop.trap is TrapKind.BREAKPOINT:
                place = at - rules.trapped_at
                if place == _END:
                    return ""
                action = self._served.get(place)
                if action is not None:
                    cpu.write_register(pc, place)
                    result = action()
                    if self._failure or result is None:
                        name = self._named(place)
                        return f"{name}: {self._failure}; called from {self._caller()}"
                    self._return(result)
                    continue
            if stop.kind is StopKind.TRAP:
                taken = rules.emulate(cpu, self._code(at), _TASK)
                if taken:
                    cpu.write_register(pc, at + taken)
                    continue
            return self._why(stop, at)

    def _return(self, result: int) -> None:
        cpu, rules = self._cpu, self._rules
        cpu.write_register(rules.result, result & _MASK)
        back = self._return_address()
        if not rules.link:
            sp = self._arch.roles.sp
            cpu.write_register(sp, cpu.read_register(sp) + 8)
        cpu.write_register(self._arch.roles.pc, back)

    def _return_address(self) -> int:
        """The address that a function returns to, at its first instruction."""
        if self._rules.link:
            return self._cpu.read_register(self._rules.link)
        sp = self._cpu.read_register(self._arch.roles.sp)
        return int.from_bytes(self._memory.peek(sp, 8), "little")

    def _caller(self) -> str:
        return self._named(self._return_address())

    def _code(self, address: int) -> bytes:
        try:
            return self._memory.peek(address, self._arch.insn_max)
        except GuestFaultError:
            return b""

    def _why(self, stop: Stop, at: int) -> str:
        """A stop that is no end, in words."""
        where = self._named(at)
        if stop.kind is StopKind.FAULT:
            return f"{stop.access} of {stop.address:#x}, where nothing is mapped, at {where}"
        if at in {bug.address for bug in self._opened.sites.bugs}:
            return f"BUG or WARN at {where}"
        insns = self._disassembler.decode(at, self._code(at))
        text = f"{insns[0].mnemonic} {insns[0].operands}".strip() if insns else "no instruction"
        if stop.kind is StopKind.TRAP:
            return f"{stop.trap.name.lower()} trap of '{text}' at {where}: it needs the hardware"
        return f"{stop.kind.name.lower()} at {where} {stop.detail}".strip()

    def _named(self, address: int) -> str:
        if _END <= address < _END + _PAGE:
            return "the call itself"
        found = self._opened.names.bounds(address)
        return f"{address:#x}" if found is None else f"{found[0]}+{address - found[1]:#x}"

    # -- results -----------------------------------------------------------------------

    def _result(self, known: BtfFunction | None, raw: int) -> tuple[int | None, str, str]:
        """The result as a number, in words, and its type in C."""
        if known is None:
            return raw, f"{raw:#x} ({_signed(raw, 8)})", ""
        text = known.returns.text
        resolved = known.returns
        kind, size = resolved.kind, resolved.size or 8
        if kind is TypeKind.VOID:
            return None, "void", text
        if kind is TypeKind.RECORD:
            data = raw.to_bytes(8, "little")
            return raw, self._record(resolved, data[:size], size), text
        value = raw & (1 << 8 * min(size, 8)) - 1
        if kind is TypeKind.BOOL:
            return value, "true" if value else "false", text
        if kind is TypeKind.POINTER:
            return value, self._pointer(value, text), text
        if resolved.is_signed:
            value = _signed(value, size)
        return value, str(value), text

    @staticmethod
    def _record(kind: BtfType, data: bytes, size: int) -> str:
        """A structure that a register holds, member by member."""
        if size > len(data):
            return f"{size} bytes in memory"
        shown = []
        for member in kind.members:
            width = member.type.size or 0
            if member.name is None or member.bit_size:
                continue
            raw = data[member.offset : member.offset + width]
            value = int.from_bytes(raw, "little", signed=member.type.is_signed)
            shown.append(f"{member.name} = {value}")
        return "{" + ", ".join(shown) + "}"

    def _pointer(self, value: int, text: str) -> str:
        if not value:
            return "NULL"
        if "char" in text:
            try:
                data = self._memory.peek(value, 256)
            except GuestFaultError:
                data = b""
            letters = data.split(b"\0")[0]
            if data:
                return f"{value:#x} {_quoted(letters)}"
        buffer = next(
            (
                f" ({name}+{value - at:#x})"
                for name, (at, size) in self._buffers.items()
                if at <= value < at + size
            ),
            "",
        )
        named = self._opened.names.bounds(value)
        return f"{value:#x}{buffer}" if named is None else f"{value:#x} <{self._named(value)}>"


def _signed(value: int, size: int) -> int:
    half = 1 << 8 * size - 1
    return (value & 2 * half - 1 ^ half) - half


def _without_level(raw: bytes) -> bytes:
    """A printed text without the level in front (KERN_SOH)."""
    return raw[2:] if raw[:1] == b"\x01" else raw


def _quoted(data: bytes) -> str:
    shown = data.decode("latin-1").encode("unicode_escape").decode("ascii")
    return '"' + shown.replace('"', '\\"') + '"'
