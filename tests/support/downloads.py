"""Fetches what the tests download, from the start of a whole run and beside its tests.

Trees of packages and images of kernels are hundreds of megabytes. Without this they are fetched
when a test first asks, while its worker waits. A test that asks for what is being fetched waits
for the rest. Tests that ask come last (`turn`), so that few have to.
"""

import contextlib
import os
import subprocess
import sys
import threading
from types import ModuleType
from typing import Final

_ASKING: Final = {"sysroot", "kernelimages", "goldenruns", "calledkernel", "surveykit"}
"""Modules of support whose functions download."""
_BOOTING: Final = "umlkit"


def start(markers: str) -> "subprocess.Popen[bytes]":
    """Start to fetch in a process of its own, which ends by itself.

    Args:
        markers: pytest's expression that selects tests; the slow ones want more.
    """
    return subprocess.Popen(
        [sys.executable, __file__, *(() if markers == "not slow" else ("slow",))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def turn(module: ModuleType) -> int:
    """When the tests of a module run: 0, or 2 if they use functions that download.

    Before those, 1, come tests that boot whole kernels: at the end one of them would keep a worker
    busy for a minute while the others have nothing left to do.
    """
    used = {getattr(value, "__module__", "") for value in vars(module).values() if callable(value)}
    return 1 if _BOOTING in used else 2 if used & _ASKING else 0


def _main() -> None:
    # Here, because conftest.py must not import the engine's modules before it has looked at them.
    from kernelimages import AMD64_61, AMD64_612, ARM64_61, UML_61, fetched
    from sysroot import SysrootUnavailable, sysroot

    is_slow = "slow" in sys.argv
    trees = ("x86_64", *(("aarch64", "riscv64") if is_slow else ()))
    images = (AMD64_61, UML_61, *((ARM64_61, AMD64_612) if is_slow else ()))

    def fetch(name: str) -> None:
        # What is missing is told by the tests that need it.
        with contextlib.suppress(SysrootUnavailable, OSError, subprocess.SubprocessError):
            (fetched if name in images else sysroot)(name)

    threads = [threading.Thread(target=fetch, args=(name,)) for name in (*trees, *images)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    _main()
