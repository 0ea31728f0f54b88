"""A killed trace's last events as text, from the `FILE.ring` that it left."""

import os
import stat
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, ImageError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.session.guest.outputs import OutputTree
from engine.session.tracing.placed_files import PlacedFiles
from engine.trace.formats import FORMAT_NAMES as FORMAT_NAMES
from engine.trace.formats import TRACER_NAMES, Format, format_named
from engine.trace.formats.base import MappedFile, Names, PlacedFormat, no_symbol, with_idle
from engine.trace.formats.mapped import mapped_file
from engine.trace.recovery import LoadedFile, Recovered, recover

_SUFFIX: Final = ".ring"


class RecoveredText(Struct, frozen=True):
    """The bytes to be put behind FILE.

    Attributes:
        text: its bytes.
        count: events that had not been written as a whole.
        notes: what the user should know, in lines.
        completed: FILE, where it is no stream: the events were written to it, and there is no
            text; else "".
    """

    text: bytes
    count: int
    notes: tuple[str, ...]
    completed: str = ""


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
    writer = _writer(found, form, symbols)
    if isinstance(writer, PlacedFormat):
        return _completed(ring, found, writer, symbols, own=form in (None, found.format))
    text, notes = _text(found, writer, header, symbols)
    skipped = 0
    if form in (None, found.format) and not header:
        skipped, more = _there_already(ring, found.progress.written, text)
        notes += more
    if found.damaged:
        notes.append(f"{found.damaged} bytes behind them are damaged")
    return RecoveredText(text[skipped:], found.count, (*notes, *symbols.notes))


def _writer(found: Recovered, form: str | None, symbol: "_Symbols") -> Format:
    """The format that events are written in."""
    name = form or found.format or FORMAT_NAMES[0]
    if name not in (*FORMAT_NAMES, *TRACER_NAMES):
        raise CommandError(f"there is no format {name!r}; give one with --format")
    comms = {thread: name.encode(errors="surrogateescape") for thread, name in found.comms.items()}
    returning, pids = found.returning.__contains__, found.pids
    names = Names(
        symbol,
        with_idle(comms.get),
        returning,
        found.exact,
        lambda thread: pids.get(thread, thread),
        symbol.file,
        symbol.line,
        found.arch,
        found.decodes,
    )
    own = name == found.format
    return format_named(name)(found.events, names, found.options if own else ())


def _text(
    found: Recovered, writer: Format, header: bool, symbol: "_Symbols"
) -> tuple[bytes, list[str]]:
    """Make the text that FILE lacks from the last byte known to be whole, and remarks."""
    own = writer.name == found.format
    progress = found.progress
    notes: list[str] = []
    if own and not found.arch:
        return b"", notes
    out = b""
    if header or (own and progress.stage == 0) or not (own or writer.is_text):
        out += writer.header()
    if own:
        notes += _restored(writer, found)
    if progress.lost:
        out += writer.lost(progress.lost)
    for number, rows in found.programs.runs(found.rows):
        symbol.program = number
        writer.program(number)
        out += writer.rows(rows)
    if not own or progress.stage < 2:
        out += writer.end()
    return out, notes


def _restored(writer: Format, found: Recovered) -> list[str]:
    """Let a format go on where the trace's was; what went wrong."""
    if found.state is None:
        return []
    try:
        writer.restore(found.state)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return ["the state of the output is damaged: the first lines may be wrong"]
    return []


def _completed(
    ring: str, found: Recovered, writer: PlacedFormat, symbol: "_Symbols", *, own: bool
) -> RecoveredText:
    """Write what FILE lacks to FILE itself, behind the last bytes known to be whole."""
    if not own:
        raise CommandError(f"--format {writer.name} is no stream: it can only be the trace's own")
    if not ring.endswith(_SUFFIX):
        raise CommandError(
            f"{ring}: its name does not tell that of the trace ({_SUFFIX} behind it)"
        )
    path = ring.removesuffix(_SUFFIX)
    if not found.arch:
        return RecoveredText(b"", 0, (), path)
    tree = OutputTree("recover", path, lambda: writer.is_directory, writer.owns)
    notes: list[str] = []
    try:
        tree.create()
        placed = PlacedFiles(writer, tree)
        for name, size in found.file_sizes.items():
            if os.fstat(tree.file(name).fileno()).st_size < size:
                raise CommandError(f"{path} was changed since: it is shorter than it was")
        if writer.is_directory:
            for name in os.listdir(path):
                if writer.owns(name) and name not in found.file_sizes:
                    os.unlink(os.path.join(path, name))
        placed.cut(found.file_sizes)
        if found.progress.stage == 0:
            placed.write(writer.header())
        notes += _restored(writer, found)
        placed.resume()
        if found.progress.lost:
            placed.write(writer.lost(found.progress.lost))
        for number, rows in found.programs.runs(found.rows):
            symbol.program = number
            writer.program(number)
            placed.write(writer.rows(rows))
        if found.progress.stage < 2:
            placed.write(writer.end())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    finally:
        tree.close()
    if found.damaged:
        notes.append(f"{found.damaged} bytes behind them are damaged")
    return RecoveredText(b"", found.count, (*notes, *symbol.notes), path)


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
        module = self._module(address)
        symbol = None if module is None else module.symbol_at(address)
        if module is None or symbol is None:
            return no_symbol(address)
        return f"{symbol.name}+{address - module.bias - symbol.address:#x}/{symbol.size:#x}"

    def file(self, address: int) -> MappedFile | None:
        """The file whose code is at an address."""
        module = self._module(address)
        return None if module is None else mapped_file(module, address)

    def line(self, address: int) -> tuple[str, int] | None:
        """Source file and line of an address."""
        module = self._module(address)
        return None if module is None else module.line_at(address)

    def _module(self, address: int) -> Module | None:
        if self.program not in self._modules:
            self._modules[self.program] = [
                module
                for file in self._files
                if file.program == self.program and (module := self._open(file)) is not None
            ]
        for module in self._modules[self.program]:
            if module.contains(address):
                return module
        return None

    def _open(self, file: LoadedFile) -> Module | None:
        try:
            image = ElfImage.open(file.host)
        except ImageError:
            image = None
        if image is None or image.identity != file.ident:
            self.notes.append(f"{file.host} is not what it was: its addresses have no names")
            return None
        return Module(file.name, image, file.bias)
