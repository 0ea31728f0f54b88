"""Uprobes' places of one file that are accepted by the bytes of their instructions alone.

A million definitions name offsets of one library, and hardly any of them is out of the ordinary.
In a function that has nothing to say of its places, the same instruction is accepted at each of
them: it is judged once. All other places are for `Verdicts`.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from engine.arch.base import Arch
from engine.arch.plan import Mode, Rules
from engine.image.headers import PF_X
from engine.probes.placement_rules import accepted, plain
from engine.probes.site import FunctionCode, ImageCode, Site, plan_at
from engine.session.program.libraries import ProgramFile
from engine.session.program.places import Enclosing, Place, Places

_KEPT: Final = 1 << 14


class PlainUprobes:
    """The places of one file under uprobes' strict rules.

    Attributes:
        distance: what is added to an offset in the file to get the link address.
    """

    def __init__(
        self,
        arch: Arch,
        file: ProgramFile,
        code: ImageCode,
        places: Places,
        changed: Callable[[Place], bool],
    ) -> None:
        """Nothing is looked at yet.

        Args:
            arch: of the program.
            file: the file.
            code: of it.
            places: of the program.
            changed: True if a guest's memory has other code around a place.
        """
        self._arch, self._file, self._code = arch, file, code
        self._places, self._changed = places, changed
        self._known: dict[bytes, bool] = {}
        code_segments = [s for s in file.image.load_segments if s.flags & PF_X]
        # Of a part of the file that is mapped twice only `ElfImage.vaddr_of` knows the address.
        self._only = code_segments[0] if len(code_segments) == 1 else None
        self.distance = 0 if self._only is None else self._only.vaddr - self._only.offset
        # The function that was asked about last, and its addresses.
        self._low = self._high = 0
        self._around: Enclosing | None = None
        self._function: FunctionCode | None = None

    def around(self, offset: int) -> Enclosing | None:
        """The function around an offset if a probe is accepted there.

        None if `Verdicts` has to say.
        """
        link = offset + self.distance
        if not self._low <= link < self._high and not self._enter(link, offset):
            return None
        function, around = self._function, self._around
        assert function is not None, "it was entered"
        assert around is not None, "it was entered"
        starts = function.starts
        number = bisect_left(starts, link)
        if number == len(starts) or starts[number] != link:
            return None
        end = starts[number + 1] if number + 1 < len(starts) else function.end
        raw = function.data[link - function.start : end - function.start]
        known = self._known.get(raw)
        if known is None:
            known = self._judge(raw)
        if known or self._accepts(function, link):
            return around
        return None

    def _enter(self, link: int, offset: int) -> bool:
        """Look at the function around an address: True if it has nothing to say of its places."""
        self._low = self._high = 0
        arch, code, segment = self._arch, self._code, self._only
        if segment is None or arch.code_unit != 1 or arch.insn_align != 1:
            return False
        if not segment.offset <= offset < segment.offset + segment.filesz:
            return False
        found = self._places.neighbours(self._file, link)
        if found is None:
            return False
        around, low, high = found
        assert around.function is not None, "it is a neighbourhood's"
        function, stretch = code.function(*around.function), code.stretch(link)
        site = Site(code, link, Rules.UPROBE, Mode.STRICT, around.function, symbol=stretch.symbol)
        if not plain(site) or arch.probes.ties(function.data):
            return False
        if self._file.image.file_offset(link) != offset or self._changed(Place(around, link, "")):
            return False
        self._around, self._function = around, function
        self._low, self._high = max(low, stretch.start), min(high, stretch.end)
        return True

    def _judge(self, raw: bytes) -> bool:
        """True if an instruction is accepted wherever it stands."""
        plan = self._arch.probes.anywhere(raw, Rules.UPROBE, Mode.STRICT)
        found = plan is not None and accepted(Rules.UPROBE, plan) is not None
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[raw] = found
        return found

    def _accepts(self, function: FunctionCode, link: int) -> bool:
        """True if the instruction at an address is accepted there."""
        plan = plan_at(self._code, function, link, Rules.UPROBE, Mode.STRICT)
        return accepted(Rules.UPROBE, plan) is not None
