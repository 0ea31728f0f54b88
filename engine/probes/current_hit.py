"""The hit that is being served, as the control block of a processor keeps it (kprobe_ctlblk)."""

from enum import Enum, auto

from engine.probes.point import ProbePoint


class Status(Enum):
    """The stage that the current probe is in (KPROBE_HIT_* of asm/kprobes.h)."""

    IDLE = auto()
    HIT_ACTIVE = auto()
    HIT_SS = auto()
    HIT_SSDONE = auto()
    REENTER = auto()


class CurrentHit:
    """The stage and the point of the current hit.

    Attributes:
        status: of the probe whose handlers run or that is being stepped.
        point: its point.
    """

    def __init__(self) -> None:
        """No probe is being hit."""
        self.status = Status.IDLE
        self.point: ProbePoint | None = None
        self._interrupted: tuple[Status, ProbePoint | None] = (Status.IDLE, None)

    def begin(self, point: ProbePoint, status: Status = Status.HIT_ACTIVE) -> None:
        """A point was hit."""
        self.point, self.status = point, status

    def enter_again(self, point: ProbePoint) -> None:
        """A point was hit while another one's handlers run (save_previous_kprobe)."""
        self._interrupted = (self.status, self.point)
        self.begin(point, Status.REENTER)

    def end(self) -> None:
        """The current hit is over; one that it interrupted goes on (restore_previous_kprobe)."""
        if self.status is Status.REENTER:
            self.status, self.point = self._interrupted
        else:
            self.status, self.point = Status.IDLE, None
