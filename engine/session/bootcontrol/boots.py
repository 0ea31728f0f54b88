"""The boots of one kernel: each is laid out anew, with probes, and follows the one before."""

import gc
from collections.abc import Callable
from enum import Enum

from engine.arch.plan import Mode
from engine.errors import CommandError, KprobeTuiError
from engine.session.bootcontrol.boot import ControlledBoot, words_of
from engine.session.bootcontrol.probe_rows import BootProbeRows
from engine.session.bootcontrol.script import BootScript
from engine.session.headless.bootable import bootable
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.probes import ProbeRow
from engine.session.protocol.scripts import BootScriptRequest


class Likeness(Enum):
    """The likeness of a boot with other probes to the one at hand."""

    FRESH = "fresh"
    """The one at hand has not begun."""
    SAME = "same"
    """Both do the same at the same moments: nothing but the machine is told of the probes."""
    OTHER = "other"
    """The kernel is told other words, so it does more at its begin, and has another history."""


class BootSeries:
    """The boots, one after the other.

    Attributes:
        opened: the kernel.
        boot: the one at hand.
        rows: the probes that are placed in it.
        script: that is attached to it; None for none.
    """

    def __init__(
        self,
        config: GuestConfig,
        mode: Mode,
        put: Callable[[bytes], None],
        take: Callable[[bytes], None],
    ) -> None:
        """Lay the first one out, without probes.

        Args:
            config: with what is to be booted.
            mode: strictness of definitions.
            put: takes what the console writes for the first time.
            take: takes rows of events.

        Raises:
            ImageError: the kernel cannot be read.
            CommandError: it cannot be booted.
        """
        assert config.boot is not None, "a boot was asked for"
        self._config, self._request, self._mode = config, config.boot, mode
        self._put, self._take = put, take
        self._parts = bootable(self._request)
        self.opened = OpenedKernel(self._parts.kernel, config.kernel)
        self.script: BootScriptRequest | None = None
        self.boot = self._made(())
        self.rows = BootProbeRows(self.boot)

    def _made(self, rows: tuple[ProbeRow, ...]) -> ControlledBoot:
        """A boot in front of its first instruction; raises `KprobeTuiError` for none."""
        return ControlledBoot(
            *(self._request, self._parts, self.opened, _lines(rows), self._put, self._take),
            past=self._config.history,
            mode=self._mode,
            script=self.script,
        )

    def lay_instead(
        self,
        rows: tuple[ProbeRow, ...],
        begin: Callable[[], None],
        *,
        follows: Likeness = Likeness.FRESH,
        whole: bool = False,
    ) -> None:
        """Lay another boot out in the place of the one at hand, whose memory is given back.

        Args:
            rows: the probes.
            begin: called once the fresh one is at hand, while the one before is still there.
            follows: `SAME` and `OTHER`: the same is typed at the same times; `SAME`: what the one
                before has written is known already.
            whole: there is another boot only if all probes can be placed in it.

        Raises:
            KprobeTuiError: there is no other boot; the one at hand stays.
        """
        boot, before = self._made(rows), self.boot
        placed = BootProbeRows(boot, rows)
        if whole and placed.failed:
            boot.close()
            raise CommandError(placed.failed[-1].removeprefix(f"{rows[-1].line}: "))
        before.tracing.drain()
        if follows is Likeness.SAME:
            boot.booted.follow(before.booted)
        elif follows is Likeness.OTHER:
            boot.booted.type_again(before.booted)
        self.boot, self.rows = boot, placed
        begin()
        before.close()
        del before
        gc.collect()  # a machine is as large as its memory, twice with a past

    def likeness(self, rows: tuple[ProbeRow, ...]) -> Likeness:
        """Compare a boot with these probes and the script to the one at hand.

        Raises:
            KprobeTuiError: something is not accepted, or a recorded boot was not told of it.
        """
        script = None
        if self.script is not None:
            script = BootScript(self.opened, self.script, self._parts.files)
        words = words_of(self.opened, self._request, _lines(rows), script)
        self._parts.with_words(words)  # a recorded boot is told no others
        if not self.boot.has_run:
            return Likeness.FRESH
        return Likeness.SAME if words == self.boot.words else Likeness.OTHER

    def why_not_told(self, row: ProbeRow) -> str:
        """Why the kernel cannot be told of an event, as a recorded boot; "" where it can."""
        try:
            self._parts.with_words(words_of(self.opened, self._request, _lines((row,)), None))
        except KprobeTuiError as error:
            return str(error)
        return ""

    def attach(self, request: BootScriptRequest, lay: Callable[[], str]) -> str:
        """Have a script in place of the last one; where that is not accepted, the last one stays.

        Args:
            request: the script.
            lay: has the boot at hand laid out anew with it.

        Returns:
            What `lay` has said.
        """
        before = self.script
        self.script = request
        try:
            return lay()
        except BaseException:
            self.script = before
            raise

    def detach(self) -> str:
        """Take the script out of this boot and of later ones; its name, "" for none."""
        before = self.script
        if before is None or self.boot.script is None:
            return ""
        self.boot.script.end()
        self.script = None
        return before.name


def _lines(rows: tuple[ProbeRow, ...]) -> tuple[str, ...]:
    """The definitions among rows."""
    return tuple(row.line for row in rows if row.kind == "p")
