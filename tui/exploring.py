"""`:explore`: a search of schedules in a process of its own, with the result in the console."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from engine.errors import CommandError
from engine.session import GuestConfig
from tui.desk import Desk
from tui.panes.console import ConsolePane

_HOME: Final = str(Path(__file__).parents[1])
"""The folder of our packages: site-packages, or a checkout."""
_USUAL: Final = 100
"""Seeds that are tried."""
_MOST: Final = 100_000


class Exploring:
    """Runs `kprobe-tui explore` on the guest, one search at a time."""

    def __init__(self, config: GuestConfig, desk: Desk, console: ConsolePane) -> None:
        """Nothing is searched yet.

        Args:
            config: the guest.
            desk: the interface.
            console: shows the result.
        """
        self._config = config
        self._desk = desk
        self._console = console
        self._task: asyncio.Task[None] | None = None

    def begin(self, text: str, done: Callable[[], object]) -> None:
        """Search the schedules of so many seeds.

        Args:
            text: number of the seeds, "" for the usual one.
            done: shows the console.

        Raises:
            CommandError: that is no number, a search goes on, or the guest has options that the
                search would not have.
        """
        seeds = text or str(_USUAL)
        if not seeds.isdecimal() or not 1 <= int(seeds) <= _MOST:
            raise CommandError(f"explore takes a number of seeds, 1 to {_MOST}")
        if self._task is not None and not self._task.done():
            raise CommandError("a search goes on")
        words = ["explore", "--seeds", seeds, *self._guest()]
        self._console.typed(f"explore {seeds}")
        self._desk.say(f"schedules of {seeds} seeds are tried; the console will have the result")
        self._task = asyncio.create_task(self._search(words, done))

    def _guest(self) -> list[str]:
        """The words of the guest.

        Raises:
            CommandError: options say more of it.
        """
        config = self._config
        plain = GuestConfig(config.guest, config.args)
        kept = replace(
            config, history=False, seed=0, random_seed=None, turns=plain.turns, cwd=None
        )
        if kept != plain:
            raise CommandError(
                "the guest has options here that a search would not have; 'kprobe-tui explore'"
                " takes them"
            )
        where = [] if config.cwd is None else ["--cwd", config.cwd]
        return [*where, config.guest, *config.args]

    async def _search(self, words: list[str], done: Callable[[], object]) -> None:
        path = os.pathsep.join(filter(None, (_HOME, os.environ.get("PYTHONPATH"))))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tui", *words),
            env={**os.environ, "PYTHONPATH": path},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:  # the interface ends
                process.terminate()
        self._console.printed(output.decode(errors="surrogateescape"))
        done()
