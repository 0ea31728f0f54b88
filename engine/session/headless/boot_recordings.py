"""Boots that are written to a file, which has all that they need to go again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.errors import CommandError
from engine.history.bootrecord import (
    BootRecorder,
    RecordedDisk,
    RecordedMachine,
)
from engine.history.pieces import is_boot_record
from engine.history.recordfile import engine_version
from engine.hostlimits import because_of
from engine.machine.machine import MachineEnd
from engine.session.guest.outputs import OutputFile, OutputFiles
from engine.session.headless.bootable import Bootable, bootable
from engine.session.headless.booting import Booted
from engine.session.protocol.kernels import BootRequest

OPTION = "-o"


class RecordedBootRun:
    """A machine with a kernel that is recorded, before its first instruction.

    Attributes:
        booted: the machine.
    """

    def __init__(
        self,
        parts: Bootable,
        request: BootRequest,
        recorder: BootRecorder,
        target: OutputFile,
        booted: Booted,
    ) -> None:
        """Take the machine, its recorder and the file; `opened_boot_recording` makes them."""
        self.booted = booted
        self._parts, self._request = parts, request
        self._recorder, self._target = recorder, target

    @property
    def failure(self) -> str:
        """Why the file is not whole, in words; "" if it is."""
        failure = self._recorder.failure
        if failure is None:
            return ""
        return f"{self._target.name}: {because_of(failure)}; the recording is not whole"

    def run(self) -> MachineEnd:
        """Run the machine to its end.

        Raises:
            CommandError: the file cannot be created.
        """
        parts, request, machine = self._parts, self._request, self.booted.machine
        sizes = [disk.size for disk in machine.disks]
        disks = tuple(
            RecordedDisk(path, size) for path, size in zip(request.disks, sizes, strict=True)
        )
        said = RecordedMachine(
            *(engine_version(), request.kernel, parts.line, parts.memory, parts.seed, disks),
            parts.disk_memory,
        )
        record = machine.cpu.record
        self._recorder.begin(
            self._target.begin(),
            said,
            memoryview(parts.packed_kernel),
            self.booted.initrd,
            lambda: int(record.blocks),
        )
        return self.booted.run()


@contextmanager
def opened_boot_recording(
    request: BootRequest, path: str, put: Callable[[bytes], None], stdin: int | None
) -> Iterator[RecordedBootRun]:
    """The machine of a request that is recorded to a file, closed at the end.

    Args:
        request: what is booted.
        path: of the file.
        put: takes what the console writes.
        stdin: the descriptor of the console's input; None for none.

    Raises:
        ImageError: the kernel cannot be booted.
        CommandError: the file cannot be written, or the kernel is a recorded boot.
    """
    if is_boot_record(request.kernel):
        raise CommandError(f"{request.kernel}: a recorded boot already")
    outputs = OutputFiles(
        request.kernel, *filter(None, (request.initrd, request.init)), *request.disks
    )
    try:
        target = outputs.add(OPTION, path)
        parts, recorder = bootable(request), BootRecorder()
        booted = Booted(parts, put, stdin, recorder=recorder)
        outputs.create()
        yield RecordedBootRun(parts, request, recorder, target, booted)
    finally:
        outputs.close()
