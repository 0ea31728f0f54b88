"""Recorders made from templates: at thousands of places the same is done with other numbers.

What differs are an event's id, addresses and counters, which stand in the code as constants. Of
each kind of work the code is generated twice: with numbers that stand for nothing, to see where
they are, and as it is wanted. Where the first with the wanted numbers in it is not the second,
byte for byte, that kind has no template.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final

from msgspec.structs import replace

from engine.arch.program import EVENT_LOW
from engine.arch.recorder.encoder import Encoder
from engine.arch.recording import CallEntry, CallReturn, DetourPlaces, Recorder, Recording, Work

_KEPT: Final = 512
_WIDE: Final = 1 << 32
_STRANGE: Final = 0x5EB1_93C7_2DA4, 0x6AD3_1F58
"""Addresses that no constant contains, of more and of fewer than 32 bits."""
_STRANGE_NUMBER: Final = 0x5BA6


class RecorderTemplates:
    """The templates of one architecture."""

    def __init__(self, encoder: Callable[[int], Encoder]) -> None:
        """None is known yet.

        Args:
            encoder: (address of the save area) to a new encoder.
        """
        self._encoder = encoder
        self._known: dict[object, _Template | None] = {}

    def record(self, work: Work, places: DetourPlaces, window: bytes) -> Recorder:
        """The same as `generator.record` gives.

        Raises:
            NotCompilableError: no code in the guest can do it.
        """
        if isinstance(work, CallReturn) or not all(map(_is_usual, _each(work))):
            return self._generated(work, places, window)
        free = self._encoder(places.save).flags_free(window)
        shape = (work.row is None) if isinstance(work, CallEntry) else None
        key = places, free, tuple(map(_kind, _each(work))), shape
        template = self._known.get(key)
        if template is not None:
            return template.filled(work)
        made = self._generated(work, places, window)
        if key not in self._known:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = self._template(work, places, window, made)
        return made

    def _generated(self, work: Work, places: DetourPlaces, window: bytes) -> Recorder:
        from engine.arch.recorder.generator import record  # few runs have a jump probe

        return record(self._encoder, work, places, window)

    def _template(
        self, work: Work, places: DetourPlaces, window: bytes, made: Recorder
    ) -> "_Template | None":
        """The template of a kind of work; None if it has none."""
        strange = _strange(work)
        template = _Template(strange, self._generated(strange, places, window))
        return template if template.filled(work) == made else None


class _Template:
    """Code with numbers that stand for nothing, and where they stand."""

    def __init__(self, work: Work, recorder: Recorder) -> None:
        self._recorder = recorder
        self._places: list[tuple[int, ...]] = []
        for constant in _constants(work):
            found, at = list[int](), recorder.code.find(constant) if constant else -1
            while at >= 0:
                found.append(at)
                at = recorder.code.find(constant, at + len(constant))
            self._places.append(tuple(found))

    def filled(self, work: Work) -> Recorder:
        """The recorder of work of this kind."""
        code = bytearray(self._recorder.code)
        for places, constant in zip(self._places, _constants(work), strict=True):
            for at in places:
                code[at : at + len(constant)] = constant
        return replace(self._recorder, code=bytes(code))


def _each(work: Work) -> Iterator[Recording | CallEntry]:
    """The work for single probes, and rows beside it."""
    if isinstance(work, CallEntry):
        yield from work.before
        if work.row is not None:
            yield work.row
        yield work
    elif not isinstance(work, CallReturn):
        yield from work


def _is_usual(one: Recording | CallEntry) -> bool:
    """True if its numbers are of the sizes that are told apart."""
    if isinstance(one, CallEntry):
        return 0 < one.number < _WIDE and one.kind < _WIDE and one.counter >= _WIDE
    return 0 < one.event <= EVENT_LOW and (one.counter >= _WIDE or not one.counter)


def _kind(one: Recording | CallEntry) -> tuple[object, ...]:
    """All of it but the numbers, and how large these are."""
    if isinstance(one, CallEntry):
        return one.kind, one.deeper, one.kept, one.function >= _WIDE
    return one.layout, one.filter, one.address >= _WIDE, one.counter >= _WIDE


def _strange(work: Work) -> Work:
    """Work of the same kind with numbers that stand for nothing."""
    numbers = iter(range(_STRANGE_NUMBER, EVENT_LOW, 0x101))

    def other(address: int) -> int:
        number = next(numbers)
        return (_STRANGE[0] ^ number << 24) if address >= _WIDE else (_STRANGE[1] ^ number << 8)

    def recording(one: Recording) -> Recording:
        return replace(
            one,
            event=next(numbers),
            address=other(one.address),
            image_base=other(one.image_base),
            pc=other(one.pc),
            counter=one.counter and other(one.counter),
        )

    if isinstance(work, CallEntry):
        return replace(
            work,
            number=next(numbers),
            function=other(work.function),
            image_base=other(work.image_base),
            pc=other(work.pc),
            counter=other(work.counter),
            before=tuple(map(recording, work.before)),
            row=None if work.row is None else recording(work.row),
        )
    assert not isinstance(work, CallReturn), "asked before"
    return tuple(map(recording, work))


def _constants(work: Work) -> Iterator[bytes]:
    """The numbers as they may stand in code."""
    for one in _each(work):
        if isinstance(one, CallEntry):
            yield struct.pack("<Q", one.number << 32 | one.kind)
            address = one.function
        else:
            yield struct.pack("<I", one.event | one.layout.words << 16)
            address = one.address
        yield struct.pack("<Q" if address >= _WIDE else "<I", address)
        yield struct.pack("<Q", one.counter) if one.counter else b""
