"""Text while it is patched, and what has become of it."""

from typing import Final

from engine.arch.kernelsites import TextPatch

_GAP: Final = 2
"""Equal bytes between different ones that belong to the same place."""


class LiveBytes:
    """A stretch of text in the making: as in the file, then patched in the kernel's order."""

    def __init__(self, start: int, data: bytes) -> None:
        """The text as the file has it, which begins at an address."""
        self.start = start
        self.end = start + len(data)
        self._before = data
        self._after = bytearray(data)
        self._puts: list[tuple[int, int, str]] = []

    def read(self, address: int, size: int) -> bytes:
        """Bytes as they are now; fewer at the end, none outside."""
        at = address - self.start
        return bytes(self._after[at : at + size]) if at >= 0 else b""

    def put(self, address: int, data: bytes, cause: str) -> None:
        """Writes bytes; what lies outside is left out as a whole."""
        at = address - self.start
        end = at + len(data)
        if at < 0 or end > len(self._after):
            return
        if self._after[at:end] != data:
            self._after[at:end] = data
            self._puts.append((at, end, cause))

    def patches(self) -> tuple[TextPatch, ...]:
        """The places that differ, in order, as many bytes each as differ."""
        self._puts.sort()
        found: list[TextPatch] = []
        stop = 0
        before, after = self._before, self._after
        pending: tuple[int, int, str] | None = None
        for at, end, name in self._puts:
            for i in range(max(at, stop), end):
                if before[i] == after[i]:
                    continue
                if pending is not None and i <= pending[1] + _GAP:
                    pending = pending[0], i + 1, pending[2]
                else:
                    if pending is not None:
                        found.append(self._patch(*pending))
                    pending = i, i + 1, name
            stop = max(stop, end)
        if pending is not None:
            found.append(self._patch(*pending))
        return tuple(found)

    def _patch(self, at: int, end: int, cause: str) -> TextPatch:
        """The place from one position to another."""
        return TextPatch(self.start + at, self._before[at:end], bytes(self._after[at:end]), cause)
