"""A probed bundle for people: template and slots, the break, the copy, the boost."""

from engine.arch.drawing import DrawnHit, Role, UnitDrawing, UnitPart
from engine.arch.ia64.bundle import SIZE, unpack
from engine.arch.ia64.decode import SlotInsn, decode_bundle
from engine.arch.ia64.text import parts
from engine.arch.plan import InsnPlan

Slot = tuple[str, str, str]


def draw(plan: InsnPlan, hit: DrawnHit) -> tuple[UnitDrawing, ...]:
    """The bundle at the site, its copy, and the bundle behind that.

    Args:
        plan: of the instruction that is hit.
        hit: what stands where.
    """
    own = plan.address - plan.base
    found = [_site(plan, own, hit.standing)]
    if hit.slot is not None and len(hit.code) >= SIZE:
        found.append(_copy(plan, hit, hit.slot))
    if hit.slot is not None and len(hit.code) >= 2 * SIZE:
        found.append(_boost(hit, hit.slot + SIZE))
    return tuple(found)


def _site(plan: InsnPlan, own: int, standing: bytes) -> UnitDrawing:
    rows = []
    before = _slots(plan.raw, plan.base)
    for number, now in enumerate(_slots(standing, plan.base)):
        name, word, text = now
        was = before[number]
        role: Role = "" if now == was else "break" if number == own else "other"
        rows.append(UnitPart(name, word, text, role, was[2] if role else ""))
    return UnitDrawing("site", plan.base, _form(standing), tuple(rows))


def _copy(plan: InsnPlan, hit: DrawnHit, slot: int) -> UnitDrawing:
    rows = []
    for number, (name, word, text) in enumerate(_slots(hit.code, slot)):
        behind: Role = "run" if hit.boosted and number > plan.entry else "idle"
        rows.append(UnitPart(name, word, text, "step" if number == plan.entry else behind))
    return UnitDrawing("copy", slot, _form(hit.code), tuple(rows))


def _boost(hit: DrawnHit, address: int) -> UnitDrawing:
    raw = hit.code[SIZE : 2 * SIZE]
    role: Role = "jump" if hit.boosted else "idle"
    rows = [UnitPart(*slot, role) for slot in _slots(raw, address)]
    return UnitDrawing("boost", address, _form(raw), tuple(rows))


def _form(raw: bytes) -> str:
    """The template: its number, its units, and where groups of instructions end."""
    bundle = unpack(raw)
    units = "".join(
        unit + (";" if bundle.stop_after(slot) else "") for slot, unit in enumerate(bundle.units)
    )
    return f"template {bundle.template:02x}, {units or 'reserved'}"


def _slots(raw: bytes, address: int) -> list[Slot]:
    """(number and unit, word, text) of each slot; a long instruction is one."""
    bundle = unpack(raw)
    insns = decode_bundle(bundle)
    if not insns:
        return [(f"{slot}  ", f"{word:011x}", "") for slot, word in enumerate(bundle.slots)]
    return [_slot(insn, address) for insn in insns]


def _slot(insn: SlotInsn, address: int) -> Slot:
    text = "undefined"
    if insn.form is not None:
        text = " ".join(filter(None, parts(insn, address)))
    name = f"{insn.slot} LX" if insn.unit == "X" else f"{insn.slot} {insn.unit} "
    return name, f"{insn.word:011x}", text
