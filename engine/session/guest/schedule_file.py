"""A schedule of a guest's threads written to a file, choice by choice."""

import io
from typing import Final

from engine.escaping import escaped
from engine.linux.schedule import Choice, header
from engine.session.guest.outputs import OutputFile
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.report import Report

OPTION: Final = "--record-schedule"


class ScheduleFile:
    """The file of one schedule; a failure to write it is told at its end and stops no run."""

    def __init__(self, target: OutputFile, config: GuestConfig, seed: int, turns: str) -> None:
        """Begin the file.

        Args:
            target: the file.
            config: the guest.
            seed: of the turns.
            turns: their kind, in words.

        Raises:
            CommandError: the file cannot be created or emptied.
        """
        self._name = target.name
        self._file = io.BufferedWriter(target.begin())
        self._failure: OSError | None = None
        guest = escaped(" ".join((config.guest, *config.args)))
        self._write(header(guest, seed, config.randomness, turns))

    def add(self, choice: Choice) -> None:
        """Write one more choice."""
        self._write(f"{choice}\n")

    def end(self) -> tuple[Report, ...]:
        """All is out; the remark about what is not."""
        try:
            self._file.flush()
        except OSError as error:
            self._failure = self._failure or error
        if self._failure is None:
            return ()
        return (Report((f"{self._name}: {self._failure.strerror}; the schedule is not whole",)),)

    def _write(self, text: str) -> None:
        if self._failure is None:
            try:
                self._file.write(text.encode(errors="surrogateescape"))
            except OSError as error:
                self._failure = error
