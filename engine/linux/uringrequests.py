"""Requests, as an io_uring's entries make them: chains, timeouts, cancelling (io_uring_enter(2)).

A request is carried out by the handler of the system call that it stands for. Where that would
block, its wait is kept here, and tried again whenever the kernel looks at what may have
happened; its thread goes on meanwhile.
"""

import errno
import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from engine.errors import GuestFaultError
from engine.linux import coherence
from engine.linux import uringcalls as ops
from engine.linux.clock import FOREVER
from engine.linux.errno import LinuxError
from engine.linux.fs.epoll import EPOLLET, EpollItem
from engine.linux.fs.uring import UringFile
from engine.linux.fs.vfs import OpenFile
from engine.linux.machine import Machine
from engine.linux.table import CallTable
from engine.linux.thread import Thread
from engine.linux.uringcalls import RingEntry
from engine.linux.wait import Wait

_DRAIN, _LINK, _HARDLINK, _SELECT, _SKIP = 2, 4, 8, 32, 64
_FLAGS: Final = 0x7F
_CQE_MORE: Final = 2
_SUBMIT_ALL: Final = 0x80
_ACCEPT_AGAIN: Final = 1
_POLL_AGAIN: Final = 1
_ABSOLUTE, _UPDATE, _REALTIME, _UPDATE_LINKED, _ETIME_SUCCESS = 1, 2, 8, 16, 32
_TIMEOUT_FLAGS: Final = 0x3F
_CANCEL_ALL, _CANCEL_FD, _CANCEL_ANY, _CANCEL_FIXED = 1, 2, 4, 8
_POLL_BITS: Final = 0x3FFF
_SECOND: Final = 1_000_000_000
_MOST: Final = 1 << 14
"""Chains that are not complete at once; there is no memory for more."""


class ChainLink(NamedTuple):
    """An entry of a chain.

    Attributes:
        entry: the submission queue entry.
        code: the errno with which it fails before it is begun, or 0.
        span: nanoseconds of its timespec, if it is a timeout.
    """

    entry: RingEntry
    code: int = 0
    span: int = 0


Chain = deque[ChainLink]
"""Entries, each of them begun once the one before it is complete."""


class RingRequest:
    """An entry that has been begun and is not complete.

    Attributes:
        thread: whose it is.
        entry: the submission queue entry.
        rest: entries that follow it.
        space: the memory that its addresses are of.
        wait: that of its system call.
        deadline: when time completes it, if it is a timeout.
        needed: completions of the ring that complete it, likewise; 0 for none.
        poll: what it polls.
        timer: (entry, deadline) of the timeout that is linked to it.
        file: the open file that it uses, which stays open for it.
    """

    __slots__ = (
        *("deadline", "entry", "file", "needed", "poll", "rest", "space", "thread", "timer"),
        "wait",
    )

    def __init__(self, thread: Thread, entry: RingEntry, rest: Chain) -> None:
        self.thread, self.entry, self.rest = thread, entry, rest
        self.space = thread.space
        self.wait: Wait | None = None
        self.deadline: int | None = None
        self.needed = 0
        self.poll: EpollItem | None = None
        self.timer: tuple[RingEntry, int] | None = None
        self.file: OpenFile | None = None

    def least(self) -> int:
        """The least result that is no failure."""
        try:
            return ops.least(self.thread, self.entry)
        except GuestFaultError:
            return 0


class RingRequests:
    """The requests of one ring.

    Attributes:
        files: registered files by their number.
        buffers: (address, size) of registered buffers by their number.
    """

    def __init__(self, machine: Machine, ring: UringFile) -> None:
        """There are none."""
        self.files: list[OpenFile | None] = []
        self.buffers: list[tuple[int, int]] = []
        self._machine, self._ring = machine, ring
        self._order = "<" if machine.arch.byteorder == "little" else ">"
        self._table = CallTable(machine.arch.linux)
        self._active: dict[RingRequest, None] = {}
        self._begun: deque[tuple[Thread, Chain]] = deque()
        self._deferred: deque[tuple[Thread, Chain]] = deque()
        self._completed = 0
        self._busy = self._asked = self._armed = False

    # -- submission ------------------------------------------------------------------------

    def submit(self, thread: Thread, count: int) -> int:
        """Take up to so many entries from the queue and begin them; how many there were.

        Raises:
            LinuxError: EAGAIN for too many that are not complete.
        """
        ring, done = self._ring, 0
        chain: Chain = deque()
        while done < count:
            if len(self._active) + len(self._deferred) >= _MOST and not chain:
                if not done:
                    raise LinuxError(errno.EAGAIN)
                break
            raw = ring.take()
            if raw is None:
                break
            done += 1
            entry = ops.entry_of(raw, self._order)
            code = self._refusal(entry, first=not chain)
            link = self._timed(thread, entry) if not code else ChainLink(entry, code)
            chain.append(link)
            alone = link.code and not ring.setup & _SUBMIT_ALL
            if alone or not entry.flags & (_LINK | _HARDLINK):
                self._enter(thread, chain)
                chain = deque()
            if alone:
                break
        if chain:
            self._enter(thread, chain)
        self._go_on()
        if not self._busy:
            self._arm()
        return done

    @staticmethod
    def _refusal(entry: RingEntry, *, first: bool) -> int:
        """The errno with which an entry fails before anything is begun, or 0."""
        operation = entry.operation
        if entry.flags & ~_FLAGS or operation not in ops.KNOWN or entry.personality:
            return errno.EINVAL
        if entry.flags & _SELECT:  # no buffers can have been provided
            receives = operation in (ops.READ, ops.READV, ops.RECV, ops.RECVMSG)
            return errno.ENOBUFS if receives else errno.EOPNOTSUPP
        if first and operation == ops.LINK_TIMEOUT:
            return errno.EINVAL
        return ops.malformed(entry)

    def _timed(self, thread: Thread, entry: RingEntry) -> ChainLink:
        """An entry, with its time taken over if it is a timeout."""
        if entry.operation not in (ops.TIMEOUT, ops.LINK_TIMEOUT):
            return ChainLink(entry)
        try:
            return ChainLink(entry, span=self._span(thread, entry, entry.address))
        except LinuxError as error:
            return ChainLink(entry, error.code)
        except GuestFaultError:
            return ChainLink(entry, errno.EFAULT)

    def _enter(self, thread: Thread, chain: Chain) -> None:
        """Begin a chain, or put it off while what came before it is not complete (IOSQE_IO_DRAIN).

        One with an entry that cannot be begun fails as a whole.
        """
        if any(link.code for link in chain):
            for link in chain:
                self._post(link.entry, -(link.code or errno.ECANCELED))
            return
        drains = any(link.entry.flags & _DRAIN for link in chain)
        if self._deferred or (drains and (self._active or self._begun)):
            self._deferred.append((thread, chain))
        else:
            self._begun.append((thread, chain))
            self._go_on()

    def _go_on(self) -> None:
        """Begin what can be begun, and complete timeouts that count completions."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._step():
                pass
        finally:
            self._busy = False

    def _arm(self) -> None:
        """Let the machine ask whether something is complete as long as there is something."""
        waits = bool(self._active)
        if waits or self._armed:
            self._armed = waits
            self._machine.arm(self, on=waits)

    def _step(self) -> bool:
        if self._begun:
            thread, chain = self._begun.popleft()
            self._begin(thread, chain)
            return True
        for request in self._active:
            if request.needed and self._completed >= request.needed:
                self._finish(request, 0)
                return True
        if self._deferred:
            drains = any(link.entry.flags & _DRAIN for link in self._deferred[0][1])
            if not (drains and self._active):
                self._begun.append(self._deferred.popleft())
                return True
        return False

    # -- requests --------------------------------------------------------------------------

    def _begin(self, thread: Thread, chain: Chain) -> None:
        """Begin the first entry of a chain."""
        if thread.ended:
            for link in chain:
                self._post(link.entry, -errno.ECANCELED)
            return
        link = chain.popleft()
        request = RingRequest(thread, link.entry, chain)
        if link.entry.operation == ops.TIMEOUT:
            request.deadline = self._moment(link.entry, link.span)
        result = self._guarded(request, self._issue)
        if result is None and chain and chain[0].entry.operation == ops.LINK_TIMEOUT:
            timer = chain.popleft()
            request.timer = timer.entry, self._moment(timer.entry, timer.span)
        if result is not None:
            self._finish(request, result)
        else:
            self._active[request] = None

    def _issue(self, request: RingRequest) -> int | None:
        """Carry an entry out: its result, or None if that has to be waited for."""
        thread, entry = request.thread, request.entry
        if entry.operation == ops.NOP:
            return 0
        if entry.operation == ops.TIMEOUT:
            request.needed = self._completed + entry.offset if entry.offset else 0
            return None
        if entry.operation == ops.TIMEOUT_REMOVE:
            return self._change_timeout(thread, entry)
        if entry.operation in (ops.POLL_REMOVE, ops.ASYNC_CANCEL):
            return self._cancel(thread, entry)
        if entry.operation == ops.FILES_UPDATE:
            return self.update_files(thread, entry.offset, entry.address, entry.length)
        if entry.operation in (ops.READ_FIXED, ops.WRITE_FIXED):
            self._check_buffer(entry)
        with ExitStack() as lent:
            if ops.uses_file(entry):
                fixed = entry.flags & ops.FIXED_FILE
                file = self._registered(entry.fd) if fixed else thread.files.get(entry.fd)
                if file is not self._ring:
                    request.file = file.acquire()
                if fixed:
                    entry = entry._replace(fd=lent.enter_context(thread.files.lent(file)))
                if entry.operation == ops.POLL_ADD:
                    return self._poll(request, file)
            return self._serve(request, entry)

    def _registered(self, number: int) -> OpenFile:
        file = self.files[number] if 0 <= number < len(self.files) else None
        if file is None:
            raise LinuxError(errno.EBADF)
        return file

    def _check_buffer(self, entry: RingEntry) -> None:
        if entry.buffer >= len(self.buffers):
            raise LinuxError(errno.EFAULT)
        start, size = self.buffers[entry.buffer]
        if entry.address < start or entry.address + entry.length > start + size:
            raise LinuxError(errno.EFAULT)

    def _serve(self, request: RingRequest, entry: RingEntry) -> int | None:
        """Make the system call of an entry."""
        thread = request.thread
        name, arguments = ops.call_of(thread, entry)
        served = self._table[name]
        if served is None:
            raise LinuxError(errno.EINVAL)
        change = coherence.before(thread, name, arguments) if served.concerned else None
        result = served.handler(thread, *arguments)
        if change is not None:
            coherence.after(change)
        if not isinstance(result, Wait):
            return result
        request.wait = result
        return None

    def _poll(self, request: RingRequest, file: OpenFile) -> int | None:
        entry = request.entry
        events = entry.how if self._order == "<" else (entry.how >> 16 | entry.how << 16)
        again = EPOLLET if entry.length & _POLL_AGAIN else 0
        request.poll = EpollItem(entry.fd, file, events & ~EPOLLET & 0xFFFFFFFF | again, 0)
        return self._polled(request)

    def _polled(self, request: RingRequest) -> int | None:
        """The bits that a poll has found; one that goes on tells of them itself."""
        assert request.poll is not None
        found = request.poll.ready()
        if not found:
            return None
        request.poll.reported()
        if not request.entry.length & _POLL_AGAIN or isinstance(request.poll.file, UringFile):
            return found  # that of a ring would tell of what it tells itself (EPOLL_URING_WAKE)
        self._tell(request.entry, found, _CQE_MORE)
        return None

    def _guarded(
        self, request: RingRequest, what: Callable[[RingRequest], int | None]
    ) -> int | None:
        """The result of a step of a request, whatever it raises."""
        machine, thread = self._machine, request.thread
        before = machine.serving, machine.caller
        machine.serving = machine.caller = thread
        try:
            return what(request)
        except Exception as error:
            return machine.refused("io_uring", request.entry[:6], error)
        finally:
            machine.serving, machine.caller = before

    def _look(self, request: RingRequest) -> int | None:
        """The result of a request that has been waited for, None while it goes on."""
        now = self._machine.clock.peek()
        if request.deadline is not None:
            return -errno.ETIME if now >= request.deadline else None
        if request.poll is not None:
            return self._polled(request)
        wait = request.wait
        if wait is None:
            return None
        result = wait.poll()
        if result is None and wait.deadline is not None and now >= wait.deadline:
            self._leave(request)
            done = 0 if wait.partial is None else wait.partial()
            return done or wait.timeout_result
        return result

    @staticmethod
    def _leave(request: RingRequest) -> None:
        if request.wait is not None and request.wait.leave is not None:
            request.wait.leave()

    def progress(self) -> None:
        """Complete what can be completed."""
        if self._busy:
            return
        self._busy = True
        try:
            self._ring.flush()
            moved = True
            while moved:
                moved = False
                for request in list(self._active):
                    if request in self._active:
                        moved = self._progress(request) or moved
                while self._step():
                    moved = True
        finally:
            self._busy = False
        self._arm()

    def _progress(self, request: RingRequest) -> bool:
        """Look at one request; True if it is complete."""
        if request.thread.ended or request.thread.space is not request.space:
            self._abandon(request)
            return True
        result = self._guarded(request, self._look)
        timer = request.timer
        if result is None and timer is not None and self._machine.clock.peek() >= timer[1]:
            request.timer = None
            self._abandon(request)
            self._post(timer[0], -errno.ETIME)
            return True
        if result is None:
            return False
        self._finish(request, result)
        return True

    def _abandon(self, request: RingRequest) -> None:
        """Cancel a request; what it has done counts."""
        self._leave(request)
        wait = request.wait
        done = wait.partial() if wait is not None and wait.partial is not None else 0
        self._finish(request, done or -errno.ECANCELED)

    def _finish(self, request: RingRequest, result: int) -> None:
        """A request is complete."""
        entry, thread = request.entry, request.thread
        self._active.pop(request, None)
        again = entry.operation == ops.ACCEPT and entry.priority & _ACCEPT_AGAIN
        if again and result >= 0:
            self._tell(entry, result, _CQE_MORE)
            self._free(request)
            self._begun.append((thread, deque([ChainLink(entry), *request.rest])))
            return
        failed = result < request.least() and entry.operation != ops.TIMEOUT
        if entry.operation == ops.TIMEOUT:
            failed = result < 0 and not (result == -errno.ETIME and entry.how & _ETIME_SUCCESS)
        self._post(entry, result)
        self._free(request)
        if request.timer is not None:
            self._post(request.timer[0], -errno.ECANCELED)
        rest = request.rest
        if rest and rest[0].entry.operation == ops.LINK_TIMEOUT:  # it was complete at once
            self._post(rest.popleft().entry, -errno.ECANCELED)
        if failed and not entry.flags & _HARDLINK:
            for link in rest:
                self._post(link.entry, -errno.ECANCELED)
        elif rest:
            self._begun.append((thread, rest))

    @staticmethod
    def _free(request: RingRequest) -> None:
        file, request.file = request.file, None
        if file is not None:
            file.release()

    def _post(self, entry: RingEntry, result: int) -> None:
        """Tell of an entry that is complete."""
        if result < 0 or not entry.flags & _SKIP:
            self._tell(entry, result, 0)

    def _tell(self, entry: RingEntry, result: int, flags: int) -> None:
        if entry.operation != ops.TIMEOUT:
            self._completed += 1
        self._ring.post(entry.user_data, result, flags)

    # -- time and cancelling ---------------------------------------------------------------

    def _span(self, thread: Thread, entry: RingEntry, address: int) -> int:
        """The nanoseconds of a timespec that an entry has."""
        if entry.how & ~_TIMEOUT_FLAGS:
            raise LinuxError(errno.EINVAL)
        seconds, fraction = struct.unpack(self._order + "qq", thread.memory.read(address, 16))
        if seconds < 0 or not 0 <= fraction < _SECOND:
            raise LinuxError(errno.EINVAL)
        return int(seconds * _SECOND + fraction)

    def _moment(self, entry: RingEntry, span: int) -> int:
        """When such a time is over that begins now, by the monotonic clock."""
        clock = self._machine.clock
        if not entry.how & _ABSOLUTE:
            return min(clock.monotonic() + span, FOREVER)
        if entry.how & _REALTIME:
            return min(span + clock.monotonic() - clock.realtime(), FOREVER)
        return min(span, FOREVER)

    def _change_timeout(self, thread: Thread, entry: RingEntry) -> int:
        """Remove a timeout, or let it end at another time."""
        if entry.how & (_UPDATE | _UPDATE_LINKED):
            moment = self._moment(entry, self._span(thread, entry, entry.offset))
            for request in self._active:
                timer = request.timer
                if entry.how & _UPDATE_LINKED:
                    if timer is not None and timer[0].user_data == entry.address:
                        request.timer = timer[0], moment
                        return 0
                elif self._is_timeout(request, entry.address):
                    request.deadline, request.needed = moment, 0
                    return 0
            raise LinuxError(errno.ENOENT)
        for request in self._active:
            if self._is_timeout(request, entry.address):
                self._finish(request, -errno.ECANCELED)
                return 0
        raise LinuxError(errno.ENOENT)

    @staticmethod
    def _is_timeout(request: RingRequest, user_data: int) -> bool:
        entry = request.entry
        return entry.operation == ops.TIMEOUT and entry.user_data == user_data

    def _cancel(self, thread: Thread, entry: RingEntry) -> int:
        """Cancel requests that an entry names: 0, or how many where it may be several."""
        how = entry.how
        if entry.operation == ops.POLL_REMOVE:
            how = 0
        several = bool(how & (_CANCEL_ALL | _CANCEL_ANY))
        wanted: OpenFile | None = None
        if how & _CANCEL_FD:
            fixed = how & _CANCEL_FIXED or entry.flags & ops.FIXED_FILE
            wanted = self._registered(entry.fd) if fixed else thread.files.get(entry.fd)
        found = 0
        for request in list(self._active):
            if request not in self._active:
                continue
            if entry.operation == ops.POLL_REMOVE and request.poll is None:
                continue
            if how & _CANCEL_FD:
                fits = request.file is wanted
            else:
                fits = bool(how & _CANCEL_ANY) or request.entry.user_data == entry.address
            if fits:
                found += 1
                self._abandon(request)
                if not several:
                    return 0
        if not found and not several:
            raise LinuxError(errno.ENOENT)
        return found

    # -- registered files ------------------------------------------------------------------

    def register_files(self, thread: Thread, address: int, count: int) -> int:
        """IORING_REGISTER_FILES; number -1 leaves a place free."""
        if self.files:
            raise LinuxError(errno.EBUSY)
        numbers = struct.unpack(f"{self._order}{count}i", thread.memory.read(address, 4 * count))
        files = [None if number == -1 else thread.files.get(number) for number in numbers]
        self.files = [file and file.acquire() for file in files]
        return 0

    def update_files(self, thread: Thread, start: int, address: int, count: int) -> int:
        """IORING_REGISTER_FILES_UPDATE: how many places have other files; -2 leaves one alone."""
        if not self.files:
            raise LinuxError(errno.ENXIO)
        if not count or start + count > len(self.files):
            raise LinuxError(errno.EINVAL)
        numbers = struct.unpack(f"{self._order}{count}i", thread.memory.read(address, 4 * count))
        for done, number in enumerate(numbers):
            if number == -2:
                continue
            try:
                file = None if number == -1 else thread.files.get(number)
            except LinuxError:
                if done:
                    return done
                raise
            before = self.files[start + done]
            self.files[start + done] = file and file.acquire()
            if before is not None:
                before.release()
        return count

    def unregister_files(self) -> int:
        """IORING_UNREGISTER_FILES."""
        if not self.files:
            raise LinuxError(errno.ENXIO)
        files, self.files = self.files, []
        for file in files:
            if file is not None:
                file.release()
        return 0

    # -- as its file and its machine see it ------------------------------------------------

    @property
    def outside(self) -> bool:
        """True if the host's user may end some of it by a signal."""
        return any(request.wait is not None and request.wait.outside for request in self._active)

    def wait_fds(self) -> tuple[tuple[int, int], ...]:
        """Host descriptors whose readiness may complete some of it."""
        with self._once() as asked:
            return tuple(fd for request in asked for fd in self._fds_of(request))

    def next_expiry(self) -> int | None:
        """When time alone completes some of it."""
        with self._once() as asked:
            return min((end for request in asked for end in self._ends_of(request)), default=None)

    @contextmanager
    def _once(self) -> Iterator[tuple[RingRequest, ...]]:
        """The requests; none where one of them is a poll that leads back here."""
        if self._asked:
            yield ()
            return
        self._asked = True
        try:
            yield tuple(self._active)
        finally:
            self._asked = False

    @staticmethod
    def _fds_of(request: RingRequest) -> tuple[tuple[int, int], ...]:
        if request.wait is not None:
            return request.wait.host_fds
        if request.poll is not None:
            return request.poll.file.wait_fds(request.poll.events & _POLL_BITS)
        return ()

    def _ends_of(self, request: RingRequest) -> Iterator[int]:
        wait, poll = request.wait, request.poll
        due: int | None = None
        if wait is not None and wait.due is not None:
            due = wait.due()
        elif poll is not None:
            due = poll.file.next_deadline()
        if due is not None and due > self._machine.clock.peek():  # what is past has been looked at
            yield due
        timer = request.timer[1] if request.timer is not None else None
        for end in (request.deadline, timer, wait.deadline if wait is not None else None):
            if end is not None:
                yield end

    def post_expired(self) -> None:
        """Go on by itself: a moment has come, or something may have happened."""
        self.progress()

    def close(self) -> None:
        """Give up what is not complete."""
        for request in list(self._active):
            self._leave(request)
            self._free(request)
        self._active.clear()
        self._begun.clear()
        self._deferred.clear()
        if self.files:
            self.unregister_files()
        self._machine.arm(self, on=False)
