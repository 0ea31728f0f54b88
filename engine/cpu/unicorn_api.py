"""Unicorn's C interface as the engine calls it: own prototypes and callback types.

The binding's calls cost up to ten times as much (it rebuilds ctypes arrays for each), so what
runs per system call or per probe hit goes through these. Prototypes of functions that may call
back into Python while the guest runs release the interpreter lock (CFUNCTYPE); short ones keep
it (PYFUNCTYPE), which is cheaper.
"""

import ctypes
from typing import Any, Final

from engine.cpu import native
from engine.cpu.unicorn_library import uclib
from engine.errors import EngineError

VOID: Final = ctypes.c_void_p
ERROR_EXCEPTION: Final = 21
"""UC_ERR_EXCEPTION: the fill callback refused, or an exception nobody hooks."""

emu_start = ctypes.CFUNCTYPE(
    ctypes.c_int, VOID, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t
)(("uc_emu_start", uclib))
emu_stop = ctypes.CFUNCTYPE(ctypes.c_int, VOID)(("uc_emu_stop", uclib))
reg_read = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, ctypes.c_int, VOID)(("uc_reg_read", uclib))
reg_write = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, ctypes.c_int, VOID)(("uc_reg_write", uclib))
reg_read_batch = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, VOID, VOID, ctypes.c_int)(
    ("uc_reg_read_batch", uclib)
)
reg_write_batch = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, VOID, VOID, ctypes.c_int)(
    ("uc_reg_write_batch", uclib)
)
context_save = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, VOID)(("uc_context_save", uclib))
context_restore = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, VOID)(("uc_context_restore", uclib))
context_reg_read = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, ctypes.c_int, VOID)(
    ("uc_context_reg_read", uclib)
)
context_reg_write = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, ctypes.c_int, VOID)(
    ("uc_context_reg_write", uclib)
)
_hook_add = ctypes.PYFUNCTYPE(
    ctypes.c_int,
    VOID,
    VOID,
    ctypes.c_int,
    VOID,
    VOID,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.c_uint64,
)(("uc_hook_add", uclib))
_hook_del = ctypes.PYFUNCTYPE(ctypes.c_int, VOID, ctypes.c_size_t)(("uc_hook_del", uclib))

OnInterrupt = ctypes.CFUNCTYPE(None, VOID, ctypes.c_uint32, VOID)
OnInvalid = ctypes.CFUNCTYPE(ctypes.c_bool, VOID, VOID)
OnInsn = ctypes.CFUNCTYPE(None, VOID, VOID)
OnIn = ctypes.CFUNCTYPE(ctypes.c_uint32, VOID, ctypes.c_uint32, ctypes.c_int, VOID)
OnOut = ctypes.CFUNCTYPE(None, VOID, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32, VOID)
OnCode = ctypes.CFUNCTYPE(None, VOID, ctypes.c_uint64, ctypes.c_uint32, VOID)
OnEdge = ctypes.CFUNCTYPE(None, VOID, VOID, VOID, VOID)
OnFill = ctypes.CFUNCTYPE(
    ctypes.c_bool, VOID, ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(native.TlbEntry), VOID
)
OnMemory = ctypes.CFUNCTYPE(
    ctypes.c_bool, VOID, ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, VOID
)


class Block(ctypes.Structure):
    """Unicorn's uc_tb: a translated block."""

    _fields_ = (("pc", ctypes.c_uint64), ("icount", ctypes.c_uint16), ("size", ctypes.c_uint16))


class Hooks:
    """Registered callbacks of one engine; keeps what ctypes must not collect."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._keep: dict[int, object] = {}

    def add(
        self, kind: int, callback: Any, data: int = 0, begin: int = 1, end: int = 0, extra: int = 0
    ) -> int:
        """Register a ctypes callback or the address of host code; begin > end: everywhere.

        Raises:
            EngineError: Unicorn refuses it.
        """
        address = callback
        if not isinstance(callback, int):
            address = ctypes.cast(callback, VOID).value
        hook = ctypes.c_size_t()
        error = _hook_add(
            self._handle, ctypes.addressof(hook), kind, address, data, begin, end, extra
        )
        if error:
            raise EngineError(f"the emulator refuses a hook: error {error}")
        self._keep[hook.value] = callback
        return hook.value

    def keep(self, callback: object) -> None:
        """Keep a callback that host code calls."""
        self._keep[id(callback)] = callback

    def remove(self, hook: int) -> None:
        """Unregister; the callback itself is kept, as it may be running."""
        _hook_del(self._handle, hook)
