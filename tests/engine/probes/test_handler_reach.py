"""Handlers that can get at the engine, and those that cannot."""

import functools
import sys
from collections import Counter, deque
from collections.abc import Callable

import pytest

from engine.arch import by_name
from engine.probes.handler_reach import self_contained
from engine.probes.kprobe import Kprobe
from engine.probes.regs import PtRegs

Handler = Callable[[Kprobe, PtRegs], object]

ENGINE = by_name("x86_64")
FOUND: list[object] = []


def _prints(probe: Kprobe, regs: PtRegs) -> None:
    print(probe.name, regs.sp, file=sys.stderr)


def _calls(probe: Kprobe, regs: PtRegs) -> None:
    _prints(probe, regs)


def _uses_engine(probe: Kprobe, regs: PtRegs) -> object:
    return ENGINE


def _calls_engine(probe: Kprobe, regs: PtRegs) -> object:
    return _uses_engine(probe, regs)


def _imports(probe: Kprobe, regs: PtRegs) -> object:
    return __import__("engine")


def _writes(probe: Kprobe, regs: PtRegs) -> None:
    regs.write(regs.sp, b"x")


def _memory(probe: Kprobe, regs: PtRegs) -> object:
    return regs.memory


def _again(probe: Kprobe, regs: PtRegs) -> object:
    return _again if regs.sp else None


def closure(held: object) -> Handler:
    """A handler with a value in a cell."""
    return lambda probe, regs: held


def counts(held: "Counter[int]") -> Handler:
    """A handler that keeps something."""

    def handler(probe: Kprobe, regs: PtRegs) -> None:
        held[regs["rdi"]] += 1
        FOUND.append(regs.string(regs.sp))

    return handler


class Callee:
    """Whatever its attributes hold may be anything."""

    def handler(self, probe: Kprobe, regs: PtRegs) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    "handler",
    [
        _prints,
        _calls,
        _again,
        counts(Counter()),
        closure([1, ("two", {3: b"four"})]),
        closure(deque([None, 1.5])),
        closure(FOUND.append),
        closure(_prints),
        FOUND.append,
        closure(list(range(1000))),
    ],
)
def test_these_cannot(handler: Handler) -> None:
    assert self_contained(handler)


@pytest.mark.parametrize(
    "handler",
    [
        _uses_engine,
        _calls_engine,
        _imports,
        _writes,
        _memory,
        closure(ENGINE),
        closure([1, ("two", {3: ENGINE})]),
        closure(PtRegs),
        closure(Callee),
        closure(sys.modules[__name__]),
        closure(sys.modules["engine.probes"]),
        closure(closure(ENGINE)),
        closure(lambda: [ENGINE for _ in range(3)]),
        closure([ENGINE].append),
        closure([[number] for number in range(1000)]),
        closure(Callee()),
        Callee().handler,
        functools.partial(_prints),
        eval,
    ],
)
def test_these_may(handler: Handler) -> None:
    assert not self_contained(handler)
