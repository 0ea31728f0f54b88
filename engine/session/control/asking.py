"""Questions to a debugger while the guest runs: is it to stop here?

Every field has an answer of its own; a debugger replaces those it wants to give.
"""

from collections.abc import Callable

from msgspec import Struct

from engine.guest.hooks import PASSED, SignalAnswer


class StopQuestions(Struct):
    """The questions; texts say why to stop, "" is to run on.

    Attributes:
        accepts: (id of a breakpoint or probe) at each hit that would stop the guest, with the
            guest at the hit's address.
        signal: (number) before a signal is delivered to the current thread.
        call: (number, name) before its system call is carried out; None for no interest.
        returned: (number, name) after it; None for no interest.
        forked: (process id, name of the call): it has made a process.
        mapped: code of a file has come.
        executed: (path): it has begun another program.
    """

    accepts: Callable[[int], bool] = lambda row: True
    signal: Callable[[int], SignalAnswer] = lambda number: PASSED
    call: Callable[[int, str], str] | None = None
    returned: Callable[[int, str], str] | None = None
    forked: Callable[[int, str], str] = lambda pid, call: ""
    mapped: Callable[[], object] = lambda: None
    executed: Callable[[str], str] = lambda path: ""
