"""The panes of an interface compared with the memory and the registers of its guest."""

from collections.abc import Iterator

from flowkit import User

from engine.session.control.control import Control
from engine.session.guest.session import Session
from engine.session.protocol import commands as cmd
from engine.session.protocol.views import RunState
from tui.panes.code_lines import Bytes
from tui.panes.memory_rows import Mode
from tui.render import mark

_WORDS = 4


def session(user: User) -> Session:
    """The guest itself: it stands, and nobody else looks at it."""
    control = user.app.bridge._worker._control
    assert isinstance(control, Control)
    return control.session


async def agree(user: User, what: str, *, told: bool = True) -> None:
    """Wait until what was asked for has come; all panes show the guest as it is then.

    Args:
        user: at the interface.
        what: was done, for the message.
        told: the engine was told something, whose end is waited for.
    """
    found, before = ["nothing was compared"], user.view
    if told:
        user.app.post(cmd.Refresh())  # behind all that was asked before
        await user.until(lambda: user.view is not before, what)

    def compared() -> bool:
        found[:] = differences(user)
        return not found

    try:
        await user.until(compared, what)
    except AssertionError as error:
        raise AssertionError(f"{what}: {found}\n{error}") from None


def differences(user: User) -> list[str]:
    """What panes show otherwise than it is; the guest stands."""
    if user.view.state is RunState.RUNNING:
        return ["it runs"]
    worker = user.app.bridge._worker
    if worker._inbox or worker.outbox._events or worker.outbox._view is not None:
        return ["something is on its way"]
    past = [str(pane.id) for pane in user.panes if pane.has_class("-past")]
    found = [f"{pane} is dimmed" for pane in past]
    found += [*_registers(user), *_stack(user), *_bytes(user), *_code(user), *_frames(user)]
    return [*found, *_hit(user)]


def _read(user: User, address: int, size: int) -> bytes:
    return session(user).seen.memory.read(address, size)


def _register(user: User, name: str) -> int:
    return session(user).cpu.read_register(name)


def _registers(user: User) -> Iterator[str]:
    source = user.panes.registers.source
    if not source.registers:
        yield "no registers"
    for register in source.registers:
        value = _register(user, register.name)
        if value != register.value:
            yield f"{register.name}: {register.value:#x}, not {value:#x}"


def _stack(user: User) -> Iterator[str]:
    source, looks = user.panes.memory.source, user.panes.memory.lines.looks
    if source.mode is not Mode.STACK:
        return
    sp = _register(user, session(user).arch.roles.sp)
    for number in range(min(_WORDS, source.count)):
        line = source.plain(number, looks)
        at = (sp & -8) + 8 * number
        value = int.from_bytes(_read(user, at, 8), "little")
        if not f"{line} ".startswith(f"{at:x} {value:#x} "):
            yield f"stack: {line}, not {at:x} {value:#x}"
        if (f"{mark('leave')} sp" in line) is not (at == sp):
            yield f"stack: sp is {sp:x}: {line}"


def _bytes(user: User) -> Iterator[str]:
    pane = user.panes.memory
    if pane.source.mode is not Mode.BYTES or not pane.display:
        return
    at = pane.source.address(pane.lines.cursor)
    line = pane.source.plain(pane.lines.cursor, pane.lines.looks)
    if f"{at:012x}  {_read(user, at, 4).hex(' ')}" not in line:
        yield f"bytes: {line}"


def _code(user: User) -> Iterator[str]:
    code, view, guest = user.code, user.view, session(user)
    text = user.screen
    rows = [line.row for line in code._lines if not line.heading]
    if not rows:
        yield "no code"
    for row in rows:
        base = row.address - row.address % guest.arch.code_unit
        stands = _read(user, base, len(row.raw))
        if not user.app.browser.executed:
            stands = guest.seen.hooks.original(base, stands)
        if stands != row.raw:
            yield f"code at {row.address:x}: {row.raw.hex()}, not {stands.hex()}"
    starts = [row.address for row in rows]
    if starts[0] <= view.pc <= starts[-1]:
        if view.pc not in starts:
            yield f"no instruction begins at pc {view.pc:x}"
        elif user.panes.code.display and "\N{RIGHTWARDS ARROW}" not in _line(text, view.pc):
            yield f"no arrow at pc {view.pc:x}"
    elif code.cursor == view.pc:
        yield f"pc {view.pc:x} is out of sight"
    if code._bytes is Bytes.PLANTED and view.planted.keys() & set(starts):
        for at in view.planted.keys() & set(starts):
            base = at - at % guest.arch.code_unit
            if _read(user, base, len(view.planted[at])) != view.planted[at] and base == at:
                yield f"planted at {at:x}: {view.planted[at].hex()}"


def _line(screen: str, address: int) -> str:
    """The line of the screen that the code pane has an address in."""
    found = (line for line in screen.splitlines() if f"{address:x} " in line[:24])
    return next(found, "")


def _frames(user: User) -> Iterator[str]:
    view = user.view
    shown = [user.panes.backtrace.source.frame_at(n) for n in range(3)]
    if view.hit is not None and view.hit.next:
        return  # in the middle of a hit
    if view.pc not in [frame.pc for frame in shown if frame is not None]:
        yield f"backtrace: {[frame and hex(frame.pc) for frame in shown]} without {view.pc:x}"


def _hit(user: User) -> Iterator[str]:
    hit, pane = user.view.hit, user.panes.machinery
    source, looks = pane.source, pane.lines.looks
    first = source.plain(0, looks)
    if hit is None:
        if "armed" in first:
            yield f"machinery: {first} without a hit"
        return
    shown = " ".join(source.plain(number, looks) for number in range(min(4, source.count)))
    if hit.done and f"[{hit.done[-1].name}" not in shown:
        yield f"machinery: {shown}"
    if hit.slot is not None and _read(user, hit.slot, len(hit.slot_bytes)) != hit.slot_bytes:
        yield f"slot: {hit.slot_bytes.hex()}"
