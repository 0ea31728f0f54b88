"""Runs `kprobe-tui` in forks of a process that has imported it: a run then costs no imports.

A thousand tests start the command, and half of what each would cost is reading the same modules.
The process forks twice, so that the run is an orphan, which the kernel gives to its "child
subreaper" (prctl(2)): the process of the tests, which waits for it as for a child of its own. What
a fork can't show (the entry point, what is read at import, Python's own end) is tested by real
starts: see `guestrun.start`, test_in_tmux.py and test_packaging.py.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_ENGINE = find_spec("engine")
assert _ENGINE is not None
assert _ENGINE.origin is not None
SAME_CODE = {"PYTHONPATH": str(Path(_ENGINE.origin).parents[1]), "PYTHONSAFEPATH": "1"}
"""Variables with which a new Python imports the project from where this one does: from the
checkout or, if a wheel is installed, from there, even if it is started in the checkout."""

_OF_EXTRAS = re.compile(r"\.(sweep\w*|web|jit\w*|columns)(\.|$)")
"""Modules that import pyarrow, distributed, aiohttp or LLVM."""

_HEAD = 8  # bytes that say how long a request is
_PR_SET_CHILD_SUBREAPER = 36


def fork(words: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]) -> int:
    """Start `kprobe-tui` with these words; the pid, to be waited for.

    Args:
        words: the command line without the command's own name.
        cwd: its working directory.
        env: its environment.
        streams: descriptors of its standard input, output and error.
    """
    server = _server()
    asked = {"words": list(words), "cwd": os.fspath(cwd), "env": dict(env)}
    request = json.dumps(asked).encode()
    socket.send_fds(server, [len(request).to_bytes(_HEAD)], list(streams))
    server.sendall(request)
    return int(server.recv(32))


@cache
def _server() -> socket.socket:
    """The process that forks runs; it ends with its socket."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen(
            [sys.executable, __file__, str(its.fileno())],
            env={**os.environ, **SAME_CODE},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # as a run's streams are: Python looks at them once
            pass_fds=[its.fileno()],
        )

    def end() -> None:
        ours.close()
        process.communicate()

    atexit.register(end)
    return ours


def _serve(listening: socket.socket) -> None:
    """Fork runs until the other end is closed; returns in each of them."""
    while True:
        head, streams, _, _ = socket.recv_fds(listening, _HEAD, 3)
        if not head:
            os._exit(0)
        request = json.loads(_received(listening, int.from_bytes(head)))
        told, telling = os.pipe()
        middle = os.fork()
        if middle:
            os.waitpid(middle, 0)  # from here on the run is an orphan
            listening.send(os.read(told, 32))
            for descriptor in (told, telling, *streams):
                os.close(descriptor)
            continue
        pid = os.fork()
        if pid:
            os.write(telling, str(pid).encode())
            os._exit(0)
        os.close(told)
        os.close(telling)
        break
    listening.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv[1:] = request["words"]


def _received(listening: socket.socket, size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        data += listening.recv(size - len(data))
    return data


def _import_engine() -> None:
    """Import what commands load late, but no library that only extras bring: those are large."""
    package = importlib.import_module("engine")
    for module in pkgutil.walk_packages(package.__path__, "engine."):
        if not module.name.endswith(".vdso") and not _OF_EXTRAS.search(module.name):
            importlib.import_module(module.name)


def _end_at_once(run: Callable[[], object]) -> None:
    """Run, and end as Python ends, but without taking apart what was imported.

    That touches all of it, and every page that is touched has to be copied after a fork: it takes
    longer than most runs.
    """
    code: object = None
    try:
        run()
    except SystemExit as ended:
        code = ended.code
    if isinstance(code, int):
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError, AttributeError):  # or Python tells it below
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code & 0xFF)
    sys.exit(code)  # type: ignore[arg-type]


if __name__ == "__main__":
    _import_engine()
    from tui.__main__ import main

    gc.collect()
    gc.freeze()  # a run's collector looks through its own objects only
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _end_at_once(main)
