"""Counts the work of a function: how long it takes is the machine's business, and its load's."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest


class _TooMuchError(BaseException):
    """Comes through what catches all exceptions."""


def calls(work: Callable[[], object], at_most: int) -> int:
    """Do the work; the number of calls of functions, those written in C too.

    The test fails at the call after `at_most`, so that work without end ends.
    """
    count = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1
            if count > at_most:
                raise _TooMuchError

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # what others have left to be finalized would count
    sys.setprofile(look)
    try:
        work()
    except _TooMuchError:
        pytest.fail(f"more than {at_most} calls")
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def lines(work: Callable[[], object]) -> int:
    """Do the work; the number of lines of Python it goes through, a loop's each time around.

    One that a C function goes through a list for is not seen.
    """
    count = 0

    def look(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
