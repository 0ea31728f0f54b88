"""The host's files as a recorded guest has seen them: kept while it runs, and given again.

Kept is the first answer to each question: what the guest has changed since, in a writable share,
it changes once more. Of a file that it has opened all bytes are kept, so that one that goes
another way can read on.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, cast
from weakref import WeakValueDictionary

from engine.linux.fs.host import Answer, HostAnswers, HostHandle, HostQuestion

LONGEST: Final = 64 << 20
"""Bytes of a file that is kept."""
_KINDS: Final = tuple(HostQuestion)
_NUMBERS: Final = {kind: number for number, kind in enumerate(_KINDS)}
_ATTRIBUTES: Final = frozenset(
    (HostQuestion.ENTRY, HostQuestion.DIRECTORY, HostQuestion.ATTRIBUTES)
)
_USUAL: Final[dict[HostQuestion, Any]] = {
    HostQuestion.IS_DIRECTORY: False,
    HostQuestion.IS_LINK: False,
    HostQuestion.TOP: (),
    HostQuestion.HOMES: (),
    HostQuestion.OWNERS: (-1, ()),
    HostQuestion.OVERLAYS: b"",
}
"""Answers to what was never asked, where there is another one than that nothing is there."""


class HostFact(NamedTuple):
    """The host's answer to a question about its files.

    Attributes:
        question: number of its kind.
        path: the place.
        name: of the entry there, b"" for the place itself.
        refusal: errno; 0 where there is an answer.
        answer: it; of a file the digest of its bytes.
    """

    question: int
    path: bytes
    name: bytes
    refusal: int
    answer: Any


def _told(found: os.stat_result) -> tuple[int, ...]:
    return (
        *(found.st_mode, found.st_ino, found.st_dev, found.st_nlink, found.st_uid, found.st_gid),
        *(found.st_size, found.st_blocks),
        *(found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns),
    )


def _attributes(told: Any) -> os.stat_result:
    """Attributes of what `_told` has told.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(told, list | tuple) or list(map(type, told)) != [int] * 11:
        raise ValueError(f"attributes {told!r}")
    size, blocks, accessed, modified, changed = told[6:]
    return os.stat_result(
        (*told[:6], size, 0, 0, 0),
        {
            "st_blocks": blocks,
            "st_atime_ns": accessed,
            "st_mtime_ns": modified,
            "st_ctime_ns": changed,
        },
    )


def _fits(question: HostQuestion, answer: object) -> bool:
    """True if an answer is of the kind that a question has."""
    match question:
        case HostQuestion.IS_DIRECTORY | HostQuestion.IS_LINK:
            return isinstance(answer, bool)
        case HostQuestion.TOP | HostQuestion.HOMES:
            return isinstance(answer, list) and all(isinstance(each, bytes) for each in answer)
        case HostQuestion.NAMES:
            return isinstance(answer, list) and all(
                isinstance(each, list) and list(map(type, each)) == [bytes, int, int]
                for each in answer
            )
        case HostQuestion.OWNERS:
            return (
                isinstance(answer, list)
                and list(map(type, answer)) == [int, list]
                and all(isinstance(each, int) for each in answer[1])
            )
        case HostQuestion.ENTRY | HostQuestion.DIRECTORY | HostQuestion.ATTRIBUTES:
            return True  # `_attributes` looks at them
    return isinstance(answer, bytes)


class HostWitness(HostAnswers):
    """Asks the host, and keeps the first answer to each question.

    Attributes:
        facts: answers that were not taken yet.
        keep: keeps bytes, and gives their digest.
    """

    def __init__(self) -> None:
        """Nothing was asked."""
        self.facts: list[HostFact] = []
        self.keep: Callable[[bytes], bytes] = lambda data: b""
        self._early: list[tuple[bytes, bytes, bytes]] | None = []
        self._seen: dict[tuple[HostQuestion, bytes, bytes], bool] = {}
        self._directories: dict[bytes, Callable[[], os.stat_result]] = {}

    def begin(self, keep: Callable[[bytes], bytes]) -> None:
        """Bytes can be kept from here on; those that were read before are.

        Args:
            keep: keeps bytes, and gives their digest.
        """
        self.keep = keep
        early, self._early = self._early, None
        for path, name, data in early or ():
            del self._seen[HostQuestion.FILE, path, name]
            self._note(HostQuestion.FILE, path, name, 0, keep(data))
        # The recording itself may have come into one of them meanwhile.
        for number, fact in enumerate(self.facts):
            if (
                fact.path in self._directories
                and fact.question == _NUMBERS[HostQuestion.DIRECTORY]
            ):
                with contextlib.suppress(OSError):
                    now = _told(self._directories[fact.path]())
                    self.facts[number] = fact._replace(answer=now)
        self._directories.clear()

    def ask(
        self, question: HostQuestion, path: bytes, name: bytes, call: Callable[[], Answer]
    ) -> Answer:
        """The answer to a question; see `HostAnswers`."""
        try:
            answer = call()
        except OSError as error:
            self._note(question, path, name, error.errno or errno.EIO, None)
            raise
        if (question, path, name) not in self._seen:
            told = answer
            if question in _ATTRIBUTES:
                told = cast(Answer, _told(cast(os.stat_result, answer)))
            if self._early is not None and question is HostQuestion.DIRECTORY:
                self._directories[path] = cast(Callable[[], os.stat_result], call)
            self._note(question, path, name, 0, told)
        return answer

    def open_file(self, path: bytes, name: bytes, call: Callable[[], HostHandle]) -> HostHandle:
        """An open regular file; its bytes are kept as they are when it is opened first."""
        try:
            handle = call()
        except OSError as error:
            self._note(HostQuestion.FILE, path, name, error.errno or errno.EIO, None)
            raise
        known = HostQuestion.FILE, path, name
        # The guest itself has made what was not there before.
        if known not in self._seen and self._seen.get((HostQuestion.ENTRY, path, name), True):
            with contextlib.suppress(OSError):
                self._read(path, name, handle)
        return handle

    def _read(self, path: bytes, name: bytes, handle: HostHandle) -> None:
        reader = HostHandle(os.open(f"/proc/self/fd/{handle.fd}", os.O_RDONLY | os.O_CLOEXEC))
        size = os.fstat(reader.fd).st_size
        if size > LONGEST:
            self._note(HostQuestion.FILE, path, name, errno.EFBIG, None)
            return
        pieces, at = [], 0
        while at < size and (piece := os.pread(reader.fd, size - at, at)):
            pieces.append(piece)
            at += len(piece)
        data = b"".join(pieces)
        if self._early is not None:
            self._seen[HostQuestion.FILE, path, name] = True
            self._early.append((path, name, data))
        else:
            self._note(HostQuestion.FILE, path, name, 0, self.keep(data))

    def _note(
        self, question: HostQuestion, path: bytes, name: bytes, refusal: int, answer: object
    ) -> None:
        key = question, path, name
        if key not in self._seen:
            self._seen[key] = not refusal
            self.facts.append(HostFact(_NUMBERS[question], path, name, refusal, answer))


class RecordedHost(HostAnswers):
    """Gives the answers that a recorded guest got; nothing is asked of a host.

    Attributes:
        live: the guest has come to where it goes on by itself: what is not known is missing.
        missing: told the path, as the host had it, of something that is not known.
        names_beyond: gives the names in a directory, by its path, that is not known; None if it
            is not elsewhere either.
        file_beyond: opens a file, by its path, whose bytes are not known; None likewise.
        too_long: paths of files that the guest has opened and that were too long to be kept.
    """

    asks = False

    def __init__(self, facts: Iterable[HostFact], contents: Mapping[bytes, bytes]) -> None:
        """Take what was recorded.

        Args:
            facts: answers, of which the first to each question counts.
            contents: bytes of files by their digests.

        Raises:
            ValueError: it makes no sense.
        """
        self.live = False
        self.missing: Callable[[bytes], object] = lambda path: None
        self.names_beyond: Callable[[bytes], list[tuple[bytes, int, int]] | None] = lambda path: (
            None
        )
        self.file_beyond: Callable[[bytes], HostHandle | None] = lambda path: None
        self._contents = contents
        self._open: WeakValueDictionary[bytes, _KeptFile] = WeakValueDictionary()
        self._facts: dict[tuple[HostQuestion, bytes, bytes], tuple[int, Any]] = {}
        self._names: dict[bytes, frozenset[bytes]] = {}
        for fact in facts:
            if fact.question not in range(len(_KINDS)):
                raise ValueError(f"a question of kind {fact.question}")
            question, answer = _KINDS[fact.question], fact.answer
            if not fact.refusal and not _fits(question, answer):
                raise ValueError(f"{question.value}: {answer!r}")
            if question is HostQuestion.FILE and not fact.refusal and answer not in contents:
                raise ValueError(f"the bytes of {os.fsdecode(_join(fact.path, fact.name))} lack")
            if question in _ATTRIBUTES and not fact.refusal:
                answer = _attributes(answer)
            elif question is HostQuestion.NAMES and not fact.refusal:
                answer = [(name, number, kind) for name, number, kind in answer]
                self._names.setdefault(fact.path, frozenset(name for name, _, _ in answer))
            key = question, fact.path, fact.name
            self._facts.setdefault(key, (fact.refusal, answer))
        self.too_long = [
            _join(path, name)
            for (question, path, name), (refusal, _) in self._facts.items()
            if question is HostQuestion.FILE and refusal == errno.EFBIG
        ]

    def knows(self, path: bytes, name: bytes) -> bool:
        """True if it is known whether a directory has an entry."""
        names = self._names.get(path)
        return (HostQuestion.ENTRY, path, name) in self._facts or (
            names is not None and name not in names
        )

    def _fact(self, question: HostQuestion, path: bytes, name: bytes) -> tuple[int, Any] | None:
        found = self._facts.get((question, path, name))
        if found is None and question is HostQuestion.DIRECTORY:
            # It may have been looked at from above alone.
            head, _, tail = path.rpartition(b"/")
            found = self._facts.get((HostQuestion.ENTRY, head or b"/", tail))
        return found

    def ask(
        self, question: HostQuestion, path: bytes, name: bytes, call: Callable[[], Answer]
    ) -> Answer:
        """The answer to a question; see `HostAnswers`."""
        found = self._fact(question, path, name)
        if found is None and question is HostQuestion.NAMES and self.live:
            beyond = self.names_beyond(path)
            found = (0, beyond) if beyond is not None else None
            if found is None:
                self.missing(path)
        if found is None and question is HostQuestion.REAL:
            found = 0, path
        if found is None:
            found = (0, _USUAL[question]) if question in _USUAL else (errno.ENOENT, None)
        refusal, answer = found
        if refusal:
            raise OSError(refusal, os.strerror(refusal))
        return cast(Answer, answer)

    def open_file(self, path: bytes, name: bytes, call: Callable[[], HostHandle]) -> HostHandle:
        """An open file with the bytes that it had."""
        found = self._facts.get((HostQuestion.FILE, path, name))
        entry = self._fact(HostQuestion.ENTRY, path, name)
        if entry is not None and not entry[0] and not stat.S_ISREG(entry[1].st_mode):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        if found is None or found[0] == errno.EFBIG:
            handle = self.file_beyond(_join(path, name)) if self.live else None
            if handle is None and self.live:
                self.missing(_join(path, name))
            if handle is None:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            return handle
        refusal, digest = found
        if refusal:
            raise OSError(refusal, os.strerror(refusal))
        identity = None
        if entry is not None and not entry[0]:
            identity = entry[1].st_dev, entry[1].st_ino
        return self._handle(digest, identity)

    def _handle(self, digest: bytes, identity: tuple[int, int] | None) -> HostHandle:
        handle = self._open.get(digest)
        if handle is None or handle.identity != identity:
            handle = _KeptFile(self._contents.get(digest, b""), identity)
            self._open[digest] = handle
        return handle


class _KeptFile(HostHandle):
    """The bytes of a file, with the identity that it had on its host."""

    __slots__ = ("identity",)

    def __init__(self, data: bytes, identity: tuple[int, int] | None) -> None:
        super().__init__(os.memfd_create("recorded", os.MFD_CLOEXEC))
        self.identity = identity
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]

    def leads_to(self, found: os.stat_result) -> bool:
        """True if it is still open, and its file the one with these attributes."""
        return self.fd >= 0 and self.identity == (found.st_dev, found.st_ino)


def _join(path: bytes, name: bytes) -> bytes:
    return path.rstrip(b"/") + b"/" + name if name else path
