"""The journal of a run: what came to the program from outside, in order, by the guest's clock.

An entry stands between two stretches of the program and holds what happened there. It has no
entry where nothing happened, as at the end of a turn that the thread keeps. Entries and what they
hold are plain values, so that they can be written to files as they are.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from engine.cpu.base import StopKind
from engine.errors import KprobeTuiError


class DamagedEntryError(KprobeTuiError):
    """An entry that was read from a file makes no sense."""


class EntryCause(IntEnum):
    """The stop of the program that an entry stands at.

    ANYWHERE is none: the kernel did something on its own, as for a signal of the host's user. STEP
    is one instruction of a thread that its tracer steps: it may lead to itself.
    """

    ANYWHERE = 0
    SYSCALL = 1
    FAULT = 2
    TRAP = 3
    QUANTUM = 4
    STEP = 5

    @property
    def expected(self) -> bool:
        """True if the program comes to it by itself."""
        return self in (EntryCause.SYSCALL, EntryCause.FAULT, EntryCause.TRAP)


CAUSES: Final = {
    StopKind.SYSCALL: EntryCause.SYSCALL,
    StopKind.FAULT: EntryCause.FAULT,
    StopKind.TRAP: EntryCause.TRAP,
    StopKind.QUANTUM: EntryCause.QUANTUM,
}
"""The kinds of stops that the program comes to again by itself."""

WORDS: Final = {
    EntryCause.ANYWHERE: "the kernel",
    EntryCause.SYSCALL: "a system call",
    EntryCause.FAULT: "a fault",
    EntryCause.TRAP: "an exception",
    EntryCause.QUANTUM: "the end of a turn",
    EntryCause.STEP: "the end of a step",
}


class Op:
    """The kinds of what happens, and what follows each in its tuple."""

    WRITE: Final = 1  # address, bytes: in the current address space, as the program could
    POKE: Final = 2  # space, address, bytes: whatever the protection; or in another space
    FILL: Final = 3  # arena offset, bytes
    ZERO: Final = 4  # arena offset, size
    COPY: Final = 5  # arena offset, arena offset of the copy, size
    REGISTER: Final = 6  # name, value
    BLOCK: Final = 7  # names, bytes of each, bytes
    SAVE: Final = 8  # -: the registers, as the next number of this entry
    RESTORE: Final = 9  # number of those saved in this entry, -1 for those of a blank processor
    EXECUTE: Final = 10  # address, end: code of the engine's own
    EXPECT: Final = 11  # address: the clock is told where the program goes on
    BEGIN: Final = 12  # -: the clock is told that a program begins
    CLEAR_FLAGS: Final = 13  # -: sticky floating-point exceptions
    SWITCH: Final = 14  # thread id
    RETURN: Final = 15  # result, whether the call is made again
    WAIT: Final = 16  # -: the call waits
    MAPPINGS: Final = 17  # space, first address, end, mappings (see `layout`)
    NOTICE: Final = 18  # space, what, start, size: see `Memory.on_change`
    SPACE: Final = 19  # space, space that it is a copy of or -1
    LENT: Final = 20  # space, thread id, process id of the child
    REPLACED: Final = 21  # process id, old space, new space
    ENDED: Final = 22  # space
    PROGRAM: Final = 23  # space, ((path, bias)...), exe, argv, env, heap, code
    THREAD: Final = 24  # maker, id, process id, parent's, space, name, number of its registers
    FIRST: Final = 25  # id before, of the thread that has its process's id now
    LEAVES: Final = 26  # thread id, whether its process ends, nanoseconds and ticks that it ran
    EXIT: Final = 27  # process id, code or -1, signal, crash or ()
    SWITCHING: Final = 28  # thread id before or 0, next or 0, why
    WOKEN: Final = 29  # thread id
    EXECUTED: Final = 30  # thread id, id before, path
    NAME: Final = 31  # thread id, name
    SIGNAL: Final = 32  # number: its handler is next
    OUTPUT: Final = 33  # descriptor of the host's, bytes
    END: Final = 34  # code or -1, signal, limit, by the user, crash or (), remarks: see `Remarks`
    CONTENT: Final = 35  # arena offset, digest of bytes: see `Journal.content`


class Remarks(NamedTuple):
    """The remarks on a run that has ended.

    Attributes:
        crashes: faults of other processes than the first, in words.
        crashed: number of all of them.
        missing: what the guest asked for in vain, with how often.
    """

    crashes: Sequence[str]
    crashed: int
    missing: dict[str, int]


class Entry(NamedTuple):
    """All that happened to the program at one moment.

    Attributes:
        clock: ticks of the guest's clock; where the kernel does something on its own, the tick in
            which the program goes on.
        pc: where the program stands, by its own addresses.
        thread: id of the one that has the processor.
        cause: the stop, one of `EntryCause`.
        ops: what happened, in order.
    """

    clock: int
    pc: int
    thread: int
    cause: int
    ops: Sequence[Any]

    def __str__(self) -> str:
        return (
            f"{WORDS[EntryCause(self.cause)]} at tick {self.clock}, pc {self.pc:#x}, "
            f"thread {self.thread}"
        )


class InstructionInput(NamedTuple):
    """A value that an instruction of the program got from outside: a counter, random bytes.

    Attributes:
        clock: ticks.
        value: the value, unsigned.
    """

    clock: int
    value: Any


def digest_of(data: bytes) -> bytes:
    """The digest that stands for a content, in other runs, too."""
    return sha256(data).digest()  # processors have instructions for it


class Journal:
    """The entries of one run so far, as bytes: there may be millions.

    Attributes:
        raw: the entries.
        clocks: the tick of each.
        inputs: what instructions got.
        contents: long bytes that came into memory, by their digest (SHA-256), each once: a library
            is loaded many times.
        complete: no more will come.
    """

    def __init__(self, check: Callable[[int, Sequence[Any]], object] | None = None) -> None:
        """Begin without entries.

        Args:
            check: looks at cause and ops of entries that somebody else has written, and raises
                `ValueError`; None where all are our own.
        """
        self._check = check
        self.raw: list[bytes] = []
        self.clocks = array("Q")
        self.inputs: list[InstructionInput] = []
        self.contents: dict[bytes, bytes] = {}
        self._gone = 0
        self._known: set[bytes] = set()
        self.complete = False
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(tuple[int, int, int, int, list[Any]]).decode
        # Of an entry that somebody else has written only the tick is looked at yet.
        self._read = msgspec.msgpack.Decoder(tuple[int, int, int, int, msgspec.Raw]).decode

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, index: int) -> Entry:
        """An entry, decoded.

        Raises:
            DamagedEntryError: it comes from a file, and makes no sense.
        """
        raw = self.raw[index]
        try:
            entry = Entry(*self._decode(raw))
            if self._check is not None:
                self._check(entry.cause, entry.ops)
            return entry
        except (msgspec.MsgspecError, ValueError, RecursionError, MemoryError) as error:
            raise DamagedEntryError(
                f"entry {index} of the recording is damaged: {error}"
            ) from error

    @property
    def total(self) -> int:
        """Entries that there were, those that are kept elsewhere among them."""
        return self._gone + len(self.raw)

    @property
    def end(self) -> int:
        """The tick of the last entry."""
        return self.clocks[-1] if self.clocks else 0

    def add(self, entry: tuple[int, int, int, int, Sequence[Any]]) -> int:
        """Something has happened; the bytes that tell of it."""
        raw = self._encode(entry)
        self.raw.append(raw)
        self.clocks.append(entry[0])
        return len(raw)

    def extend(self, raws: Iterable[bytes]) -> None:
        """More entries, as bytes.

        Raises:
            msgspec.MsgspecError: they are none.
            OverflowError: one has no tick.
        """
        for raw in raws:
            self.clocks.append(self._read(raw)[0])
            self.raw.append(raw)

    def put(self, clock: int, value: Any) -> None:
        """An instruction got something."""
        self.inputs.append(InstructionInput(clock, value))

    def content(self, data: bytes) -> tuple[bytes, bool]:
        """The digest of bytes, which are among `contents` then, and whether they are anew."""
        digest = digest_of(data)
        if digest in self._known:
            return digest, False
        self._known.add(digest)
        self.contents[digest] = data
        return digest, True

    def has(self, digest: bytes) -> bool:
        """True if a content is among those that there were."""
        return digest in self._known

    def clear(self) -> None:
        """Forget what there is: it is kept elsewhere. What contents there were is known."""
        self._gone += len(self.raw)
        self.raw.clear()
        self.inputs.clear()
        self.contents.clear()
        del self.clocks[:]

    def __iter__(self) -> Iterator[Entry]:
        return (self[index] for index in range(len(self)))

    def outputs(self) -> Iterator[tuple[int, int, bytes]]:
        """(tick, descriptor, bytes) of what the guest wrote to the host."""
        for entry in self:
            for op in entry.ops:
                if op[0] == Op.OUTPUT:
                    yield entry.clock, op[1], op[2]
