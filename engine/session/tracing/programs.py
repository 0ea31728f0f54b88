"""Programs that a guest has run: which one a row of a trace is from, its names and files."""

from collections.abc import Callable

from engine.cpu.ram import EXECUTE, PAGE
from engine.guest.mapping import Mapping
from engine.guest.modules import Location, Module, Modules, located
from engine.image.elf import ElfImage
from engine.linux.space import AddressSpace
from engine.session.guest.session import Session
from engine.session.protocol import events as ev
from engine.session.protocol.views import ModuleView
from engine.trace.formats.base import Format, MappedFile
from engine.trace.program_times import ProgramTimes


def _nobody(event: ev.ProgramBegan | ev.FileMapped | ev.FileRead) -> None:
    """Ignore an event: no listener was given."""


class Programs:
    """The programs of one guest, by number: 0 is the first one, each exec begins another.

    A process that fork has made goes on with its parent's. An address means something else in
    each program, so rows are named by the one that their thread was in at their time.

    A task of a kernel which is a guest is in the user program that it has run last. Addresses are
    those of that program or of the kernel: one stack goes through both.

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
        self._pages: dict[int, dict[int, Module]] = {}  # of user programs, by number and address
        self._tasks: dict[int, int] = {}
        self._told: dict[str, ElfImage] = {}
        self.times = ProgramTimes()
        self.tell: Callable[[ev.ProgramBegan | ev.FileMapped | ev.FileRead], object] = (
            lambda event: None
        )
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
        if new.modules.contents is not None:
            # A kernel makes room for a program: for a copy of one, or for another one.
            self._numbers[new] = number = len(self._modules)
            self._modules.append(new.modules)
            self._pages[number] = {}

    def user_runs(self) -> None:
        """Note that another thread runs: a user program, perhaps, for a task of the kernel's."""
        users, machine = self._session.user_programs, self._session.machine
        if users is None or not users.owns(machine.current):
            return
        number, task = self._numbers.get(machine.current.space, 0), machine.task
        if self._tasks.get(task, 0) == number:
            return
        self._tasks[task] = number
        if not self.several:
            self.several = True
        self._began(task, number)

    def replaced(self, new: AddressSpace) -> None:
        """The current thread has begun another program."""
        self.several = True
        self._numbers[new] = len(self._modules)
        self._modules.append(new.modules)
        self.began(self._session.machine.tid)

    def mapped(self, space: AddressSpace, start: int, size: int) -> None:
        """Code has come: its names are wanted even if it goes before rows are named."""
        number = self._numbers.get(space, 0)
        pages = self._pages.get(number)
        for mapping in space.memory.overlapping(start, start + size):
            if pages is not None and mapping.shared and mapping.perms & EXECUTE:
                self._show_pages(
                    number, space, max(start, mapping.start), min(start + size, mapping.end)
                )
            elif mapping.perms & EXECUTE and mapping.name.startswith("/"):
                self._mappings.setdefault(number, {})[mapping.start] = mapping
                self._tell_file(number, space.modules.at(mapping.start), mapping)

    def _show_pages(self, number: int, space: AddressSpace, start: int, end: int) -> None:
        """A user program has pages of files."""
        pages = self._pages[number]
        for at in range(start & -PAGE, end, PAGE):
            module = space.modules.at(at)
            if module is None:
                pages.pop(at, None)
                continue
            known = module in pages.values()
            pages[at] = module
            if not known:
                low, high = module.image.low + module.bias, module.image.high + module.bias
                view = ModuleView(module.name, low & -PAGE, high, module.bias, carried=True)
                self._tell_content(module)
                self.tell(ev.FileMapped(number, view))

    def _tell_content(self, module: Module) -> None:
        users = self._session.user_files
        data = b"" if users is None else users.content(module.image)
        if data and self._told.get(module.name) is not module.image:
            self._told[module.name] = module.image
            self.tell(ev.FileRead(module.name, data))

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
        self._pages.pop(number, None)
        self._tasks = {task: its for task, its in self._tasks.items() if its != number}
        self._mappings.pop(number, None)
        self.times.forget(number)
        return number

    def began(self, thread: int) -> None:
        """A thread runs from now on in the program of its address space."""
        machine = self._session.machine
        known = machine.threads.get(thread)
        if machine.inner is not None and (known is None or machine.task_of(known) != thread):
            return  # a task of the kernel's
        self._began(thread, self._numbers.get(known.space, 0) if known is not None else 0)

    def _began(self, thread: int, number: int) -> None:
        now = self._session.machine.cpu.blocks()
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
        return self._located(self._shown, address)

    def locate_in_task(self, task: int, address: int) -> Location:
        """Name an address in the program that a task of a kernel has run last, or the kernel's."""
        return self._located(self._tasks.get(task, 0), address)

    def _located(self, number: int, address: int) -> Location:
        """Name an address in a program."""
        modules = self._modules[number]
        if modules is None:
            return Location(address, None, None, 0)
        pages = self._pages.get(number)
        if pages is not None:
            module = pages.get(address & -PAGE)
            if module is not None:
                return located(module, address)
            modules = self._modules[0] or modules
        found = modules.locate(address)
        if found.module is None and not found.engine:
            gone = self._mappings.get(number, {}).values()
            if any(one.start <= address < one.end for one in gone):
                return modules.kept(gone).locate(address)
        return found

    def file(self, address: int) -> MappedFile | None:
        """The file whose code is at an address of that program."""
        from engine.trace.formats.mapped import mapped_file  # few formats ask

        module = self.locate(address).module
        return None if module is None else mapped_file(module, address)

    def line(self, address: int) -> tuple[str, int] | None:
        """Source file and line of an address of that program."""
        module = self.locate(address).module
        return None if module is None else module.line_at(address)


class LoadedFiles:
    """Programs and libraries that name addresses for whoever reads a trace without the guest.

    Attributes:
        listing: for each its guest path, its path on the host, its bias, its build id (a hash
            where it has none) and the number of the program that it is in. What the host does
            not have is left out.
    """

    def __init__(self, session: Session) -> None:
        """Know no file yet."""
        self.listing: list[tuple[str, str, int, str, int]] = []
        self._session = session
        self._known: set[tuple[str, int, int]] = set()

    def forget(self, program: int) -> None:
        """The addresses of a program have been named: nobody asks any more."""
        self.listing = [one for one in self.listing if one[4] != program]
        self._known = {one for one in self._known if one[2] != program}

    def found(self, space: AddressSpace, program: int, address: int) -> bool:
        """Look at what is mapped at an address; true for a file that was not known."""
        mapping = space.memory.find(address)
        if mapping is None or not mapping.name.startswith("/"):
            return False
        module = space.modules.at(address)
        if module is None or (module.name, module.bias, program) in self._known:
            return False
        self._known.add((module.name, module.bias, program))
        host = self._session.host_file(module.name)
        if host is None:
            return False
        self.listing.append((module.name, host, module.bias, module.image.identity, program))
        return True
