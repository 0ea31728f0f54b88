"""Traced functions and the kernel's events as a front end switches them, run after run."""

from typing import Final

from engine.session.tracing.graphing import Graphing
from engine.session.tracing.tracing import Tracing
from engine.trace import sched, syscalls

_WORDS: Final = {syscalls.GROUP: "system calls", sched.GROUP: "the scheduler's events"}


class GraphSwitch:
    """Function tracing as a front end switches it on and off, run after run.

    Attributes:
        globs: what is traced, () for nothing.
        depth: how deep calls are followed, 0 for all.
    """

    def __init__(self) -> None:
        """It is off."""
        self.globs: tuple[str, ...] = ()
        self.depth = 0
        self._tracing: Tracing | None = None
        self._graphing: Graphing | None = None

    def begin(self, tracing: Tracing) -> None:
        """Another run: what was traced in the last one is traced in it."""
        self._tracing, self._graphing = tracing, None
        if self.globs:
            self.turn(self.globs, on=True, depth=self.depth)

    def turn(self, globs: tuple[str, ...], *, on: bool, depth: int) -> str:
        """Trace functions, or no longer (without patterns: none at all); in words what was done.

        Raises:
            ProbeError: no function matches.
        """
        assert self._tracing is not None, "a run has begun"
        if self._graphing is None:
            self._graphing = Graphing(self._tracing)
        graphing, self.depth = self._graphing, depth
        assert graphing.calls is not None
        graphing.calls.depth_max = depth
        if not on:
            count = graphing.remove(*globs) if globs else graphing.clear()
            self.globs = tuple(glob for glob in self.globs if globs and glob not in globs)
            return f"{count} functions are no longer traced"
        done = graphing.add(*globs)
        self.globs = tuple(dict.fromkeys((*self.globs, *globs)))
        refused = f", {len(done.refused)} refused" if done.refused else ""
        deep = f", {depth} deep" if depth else ""
        return f"{len(graphing.probes)} functions traced{deep}{refused}"


class KernelSwitch:
    """Which events of one group of the kernel's are recorded, run after run.

    Attributes:
        globs: patterns of their names, () for none.
    """

    def __init__(self, group: str) -> None:
        """None of a group are recorded."""
        self.globs: tuple[str, ...] = ()
        self._group = group
        self._tracing: Tracing | None = None

    def begin(self, tracing: Tracing) -> None:
        """Another run: what was recorded in the last one is recorded in it."""
        self._tracing = tracing
        for glob in self.globs:
            tracing.definitions.define(f"{self._group}/{glob}")

    def turn(self, globs: tuple[str, ...], *, on: bool) -> str:
        """Record events, or no longer (without patterns: none at all); in words what was done.

        Raises:
            ProbeError: no event matches.
        """
        tracing, group = self._tracing, self._group
        assert tracing is not None, "a run has begun"
        if on:
            for glob in globs:
                tracing.definitions.define(f"{group}/{glob}")
                self.globs = tuple(dict.fromkeys((*self.globs, glob)))
        else:
            self.globs = tuple(glob for glob in self.globs if globs and glob not in globs)
        tracing.kernel_events[group].record_only(self.globs)
        return f"{_WORDS[group]} recorded: {' '.join(self.globs) or 'none'}"
