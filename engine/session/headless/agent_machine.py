"""A kernel in a machine with a program of ours inside, which is asked about its files.

Booting takes seconds: the machine is kept as a snapshot at the moment when the program waits for
its first request, and later sessions begin there. A snapshot belongs to one image, command line,
memory, program and version of the machine; what is damaged is made anew.
"""

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine.errors import CommandError, CutOff, ImageError
from engine.image.kernel.imagecache import cache_folder
from engine.image.kernel.kernelimage import KernelImage
from engine.machine.agent import FileAnswer, FileRequest, answers, archive, reading
from engine.machine.linuxboot import Boot, prepare
from engine.machine.machine import BareMachine, BootEnd, MachineEnd, NoInput
from engine.machine.mailbox import PORTS, Mailbox
from engine.machine.snapshot import read_snapshot, write_snapshot
from engine.session.headless.bootable import check_bootable, command_line
from engine.session.headless.booting import BEGAN, ended
from engine.session.protocol.kernels import MACHINE_MEMORY

_WORDS: Final = "quiet rcupdate.rcu_expedited=1"
"""More words for the kernel: nobody reads its console, and removing a probe waits for RCU."""
_SECOND: Final = 1_000_000_000
_BOOT_MOST: Final = 300 * _SECOND
_ANSWER_MOST: Final = 3600 * _SECOND
"""Nanoseconds of the machine's time until a boot, or an answer, counts as hung."""
_OFTEN: Final = 0.1
_GRACE: Final = 5.0
_TIMED_OUT: Final = 124
_KEPT: Final = 4
"""Snapshots that are kept: those used last."""
_SUFFIX: Final = ".machine"
_LEFT_BEHIND: Final = 3600.0
_CODE: Final = ("machine", "cpu")
_CPU_FILES: Final = "unicorn_system"
_CPUINFO: Final = "cpuinfo"
_EVENTS: Final = "/sys/kernel/tracing/kprobe_events"
_TAIL: Final = 2000
"""Bytes of the console that are kept, for its last line."""


class AgentRequest(Struct, frozen=True):
    """A kernel that is to be asked.

    Attributes:
        path: of the image.
        append: more words of the kernel's command line.
        timeout: seconds of the host's time until it is given up; None for no limit.
    """

    path: str
    append: str = ""
    timeout: float | None = None


class AgentMachine:
    """A machine whose program waits for requests.

    Attributes:
        cpuinfo: its /proc/cpuinfo, with the kernel's command line behind.
        remarks: about snapshots that were damaged or could not be kept, for those who debug.
    """

    def __init__(self, request: AgentRequest, kernel: KernelImage) -> None:
        """Boot the kernel, or go on from the snapshot of an earlier boot.

        Args:
            request: what is to be asked.
            kernel: the image, opened.

        Raises:
            CommandError: this host boots no machine, or the kernel did not come up.
            CutOff: the time ran out.
            ImageError: the image is none that is booted.
        """
        if kernel.is_module:
            raise CommandError(
                f"{kernel.elf.name}: a module boots no machine: --ask-kernel asks a kernel image"
            )
        check_bootable(kernel)
        self._until = None if request.timeout is None else time.monotonic() + request.timeout
        self._name = kernel.elf.name
        self._command = command_line(f"{_WORDS} {request.append}")
        self.remarks: list[str] = []
        self._runs_on = False
        """The machine could not be stopped: its memory is in use until the process ends."""
        path = cache_folder() / "machines" / f"{self._key(request.path)}{_SUFFIX}"
        notes = self._restored(path)
        if notes is None:
            self._new()
            try:
                notes = self._booted(kernel)
            except BaseException:
                self.close()
                raise
            self._keep(path, notes)
        _touch(path)
        self.cpuinfo = f"{notes.get(_CPUINFO, '')}\ncommand line : {self._command}\n"

    def close(self) -> None:
        """Give the machine's memory back now."""
        if not self._runs_on:
            self._machine.close()

    def ask(self, requests: Sequence[FileRequest]) -> list[FileAnswer]:
        """Have the program carry requests out, in order.

        Raises:
            CommandError: the kernel is gone, or what answers is not the program.
            CutOff: the time ran out.
        """
        self._mailbox.put(b"".join(request.packed for request in requests))
        self._run(_ANSWER_MOST, "has not answered")
        try:
            if self._mailbox.left:
                raise ValueError("requests are left")
            return answers(requests, self._mailbox.take())
        except ValueError as error:
            raise CommandError(f"{self._name}: the machine's answer is none: {error}") from error

    # -- snapshots ------------------------------------------------------------------------

    def _key(self, path: str) -> str:
        found = hashlib.sha256(_stamp())
        found.update(f"{self._command}\0{MACHINE_MEMORY}\0".encode("utf-8", "surrogateescape"))
        try:
            with open(path, "rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise ImageError(f"{path}: {error.strerror}") from error
        return found.hexdigest()[:40]

    def _new(self) -> None:
        self._console = bytearray()
        self._machine = BareMachine(MACHINE_MEMORY, self._said, NoInput(), BEGAN)
        self._mailbox = Mailbox(self._machine.pause)
        self._machine.plug("mailbox", self._mailbox, PORTS)

    def _restored(self, path: Path) -> dict[str, str] | None:
        """The notes of a snapshot that this goes on from; None without a good one."""
        if not path.exists():
            return None
        self._new()
        try:
            return read_snapshot(path, self._machine)
        except (OSError, ValueError) as error:
            self.remarks.append(f"{path}: {error}: made anew")
            self._machine.close()
            return None

    def _booted(self, kernel: KernelImage) -> dict[str, str]:
        """Boot; the notes for the snapshot."""
        prepare(self._machine.cpu, Boot(kernel.elf, self._command, archive()))
        self._run(_BOOT_MOST, "has not started its init")
        cpuinfo, events = self.ask((reading("/proc/cpuinfo"), reading(_EVENTS)))
        if events.number:
            raise CommandError(
                f"{self._name}: this kernel has no kprobe_events: it was built without "
                "CONFIG_KPROBE_EVENTS"
            )
        return {_CPUINFO: cpuinfo.data.decode("utf-8", "replace")}

    def _keep(self, path: Path, notes: dict[str, str]) -> None:
        try:
            write_snapshot(path, self._machine, notes)
        except (OSError, ValueError) as error:
            self.remarks.append(f"{path}: not kept: {error}")
            return
        _make_room(path.parent)

    # -- running --------------------------------------------------------------------------

    def _said(self, data: bytes) -> None:
        self._console += data
        if len(self._console) > 2 * _TAIL:
            del self._console[:-_TAIL]

    def _run(self, most: int, what: str) -> None:
        """Run until the program pauses the machine; in a thread, so that signals are heard here.

        Raises:
            CommandError: the machine ends otherwise.
            CutOff: the time ran out.
        """
        results: list[MachineEnd | BaseException] = []
        machine = self._machine
        until = machine.clock.now + most

        def work() -> None:
            try:
                results.append(machine.run())
            except BaseException as error:
                results.append(error)

        worker = threading.Thread(target=work, name="machine", daemon=True)
        worker.start()
        try:
            while worker.is_alive():
                worker.join(_OFTEN)
                if self._until is not None and time.monotonic() > self._until:
                    raise CutOff(_TIMED_OUT)
                if machine.clock.now > until:
                    raise CommandError(
                        f"{self._name}: the kernel {what} within {most // _SECOND} s of its time"
                    )
        finally:
            if worker.is_alive():
                machine.halt()
                worker.join(_GRACE)
                self._runs_on = worker.is_alive()
        (result,) = results
        if isinstance(result, BaseException):
            raise result
        if result.reason is not BootEnd.PAUSED:
            why = ended(result, "") or str(result.reason.value)
            line = self._console.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()
            told = result.reason is BootEnd.PANIC or not line
            raise CommandError(
                f"{self._name}: {why}" + ("" if told else f"; it said last: {line}")
            )


@cache
def _stamp() -> bytes:
    """32 bytes that change with the code and the program of the machine."""
    found = hashlib.sha256()
    for folder in _CODE:
        entries = files("engine").joinpath(folder).iterdir()
        for entry in sorted(entries, key=lambda entry: entry.name):
            ours = folder != "cpu" or entry.name.startswith(_CPU_FILES)
            if ours and entry.name.endswith((".py", ".elf")):
                found.update(entry.name.encode() + b"\0" + entry.read_bytes())
    return found.digest()


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)


def _make_room(folder: Path) -> None:
    """Delete the snapshots that were used longest ago, and what was never finished."""
    for path in _older(folder.glob(f"*{_SUFFIX}"), _KEPT):
        path.unlink(missing_ok=True)
    for path in _older(folder.glob("*.part"), 0):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _LEFT_BEHIND:
                path.unlink(missing_ok=True)


def _older(paths: Iterable[Path], keep: int) -> list[Path]:
    """Return the files that were not among the last ones used."""
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found)[: max(0, len(found) - keep)]]
