"""Events of system calls for a front end, which restarts its guest and changes its mind."""

from engine.session.tracing.tracing import Tracing
from engine.trace.syscalls import GROUP


class SyscallSwitch:
    """Which system calls are recorded, run after run.

    Attributes:
        globs: patterns of their names, () for none.
    """

    def __init__(self) -> None:
        """None are recorded."""
        self.globs: tuple[str, ...] = ()
        self._tracing: Tracing | None = None

    def begin(self, tracing: Tracing) -> None:
        """Another run: what was recorded in the last one is recorded in it."""
        self._tracing = tracing
        for glob in self.globs:
            tracing.define(f"{GROUP}/{glob}")

    def turn(self, globs: tuple[str, ...], *, on: bool) -> str:
        """Record system calls, or no longer (without patterns: none at all); what was done.

        Raises:
            ProbeError: no system call matches.
        """
        tracing = self._tracing
        assert tracing is not None, "a run has begun"
        if on:
            for glob in globs:
                tracing.define(f"{GROUP}/{glob}")
                self.globs = tuple(dict.fromkeys((*self.globs, glob)))
        else:
            self.globs = tuple(glob for glob in self.globs if globs and glob not in globs)
        tracing.syscalls.record_only(self.globs)
        return f"system calls recorded: {' '.join(self.globs) or 'none'}"
