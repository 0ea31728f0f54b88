"""Unicorn's look at its stop request behind every access to memory, left out where it may be.

Unicorn 2.1 calls a function after each load and store of the guest, in case a hook of memory has
asked it to stop: three quarters of what an access costs. It can leave that out of translations
(it does so for Thumb's IT blocks), and still looks at the beginning of each block. Stops that must
come in the middle of a block need the call: those of hooks on instructions, of counted runs, and
of the hook that `unicorn_faults` sets.

The switch is no part of the interface. Where it is, is read out of the code that asks for it;
where that is not the code known here there is none, and nothing changes but the speed.
"""

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from engine.cpu import native
from engine.cpu.unicorn_library import uclib

_ASKS: Final = re.compile(
    rb"\x48\x8b\xb7....\x80\xbe(....)\x00\x74.\xc3", re.DOTALL
)  # mov rsi, [rdi+context's engine]; cmp byte [rsi+SWITCH], 0; je; ret
_SIZE: Final = 17
_STRUCTURE: Final = 4096
"""Bytes of Unicorn's own structure that are there in any case."""


class StopChecks:
    """The looks of one engine."""

    def __init__(self, engine: int, name: str) -> None:
        """The checks stay until `choose` says otherwise.

        Args:
            engine: its handle.
            name: how Unicorn's functions of its architecture end.
        """
        self._left_out = _switch(engine, name)
        self._kept = 0

    def choose(self, *, needed: bool) -> None:
        """Before a run: what is translated in it has them if something may stop in a block."""
        if self._left_out is not None:
            self._left_out.value = not (needed or self._kept)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Meanwhile something may."""
        self._kept += 1
        try:
            yield
        finally:
            self._kept -= 1


def _switch(engine: int, name: str) -> ctypes.c_uint8 | None:
    """The byte of an engine that is 1 while translations leave the calls out; None without one."""
    if not native.possible():
        return None
    function = getattr(uclib, f"check_exit_request_{name}", None)
    if function is None:
        return None
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    found = _ASKS.match(ctypes.string_at(address, _SIZE))
    offset = int.from_bytes(found[1], "little") if found else _STRUCTURE
    if offset >= _STRUCTURE:
        return None
    byte = ctypes.c_uint8.from_address(engine + offset)
    return byte if not byte.value else None
