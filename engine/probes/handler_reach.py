"""Handlers that cannot get at the engine: they may run inside the emulator's callback.

A handler may do anything with the guest, and most of what it may do (run it, write to its code,
place probes) is not to be done from a callback. One that only has the registers and the memory
that it is given, and values of its own, can do none of it.
"""

import io
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    NoneType,
)
from typing import Any, Final

_PLAIN: Final = (NoneType, bool, int, float, complex, str, bytes, bytearray, range, slice)
_GROUPS: Final = (list, tuple, set, frozenset, deque)
_WIDE_MODULES: Final = frozenset({"ctypes", "gc", "inspect", "importlib"})
"""Of Python's own, modules through which everything can be had."""
_HEAP_TYPE: Final = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class whose methods may be in Python, and get at anything."""
_WIDE: Final = frozenset({"exec", "eval", "globals", "locals", "vars", "__import__", "breakpoint"})
_PARTS: Final = frozenset({"memory", "write", "_cpu", "_arch"})
"""Of what a handler is given (`engine.probes.regs.PtRegs`), things that lead further."""
_MOST: Final = 256
"""Values that are looked at; a handler that has more at hand is not looked through."""


def self_contained(handler: object) -> bool:
    """True if a handler can do nothing but read, compute, keep values and print."""
    return _Holdings().harmless(handler)


class _Holdings:
    """The things that a function can get at."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def harmless(self, value: object) -> bool:
        """True if nothing of the engine can be reached from a value."""
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return True
        self._seen.add(id(value))
        if len(self._seen) > _MOST:
            return False
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, _GROUPS):
            return all(map(self.harmless, value))
        if isinstance(value, Mapping):
            return all(map(self.harmless, value.keys())) and all(
                map(self.harmless, value.values())
            )
        if isinstance(value, BuiltinFunctionType):
            return value.__name__ not in _WIDE and self.harmless(value.__self__)
        if isinstance(value, ModuleType):
            return value.__name__.split(".")[0] in sys.stdlib_module_names - _WIDE_MODULES
        if isinstance(value, type):
            return not value.__flags__ & _HEAP_TYPE
        return isinstance(value, io.IOBase | MethodDescriptorType)

    def _function(self, function: FunctionType) -> bool:
        names = set(_names(function.__code__))
        if names & (_PARTS | _WIDE):
            return False
        known: dict[str, Any] = function.__globals__
        held = [known[name] for name in names if name in known]
        held += [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        held += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        return all(map(self.harmless, held))


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # its function has not come to it yet
        return False


def _names(code: CodeType) -> Iterator[str]:
    """All names of globals and attributes in a function and those inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
