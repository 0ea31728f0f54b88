"""The one facade: builds a guest and everything below it, runs it, reports.

The command line and the terminal interface are equal clients of what is here. From the ground up:

- `protocol`: what a front end says and hears.
- `kernel`: kernel images, which are asked and not run.
- `program`: a program's files, without a guest.
- `guest`: a guest from its start to its end; `browse`: code to look around in; `machine`: a booted
  machine that is stopped, stepped and gone back in.
- `inspect`: a standing guest looked at.
- `tracing`: definitions turned into recorded events; `live`: the running kernel of this machine
  records them.
- `control`: a guest that obeys a front end; `headless`: requests carried out as a whole.
- `debugger`: gdb's words for a guest under control.
- `serve`: the same for other people's front ends.

`Session` is imported with its first use: who only speaks of guests needs none.
"""

from typing import TYPE_CHECKING, Any

from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports

if TYPE_CHECKING:
    from engine.session.guest.session import Session

__all__ = ["GuestConfig", "Report", "Reports", "Session"]


def __getattr__(name: str) -> Any:
    """Give `Session` to whoever imports it (PEP 562)."""
    if name == "Session":
        from engine.session.guest.session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
