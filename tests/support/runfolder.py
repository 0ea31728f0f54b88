"""A folder that all workers of a run of the tests share, and that goes when the run ends.

What tests build for themselves (guests in C) is built there once a run, whichever worker is first.
A run that was killed leaves its folder; the next run removes such folders: a folder in use is
locked by the process that made it.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

_PREFIX: Final = "kprobe-tui-tests-"
_VARIABLE: Final = "KPROBE_TUI_RUN_FOLDER"
"""Tells workers the folder of their run."""
_LOCK: Final = "lock"
_YOUNG: Final = 60.0
"""Seconds in which a new folder may not be locked yet."""


class RunFolder:
    """The folder of a run, made and removed by the process that starts the workers."""

    def __init__(self) -> None:
        _remove_abandoned(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self.path.chmod(0o755)  # guests run as another user
        self._lock = (self.path / _LOCK).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.environ[_VARIABLE] = str(self.path)

    def remove(self) -> None:
        """Remove the folder with all that was built in it."""
        os.environ.pop(_VARIABLE, None)
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def run_folder(name: str) -> Path:
    """Return a folder of this name in the run's folder, made on demand.

    A program that is no run of the tests (a benchmark) gets a folder of its own until it ends.
    """
    if _VARIABLE not in os.environ:
        atexit.register(RunFolder().remove)
    folder = Path(os.environ[_VARIABLE], name)
    folder.mkdir(exist_ok=True)
    return folder


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if time.time() - folder.stat().st_ctime < _YOUNG:
                continue
            with (folder / _LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # in use, of another user, or removed by a run beside this one
            continue
