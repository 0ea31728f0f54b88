"""Hits of the kernel's own kprobes as front ends show them."""

from typing import Final

from msgspec.structs import replace

from engine.arch.machine import Insn
from engine.insn.disasm import Disassembler
from engine.machine.kprobephases import BRANCH, ServingCode
from engine.machine.probedplaces import ProbedPlace
from engine.session.bootcontrol.boot import ControlledBoot
from engine.session.bootcontrol.kernel_hits import KernelHit, KernelHits
from engine.session.bootcontrol.places import KernelPlaceNames
from engine.session.protocol.views import DetourPart, DetourView, HitView

_NOP: Final = bytes.fromhex("0f1f440000")
"""The instruction at a function's call of ftrace while that is off."""
_LISTED: Final = 16
"""Instructions of a part of a detour that are listed."""
_AT_SLOT_END: Final = "the saved ip is put behind the probed place"


class KernelHitViewing:
    """Shows the hit that one machine stands in."""

    def __init__(self, boot: ControlledBoot, hits: KernelHits) -> None:
        """Look at the hits of a boot."""
        self._boot, self._hits, self._machine = boot, hits, boot.machine
        self._names = KernelPlaceNames(boot)
        self._arch = boot.opened.arch
        self._disassembler = Disassembler(self._arch)

    @property
    def view(self) -> HitView | None:
        """The hit as front ends show it; None where the machine stands in none."""
        hit = self._hits.hit
        if hit is None:
            return None
        route = hit.route
        original, planted = self._site(hit)
        insn = self._listed(hit.address, original)
        slot = route.slot if route.how == "int3" else None
        code = self._machine.read(route.slot, route.slot_size) if slot else b""
        phase = hit.phase
        traps = slot is not None and any(each.name == "fix-up" for each in route.phases)
        return HitView(
            address=hit.address,
            place=self._names.text(hit.address),
            probes=tuple(
                probe.name or self._names.text(probe.returned or probe.handler)
                for probe in hit.probes
            ),
            route=tuple(each.name for each in route.phases),
            done=hit.done,
            next=phase.name if phase is not None else "",
            how=route.how,
            reason=f"a kprobe of the kernel's own: {route.why}",
            original=original,
            planted=planted,
            insn=insn[0].text if insn else "",
            slot=slot or None,
            slot_bytes=code,
            slot_text=tuple(
                f"{one.address:x}  {one.text}" for one in self._listed(route.slot, code)
            ),
            fixups=(_AT_SLOT_END,) if traps else (),
            returns_to=hit.leads_to or None,
            detour=self._detour(hit) if route.detour else None,
        )

    def _site(self, hit: KernelHit) -> tuple[bytes, bytes]:
        """The bytes of the probed instructions, and those that stand in their place."""
        place, read = hit.place, self._machine.read
        if place is None:
            found = self._listed(hit.address, read(hit.address, self._arch.insn_max))
            return (found[0].raw if found else b""), b""
        standing = read(hit.address, self._arch.insn_max)
        if hit.route.how == "called":
            return _NOP, standing[:BRANCH]
        original = bytes([place.opcode]) + standing[1:]
        if hit.route.how == "detour":
            original = bytes([place.opcode]) + place.covered + standing[BRANCH:]
            return original[: place.moved], standing[:BRANCH]
        found = self._listed(hit.address, original)
        return (found[0].raw if found else original[:1]), standing[:1]

    def _listed(self, address: int, code: bytes) -> list[Insn]:
        return list(self._disassembler.decode(address, code)) if code else []

    def _detour(self, hit: KernelHit) -> DetourView:
        """The buffer of a jump, or the trampoline of a call."""
        route, place, serving = hit.route, hit.place, self._hits.serving
        assert place is not None, "a place with a detour is known"
        assert serving is not None, "what serves it is known"
        standing = self._machine.read(hit.address, BRANCH)
        jump = self._listed(hit.address, standing)
        window, _ = self._site(hit)
        pc = self._machine.pc
        parts = [self._part("trampoline", route.detour, self._size_at(route.detour))]
        if route.how == "detour":
            parts = self._parts(hit, place, serving, window)
        inside = any(part.start <= pc < part.start + part.size for part in parts)
        return DetourView(
            window, jump[0].text if jump else "", "", tuple(parts), pc if inside else None,
            what="called" if route.how == "called" else "detour",
        )  # fmt: skip

    def _size_at(self, address: int) -> int:
        """Bytes of a trampoline of ftrace's: the image has one, others are copies of that."""
        find = self._boot.opened.image.names.find
        start, end = find("ftrace_regs_caller"), find("ftrace_regs_caller_end")
        bounds = self._boot.opened.names.bounds(address)
        if bounds is not None and bounds[1] == address:
            return bounds[2] - bounds[1]
        return end - start if start and end else 1

    def _parts(
        self, hit: KernelHit, place: ProbedPlace, serving: ServingCode, window: bytes
    ) -> list[DetourPart]:
        start, slot = hit.route.detour, hit.route.slot
        call = start + serving.saving
        parts = [
            self._part("save", start, serving.saving),
            self._part("call", call, BRANCH),
            self._part("restore", call + BRANCH, slot - call - BRANCH),
        ]
        at = slot
        for one in self._listed(hit.address, window):
            moved = self._listed(at, self._machine.read(at, slot + place.moved - at))
            if not moved:
                break
            size = moved[0].size
            part = self._part("out of line", at, size)
            parts.append(replace(part, original=(one.address, one.text)))
            at += size
        parts.append(self._part("resume", slot + place.moved, BRANCH))
        return parts

    def _part(self, name: str, start: int, size: int) -> DetourPart:
        code = self._listed(start, self._machine.read(start, size))[:_LISTED]
        return DetourPart(name, start, size, tuple((one.address, one.text) for one in code))

    @property
    def location(self) -> str:
        """The name of pc where that is in a slot or a detour of the hit; "" elsewhere."""
        hit, pc = self._hits.hit, self._machine.pc
        if hit is None or hit.phase is None:
            return ""
        route, place = hit.route, self._names.text(hit.address)
        if route.slot <= pc < route.slot + route.slot_size and not route.detour:
            return f"slot of {place}"
        end = route.slot + route.slot_size if route.slot else route.detour + 1
        if route.detour and route.detour <= pc < end:
            return f"{'detour' if route.slot else 'trampoline'} of {place}"
        return ""

    @property
    def lines(self) -> list[str]:
        """The hit in words, one line for each thing."""
        view = self.view
        if view is None:
            return []
        arrow = " -> "
        at = len(view.done)
        names = [f"[{name}]" if n + 1 == at else name for n, name in enumerate(view.route)]
        lines = [f"{view.place}: {', '.join(view.probes)}", view.reason, arrow.join(names)]
        if view.done:
            last = view.done[-1]
            lines.append(f"{last.name}: {last.text}; pc {last.before:#x} -> {last.after:#x}")
            lines += [f"  {name} {old:#x} -> {new:#x}" for name, old, new in last.registers]
            lines += [
                f"  {one.what} {one.address:#x} {one.old.hex(' ')} -> {one.new.hex(' ')}".rstrip()
                for one in last.changes
            ]
        if view.slot is not None:
            lines.append(f"slot {view.slot:#x}: {'; '.join(view.slot_text)}")
        return lines
