"""Host code in the library's calls, a link for each machine, used again by later machines.

A call of the library's that is redirected leads to the newest link, and each link to the one
before, for every machine but its own. So a link stays as long as the process lives; one whose
machine is gone serves the next machine, at its place among the others. A process has as many links
as it has had machines at a time, however many it makes one after the other.
"""

import ctypes
from typing import Generic, TypeVar

from msgspec import Struct

_Record = TypeVar("_Record", bound=ctypes.Structure)


class HostLink(Struct, Generic[_Record], eq=False):
    """A link.

    Attributes:
        record: the words that its code works on; their address is a part of the code.
        addresses: of its pieces of code.
        kept: what has to stay in memory with it.
    """

    record: _Record
    addresses: list[int]
    kept: object


class HostLinks(Generic[_Record]):
    """The links of one kind."""

    def __init__(self, chain: tuple[str, ...]) -> None:
        """Have none.

        Args:
            chain: words of the record that lead to the link before: they are for good.
        """
        self._chain = chain
        self._links: list[HostLink[_Record]] = []
        self._free: list[HostLink[_Record]] = []

    def taken(self, words: dict[str, int]) -> HostLink[_Record] | None:
        """A link whose machine is gone, for another one; None for none.

        Args:
            words: of the record; all others are zero.
        """
        try:
            link = self._free.pop()
        except IndexError:
            return None
        record = link.record
        before = {name: getattr(record, name) for name in self._chain}
        ctypes.memset(ctypes.addressof(record), 0, ctypes.sizeof(record))
        for name, value in {**words, **before}.items():
            setattr(record, name, value)
        return link

    def add(self, record: _Record, addresses: list[int], kept: object) -> HostLink[_Record]:
        """Keep a new link, to which the library's calls lead from now on."""
        link = HostLink(record, addresses, kept)
        self._links.append(link)
        return link

    def put_below(self, addresses: dict[str, int]) -> bool:
        """Have the oldest link lead to other code instead of the library's own.

        Args:
            addresses: by the words of its record that lead to the link before.

        Returns:
            False where there is no link.
        """
        for name, address in addresses.items() if self._links else ():
            setattr(self._links[0].record, name, address)
        return bool(self._links)

    def give_back(self, link: HostLink[_Record], owner: tuple[str, ...]) -> None:
        """The machine of a link is gone.

        Args:
            link: the link.
            owner: words of the record that tell its machine from others.
        """
        for name in owner:
            setattr(link.record, name, 0)
        self._free.append(link)

    @property
    def count(self) -> int:
        """Links there are."""
        return len(self._links)
