"""Bytes of memory that a front end wants to be watched."""

from typing import Final

from engine.errors import CommandError
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import Interpreter
from engine.session.debugger.stops import UserStop

_TYPES: Final = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long"}
_MOST: Final = 1 << 16


def watch_bytes(
    debugger: Debugger, interpreter: Interpreter, word: str, address: int, size: int
) -> UserStop:
    """A watchpoint on bytes of memory.

    Args:
        debugger: the guest's.
        interpreter: carries its words out.
        word: "watch", "rwatch" or "awatch".
        address: of the first byte.
        size: bytes.

    Raises:
        CommandError: they cannot be watched.
    """
    if not 0 < size <= _MOST:
        raise CommandError(f"{size} bytes cannot be watched as one")
    kind = _TYPES.get(size)
    before = set(debugger.stops.all)
    if kind is not None:
        interpreter.line(f"{word} *({kind} *){address:#x}")
    else:
        interpreter.line(f"{word} *(unsigned char *){address:#x}@{size}")
    number = next(number for number in debugger.stops.all if number not in before)
    return debugger.stops.all[number]
