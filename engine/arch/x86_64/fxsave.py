"""The image of x87 and SSE that FXSAVE stores, and AVX's part of what XSAVE stores.

Sources: SDM volume 1, sections 10.5.1 and 13.4. The image is made of registers and loaded into
them, all in one go: running FXSAVE itself, as Linux does, would cost an entry into the emulator
each time.
"""

import struct
from functools import lru_cache
from typing import Final

from engine.arch.machine import FrameCpu

SIZE: Final = 512
MXCSR_MASK: Final = 0xFFFF
_MXCSR_AT: Final = 24
FRESH: Final = struct.pack("<H22xI", 0x37F, 0x1F80).ljust(SIZE, b"\0")
"""Of a program that begins: x87 as after FNINIT, MXCSR as after a reset."""

_ST: Final = tuple(f"st{number}" for number in range(8))
_XMM: Final = tuple(f"xmm{number}" for number in range(16))
_REGISTERS: Final = ("fctrl", "fstat", *_ST, "ftag", "mxcsr", *_XMM)
"""In the order in which they are written: which register is st(0) depends on the status word,
and a value that is written changes its tag."""
_WORDS: Final = struct.Struct("<H14xH14x128sH14xI12x256s")
"""Sixteen bytes for each register."""
_HEAD: Final = struct.Struct("<HHBxHQQII")
_IMAGE: Final = struct.Struct("<HHBxHQQII128s256s96x")
_UPPER: Final = tuple(f"ymm{number}h" for number in range(16))
UPPER_SIZE: Final = 256
"""Bytes of the upper halves of AVX's registers."""
NONE: Final = bytes(UPPER_SIZE)
"""The upper halves of a program that does not use them."""
_ERROR: Final = 0x80
_BUSY: Final = 0x8000


@lru_cache(maxsize=64)
def _kept(tags: int) -> int:
    """The image's byte for the tag word: a bit for each register that is in use."""
    return sum(1 << number for number in range(8) if tags >> 2 * number & 3 != 3)


@lru_cache(maxsize=64)
def _tags(kept: int) -> int:
    """The tag word for the image's byte."""
    return sum(3 << 2 * number for number in range(8) if not kept >> number & 1)


def head(control: int, status: int, tags: int, mxcsr: int) -> bytes:
    """The first 32 bytes of an image: instruction and operand pointers are not kept.

    Args:
        control: x87's control word.
        status: its status word.
        tags: its tag word, with two bits for each register.
        mxcsr: of SSE.
    """
    return _HEAD.pack(control, status, _kept(tags), 0, 0, 0, mxcsr, MXCSR_MASK)


def save(cpu: FrameCpu) -> bytes:
    """The image of what is in the registers."""
    return _image(*_WORDS.unpack(cpu.read_block(_REGISTERS, 16)))


def save_all(cpu: FrameCpu, others: tuple[str, ...]) -> tuple[bytes, bytes, bytes]:
    """The image, the upper halves as `save_upper`, and other registers, each in 16 bytes."""
    data = cpu.read_block(_with(others), 16)
    image = _image(*_WORDS.unpack_from(data))
    upper = data[_WORDS.size : _WORDS.size + UPPER_SIZE]
    return image, NONE if upper == NONE else upper, data[_WORDS.size + UPPER_SIZE :]


@lru_cache(maxsize=4)
def _with(others: tuple[str, ...]) -> tuple[str, ...]:
    return (*_REGISTERS, *_UPPER, *others)


def _image(
    control: int, status: int, values: bytes, tags: int, mxcsr: int, vectors: bytes
) -> bytes:
    kept = _kept(tags)
    return _IMAGE.pack(control, status, kept, 0, 0, 0, mxcsr, MXCSR_MASK, values, vectors)


def loadable(image: bytes) -> bool:
    """True unless FXRSTOR refuses an image: MXCSR has bits that there are not."""
    return not int.from_bytes(image[_MXCSR_AT : _MXCSR_AT + 4], "little") & ~MXCSR_MASK


def load(cpu: FrameCpu, image: bytes) -> None:
    """Do what FXRSTOR does; the processor shows x87 busy where an exception waits."""
    cpu.write_block(_REGISTERS, 16, _words(image))


_NO_X87: Final = head(0x37F, 0, 0xFFFF, 0x1F80) + bytes(128)
"""The beginning of an image where only SSE is in use."""


def renew(cpu: FrameCpu, image: bytes) -> None:
    """Let x87 and SSE be as in a program that begins.

    Args:
        cpu: of the program.
        image: of what is in the registers.
    """
    if image.startswith(_NO_X87):  # as nearly always
        cpu.write_block(_XMM, 16, NONE)
    else:
        cpu.write_block(_REGISTERS, 16, _NEW)


def _words(image: bytes) -> bytes:
    """An image as `write_block` takes it."""
    control, status, kept, _, _, _, mxcsr, _, values, vectors = _IMAGE.unpack(image)
    status = status & ~_BUSY | (_BUSY if status & _ERROR else 0)
    return _WORDS.pack(control, status, values, _tags(kept), mxcsr, vectors)


_NEW: Final = _words(FRESH)


def save_upper(cpu: FrameCpu) -> bytes:
    """The upper halves of AVX's registers one after another; `NONE` itself if all are zero."""
    upper = cpu.read_block(_UPPER, 16)
    return NONE if upper == NONE else upper


def load_upper(cpu: FrameCpu, upper: bytes) -> None:
    """Set them."""
    cpu.write_block(_UPPER, 16, upper)
