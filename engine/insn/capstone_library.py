"""Capstone's library, found and opened without its Python binding.

The binding loads the constants of twenty architectures, which takes twenty times as long as
opening the library; its numbers are read from its text. Asked for are addresses, mnemonics and
operands, and which registers an instruction reads and writes.
"""

import ctypes
import os
import re
import struct
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Final

_VOID: Final = ctypes.c_void_p
_FILE: Final = "libcapstone.so"
_VERSION: Final = 5
"""Of the library whose `cs_insn` this is."""
# cs_insn: id, address, size, bytes, mnemonic, op_str, detail.
_INSN: Final = struct.Struct("@IQH24s32s160sP")
_REGISTERS: Final = ctypes.c_uint16 * 64
"""cs_regs."""
_NUMBER: Final = r"(?m)^%s *= *(?:\(?(\d+)(?: *<< *(\d+))?\)?|(CS_\w+)) *(?:#.*)?$"


class CapstoneError(Exception):
    """Capstone does not have something, or refuses it."""


def _folder() -> str:
    spec = find_spec("capstone")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("capstone is not installed")
    return spec.submodule_search_locations[0]


@cache
def _library() -> ctypes.CDLL:
    folder = os.environ.get("LIBCAPSTONE_PATH", os.path.join(_folder(), "lib"))
    library = ctypes.CDLL(os.path.join(folder, _FILE))
    major = library.cs_version(None, None) >> 8
    if major != _VERSION:
        raise CapstoneError(f"this is Capstone {major}")
    library.cs_open.argtypes = ctypes.c_int, ctypes.c_uint32, _VOID
    library.cs_option.argtypes = ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t
    library.cs_close.argtypes = (_VOID,)
    library.cs_free.argtypes = _VOID, ctypes.c_size_t
    library.cs_free.restype = None
    library.cs_strerror.restype = ctypes.c_char_p
    library.cs_disasm.argtypes = (
        *(ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t),
        *(ctypes.c_uint64, ctypes.c_size_t, _VOID),
    )
    library.cs_disasm.restype = ctypes.c_size_t
    count = ctypes.POINTER(ctypes.c_uint8)
    registers = ctypes.POINTER(ctypes.c_uint16)
    library.cs_regs_access.argtypes = (
        *(ctypes.c_size_t, _VOID),
        *(registers, count, registers, count),
    )
    library.cs_reg_name.argtypes = ctypes.c_size_t, ctypes.c_uint
    library.cs_reg_name.restype = ctypes.c_char_p
    return library


@cache
def _text() -> str:
    with open(os.path.join(_folder(), "__init__.py"), encoding="utf-8") as file:
        return file.read()


def number(name: str) -> int:
    """The number of a constant.

    Raises:
        CapstoneError: there is none of that name.
    """
    found = re.search(_NUMBER % re.escape(name), _text())
    if found is None:
        raise CapstoneError(f"no {name}")
    value, shift, other = found.groups()
    return number(other) if other else int(value) << int(shift or 0)


class Capstone:
    """An engine of Capstone, as long as the process lives."""

    def __init__(self, arch: int, mode: int, options: Iterable[tuple[int, int]] = ()) -> None:
        """Open it.

        Args:
            arch: CS_ARCH_...
            mode: CS_MODE_..., added up.
            options: (CS_OPT_..., value).

        Raises:
            CapstoneError: this Capstone lacks the combination.
        """
        self._library = _library()
        handle = ctypes.c_size_t()
        self._check(self._library.cs_open(arch, mode, ctypes.byref(handle)))
        self._handle = handle.value
        for option, value in options:
            self._check(self._library.cs_option(self._handle, option, value))

    def _check(self, error: int) -> None:
        if error:
            raise CapstoneError(self._library.cs_strerror(error).decode("ascii"))

    def disassemble(self, raw: bytes, address: int) -> list[tuple[int, int, str, str]]:
        """Instructions up to the first that does not decode: address, size, mnemonic, operands."""
        found = _VOID()
        count = self._library.cs_disasm(
            self._handle, bytes(raw), len(raw), address, 0, ctypes.byref(found)
        )
        if not count:
            return []
        try:
            records = ctypes.string_at(found.value or 0, count * _INSN.size)
        finally:
            self._library.cs_free(found, count)
        return [
            (at, size, _words(mnemonic), _words(operands))
            for _, at, size, _, mnemonic, operands, _ in _INSN.iter_unpack(records)
        ]

    def accessed(self, raw: bytes, address: int) -> tuple[frozenset[str], frozenset[str]]:
        """The registers that an instruction (reads, writes), implied ones too, as Capstone spells.

        The engine has been opened with CS_OPT_DETAIL on.

        Raises:
            CapstoneError: nobody knows: it does not decode, or this Capstone does not tell of the
                architecture's.
        """
        library, found = self._library, _VOID()
        count = library.cs_disasm(
            self._handle, bytes(raw), len(raw), address, 1, ctypes.byref(found)
        )
        if not count:
            raise CapstoneError("no instruction")
        reads, writes = _REGISTERS(), _REGISTERS()
        read, written = ctypes.c_uint8(), ctypes.c_uint8()
        try:
            self._check(
                library.cs_regs_access(
                    *(self._handle, found),
                    *(reads, ctypes.byref(read), writes, ctypes.byref(written)),
                )
            )
        finally:
            library.cs_free(found, count)
        return self._names(reads[: read.value]), self._names(writes[: written.value])

    def _names(self, numbers: Iterable[int]) -> frozenset[str]:
        name = self._library.cs_reg_name
        return frozenset(name(self._handle, each).decode("ascii") for each in numbers)


def _words(raw: bytes) -> str:
    return raw[: raw.index(0)].decode("ascii")
