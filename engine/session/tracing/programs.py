"""Programs that a guest has run: which one a row of a trace is from, and its names."""

from collections.abc import Callable

from engine.cpu.ram import EXECUTE
from engine.guest.mapping import Mapping
from engine.guest.modules import Location, Module, Modules
from engine.linux.space import AddressSpace
from engine.session.guest.session import Session
from engine.session.protocol import events as ev
from engine.session.protocol.views import ModuleView
from engine.trace.formats.base import Format, MappedFile
from engine.trace.formats.mapped import mapped_file
from engine.trace.program_times import ProgramTimes


class Programs:
    """The programs of one guest, by number: 0 is the first one, each exec begins another.

    A process that fork has made goes on with its parent's. An address means something else in
    each program, so rows are named by the one that their thread was in at their time.

    Attributes:
        several: there is more than one.
        times: when threads were in which.
        tell: takes what those have to know who name rows by themselves.
    """

    def __init__(self, session: Session, *, keeps: bool) -> None:
        """There is the first one, which has not run yet.

        Args:
            session: the guest.
            keeps: names of programs that have ended are wanted, too: rows are kept to the end.
        """
        self.several = False
        self._keeps = keeps
        self._session = session
        self._numbers: dict[AddressSpace, int] = {session.space: 0}
        self._modules: list[Modules | None] = [session.space.modules]
        self._mappings: dict[int, dict[int, Mapping]] = {}
        self.times = ProgramTimes()
        self.tell: Callable[[ev.ProgramBegan | ev.FileMapped], object] = lambda event: None
        self._shown = 0

    # -- what happens ---------------------------------------------------------------------

    def begin(self) -> None:
        """The guest is about to run: there is code already."""
        space = self._session.space
        for mapping in list(space.memory.mappings):
            self.mapped(space, mapping.start, mapping.size)

    def copied(self, old: AddressSpace, new: AddressSpace) -> None:
        """A process begins with a copy of an address space."""
        self._numbers[new] = self._numbers.get(old, 0)

    def replaced(self, new: AddressSpace) -> None:
        """The current thread has begun another program."""
        self.several = True
        self._numbers[new] = len(self._modules)
        self._modules.append(new.modules)
        self.began(self._session.machine.tid)

    def mapped(self, space: AddressSpace, start: int, size: int) -> None:
        """Code has come: its names are wanted even if it goes before rows are named."""
        number = self._numbers.get(space, 0)
        for mapping in space.memory.overlapping(start, start + size):
            if mapping.perms & EXECUTE and mapping.name.startswith("/"):
                self._mappings.setdefault(number, {})[mapping.start] = mapping
                self._tell_file(number, space.modules.at(mapping.start), mapping)

    def _tell_file(self, number: int, module: Module | None, mapping: Mapping) -> None:
        if module is not None:
            main = module.image is self._session.image
            view = ModuleView(module.name, mapping.start, mapping.end, module.bias, main)
            self.tell(ev.FileMapped(number, view))

    def ended(self, space: AddressSpace) -> int:
        """An address space is about to be given back; what was recorded there has been named.

        Returns:
            Number of the program that has ended with it and will not be named again; 0 for none.
        """
        number = self._numbers.pop(space, 0)
        heir = next((other for other, its in self._numbers.items() if its == number), None)
        if heir is not None:
            if self._modules[number] is space.modules:
                self._modules[number] = heir.modules
            return 0
        if self._keeps or not number:
            self._modules[number] = space.modules.kept()
            return 0
        self._modules[number] = None
        self._mappings.pop(number, None)
        self.times.forget(number)
        return number

    def began(self, thread: int) -> None:
        """A thread runs from now on in the program of its address space."""
        machine = self._session.machine
        known = machine.threads.get(thread)
        number = self._numbers.get(known.space, 0) if known is not None else 0
        now = machine.cpu.blocks()
        self.times.began(thread, now, number)
        if self.several:
            self.tell(ev.ProgramBegan(thread, now, number))

    def number(self, space: AddressSpace) -> int:
        """Number of the program in an address space."""
        return self._numbers.get(space, 0)

    # -- rows -----------------------------------------------------------------------------

    def text(self, form: Format, rows: bytes) -> bytes:
        """The text of rows, each named by its own program; a `TextOf`."""
        if not self.several:
            return form.rows(rows)
        texts: list[bytes] = []
        for number, piece in self.times.runs(rows):
            self._shown = number
            form.program(number)
            texts.append(form.rows(piece))
        return b"".join(texts)

    # -- names ----------------------------------------------------------------------------

    def locate(self, address: int) -> Location:
        """Name an address in the program whose rows are turned into text."""
        modules = self._modules[self._shown]
        if modules is None:
            return Location(address, None, None, 0)
        found = modules.locate(address)
        if found.module is None and not found.engine:
            gone = self._mappings.get(self._shown, {}).values()
            if any(one.start <= address < one.end for one in gone):
                return modules.kept(gone).locate(address)
        return found

    def file(self, address: int) -> MappedFile | None:
        """The file whose code is at an address of that program."""
        module = self.locate(address).module
        return None if module is None else mapped_file(module, address)

    def line(self, address: int) -> tuple[str, int] | None:
        """Source file and line of an address of that program."""
        module = self.locate(address).module
        return None if module is None else module.line_at(address)
