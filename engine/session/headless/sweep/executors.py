"""Executors, which carry out the cells of a sweep: processes of this machine, or a cluster.

An executor is a class with the methods of `Executor` in a module beside this one, and a case in
`executor`.
"""

from collections.abc import Iterator
from typing import Protocol

from engine.session.headless.sweep.cells import CellOutcome, CellWork
from engine.session.headless.sweep.local_processes import LocalProcesses
from engine.session.headless.sweep.scheduler_access import SchedulerAccess


class Executor(Protocol):
    """Carries out cells."""

    def outcomes(self, works: Iterator[CellWork]) -> Iterator[CellOutcome]:
        """Carry out cells; what came out, in any order, as soon as it is known.

        Work is asked for when somebody can do it. Tables are in the folder of a cell's work when
        its outcome is given.

        Raises:
            CommandError: nobody is left who could do any.
        """
        ...

    def close(self) -> None:
        """End what is still at work."""
        ...


def executor(jobs: int, scheduler: SchedulerAccess | None = None) -> Executor:
    """The executor that options choose.

    Args:
        jobs: processes of this machine.
        scheduler: access to one of Dask's, whose workers carry out the cells instead.

    Raises:
        CommandError: it cannot be reached, or takes what is not installed.
    """
    if scheduler is None:
        return LocalProcesses(jobs)
    from engine.session.headless.sweep.dask_cluster import DaskCluster  # an optional library

    return DaskCluster(scheduler)
