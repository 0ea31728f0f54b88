"""The places on the stack where a frame has saved its caller's registers, by unwind tables."""

from engine.session.guest.session import Session
from engine.session.inspect.backtrace import space_of
from engine.session.protocol.frames import GuestFrame
from engine.unwind.dwarf import DwarfTables
from engine.unwind.rows import AtCfa


def saved_registers(session: Session, frame: GuestFrame, *, exact: bool) -> list[tuple[str, int]]:
    """Names and addresses, in the order of the architecture's registers.

    Args:
        session: the guest.
        frame: the frame.
        exact: its pc is where it goes on, not behind a call.
    """
    arch, cfa = session.arch, frame.cfa
    space = space_of(session, frame) or session.seen
    row = DwarfTables(arch, space.modules.at).row(frame.pc, exact)
    if row is None or cfa is None:
        return []
    places = {
        name: cfa + rule.offset for name, rule in row.rules.items() if isinstance(rule, AtCfa)
    }
    if row.return_register in places and row.return_register != arch.roles.link:
        places[arch.roles.pc] = places.pop(row.return_register)
    order = [item.name for item in arch.registers]
    return [(name, places[name]) for name in order if name in places]
