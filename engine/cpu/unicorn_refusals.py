"""Breakpoints that Unicorn takes for invalid instructions, reported as the exceptions they are.

An engine asks a function of its architecture which exceptions end a run as invalid instructions.
That of RISC-V names the breakpoint, so that each one leaves the emulator, which costs more than
all the rest of a hit. The function asks for one number, then for another: where it is the one
known here, the engine is made to enter it behind the first question. Elsewhere (another host,
another build) nothing changes but the speed.
"""

import contextlib
import ctypes
import os
import re
import struct
from typing import Final

from engine.cpu import native

_FUNCTIONS: Final = 64
"""Words of Unicorn's own structure among which its functions of the architecture are."""
_SIZE: Final = 16


def admit(engine: int, number: int) -> bool:
    """Have an exception reported to the hook of exceptions; tell whether it is from now on.

    Args:
        engine: address of Unicorn's structure, with something mapped.
        number: of the exception.
    """
    if not native.possible() or not 0 <= number < 0x80:
        return False
    # cmp esi, number; je; (entered here:) cmp esi, another; sete al; ret
    known = re.compile(
        re.escape(struct.pack("<HBB", 0xFE83, number, 0x74))
        + rb".(?=\x81\xfe....\x0f\x94\xc0\xc3)",
        re.DOTALL,
    )
    words = (ctypes.c_uint64 * _FUNCTIONS).from_address(engine)
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return False
    try:
        for index, word in enumerate(words):
            with contextlib.suppress(OSError, OverflowError):
                found = known.match(os.pread(memory, _SIZE, word))
                if found is not None:
                    words[index] = word + found.end()
                    return True
    finally:
        os.close(memory)
    return False
