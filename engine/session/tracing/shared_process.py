"""The process that code of a handlers file shares with the engine.

Such code is trusted and may do anything here. What it does by mistake is told, put right as far as
that can be, and ends with the guest: threads that go on, copies of the process that come back into
the engine, a recursion limit that the engine cannot live with, builtins that are others, timers.
"""

import builtins
import errno
import inspect
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from engine.escaping import escaped

_OURS: Final = f"{Path(__file__).parents[2]}{os.sep}"
_PYTHONS: Final = f"{Path(os.__file__).parent}{os.sep}"
_INSTALLED: Final = f"{os.sep}site-packages{os.sep}"
_DEEP: Final = 1000
"""Frames of Python that the engine may take: the limit that an interpreter starts with."""
_TIMERS: Final = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_TEXT_MOST: Final = 500
"""Characters of an exception's text that are shown."""
_HOOKS: Final = ("excepthook", "unraisablehook")
_FILES_LEAST: Final = 64
"""Open files that the engine may need."""
_UNSIGNED: Final = (1 << 64) - 1
_ENDED_CHILD: Final = 1
"""Exit code of a copy of the process that came back into the engine."""


class SharedProcess:
    """The process as it was when the first handlers file came.

    Attributes:
        path: of the last file.
    """

    def __init__(self) -> None:
        """Remember the process as it is, and have its copies end in front of the engine."""
        self.path = ""
        self._threads = set(threading.enumerate())
        self._builtins = dict(vars(builtins))
        self._modules = dict(sys.modules)
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._depth = min(sys.getrecursionlimit(), _DEEP)
        self._set_depth = sys.setrecursionlimit
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._all_signals = signal.valid_signals()
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._timers = [signal.getitimer(each) != (0.0, 0.0) for each in _TIMERS]
        self._unraisable = sys.unraisablehook
        self._healed: list[str] = []
        self._told: list[str] = []
        sys.setrecursionlimit = self._limit_depth
        sys.unraisablehook = self._ignored
        self._hooks = {name: getattr(sys, name) for name in _HOOKS}
        os.register_at_fork(after_in_child=self._in_copy)

    # -- what is put right ------------------------------------------------------------------

    def _limit_depth(self, limit: int, /) -> None:
        """Python's `sys.setrecursionlimit`, which refuses what would make the engine fail."""
        if isinstance(limit, int) and limit < self._depth:
            raise ValueError(
                f"the engine is in the same process, and needs a recursion limit of {self._depth}"
            )
        self._set_depth(limit)

    def heal(self) -> None:
        """Put right what the engine cannot live with, and remember what it was."""
        found = self._healed
        if _is_foreign(sys.gettrace()):
            sys.settrace(None)
        if _is_foreign(sys.getprofile()):
            sys.setprofile(None)
        if sys.getrecursionlimit() < self._depth:
            found.append(f"set the recursion limit to {sys.getrecursionlimit()}")
            self._set_depth(self._depth)
        now = vars(builtins)
        other = [name for name, value in self._builtins.items() if now.get(name) is not value]
        if other:
            found.append(f"replaced builtins ({', '.join(other[:5])})")
            now.update(self._builtins)
        if sys.modules.get("sys") is not sys:
            found.append("emptied sys.modules")
            sys.modules.update(self._modules)
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and getattr(stream, "closed", False):
                found.append(f"closed sys.{name}")
                setattr(sys, name, None)
        for name, hook in self._hooks.items():
            if not callable(getattr(sys, name)):
                found.append(f"set sys.{name} to something that cannot be called")
                setattr(sys, name, hook)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] & _UNSIGNED  # -1: none
        if limit < _FILES_LEAST <= self._files[0]:
            found.append(f"limited open files to {limit}")
            with suppress(OSError, ValueError):  # only root gets back what it has given up
                resource.setrlimit(resource.RLIMIT_NOFILE, self._files)

    def disarm(self) -> None:
        """Have no timer of the file go off any more, and no signal call it."""
        for timer, was in zip(_TIMERS, self._timers, strict=True):
            if not was:
                signal.setitimer(timer, 0)
        if threading.current_thread() is not threading.main_thread():
            return
        for number, handler in self._handlers.items():
            now = signal.getsignal(number)
            if callable(now) and now is not handler and _is_foreign(now):
                with suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_IGN)

    def damage(self, error: BaseException) -> str:
        """The reason why an error that came out of the engine is the file's doing, "" if none."""
        self.heal()
        if not self._healed and isinstance(error, OSError) and error.errno == errno.EBADF:
            return "closed a file of the engine's"
        return ", ".join(dict.fromkeys(self._healed))

    def _ignored(self, about: "sys.UnraisableHookArgs") -> None:
        """Python's `sys.unraisablehook`: an exception that nobody could catch.

        A timer of the file's may go off here as anywhere: its signal waits, and what it raises as
        it is let through, or was on its way, is the same once more.
        """
        try:
            self._tell_undisturbed(about)
        except BaseException:
            with suppress(BaseException):
                self._tell_undisturbed(about)

    def _tell_undisturbed(self, about: "sys.UnraisableHookArgs") -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, self._all_signals)
        try:
            self._tell_ignored(about)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _tell_ignored(self, about: "sys.UnraisableHookArgs") -> None:
        self.heal()
        error = about.exc_value
        if error is not None and lines_in(error, self.path):
            text = f"kprobe-tui: --handlers {self.path}: {error_text(error, self.path)}"
            if text not in self._told:  # a timer's may come a thousand times
                self._told.append(text)
                _say(text)
        elif error is None or not self.damage(error):
            self._unraisable(about)

    # -- copies -----------------------------------------------------------------------------

    def _in_copy(self) -> None:
        """The process is a copy that somebody else than the engine has made (os.fork).

        It may do whatever its code says, and ends where that comes back into the engine: nobody
        keeps its limits, and what it would write is written by the first process. Nothing of the
        engine looks for this at a hit; the frame that it comes back to is traced instead.
        """
        foreign: FrameType | None = None
        frame = inspect.currentframe()
        frame = frame.f_back if frame is not None else None  # this method is the engine's, too
        while frame is not None and not frame.f_code.co_filename.startswith(_OURS):
            if foreign is None and not _is_pythons(frame.f_code.co_filename):
                foreign = frame
            frame = frame.f_back
        if frame is None or foreign is None:
            return
        text = (
            f"kprobe-tui: --handlers {self.path}: line {foreign.f_lineno}: the process that was"
            " forked there came back into the engine, and is ended"
        )

        def back(at: FrameType, event: str, value: Any) -> None:
            _say(text)
            os._exit(_ENDED_CHILD)

        frame.f_trace = back
        sys.settrace(lambda at, event, value: None)

    # -- what goes on -----------------------------------------------------------------------

    def going_on(self) -> Iterator[str]:
        """The threads and processes that keep Python from ending, in words."""
        frames = vars(sys)["_current_frames"]()  # Python has no public word for it
        for thread in threading.enumerate():
            if thread.daemon or thread in self._threads or thread is threading.current_thread():
                continue
            frame = frames.get(thread.ident or 0)
            while frame is not None and _is_pythons(frame.f_code.co_filename):
                frame = frame.f_back
            where = "" if frame is None else f" ({frame.f_code.co_filename}:{frame.f_lineno})"
            yield f"thread {thread.name}{where}"
        for child in self._children():
            yield f"process {child.pid}"

    def end_children(self) -> None:
        """Kill the processes that `multiprocessing` has started and not waited for."""
        for child in self._children():
            child.kill()

    def _children(self) -> Any:
        module = sys.modules.get("multiprocessing.process")
        return [] if module is None else [p for p in module.active_children() if not p.daemon]


_shared: list[SharedProcess] = []


def share_process(path: str) -> None:
    """A handlers file is about to be executed."""
    if not _shared:
        _shared.append(SharedProcess())
    _shared[0].path = path


def shared_process() -> SharedProcess | None:
    """The process, if code of a handlers file was executed in it."""
    return _shared[0] if _shared else None


def _say(text: str) -> None:
    """Write a line to standard error, whatever has become of `sys.stderr`."""
    with suppress(OSError):
        os.write(2, f"{escaped(text)}\n".encode(errors="backslashreplace"))


def _is_foreign(handler: object) -> bool:
    """True for a function in Python that is neither the engine's nor Python's own."""
    code = getattr(getattr(handler, "__func__", handler), "__code__", None)
    return code is not None and not (
        code.co_filename.startswith(_OURS) or _is_pythons(code.co_filename)
    )


def _is_pythons(file: str) -> bool:
    """True for a file of Python's own library, or none ("<frozen ...>")."""
    return file.startswith("<") or (file.startswith(_PYTHONS) and _INSTALLED not in file)


def error_text(error: BaseException, path: str) -> str:
    """An exception in a handlers file, with its line."""
    lines = lines_in(error, path)
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{named(error)}"


def named(error: BaseException) -> str:
    """The name of an exception, and the beginning of its text, which may be one that fails."""
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be had)"
    if len(text) > _TEXT_MOST:
        text = f"{text[:_TEXT_MOST]}..."
    return f"{type(error).__name__}: {text}"


def lines_in(error: BaseException, path: str) -> list[int]:
    """Lines of the file that an exception passed, the innermost last."""
    import traceback  # for handlers that fail

    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno for frame in frames if frame.filename == path and frame.lineno]
