"""The files of tracefs, and what the kernel says when it refuses a line.

Only ever appended to: a plain write to `uprobe_events` would delete everybody's events.
"""

import errno
import os
import re
from pathlib import Path
from typing import Final

from engine.errors import CommandError

_MOUNTS: Final = "/proc/self/mounts"
_LOGGED: Final = re.compile(r"\] (\w+): error: (.*)\n  Command: (.*)\n( *)\^")
_BEFORE_COMMAND: Final = len("  Command: ")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


class LiveKernelError(CommandError):
    """The running kernel cannot be asked, or refuses what it is asked."""

    hint = ""


class Tracefs:
    """The tracefs of this machine.

    Attributes:
        root: where it is mounted.
    """

    def __init__(self, root: Path) -> None:
        """Take one that is mounted there."""
        self.root = root

    @classmethod
    def found(cls) -> "Tracefs":
        """The one that is mounted, and that this process may use.

        Raises:
            LiveKernelError: there is none, or this is not root.
        """
        if os.geteuid() != 0:
            raise LiveKernelError("live changes the running kernel's tracing: only root may do so")
        root = _mounted()
        if root is None:
            raise LiveKernelError(
                "no tracefs is mounted: mount -t tracefs nodev /sys/kernel/tracing"
            )
        return cls(root)

    def events(self, kind: str) -> Path:
        """The file that takes definitions, `uprobe_events` or `kprobe_events`.

        Raises:
            LiveKernelError: the running kernel was built without.
        """
        path = self.root / kind
        if not path.exists():
            name = kind.partition("_")[0]
            option = f"CONFIG_{name.upper()}_EVENTS"
            raise LiveKernelError(f"the running kernel has no {name}s ({option} is not set)")
        return path

    def define(self, kind: str, line: str) -> None:
        """Write a line to `uprobe_events` or `kprobe_events`.

        Raises:
            LiveKernelError: the kernel refuses it, in its words.
        """
        before = self._log()
        try:
            append(self.events(kind), line)
        except OSError as error:
            raise self._refused(line, error, before) from error

    def listed(self, kind: str) -> list[str]:
        """The definitions that there are, everybody's; none if the kernel has or shows none."""
        try:
            return read_text(self.root / kind).splitlines()
        except OSError:
            return []

    def put(self, path: Path, text: str) -> None:
        """Write to one of the files of an instance.

        Raises:
            LiveKernelError: the kernel refuses it.
        """
        before = self._log()
        try:
            append(path, text)
        except OSError as error:
            raise self._refused(text, error, before) from error

    def _log(self) -> str:
        """The kernel's explanations so far."""
        try:
            return read_text(self.root / "error_log")
        except OSError:
            return ""

    def _refused(self, line: str, error: OSError, before: str) -> LiveKernelError:
        name = errno.errorcode.get(error.errno or 0, str(error.errno))
        logged = self._log()
        found = _LOGGED.findall(logged) if logged != before else []
        if not found:
            return LiveKernelError(f"the running kernel refuses {line!r}: {name}")
        _, text, command, blanks = found[-1]
        column = len(blanks) - _BEFORE_COMMAND
        words = command[column:].split()
        at = f", at {words[0]!r}" if words and column > 0 else ""
        return LiveKernelError(f"the running kernel refuses {line!r}: {text}{at} ({name})")


def _mounted() -> Path | None:
    """The place of tracefs; the usual one if it has several."""
    found: list[Path] = []
    try:
        mounts = Path(_MOUNTS).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    for line in mounts.splitlines():
        words = line.split()
        if len(words) > 2 and words[2] == "tracefs":
            found.append(Path(_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), words[1])))
    found.sort(key=lambda path: str(path) != "/sys/kernel/tracing")
    return found[0] if found else None


def append(path: Path, text: str) -> None:
    """Write a line to a file as a whole.

    Raises:
        OSError: it is refused.
    """
    # Plain calls: these files refuse the seek of `open`.
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(file, f"{text}\n".encode(errors="surrogateescape"))
    finally:
        os.close(file)


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        OSError: it cannot be read.
    """
    return path.read_text(encoding="utf-8", errors="surrogateescape")
