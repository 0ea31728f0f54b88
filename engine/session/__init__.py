"""The one facade: builds a guest and everything below it, runs it, reports.

The command line and the terminal interface are equal clients of what is here. From the ground up:

- `protocol`: what a front end says and hears.
- `program`: a program's files, without a guest.
- `guest`: a guest from its start to its end; `browse`: code to look around in.
- `inspect`: a standing guest looked at.
- `tracing`: definitions turned into recorded events.
- `control`: a guest that obeys a front end; `measure`: runs compared and timed.
"""

from engine.session.guest.session import Session
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report, Reports

__all__ = ["GuestConfig", "Report", "Reports", "Session"]
