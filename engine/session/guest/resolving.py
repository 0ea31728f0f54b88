"""Which code the indirect functions of a program stand for in a guest (IFUNC, STT_GNU_IFUNC).

The choice depends on the guest's processor and on the loader's state. So a second guest is started
in the same way, runs up to where its loader is done, and calls the resolver there. A static
program relocates itself: there the place is the first resolver that it calls. Constructors of
libraries run in that guest, too: nothing that they do reaches the host.

The arguments of a resolver are those of glibc, elf/dl-irel.h of each architecture.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from engine.arch.plan import Mode, Rules
from engine.cpu.base import StopKind
from engine.errors import CommandError, ProbeRejectedError
from engine.image import Symbol
from engine.linux.ending import Exit
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs
from engine.session.program.implementations import not_in_a_file
from engine.session.program.libraries import Program, ProgramFile

if TYPE_CHECKING:
    from engine.session.guest.session import Session

_RETURN: Final = 0x40
"""A resolver's return address: below all that can be mapped, and aligned everywhere."""
_RED_ZONE: Final = 512
_ALIGNED: Final = 16
_LONGEST: Final = 1_000_000
"""Ticks after which a resolver counts as one that never returns."""
_WITH_SIZE: Final = 1 << 62
"""_IFUNC_ARG_HWCAP: the second argument is a structure that begins with its size."""


class GuestChoice:
    """Asks a guest for the code of indirect functions; satisfies `ResolverCalls`."""

    where: Final = "in this run"

    def __init__(self, program: Program, another: "Callable[[], Session]") -> None:
        """Nothing is started before the first question.

        Args:
            program: the files.
            another: makes a guest that has not run yet, of the same program.
        """
        self._program = program
        self._another = another
        self._guest: ResolvingGuest | None = None

    def ask(self, file: ProgramFile, symbol: Symbol) -> tuple[ProgramFile, int]:
        """The file and the link address of what an indirect function stands for.

        Raises:
            KprobeTuiError: it cannot be known before the program runs, or is in no file.
        """
        if self._guest is None:
            self._guest = ResolvingGuest(self._another())
        guest = self._guest
        address = guest.resolve(file, symbol)
        module = guest.session.modules.at(address)
        owner = None
        if module is not None:
            owner = self._program.at_path(module.name)
        if module is None or owner is None:
            mapping = guest.session.memory.find(address)
            place = f"at {address:#x}" if mapping is None else f"in {mapping.name or 'no file'}"
            raise not_in_a_file(symbol, self.where, place)
        return owner, address - module.bias

    def close(self) -> None:
        """Give the second guest back."""
        if self._guest is not None:
            self._guest.close()
            self._guest = None


class ResolvingGuest:
    """A guest that stands where resolvers can be called.

    Attributes:
        session: the guest's session.
    """

    def __init__(self, session: "Session") -> None:
        """Let it run up to there.

        Raises:
            KprobeTuiError: it does not come there.
        """
        self.session = session
        self._reached = False
        try:
            probing = session.probes(Mode.KERNEL)
            planted: list[Kprobe] = []
            for address in self._goals():
                probe = Kprobe(addr=address, pre_handler=self._arrived, rules=Rules.UPROBE)
                try:
                    probing.manager.register(probe)
                except ProbeRejectedError:
                    continue
                planted.append(probe)
            session.kernel.run()
            if not self._reached:
                end = session.machine.exit
                slow = end is not None and end.limit
                why = "takes too long to begin" if slow else "ends before it begins"
                raise CommandError(f"the program {why}")
            session.machine.exit = None
            for probe in planted:
                probing.manager.unregister(probe)
        except BaseException:
            session.close()
            raise

    def _goals(self) -> list[int]:
        """Addresses at which resolvers can be called: the program's entry, or all of its own."""
        session = self.session
        bias = session.modules.main.bias if session.modules.main is not None else 0
        if session.image.interpreter is not None:
            return [session.image.entry + bias]
        main = session.probes().verdicts.main
        found = {s.address for s in main.symbols.functions() if s.kind == "ifunc"}
        return [address + bias for address in sorted(found)]

    def _arrived(self, probe: Kprobe, regs: PtRegs) -> None:
        if not self._reached:
            self._reached = True
            self.session.kernel.stop(Exit(limit="resolver"))

    def resolve(self, file: ProgramFile, symbol: Symbol) -> int:
        """The guest address that the resolver of a symbol returns.

        Raises:
            KprobeTuiError: the file is not there, or the resolver does not return.
        """
        session = self.session
        modules = (
            session.modules.at(mapping.start)
            for mapping in session.memory.mappings
            if mapping.name in file.paths
        )
        module = next((found for found in modules if found is not None), None)
        if module is None:
            raise CommandError(
                f"{file.path} is not loaded when the program begins; "
                f"{symbol.name}@resolver is the resolver"
            )
        kept = session.cpu.save()
        try:
            address = self._called(symbol.address + module.bias)
        finally:
            session.cpu.restore(kept)
        if not address:
            raise CommandError("it returns 0")
        return address

    def _called(self, resolver: int) -> int:
        """Call a resolver, with a return address where nothing is mapped; the result."""
        session = self.session
        arch, cpu, memory = session.arch, session.cpu, session.memory
        order: Literal["little", "big"] = "little" if arch.byteorder == "little" else "big"
        word = arch.bits // 8
        structure = b"".join(n.to_bytes(word, order) for n in (3 * word, *arch.linux.hwcap))
        sp = cpu.read_register(arch.roles.sp) - _RED_ZONE & -_ALIGNED
        memory.write(sp, structure)
        given = arch.linux.hwcap[0] | _WITH_SIZE, sp
        for name, value in zip(arch.probes.arguments, given, strict=False):
            cpu.write_register(name, value)
        sp -= _ALIGNED
        if arch.roles.link is None:
            sp -= word
            memory.write(sp, _RETURN.to_bytes(word, order))
        else:
            cpu.write_register(arch.roles.link, _RETURN)
        cpu.write_register(arch.roles.sp, sp)
        cpu.write_register(arch.roles.pc, resolver)
        memory.sync()
        cpu.count_blocks(True)
        stop = cpu.run(_LONGEST)
        if stop.kind is not StopKind.FAULT or stop.address != _RETURN:
            at = session.describe(cpu.read_register(arch.roles.pc))
            raise CommandError(f"it stops at {at}")
        return cpu.read_register(arch.linux.result)

    def close(self) -> None:
        """Give back what belongs to the host."""
        self.session.close()
