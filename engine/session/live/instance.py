"""A trace instance and groups of events of our own in the running kernel.

The instance is the marker: it is made before the first event and removed behind the last one, and
its name is the beginning of all our groups' names. Whoever owns it holds a lock on its directory
(flock), which ends with the process however that ends. So a start finds what a killed one has
left, and never takes away what a living one, in whatever namespace, still has.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine.session.live.tracefs import LiveKernelError, Tracefs, append

PREFIX: Final = "kprobe_tui_live_"
"""The beginning of the names of our instances and groups."""
KINDS: Final = ("uprobe_events", "kprobe_events")
_TRIES: Final = 16


class KernelInstance:
    """An instance that is ours alone.

    Attributes:
        tracefs: the kernel's files.
        name: of it.
        path: its directory.
    """

    def __init__(self, tracefs: Tracefs, name: str) -> None:
        """Take one that exists and is locked."""
        self.tracefs = tracefs
        self.name = name
        self.path = tracefs.root / "instances" / name

    def group(self, number: int) -> str:
        """The name of the Nth group of events that is ours."""
        return f"{self.name}_{number}"

    def event(self, group: str, name: str) -> Path:
        """The directory of an event in it."""
        return self.path / "events" / group / name

    def set(self, name: str, text: str) -> None:
        """Write to one of its files.

        Raises:
            LiveKernelError: the kernel refuses it.
        """
        self.tracefs.put(self.path / name, text)


@contextmanager
def own_instance(tracefs: Tracefs) -> Iterator[KernelInstance]:
    """An instance, removed at the end with all events of its groups.

    What killed owners have left is removed first.

    Raises:
        LiveKernelError: the kernel makes none; or, behind the end of what was done with it,
            something of it stays.
    """
    remove_abandoned(tracefs)
    name, lock = _made(tracefs)
    try:
        try:
            yield KernelInstance(tracefs, name)
        except BaseException:
            with suppress(LiveKernelError):  # the first reason is the one to be told
                _remove(tracefs, name)
            raise
        _remove(tracefs, name)
    finally:
        os.close(lock)


def _made(tracefs: Tracefs) -> tuple[str, int]:
    """A new instance, and the descriptor that has its lock."""
    for _ in range(_TRIES):
        name = f"{PREFIX}{os.getpid()}_{secrets.token_hex(3)}"
        path = tracefs.root / "instances" / name
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise LiveKernelError(f"the kernel makes no trace instance: {error}") from error
        lock = _locked(path)
        # Between the two another start may have taken it for one that was left behind.
        if lock is not None:
            if path.exists():
                return name, lock
            os.close(lock)
    raise LiveKernelError("the kernel makes no trace instance: others remove it")


def _locked(path: Path) -> int | None:
    """A descriptor that has the lock of an instance; None if it is gone, or somebody has it."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(directory)
        return None
    return directory


def remove_abandoned(tracefs: Tracefs) -> list[str]:
    """Remove the instances and events of owners that are no longer; the instances' names."""
    removed: list[str] = []
    try:
        names = sorted(os.listdir(tracefs.root / "instances"))
    except OSError as error:
        raise LiveKernelError(f"tracefs cannot be read: {error}") from error
    for name in names:
        if not name.startswith(PREFIX):
            continue
        lock = _locked(tracefs.root / "instances" / name)
        if lock is None:
            continue
        try:
            _remove(tracefs, name)
            removed.append(name)
        except LiveKernelError:  # somebody uses it still; it hinders nobody
            continue
        finally:
            os.close(lock)
    return removed


def _remove(tracefs: Tracefs, name: str) -> None:
    """Take an instance away, with the events whose groups have its name.

    Raises:
        LiveKernelError: something stays, as somebody else uses it.
    """
    path = tracefs.root / "instances" / name
    with suppress(OSError):
        append(path / "tracing_on", "0")
    for group in _groups(path / "events", name):
        with suppress(OSError):
            append(group / "enable", "0")
        for trigger in group.glob("*/trigger"):
            _clear(trigger)
    left: list[str] = []
    for kind in KINDS:
        for line in tracefs.listed(kind):
            event = line.split(None, 1)[0].partition(":")[2]
            if event.startswith(f"{name}_"):
                try:
                    append(tracefs.root / kind, f"-:{event}")
                except FileNotFoundError:
                    pass  # it had several places, and went with the first
                except OSError as error:
                    left.append(f"{event} ({error.strerror})")
    if left:
        raise LiveKernelError(f"these events stay, as somebody uses them: {', '.join(left)}")
    try:
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise LiveKernelError(f"{path} stays: {error.strerror}") from error


def _groups(events: Path, name: str) -> list[Path]:
    try:
        return [events / each for each in os.listdir(events) if each.startswith(f"{name}_")]
    except OSError:
        return []


def _clear(trigger: Path) -> None:
    """Take the triggers of an event away: with one that names it, another event is in use."""
    with suppress(OSError):
        for line in trigger.read_text(errors="surrogateescape").splitlines():
            if line and not line.startswith("#"):
                with suppress(OSError):
                    append(trigger, f"!{line}")
