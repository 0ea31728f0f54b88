"""Words of a stop for the message line: the reason, a frame with arguments, owners of locks."""

import re
from typing import Final

from engine.message_text import bare_name
from engine.session.protocol.frames import GuestFrame
from engine.session.protocol.views import GuestView, RunState
from tui.source_files import SourceFiles

_FRAMES_LOOKED_AT: Final = 50
"""Frames among which one of the user's own is looked for."""
_OF_THE_SYSTEM: Final = re.compile(r"/usr/(include|lib|src)/|/rustc/|.*/library/(std|core|alloc)/")
"""Source files of libraries, which can often be read: templates of C++ and the like."""
_PLACED: Final = re.compile(r"breakpoint \d+: ")
_DEADLOCK: Final = "stopped in a deadlock"


def arguments(frame: GuestFrame) -> str:
    """Return the arguments of a call in brackets as far as they are known, "" if none is."""
    given = [
        f"{variable.name}={'...' if variable.value.startswith('{') else variable.value}"
        for variable in frame.variables
        if variable.is_parameter and not variable.value.startswith("<")
    ]
    return f"({', '.join(given)})" if given else ""


def frame_words(frame: GuestFrame, files: SourceFiles) -> str:
    """Return the call, its place in the source, and the line there as far as it can be read."""
    name = bare_name(frame.title) if frame.file else frame.title
    said = f"{name or '?'}{arguments(frame)}"
    if frame.file:
        said += f" at {frame.file.rsplit('/', 1)[-1]}:{frame.line}"
        text = files.line(frame.file, frame.line).strip()
        return f"{said}: {text}" if text else said
    return f"{said} in {frame.module.rsplit('/', 1)[-1]}" if frame.module else said


def own_frame(view: GuestView, files: SourceFiles) -> GuestFrame | None:
    """Return the first frame of the user's own code where a program was killed or is stuck.

    The innermost frames are those of abort() or of a lock in a C library; `d` leads to them. A
    frame whose source can be read counts, before all others one outside of the system's folders.
    """
    if not view.reason.startswith(("killed", _DEADLOCK)):
        return None
    frames = view.frames[:_FRAMES_LOOKED_AT]
    shown = [frame for frame in frames if frame.file and files.line(frame.file, frame.line)]
    own = (frame for frame in shown if not _OF_THE_SYSTEM.match(frame.file))
    return next(own, shown[0] if shown else None)


def stop_words(view: GuestView, own: GuestFrame | None, files: SourceFiles, value: str) -> str:
    """Return what is said of a stop or of the program's end.

    Args:
        view: the guest as it stands.
        own: the frame that is looked at then, None for the innermost.
        files: read source lines.
        value: returned by the function that was finished, in words; "" for none.
    """
    reason = view.reason
    if reason.startswith(_DEADLOCK):
        reason = _owners(view) or reason
    if own is not None:
        return f"{reason}\n{frame_words(own, files)}"
    if value:
        return f"{reason}: {value}"
    if view.state is RunState.STOPPED and view.frames and _PLACED.match(reason):
        given = arguments(view.frames[0])
        return f"{reason} {given}" if given else reason
    return reason


def _owners(view: GuestView) -> str:
    """Return who waits for which lock, and who holds it: the circle of a deadlock."""
    waiting = [
        f"{thread.tid} waits for {thread.waits or 'a lock'}, held by {thread.holder}"
        for thread in view.listed
        if thread.holder and thread.call
    ]
    return f"{_DEADLOCK}: {'; '.join(waiting)}" if waiting else ""
