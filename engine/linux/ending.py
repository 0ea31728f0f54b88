"""The end of a guest's process."""

from msgspec import Struct


class Crash(Struct, frozen=True):
    """The circumstances of a fatal fault.

    Attributes:
        signal: its number.
        pc: guest address of the instruction (the program's own, not a slot's).
        address: address of the access, None where there is none.
        why: in words.
    """

    signal: int
    pc: int
    address: int | None
    why: str


class Exit(Struct, frozen=True):
    """The end of a guest.

    Attributes:
        code: its exit code, None if a signal killed it or it was stopped.
        signal: the signal that killed it, 0 if none.
        limit: "timeout" or "max-blocks" if the user's limit stopped it; "deadlock" if all who
            were left waited for each other, with the end of the first process if it had ended.
        crash: for a fatal fault.
        by_user: the host's user has ended the run, by that signal to the tool.
    """

    code: int | None = None
    signal: int = 0
    limit: str = ""
    crash: Crash | None = None
    by_user: bool = False

    @property
    def first_has(self) -> bool:
        """True if the first process has ended, whatever became of the others."""
        return self.code is not None or self.signal != 0
