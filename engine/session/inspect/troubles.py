"""The things that a guest asks for in vain, told while it runs."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from engine.message_text import counted
from engine.session.guest.session import Session

_SHOWN: Final = 10
"""Things of a kind that are told one by one; of the others there is the count."""


class Troubles:
    """Calls that are not supported, paths kept from the guest, processes killed: of one run."""

    def __init__(self, session: Session) -> None:
        """Nothing was told yet."""
        self._session = session
        self._told = [0, 0, 0, 0]

    def fresh(self) -> list[str]:
        """Return the troubles that came since the last call, a line for each."""
        machine, refused = self._session.machine, self._session.view.refused
        kinds: tuple[tuple[int, Iterable[str]], ...] = (
            (
                len(machine.missing),
                (f"not supported: {what}" for what in machine.missing),
            ),
            (
                len(refused),
                (
                    f"{refused.why}: {item.path}  ({item.option} shows it)"
                    for item in refused.listed()
                )
                if len(refused) > self._told[1]
                else (),
            ),
            (
                len(machine.failures),
                (
                    f"the engine failed in a system call, the guest got EIO: {what}"
                    for what, _ in machine.failures.values()
                ),
            ),
            (len(machine.crashes), (f"killed: {line}" for line in machine.crashes)),
        )
        found: list[str] = []
        for number, (count, lines) in enumerate(kinds):
            if count > self._told[number]:
                found += islice(lines, self._told[number], min(count, _SHOWN))
                self._told[number] = count
        return found

    @property
    def summary(self) -> str:
        """All of it in a few words, "" for none."""
        machine, refused = self._session.machine, self._session.view.refused
        failed = len(machine.failures)
        parts = (
            f"{len(machine.missing)} unsupported" if machine.missing else "",
            f"{counted(len(refused), 'path')} {refused.word}" if len(refused) else "",
            counted(failed, "failure") if failed else "",
            f"{machine.crash_count} killed" if machine.crash_count else "",
        )
        return ", ".join(filter(None, parts))
