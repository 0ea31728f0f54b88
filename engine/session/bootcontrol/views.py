"""Makes the views of a booted kernel that stands: registers, frames, tasks, what is in memory."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.arch.base import Register
from engine.escaping import escaped
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.bootcontrol.tasks import KernelTaskList
from engine.session.bootcontrol.telescope import MachineTelescope
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.views import (
    MappingView,
    ModuleView,
    Origin,
    RegisterView,
    ThreadView,
)
from engine.unwind.unwinder import LIMIT

_PAGE: Final = 1 << 12
_AROUND: Final = 64
"""Pages of a program's code that are looked for on each side of pc."""
_FRAMES: Final = 256
_KERNEL: Final = 1 << 63
"""Addresses of the kernel begin here: what each processor has of its own is linked below."""
_STACK: Final = 1 << 14
"""THREAD_SIZE of x86-64."""


class MachineParts(Struct, frozen=True):
    """The parts of a view that are as of a stop.

    Attributes:
        registers: all that there are.
        frames: of the task in sight, innermost first.
        frames_end: why there are no more.
        listed: the kernel's tasks.
        modules: files in memory: the kernel's own.
        mappings: what is known of the memory.
        comm: name of the task that runs.
        pid: its id.
        location: of pc, in words.
        line: source file and line of pc.
    """

    registers: tuple[RegisterView, ...] = ()
    frames: tuple[GuestFrame, ...] = ()
    frames_end: str = ""
    listed: tuple[ThreadView, ...] = ()
    modules: tuple[ModuleView, ...] = ()
    mappings: tuple[MappingView, ...] = ()
    comm: str = ""
    pid: int = 0
    location: str = ""
    line: tuple[str, int] | None = None


class MachineViewing:
    """Looks at one boot.

    Attributes:
        tasks: the kernel's list of them.
        modules: files in memory: the kernel's own.
    """

    def __init__(self, boot: ControlledBoot, path: str) -> None:
        """Nothing is looked at yet.

        Args:
            boot: the boot.
            path: of the kernel image, as views name it.
        """
        self._boot = boot
        self.tasks = KernelTaskList(boot)
        arch, machine = boot.opened.arch, boot.machine
        gdb = arch.gdb_system
        items = {item.name: item for item in arch.registers}
        for one in gdb().registers if gdb is not None else ():
            if one.source:
                items.setdefault(one.name, Register(one.name, one.bits, group="system"))
        self._items = tuple(item for item in items.values() if machine.has_register(item.name))
        self._before: dict[str, int] = {}
        elf = boot.opened.image.elf
        spans = [(s.vaddr, s.vaddr + s.memsz) for s in elf.load_segments if s.vaddr >= _KERNEL]
        start, end = min(low for low, _ in spans), max(high for _, high in spans)
        self.modules = (ModuleView(path, start, end, 0, main=True),)
        self._listed: tuple[int, int, tuple[ThreadView, ...]] = -1, 0, ()

    def parts(self, pid: int | None, *, by_machinery: bool = False) -> MachineParts:
        """The parts of a view of now.

        Args:
            pid: of a task that does not run and whose stack is looked at; None for what runs.
            by_machinery: what has changed registers since the last view is not the code itself,
                but what serves a kprobe.
        """
        boot = self._boot
        machine = boot.machine
        task = machine.task()
        if machine.modules is not None:
            machine.modules.look()
        telescope = MachineTelescope(boot)
        shown = task.pid if pid is None else pid
        blocks = machine.moment.blocks
        if self._listed[:2] != (blocks, shown):
            self._listed = blocks, shown, self.tasks.views(task.pid, shown)
        frames, end = self._frames(pid, telescope)
        pc = machine.pc
        name, _ = telescope.named(pc)
        if boot.in_program:
            name = f"[program] {pc:#x}"
        bounds = boot.opened.names.bounds(pc)
        return MachineParts(
            self._registers(telescope, "machinery" if by_machinery else "insn"),
            frames,
            end,
            self._listed[2],
            self.modules,
            tuple(sorted(self._mappings(pc), key=lambda one: one.start)),
            escaped(task.comm.decode(errors="replace")),
            task.pid,
            name or f"{pc:#x}",
            boot.opened.lines.line_at(pc) if bounds is not None else None,
        )

    def _registers(self, telescope: MachineTelescope, changer: Origin) -> tuple[RegisterView, ...]:
        machine, before = self._boot.machine, self._before
        views, values = [], {}
        for item in self._items:
            value = machine.register(item.name) & (1 << item.bits) - 1
            old = before.get(item.name, value)
            values[item.name] = value
            meaning = " ".join(name for bit, name in item.flags if value >> bit & 1)
            hops = telescope.follow(value) if item.group == "general" else ()
            origin: Origin = changer if old != value else ""
            views.append(
                RegisterView(item.name, value, item.bits, item.group, origin, old, meaning, hops)
            )
        self._before = values
        return tuple(views)

    def _frames(
        self, pid: int | None, telescope: MachineTelescope
    ) -> tuple[tuple[GuestFrame, ...], str]:
        boot = self._boot
        if pid is not None:
            registers = self.tasks.registers(self.tasks.find(pid))
            if not registers:
                return (), "where the task stands is not known"
            taken = boot.frames.take(_FRAMES, registers)
            return taken.frames, taken.end
        if not boot.in_program:
            taken = boot.frames.take(_FRAMES)
            return taken.frames, taken.end
        found = boot.stacks.program_places(boot.stacks.registers(), LIMIT)
        frames = tuple(
            GuestFrame(pc, "", number=number, source="framepointer" if number else "")
            for number, pc in enumerate(found)
        )
        return frames, "by the program's frame pointers, as Linux walks them"

    # -- memory ---------------------------------------------------------------------------

    def _mappings(self, pc: int) -> Iterator[MappingView]:
        boot = self._boot
        for low, high in (*boot.opened.tables.text, *boot.opened.tables.gone):
            yield MappingView(low, high, "r-xp", "[kernel text]")
        if (modules := boot.machine.modules) is not None:
            for module in modules.loaded.values():
                if module.functions:
                    start = module.functions[0].start & -_PAGE
                    end = -(-module.functions[-1].end // _PAGE) * _PAGE
                    yield MappingView(start, end, "r-xp", f"[{escaped(module.name)}]")
        sp = boot.machine.register(boot.opened.arch.roles.sp)
        if not boot.in_program and boot.machine.read(sp, 1):
            yield MappingView(sp & -_STACK, (sp & -_STACK) + _STACK, "rw-p", "[stack]")
        text = (*boot.opened.tables.text, *boot.opened.tables.gone)
        if not any(low <= pc < high for low, high in text) and not self._is_of_module(pc):
            start = end = pc & -_PAGE
            for _ in range(_AROUND):
                if start and boot.machine.read(start - _PAGE, 1):
                    start -= _PAGE
                if boot.machine.read(end, 1):
                    end += _PAGE
            if end > start:
                yield MappingView(start, end, "r-xp", "[program]" if boot.in_program else "[boot]")

    def _is_of_module(self, pc: int) -> bool:
        modules = self._boot.machine.modules
        return modules is not None and modules.at(pc) is not None
