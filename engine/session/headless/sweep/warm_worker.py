"""A warm process that carries out cells, and the process above it that keeps its limits.

`WarmWorker` starts a keeper, a fresh Python with all of the engine loaded. The keeper forks a
runner, which makes one run after the other; standard output and error of the guests come to the
keeper by pipes, so that a guest can neither fill a disk nor be heard elsewhere. A runner that
takes too long or too much is killed, one that dies is replaced, one that has grown is ended. A
keeper ends, with its runner, as soon as nobody is there to ask it for anything.
"""

import ctypes
import gc
import hashlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Final

from msgspec import DecodeError, Struct, msgpack
from msgspec.structs import replace

from engine.errors import CutOff, EngineError, KprobeTuiError
from engine.session.headless.sweep.cells import (
    CUT,
    EXIT_CODES,
    CellFacts,
    CellOutcome,
    CellStatus,
    CellWork,
    KeptText,
    traced,
)
from engine.session.protocol.requests import CheckRequest

_START: Final = "import sys; from {} import serve; serve(int(sys.argv[1]))"
_KEPT: Final = 1 << 14
"""Bytes of an output that are kept; all of it is counted and digested."""
_PIECE: Final = 1 << 16
_OFTEN: Final = 0.05
"""Seconds between two looks at a runner's memory."""
_GRACE: Final = 5.0
"""Seconds that a run has to end by itself at its limit of time."""
_PATIENCE: Final = 1.0
"""Seconds that a keeper has to end its runner, and itself."""
_CELLS_MOST: Final = 1000
_GROWTH_MOST: Final = 512 << 20
"""Cells and bytes after which a runner is replaced."""
_GROWTH_PART: Final = 8
"""The part of a limit of memory that cells may find taken by those before them."""
_OBJECTS_MOST: Final = 20_000
"""Objects that come in a run before cycles among them are looked for."""
_ANSWER_MOST: Final = 64 << 20
"""Bytes of a runner's answer."""
_PR_SET_PDEATHSIG: Final = 1
_PAGE: Final = os.sysconf("SC_PAGESIZE")


class WorkerLostError(KprobeTuiError):
    """The keeper of a worker has died."""


class WarmWorker:
    """A keeper with its runner; used by one thread.

    Attributes:
        pipe: readable once there is an outcome.
        process_id: of the keeper.
    """

    def __init__(self) -> None:
        """Start it; it takes work at once, and is warm a second later."""
        self.pipe, there = Pipe()
        code = _START.format(__name__)
        with there:
            self._process = subprocess.Popen(
                # Whatever `engine` lies in the current directory is not ours.
                [sys.executable, "-P", "-c", code, str(there.fileno())],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self.process_id = self._process.pid

    def begin(self, work: CellWork) -> None:
        """Give it work; `outcome` comes next.

        Raises:
            WorkerLostError: it is not there any more.
        """
        try:
            self.pipe.send(work)
        except OSError as error:
            raise WorkerLostError("a worker has died") from error

    def outcome(self) -> CellOutcome:
        """Wait for what came out.

        Raises:
            WorkerLostError: it has died.
        """
        try:
            found = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise WorkerLostError("a worker has died") from error
        assert isinstance(found, CellOutcome)
        return found

    def kill(self) -> None:
        """End it from another thread, which is to close it: `outcome` finds that it has died."""
        self._process.kill()

    def close(self) -> None:
        """End it, whatever it does."""
        self.pipe.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


# -- the keeper ------------------------------------------------------------------------


def serve(descriptor: int) -> None:
    """Be a keeper, until the other end of a pipe is closed.

    Args:
        descriptor: of the pipe, which gives `CellWork` and takes `CellOutcome`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from engine.session.headless.sweep import cell_runs  # what a keeper has to have read

    gc.collect()
    gc.freeze()
    pipe = Connection(descriptor)
    runner: _CellRunner | None = None
    try:
        while True:
            work = pipe.recv()
            if runner is None or runner.is_spent(work.memory):
                if runner is not None:
                    runner.end()
                runner = _CellRunner(pipe, cell_runs.CellRuns().carry_out)
            pipe.send(runner.outcome(work))
    except (EOFError, ConnectionError):  # nobody asks any more
        pass
    finally:
        if runner is not None:
            runner.end()


class _Drain:
    """Bytes that come from a pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._open = True
        self.begin()

    def begin(self) -> None:
        self._head = bytearray()
        self._digest = hashlib.sha256()
        self._size = 0

    def take(self, most: int = 1 << 30) -> None:
        """Take what is there; it may come as fast as it is taken."""
        end = self._size + most
        while self._open and self._size < end:
            try:
                data = os.read(self._descriptor, _PIECE)
            except BlockingIOError:
                return
            if not data:
                return
            self._head += data[: _KEPT - len(self._head)]
            self._digest.update(data)
            self._size += len(data)

    def close(self) -> None:
        """Take what is left."""
        self.take()
        os.close(self._descriptor)
        self._open = False

    def kept(self) -> KeptText:
        return KeptText(bytes(self._head), self._size, self._digest.hexdigest())


class _Answer(Struct, frozen=True):
    """A runner's answer: how a cell ended, its facts, and the most bytes of memory it took."""

    status: CellStatus
    facts: CellFacts
    peak: int


def _sent(answer: _Answer) -> bytes:
    """An answer as a runner sends it.

    Guests and the user's handlers run there: what it sends is plain data, and never unpickled.
    """
    facts = answer.facts
    reason, *message = map(_encodable, (facts.reason, *facts.message))
    facts = replace(facts, reason=reason, message=tuple(message))
    return msgpack.encode(_Answer(answer.status, facts, answer.peak))


def _received(data: bytes) -> _Answer:
    """The same again.

    Raises:
        DecodeError: it is no answer.
    """
    return msgpack.decode(data, type=_Answer)


def _encodable(text: str) -> str:
    """A text whose bytes that are no UTF-8 are escapes, as the results have them."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


class _CellRunner:
    """A forked process that makes runs."""

    def __init__(self, client: Connection, carry_out: "CarryOut") -> None:
        self._client = client
        self._pipe, there = Pipe()
        out, err = os.pipe(), os.pipe()
        keeper = os.getpid()
        self._id = os.fork()
        if not self._id:
            try:
                self._pipe.close()
                client.close()
                os.dup2(out[1], 1)
                os.dup2(err[1], 2)
                for descriptor in (*out, *err):
                    os.close(descriptor)
                _be_runner(there, keeper, carry_out)
            except BaseException:
                os.write(2, traceback.format_exc().encode(errors="replace"))
            finally:
                os._exit(1)
        there.close()
        os.close(out[1])
        os.close(err[1])
        self._out, self._err = _Drain(out[0]), _Drain(err[0])
        self._handle = os.pidfd_open(self._id)
        self._poll = select.poll()
        for watched in (client, self._pipe, self._handle, out[0], err[0]):
            self._poll.register(watched, select.POLLIN)
        self._cells = self._first = 0
        self._dead = False

    def is_spent(self, memory: int | None) -> bool:
        """True if another one is to take its place for a cell that may take so much."""
        if self._dead or self._cells >= _CELLS_MOST:
            return True
        most = _GROWTH_MOST if memory is None else min(_GROWTH_MOST, memory // _GROWTH_PART)
        return bool(self._first) and _resident(self._id) > self._first + most

    def outcome(self, work: CellWork) -> CellOutcome:
        """Have a cell's work done.

        Raises:
            EOFError: nobody waits for it any more.
        """
        started = time.monotonic()
        self._out.begin()
        self._err.begin()
        with suppress(OSError):  # it has died meanwhile: that is found below
            self._pipe.send(work)
        answer = self._heard(work, started)
        self._out.take()
        self._err.take()
        self._cells += 1
        self._first = self._first or _resident(self._id)
        seconds = time.monotonic() - started
        texts = self._out.kept(), self._err.kept()
        return CellOutcome(work.cell, answer.status, answer.facts, seconds, answer.peak, *texts)

    def _heard(self, work: CellWork, started: float) -> _Answer:
        """The runner's answer, or that it was killed or has died."""
        end = None
        if work.seconds is not None:
            grace = 0 if isinstance(work.request, CheckRequest) else _GRACE
            end = started + work.seconds + grace
        peak = 0
        while True:
            waits = [_OFTEN * 1000] if work.memory is not None else []
            if end is not None:
                waits.append(max(end - time.monotonic(), 0) * 1000 + 1)
            ready = {descriptor for descriptor, _ in self._poll.poll(min(waits, default=None))}
            self._out.take(_PIECE)
            self._err.take(_PIECE)
            if self._client.fileno() in ready:
                raise EOFError
            if self._pipe.fileno() in ready:
                with suppress(EOFError, OSError, DecodeError):
                    return _measured(_received(self._pipe.recv_bytes(_ANSWER_MOST)), work)
            if self._handle in ready or self._pipe.fileno() in ready:
                return self._died(peak)
            if work.memory is not None:
                peak = max(peak, _resident(self._id))
                if peak > work.memory:
                    self.end()
                    return _dropped(work, CellStatus.MEMORY, _too_much(peak, work.memory), peak)
            if end is not None and time.monotonic() >= end:
                self.end()
                return _dropped(work, CellStatus.TIMEOUT, f"{CUT}, by force", peak)

    def _died(self, peak: int) -> _Answer:
        code = self.end()
        why = f"exited with {code}" if code >= 0 else f"was killed by {_signal_name(-code)}"
        facts = CellFacts(EXIT_CODES[CellStatus.CRASHED], f"the engine's process {why}")
        return _Answer(CellStatus.CRASHED, facts, peak)

    def end(self) -> int:
        """End it with all that it has started; its exit code, or minus the signal."""
        if self._dead:
            return 0
        self._dead = True
        os.kill(self._id, signal.SIGKILL)  # a process that has ended is still there
        with suppress(ProcessLookupError):
            os.killpg(self._id, signal.SIGKILL)
        _, status = os.waitpid(self._id, 0)
        self._pipe.close()
        os.close(self._handle)
        self._out.close()
        self._err.close()
        return os.waitstatus_to_exitcode(status)


def _too_much(peak: int, memory: int) -> str:
    return f"its process took {peak >> 20} of {memory >> 20} MiB of memory"


def _measured(answer: _Answer, work: CellWork) -> _Answer:
    """The answer of a cell that may have taken too much for a moment."""
    if work.memory is None or answer.peak <= work.memory:
        return answer
    return _dropped(work, CellStatus.MEMORY, _too_much(answer.peak, work.memory), answer.peak)


def _dropped(work: CellWork, status: CellStatus, why: str, peak: int) -> _Answer:
    """The answer of a cell that went over a limit: without tables."""
    shutil.rmtree(work.folder, ignore_errors=True)
    os.makedirs(work.folder, exist_ok=True)
    facts = CellFacts(EXIT_CODES[status], why, message=("what was recorded is dropped",))
    return _Answer(status, facts, peak)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _resident(process: int) -> int:
    """Bytes of memory of a process and those that it has started; 0 for one that is gone."""
    found = 0
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{process}/statm", "rb") as file:
            found = int(file.read().split()[1]) * _PAGE
        with open(f"/proc/{process}/task/{process}/children", "rb") as file:
            children = file.read().split()
        found += sum(_resident(int(child)) for child in children)
    return found


# -- the runner ------------------------------------------------------------------------

CarryOut = Callable[[CellWork], CellFacts]
"""Does a cell's work; see `engine.session.headless.sweep.cell_runs.CellRuns`."""


def _be_runner(pipe: Connection, keeper: int, carry_out: CarryOut) -> None:
    """Do one cell's work after the other."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        return
    os.setpgid(0, 0)
    # A cell's objects are many and nearly all stay until its end, where they are looked at anyway.
    gc.set_threshold(_OBJECTS_MOST, *gc.get_threshold()[1:])
    first = True
    while True:
        try:
            work = pipe.recv()
        except (EOFError, ConnectionResetError):  # the latter where an answer was not read
            return
        pipe.send_bytes(_sent(_answered(work, carry_out)))
        # A guest that is gone has cycles: its memory is none of the next one's. What the first
        # one has left behind, of tables and libraries, is there for all.
        gc.collect()
        if first:
            gc.freeze()
            first = False


def _answered(work: CellWork, carry_out: CarryOut) -> _Answer:
    _begin_peak()
    try:
        os.chdir(work.cwd)
        _read_from(work.stdin)
        facts = carry_out(work)
        status = _status(facts)
    except CutOff as end:
        facts, status = CellFacts(end.code, CUT), CellStatus.TIMEOUT
    except EngineError as error:
        facts, status = _failed(CellStatus.ENGINE, str(error)), CellStatus.ENGINE
    except KprobeTuiError as error:
        lines = (*error.before, error.hint) if error.hint else error.before
        facts = _failed(CellStatus.INVALID, str(error), *lines)
        status = CellStatus.INVALID
    except OSError as error:
        facts, status = _failed(CellStatus.INVALID, str(error)), CellStatus.INVALID
    except Exception as error:  # a defect of ours ends one cell, not the sweep
        why = f"the engine failed: {error!r}"
        facts, status = _failed(CellStatus.ENGINE, why, *traced(error)), CellStatus.ENGINE
    finally:
        _read_from(None)
    return _Answer(status, facts, _peak())


def _failed(status: CellStatus, why: str, *more: str) -> CellFacts:
    head, *rest = why.split("\n")
    return CellFacts(EXIT_CODES[status], head, runs=0, message=(*rest, *more))


def _status(facts: CellFacts) -> CellStatus:
    if facts.is_cut:
        return CellStatus.TIMEOUT
    return CellStatus.FAILED if facts.exit_code else CellStatus.PASSED


def _read_from(path: str | None) -> None:
    """Have standard input come from a file; None for nothing."""
    descriptor = os.open(path or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(descriptor, 0)
    os.close(descriptor)


def _begin_peak() -> None:
    """Have the most memory be counted from here on (proc(5), clear_refs)."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _peak() -> int:
    with suppress(OSError), open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) << 10
    return 0
