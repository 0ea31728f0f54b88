"""Copies of many registers at once: in place where that is known, by Unicorn otherwise."""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from engine.cpu import native
from engine.cpu import unicorn_api as api
from engine.cpu import unicorn_linkage as linkage
from engine.cpu.unicorn_live import LivePlace


class RegisterCopy:
    """Some registers one after another, little endian, each in so many bytes or fewer.

    What is in place is copied by runs of registers at equal distances.
    """

    def __init__(
        self,
        handle: Any,
        ids: Mapping[str, int],
        names: Sequence[str],
        size: int,
        places: Mapping[str, LivePlace],
    ) -> None:
        """Prepare them.

        Args:
            handle: of the engine.
            ids: Unicorn's numbers.
            names: of the registers.
            size: bytes of each, whole words where any is in place.
            places: of those that are found in place.
        """
        self._handle = handle
        # Bytes beyond a register's width stay zeros in what is read into.
        self._inside = ctypes.create_string_buffer(size * len(names))
        self._outside = ctypes.create_string_buffer(size * len(names))
        found = [places.get(name) for name in names]
        usable = [
            place if place is not None and 8 * place.wide <= size else None for place in found
        ]
        runs = list(_runs(usable))
        self._loads: list[tuple[memoryview, memoryview]] = []
        self._stores: list[tuple[memoryview, memoryview]] = []
        inside = memoryview(self._inside).cast("B").cast("Q") if runs else memoryview(b"")
        outside = memoryview(self._outside).cast("B").cast("Q") if runs else memoryview(b"")
        slot = size // 8
        for first, behind, place, distance in runs:
            for word in range(place.wide):
                here = slice(first * slot + word, behind * slot, slot)
                end = place.at + word + distance * (behind - first)
                live = place.words[place.at + word : end if end >= 0 else None : distance]
                self._loads.append((inside[here], live))
                self._stores.append((live, outside[here]))
        done = {at for first, behind, *_ in runs for at in range(first, behind)}
        asked = [at for at in range(len(names)) if at not in done]
        self._count = len(asked)
        numbers = (ctypes.c_int * len(asked))(*(ids[names[at]] for at in asked))
        to, source = (
            (api.VOID * len(asked))(*(ctypes.addressof(values) + size * at for at in asked))
            for values in (self._inside, self._outside)
        )
        self._kept = numbers, to, source
        self._ask = self._call(api.reg_read_batch, to)
        self._tell = self._call(api.reg_write_batch, source)

    def _call(self, function: Any, pointers: Any) -> Callable[[], object]:
        """A call of Unicorn's for these registers."""
        numbers = ctypes.addressof(self._kept[0])
        words = (self._handle.value or 0, numbers, ctypes.addressof(pointers), self._count)
        bound = native.bound(linkage.address_in(function), *words) if self._count else None
        return bound or partial(function, *words)

    def read(self) -> bytes:
        """Their contents."""
        if self._count:
            self._ask()
        for target, source in self._loads:
            target[:] = source
        return self._inside.raw

    def write(self, data: bytes) -> None:
        """Set them, those in place last."""
        self._outside.raw = data
        if self._count:
            self._tell()
        for target, source in self._stores:
            target[:] = source


def _runs(places: Sequence[LivePlace | None]) -> Iterator[tuple[int, int, LivePlace, int]]:
    """(first, one past the last, place of the first, words from each to the next) of all in place.

    They are at equal distances, and not at the same place.
    """
    first = 0
    while first < len(places):
        place, behind, distance = places[first], first + 1, 1
        if place is None:
            first += 1
            continue
        while behind < len(places):
            before, following = places[behind - 1], places[behind]
            if before is None or following is None or following.words is not place.words:
                break
            step = following.at - before.at
            if not step or (behind - first > 1 and step != distance):
                break
            distance, behind = step, behind + 1
        yield first, behind, place, distance
        first = behind
