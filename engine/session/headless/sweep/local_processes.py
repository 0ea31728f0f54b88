"""The executor of processes of this machine."""

from collections.abc import Iterator
from multiprocessing.connection import Connection, wait

from engine.session.headless.sweep.cells import CellOutcome, CellStatus, CellWork, not_run
from engine.session.headless.sweep.warm_worker import WarmWorker, WorkerLostError


class LocalProcesses:
    """Some warm workers."""

    def __init__(self, jobs: int) -> None:
        """None of them is started before there is work for it.

        Args:
            jobs: how many.
        """
        self._jobs = jobs
        self._idle: list[WarmWorker] = []
        self._busy: dict[Connection, tuple[WarmWorker, CellWork]] = {}

    def outcomes(self, works: Iterator[CellWork]) -> Iterator[CellOutcome]:
        """Carry out cells; see `Executor`."""
        self._feed(works)
        while self._busy:
            for pipe in wait(list(self._busy)):
                assert isinstance(pipe, Connection)
                found = self._outcome(pipe)
                self._feed(works)  # before anything else is done with what came out
                yield found

    def _feed(self, works: Iterator[CellWork]) -> None:
        """Give work to all who have none, as long as there is any."""
        while len(self._busy) < self._jobs and (work := next(works, None)) is not None:
            self._begin(work)

    def _begin(self, work: CellWork) -> None:
        worker = self._idle.pop() if self._idle else WarmWorker()
        try:
            worker.begin(work)
        except WorkerLostError:  # while it had nothing to do
            worker.close()
            worker = WarmWorker()
            worker.begin(work)
        self._busy[worker.pipe] = worker, work

    def _outcome(self, pipe: Connection) -> CellOutcome:
        worker, work = self._busy.pop(pipe)
        try:
            found = worker.outcome()
        except WorkerLostError:
            worker.close()
            return not_run(work.cell, CellStatus.CRASHED, "its worker was ended from outside")
        self._idle.append(worker)
        return found

    def close(self) -> None:
        """End all of them."""
        for worker in (*self._idle, *(worker for worker, _ in self._busy.values())):
            worker.close()
        self._idle.clear()
        self._busy.clear()
