"""Process 1: every Linux system has one, and the guest's first process is a child of it."""

from typing import Final

from engine.linux.cpus import all_of

INIT: Final = 1
"""The process id of init."""
CAPABILITIES: Final = (1 << 41) - 1
"""All of them, as root's first process has."""


class Init:
    """The process outside the guest that others see: it is root's, and never runs.

    Attributes:
        pid: its process id.
        group: its process group.
        session: its session.
        uid: its user.
        gid: its group of users.
        policy: its scheduling policy.
        nice: its nice value.
        exit: it never ends.
        affinity: the processors that it may be on, as a mask.
    """

    pid: Final = INIT
    group: Final = INIT
    session: Final = INIT
    uid: Final = 0
    gid: Final = 0
    policy: Final = 0
    nice: Final = 0
    exit: Final = None

    def __init__(self, cpus: int) -> None:
        """Set it up.

        Args:
            cpus: processors of its machine.
        """
        self.affinity: Final = all_of(cpus)
