"""Functions of real kernel images, called."""

from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path

from kernelimages import AMD64_61, image_path, module_path
from msgspec.structs import replace

from engine.session.guest.session import Session
from engine.session.headless.calls import run_calls
from engine.session.kernel.call_results import CallResult
from engine.session.program.opening import OpenedProgram
from engine.session.protocol.config import GuestConfig
from engine.session.protocol.kernels import KernelChoice

BLOCKS = 10_000_000


@lru_cache(maxsize=3)
def opened_image(path: Path, kernel: Path | None = None) -> OpenedProgram:
    """An image, to be run again and again."""
    choice = KernelChoice(kernel=None if kernel is None else str(kernel))
    return OpenedProgram.open(GuestConfig(str(path), isolated=True, kernel=choice, called=True))


def session_of(
    path: Path, *calls: str, blocks: int = BLOCKS, kernel: Path | None = None
) -> Session:
    """A run that makes calls."""
    opened = opened_image(path, kernel)
    config = replace(opened.config, args=calls, max_blocks=blocks)
    return Session(config, opened=replace(opened, config=config))


def results_of(
    path: Path, *calls: str, blocks: int = BLOCKS, kernel: Path | None = None
) -> list[CallResult]:
    """The results of calls that are made one after the other."""
    found: list[CallResult] = []
    session = session_of(path, *calls, blocks=blocks, kernel=kernel)
    run_calls(session, lambda run: nullcontext(), found.append, lambda line: None)
    return found


def called(name: str, *calls: str, blocks: int = BLOCKS) -> list[CallResult]:
    """The same in a kernel by its name in `kernelimages`."""
    return results_of(image_path(name), *calls, blocks=blocks)


def in_module(module: str, *calls: str) -> list[CallResult]:
    """The same in a module of the first kernel."""
    return results_of(module_path(module), *calls, kernel=image_path(AMD64_61))


def buffer_of(result: CallResult, name: str) -> bytes:
    """The bytes of a buffer behind a call."""
    return next(each.data for each in result.buffers if each.name == name)
