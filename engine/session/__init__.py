"""The one facade: builds a guest and everything below it, runs it, reports.

The command line and the terminal interface are equal clients of `Session`.
"""

from engine.session.config import GuestConfig
from engine.session.report import Report, Reports
from engine.session.session import Session

__all__ = ["GuestConfig", "Report", "Reports", "Session"]
