"""A killed trace's last events as text, from the `FILE.ring` that it left."""

import os
import stat
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, ImageError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.trace.formats import FORMATS, TRACER_FORMATS, Format
from engine.trace.formats.base import Names, no_symbol, with_idle
from engine.trace.recovery import LoadedFile, Recovered, recover

FORMAT_NAMES: Final = tuple(form.name for form in FORMATS)
_SUFFIX: Final = ".ring"


class RecoveredText(Struct, frozen=True):
    """The bytes to be put behind FILE.

    Attributes:
        text: its bytes.
        count: events that had not been written as a whole.
        notes: what the user should know, in lines.
    """

    text: bytes
    count: int
    notes: tuple[str, ...]


def recovered_text(ring: str, form: str | None = None, *, header: bool = False) -> RecoveredText:
    """The text that FILE lacks: FILE and it are what an undisturbed trace begins with.

    Args:
        ring: path of FILE.ring; what FILE has already is not said again.
        form: another output format than the trace's own: then all events that were not written
            as a whole.
        header: begin with the format's header, too, and look at no FILE.

    Raises:
        CommandError: it is no such file, or damaged.
    """
    found = recover(Path(ring))
    symbols = _Symbols(found)
    text, notes = _text(found, form, header, symbols)
    skipped = 0
    if form in (None, found.format) and not header:
        skipped, more = _there_already(ring, found.progress.written, text)
        notes += more
    if found.damaged:
        notes.append(f"{found.damaged} bytes behind them are damaged")
    return RecoveredText(text[skipped:], found.count, (*notes, *symbols.notes))


def _text(
    found: Recovered, form: str | None, header: bool, symbol: "_Symbols"
) -> tuple[bytes, list[str]]:
    """Make the text that FILE lacks from the last byte known to be whole, and remarks."""
    kinds: dict[str, type[Format]] = {kind.name: kind for kind in (*FORMATS, *TRACER_FORMATS)}
    name = form or found.format or FORMATS[0].name
    if name not in kinds:
        raise CommandError(f"there is no format {name!r}; give one with --format")
    comms = {thread: name.encode(errors="surrogateescape") for thread, name in found.comms.items()}
    returning, pids = found.returning.__contains__, found.pids
    names = Names(
        symbol,
        with_idle(comms.get),
        returning,
        found.exact,
        lambda thread: pids.get(thread, thread),
    )
    own = name == found.format
    writer = kinds[name](found.events, names, found.options if own else ())
    progress = found.progress
    notes: list[str] = []
    if own and not found.arch:
        return b"", notes
    out = b""
    if header or (own and progress.stage == 0) or not (own or writer.is_text):
        out += writer.header()
    if own and found.state is not None:
        try:
            writer.restore(found.state)
        except (ValueError, LookupError, TypeError, AttributeError):
            notes.append("the state of the output is damaged: the first lines may be wrong")
    if progress.lost:
        out += writer.lost(progress.lost)
    for number, rows in found.programs.runs(found.rows):
        symbol.program = number
        writer.program(number)
        out += writer.rows(rows)
    if not own or progress.stage < 2:
        out += writer.end()
    return out, notes


def _there_already(ring: str, written: int, text: bytes) -> tuple[int, list[str]]:
    """Bytes of the text that FILE has already: a kill may have come in the middle of a write."""
    if not ring.endswith(_SUFFIX):
        return 0, []
    file = ring.removesuffix(_SUFFIX)
    try:
        with open(file, "rb") as data:
            status = os.fstat(data.fileno())
            if not stat.S_ISREG(status.st_mode):
                return 0, []
            data.seek(written)
            more = data.read(len(text))
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not written:
            return 0, []  # it was never made
        return 0, [f"{file} cannot be read: what it has of these events already is not known"]
    if status.st_size < written or not text.startswith(more):
        return 0, [f"{file} was changed since: these events may stand in it already"]
    return len(more), []


class _Symbols:
    """Names of addresses from the files that the guest had loaded.

    Attributes:
        notes: about files that are not what they were.
        program: number of the one whose addresses are named.
    """

    def __init__(self, found: Recovered) -> None:
        self.notes: list[str] = []
        self._texts = found.symbols
        self._files = found.files
        self._modules: dict[int, list[Module]] = {}
        self.program = 0

    def __call__(self, address: int) -> str:
        """The `%pS` text of an address."""
        known = self._texts.get(address)
        if known is not None and not self.program:
            return known
        if self.program not in self._modules:
            self._modules[self.program] = [
                module
                for file in self._files
                if file.program == self.program and (module := self._open(file)) is not None
            ]
        for module in self._modules[self.program]:
            if module.contains(address):
                symbol = module.symbol_at(address)
                if symbol is not None:
                    offset = address - module.bias - symbol.address
                    return f"{symbol.name}+{offset:#x}/{symbol.size:#x}"
        return no_symbol(address)

    def _open(self, file: LoadedFile) -> Module | None:
        try:
            image = ElfImage.open(file.host)
        except ImageError:
            image = None
        if image is None or image.identity != file.ident:
            self.notes.append(f"{file.host} is not what it was: its addresses have no names")
            return None
        return Module(file.name, image, file.bias)
