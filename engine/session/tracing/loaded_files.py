"""The files of a guest that name addresses, for whoever reads a trace without the guest."""

from engine.linux.space import AddressSpace
from engine.session.guest.session import Session


class LoadedFiles:
    """Programs and libraries that are mapped to be executed.

    Attributes:
        listing: for each its guest path, its path on the host, its bias, its build id (a hash
            where it has none) and the number of the program that it is in. What the host does
            not have is left out.
    """

    def __init__(self, session: Session) -> None:
        """Nothing is looked for yet."""
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
