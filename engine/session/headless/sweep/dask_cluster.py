"""The executor of a Dask distributed cluster, and what runs in its workers.

Files below the current directory travel: their contents go to each worker once, by SHA-256, in
plugins, which a worker that comes later gets, too; there they lie in a tree with the same relative
paths. Any other file has to be there already, with the same contents. A task is a cell, carried
out in a warm process beside the worker's own; its tables come back with the outcome. Dask runs the
tasks of a lost worker elsewhere.
"""

import os
import shutil
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.history.recordfile import engine_version
from engine.session.headless.sweep.cells import (
    CellOutcome,
    CellStatus,
    CellWork,
    not_run,
    traced,
)
from engine.session.headless.sweep.guests import content_digest
from engine.session.headless.sweep.scheduler_access import SchedulerAccess
from engine.session.headless.sweep.warm_worker import WarmWorker, WorkerLostError

try:
    from distributed import Client, KilledWorker, WorkerPlugin, as_completed, get_worker
    from distributed.security import Security
except ImportError as _missing:
    raise CommandError(
        "--scheduler needs the package distributed: pip install 'kprobe-tui[dask]'"
    ) from _missing

_REACHED_AFTER: Final = 10
_WORKERS_AFTER: Final = 60
"""Seconds until a scheduler, and a worker, have to be there."""
_AHEAD: Final = 3
"""Cells that are handed out for each thread of a worker."""
_LEAST: Final = 8
_ATTEMPTS: Final = 5
_NAME: Final = "kprobe-tui-"

Tables = dict[str, bytes]
"""Files of a cell, by their paths in its folder."""


class DaskCluster:
    """A cluster's workers."""

    def __init__(self, access: SchedulerAccess) -> None:
        """Connect.

        Args:
            access: to the scheduler.

        Raises:
            CommandError: it cannot be reached, or its workers do not have this package.
        """
        self._sweep = f"{_NAME}{uuid.uuid4().hex[:12]}"
        self._sent: set[str] = set()
        self._plugins: list[str] = []
        address, security = access.address, _security(access)
        try:
            self._client = Client(
                access.url,
                timeout=_REACHED_AFTER,
                set_as_default=False,
                direct_to_workers=False,
                security=security,
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise CommandError(f"--scheduler {address}: it cannot be reached: {error}") from error
        try:
            try:
                self._client.wait_for_workers(1, timeout=_WORKERS_AFTER)
            except TimeoutError as error:
                raise CommandError(f"--scheduler {address}: it has no workers") from error
            self._check_versions(address)
            self._register({})
        except BaseException:
            self._client.close()
            raise

    def _check_versions(self, address: str) -> None:
        """Have the workers that are there be of our version."""
        mine = engine_version()
        for worker, its in self._client.run(engine_version, on_error="return").items():
            if its != mine:
                why = f"kprobe-tui {its}, and not {mine}" if isinstance(its, str) else repr(its)
                raise CommandError(
                    f"--scheduler {address}: its worker {worker} cannot do our work: {why}"
                )

    def outcomes(self, works: Iterator[CellWork]) -> Iterator[CellOutcome]:
        """Carry out cells; see `Executor`."""
        try:
            yield from self._outcomes(works)
        except (CancelledError, OSError) as error:
            raise CommandError(f"the scheduler is gone: {error}; the same line goes on") from error

    def _outcomes(self, works: Iterator[CellWork]) -> Iterator[CellOutcome]:
        under_way: dict[str, CellWork] = {}
        done = as_completed(loop=self._client.loop)
        while True:
            room = self._room() - len(under_way)
            more = list(islice(works, room)) if room > 0 else []
            self._send(more)
            for work in more:
                future = self._client.submit(
                    carried_out, work, self._sweep, key=f"{self._sweep}-{work.cell}"
                )
                under_way[str(future.key)] = work
                done.add(future)
            if not under_way:
                return
            future = next(done)
            yield self._outcome(future, under_way.pop(str(future.key)))

    def _room(self) -> int:
        """Cells that may be under way."""
        threads: int = sum(self._client.nthreads().values())
        return max(_LEAST, _AHEAD * threads)

    def _send(self, works: list[CellWork]) -> None:
        """Have all workers get the contents of files that none of them has.

        Raises:
            CommandError: a file cannot be read, or has changed.
        """
        contents: dict[str, tuple[int, bytes]] = {}
        for path, digest in (each for work in works for each in work.files):
            if digest in self._sent or digest in contents or not _travels(path):
                continue
            try:
                mode, data = os.stat(path).st_mode, Path(path).read_bytes()
                if content_digest(path) != digest:
                    raise CommandError(f"{path}: it has changed since the sweep began")
            except OSError as error:
                raise CommandError(f"{path}: {error.strerror}") from error
            contents[digest] = mode & 0o777, data
        if not contents:
            return
        self._register(contents)
        self._sent |= contents.keys()

    def _register(self, contents: dict[str, tuple[int, bytes]]) -> None:
        """Have all workers get a plugin; the first, without contents, has them hear of the end."""
        for left in reversed(range(_ATTEMPTS)):
            # A name that a worker has is taken from it first, as at the end of the sweep.
            plugin = ContentPlugin(self._sweep, len(self._plugins), contents)
            self._plugins.append(plugin.name)
            try:
                self._client.register_plugin(plugin)
                break
            except OSError as error:  # a worker died meanwhile; those that come get it, too
                if not left:
                    raise CommandError(f"files cannot be sent to the workers: {error}") from error

    def _outcome(self, future: Any, work: CellWork) -> CellOutcome:
        try:
            outcome, tables = future.result()
        except KilledWorker:
            return not_run(work.cell, CellStatus.CRASHED, "its workers died, one after the other")
        except (CancelledError, OSError):  # of the connection: a task gives none
            raise
        except Exception as error:  # a defect of ours, or another version of us there
            why = f"a worker failed: {error!r}"
            return not_run(work.cell, CellStatus.ENGINE, why, *traced(error))
        finally:
            future.release()
        for name, data in tables.items():
            path = Path(work.folder, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            except OSError as error:
                raise CommandError(f"{path}: it cannot be written: {error.strerror}") from error
        assert isinstance(outcome, CellOutcome)
        return outcome

    def close(self) -> None:
        """Have the workers forget the files, and leave them."""
        with suppress(Exception):  # there may be no cluster any more
            for name in self._plugins:
                self._client.unregister_worker_plugin(name)
        self._client.close(timeout=_REACHED_AFTER)


def _security(access: SchedulerAccess) -> Security:
    """The certificates that the client shows and demands.

    Raises:
        CommandError: a file of them is missing or is none.
    """
    encrypted = access.is_encrypted
    named = {
        "tls_ca_file": access.ca_file,
        "tls_client_cert": access.cert,
        "tls_client_key": access.key,
    }
    given = {name: path for name, path in named.items() if path is not None}
    try:
        # Dask takes files that are not named here from its configuration.
        security = Security(**given, require_encryption=True) if encrypted else Security()
        if encrypted and security.get_connection_args("client").get("ssl_context") is None:
            raise CommandError(
                f"--scheduler {access.address}: TLS takes certificates: --tls-ca-file, --tls-cert"
                " and --tls-key, or distributed.comm.tls in Dask's configuration"
            )
    except OSError as error:  # one of TLS is an OSError, too
        files = ", ".join(given.values()) or "those of Dask's configuration"
        why = error.strerror or error
        raise CommandError(
            f"--scheduler {access.address}: its certificates ({files}) cannot be used: {why}"
        ) from error
    return security


def _travels(path: str) -> bool:
    """True for a file below the current directory, named from there."""
    return not os.path.isabs(path) and os.path.normpath(path).split(os.sep)[0] != os.pardir


# -- in a worker -----------------------------------------------------------------------

_idle: list[WarmWorker] = []
_busy: dict[WarmWorker, Path] = {}
"""Warm workers at work, each with the folder of its sweep in the Dask worker's."""
_over: set[Path] = set()
"""Such folders of sweeps that are over: a task that waited meanwhile is nobody's."""
_guard = threading.Lock()


class ContentPlugin(WorkerPlugin):
    """Contents of files for every worker.

    Attributes:
        name: tells it from others.
    """

    def __init__(self, sweep: str, number: int, contents: dict[str, tuple[int, bytes]]) -> None:
        """Some contents.

        Args:
            sweep: name of the sweep.
            number: of the plugin.
            contents: (mode, bytes) of files by their SHA-256.
        """
        self.name = f"{sweep}-{number}"
        self._sweep = sweep
        self._contents = contents

    def setup(self, worker: Any) -> None:
        """A worker is there."""
        folder = Path(worker.local_directory, self._sweep, "contents")
        folder.mkdir(parents=True, exist_ok=True)
        for digest, (mode, data) in self._contents.items():
            new = folder / f"{digest}.new"
            new.write_bytes(data)
            new.chmod(mode)
            new.rename(folder / digest)

    def teardown(self, worker: Any) -> None:
        """The sweep is over."""
        home = Path(worker.local_directory, self._sweep)
        with _guard:
            _over.add(home)
            while _idle:
                _idle.pop().close()
            for warm, its in _busy.items():
                if its == home:
                    warm.kill()
        shutil.rmtree(home, ignore_errors=True)


def carried_out(work: CellWork, sweep: str) -> tuple[CellOutcome, Tables]:
    """Carry out a cell in a worker.

    Args:
        work: of the cell, with paths from the current directory of the sweep.
        sweep: name of the sweep.
    """
    try:
        return _carried_out(work, Path(get_worker().local_directory, sweep))
    except OSError as error:  # one that came out of here would be one of the connection
        why = f"a worker failed: {error}"
        return not_run(work.cell, CellStatus.ENGINE, why, *traced(error)), {}


def _carried_out(work: CellWork, home: Path) -> tuple[CellOutcome, Tables]:
    tree, folder = home / "tree", home / "cells" / work.cell
    tree.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    why = _lay_out(home / "contents", tree, work.files)
    if why:
        return not_run(work.cell, CellStatus.INVALID, why), {}
    with _guard:
        if home in _over:
            return not_run(work.cell, CellStatus.CRASHED, "its sweep is over"), {}
        warm = _idle.pop() if _idle else WarmWorker()
        _busy[warm] = home
    lost = True
    try:
        warm.begin(replace(work, cwd=str(tree), folder=str(folder)))
        outcome = warm.outcome()
        lost = False
    except WorkerLostError:
        return not_run(work.cell, CellStatus.CRASHED, "its process was ended from outside"), {}
    finally:
        with _guard:
            del _busy[warm]
            if not lost and home not in _over:
                _idle.append(warm)
            else:
                warm.close()
    tables = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    shutil.rmtree(folder, ignore_errors=True)
    return outcome, tables


def _lay_out(contents: Path, tree: Path, files: tuple[tuple[str, str], ...]) -> str:
    """Have files lie in a tree; why that cannot be, "" if they do."""
    for path, digest in files:
        if _travels(path):
            target = tree / os.path.normpath(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.link(contents / digest, target)
            continue
        try:
            same = content_digest(path) == digest
        except OSError:
            same = False
        if not same:
            return (
                f"{path}: a worker does not have this file; "
                "files below the current directory are sent, if they are named from there"
            )
    return ""
