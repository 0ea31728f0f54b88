"""The detour buffer of a jump probe as front ends show it."""

from engine.probes.detours import Detour
from engine.probes.djprobe import CPUS
from engine.probes.jump_machine import JumpMachine, Part
from engine.session.guest.session import Session
from engine.session.protocol.views import DetourCounts, DetourPart, DetourView


class DetourViews:
    """Makes views of detour buffers; the last one's instructions are remembered."""

    def __init__(self, session: Session) -> None:
        """Nothing is looked at yet."""
        self._session = session
        self._known: tuple[Detour | None, tuple[DetourPart, ...]] = None, ()

    def of(self, machine: JumpMachine) -> DetourView:
        """The buffer that a hit goes through, and where the guest is in it."""
        session, detour = self._session, machine.detour
        if self._known[0] is not detour:
            self._known = detour, tuple(self._part(part, detour) for part in machine.parts)
        jump = session.disassembler.decode(detour.address, detour.jump)
        pc = session.cpu.read_register(session.arch.roles.pc)
        return DetourView(
            window=detour.original,
            jump=jump[0].text if jump else "",
            held=machine.point.held,
            parts=self._known[1],
            at=pc if detour.start <= pc < detour.end else None,
        )

    def counts(self) -> DetourCounts:
        """How many buffers there are, and what those wait for that nobody needs any more."""
        probing = self._session.probing
        jumps = probing.manager.jumps if probing is not None else None
        if jumps is None:
            return DetourCounts()
        jumps.running.reap()
        found = jumps.detours
        waits = tuple(
            f"{live.detour.address:#x}: "
            + (
                f"{CPUS - len(live.unchecked)} of {CPUS} CPUs have passed its breakpoint"
                if live.unchecked
                else "the guest is still in it"
            )
            for live in found.zombies
        )
        return DetourCounts(len(found) - len(waits), len(waits), waits, found.freed)

    def _part(self, part: Part, detour: Detour) -> DetourPart:
        code = detour.code[part.start - detour.start : part.end - detour.start]
        original = None
        if part.original is not None:
            rest = detour.original[part.original - detour.address :]
            texts = self._listed(part.original, rest)
            original = texts[0] if texts else (part.original, "")
        listed = tuple(self._listed(part.start, code))
        return DetourPart(part.phase.value, part.start, part.end - part.start, listed, original)

    def _listed(self, address: int, code: bytes) -> list[tuple[int, str]]:
        found = self._session.disassembler.decode(address, code)
        return [(item.address, item.text) for item in found]
