"""A virtio block device. Source: virtio 1.2, section 5.2.

Requests are carried out at once; the interrupt comes once a disk would have needed so long, by the
machine's own time.
"""

from mmap import mmap
from struct import pack, unpack_from
from typing import Final

from engine.machine.rawdisk import SECTOR, RawDisk
from engine.machine.virtqueue import QUEUE_SIZE, Chain, QueueError, Segment, SplitQueue, Store

LATENCY: Final = 20_000
"""Nanoseconds of a request; each byte takes one more."""
SEGMENT_MOST: Final = 1 << 16
"""Bytes of a buffer."""
_BUFFERS: Final = QUEUE_SIZE - 2
_MOST: Final = _BUFFERS * SEGMENT_MOST
_SIZE_MAX, _SEG_MAX, _BLK_SIZE, _FLUSH = 1 << 1, 1 << 2, 1 << 6, 1 << 9
_HEADER: Final = 16
_IN, _OUT, _FLUSH_IT, _IDENTIFY = 0, 1, 4, 8
_OK, _FAILED, _UNKNOWN = 0, 1, 2
_IDENTITY: Final = 20


class VirtioBlock:
    """A disk; a `virtiopci.VirtioDevice`."""

    number = 2
    kind = 0x018000
    features = _SIZE_MAX | _SEG_MAX | _BLK_SIZE | _FLUSH

    def __init__(self, disk: RawDisk, name: str, memory: mmap, store: Store) -> None:
        """Offer a disk.

        Args:
            disk: its content.
            name: serial number that the guest reads.
            memory: physical, from address 0 on.
            store: writes to it as a device does.
        """
        self._disk, self._name = disk, name.encode()[:_IDENTITY].ljust(_IDENTITY, b"\0")
        self._memory, self._store = memory, store

    def configuration(self) -> bytes:
        """Capacity in sectors, largest buffer, number of buffers, geometry, size of a sector."""
        sectors = self._disk.size // SECTOR
        return pack("<Q2I4xI", sectors, SEGMENT_MOST, _BUFFERS, SECTOR)

    def serve(self, queue: SplitQueue) -> int:
        """Carry out all requests that wait; see `VirtioDevice`."""
        taken = 0
        for chain in queue.waiting():
            room = sum(size for _, size in chain.writable)
            if not room:
                raise QueueError("a request without room for its status")
            status, answer = self._carry_out(chain, room - 1)
            self._scatter(chain.writable, answer, room - 1, status)
            queue.give_back(chain, len(answer) + 1)
            taken += LATENCY + len(answer) + sum(size for _, size in chain.readable)
        return taken

    def _carry_out(self, chain: Chain, room: int) -> tuple[int, bytes]:
        """Status and data that are the answer to a request.

        Args:
            chain: the request.
            room: bytes for the data.
        """
        given = sum(size for _, size in chain.readable)
        if not _HEADER <= given <= _MOST + _HEADER or room > _MOST:
            return _FAILED, b""
        data = b"".join(bytes(self._memory[at : at + size]) for at, size in chain.readable)
        kind, sector = unpack_from("<I4xQ", data)
        data = data[_HEADER:]
        if kind == _IDENTIFY:
            return (_OK, self._name) if room >= _IDENTITY else (_FAILED, b"")
        if kind == _FLUSH_IT:
            return _OK, b""
        if kind not in (_IN, _OUT):
            return _UNKNOWN, b""
        start, size = sector * SECTOR, room if kind == _IN else len(data)
        if size % SECTOR or start + size > self._disk.size:
            return _FAILED, b""
        try:
            if kind == _IN:
                return _OK, self._disk.read(start, size) if size else b""
            self._disk.write(start, data)
        except OSError:  # the host cannot read its file
            return _FAILED, b""
        return _OK, b""

    def _scatter(
        self, segments: tuple[Segment, ...], data: bytes, status_at: int, status: int
    ) -> None:
        """Write an answer to its buffers, whose last byte is the status."""
        at = 0
        for address, size in segments:
            if piece := data[at : at + size]:
                self._store(address, piece)
            at += size
            if at > status_at >= at - size:
                self._store(address + status_at - (at - size), bytes((status,)))
