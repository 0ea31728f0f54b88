"""Unicorn's library, found and opened without its Python binding.

The binding loads the constants of ten architectures and what can search archives for a file: five
times what opening the library costs. Its files of constants are taken one by one.
"""

import ctypes
import os
import struct
import weakref
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Final

from engine.errors import EngineError

_VOID: Final = ctypes.c_void_p
_FILE: Final = "libunicorn.so.2"
_WRITES: Final = 1 << 30
"""In a request of uc_ctl: that it changes something; 26 bits up is the number of arguments."""
_TRANSLATIONS: Final = 256 << 20
"""Bytes for translated code. Unicorn's own gigabyte has room once within the 2 GB around the
library in which code calls its functions directly; farther away it is a third slower."""
_TRANSLATED_PART: Final = 4
"""A guest's translated code may take the fourth part of its memory, but the least in any case."""
_LEAST_TRANSLATIONS: Final = 64 << 20
"""Bytes; when they are full, all is translated anew."""
_WIDEST: Final = 64
"""Bytes of the widest register."""


class UnicornError(Exception):
    """An error of Unicorn's, in its own words."""

    def __init__(self, number: int) -> None:
        super().__init__(_text(number).decode("ascii"))


def _folder() -> str:
    spec = find_spec("unicorn")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("unicorn is not installed")
    return spec.submodule_search_locations[0]


_FOLDER: Final = _folder()
uclib: Final = ctypes.CDLL(
    os.path.join(os.environ.get("LIBUNICORN_PATH", os.path.join(_FOLDER, "lib")), _FILE)
)
"""The library."""


@cache
def constants(name: str) -> ModuleType:
    """A file of constants of the binding, by what stands before "_const" in its name.

    Raises:
        ImportError: there is none.
    """
    path = os.path.join(_FOLDER, f"{name}_const.py")
    spec = spec_from_file_location(f"{__name__}.{name}", path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise ImportError(f"no constants of {name}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


uc_const: Final = constants("unicorn")

_text = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_int)(("uc_strerror", uclib))
_open = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, _VOID)(("uc_open", uclib))
_close = ctypes.CFUNCTYPE(ctypes.c_int, _VOID)(("uc_close", uclib))
_start = ctypes.CFUNCTYPE(
    ctypes.c_int, _VOID, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t
)(("uc_emu_start", uclib))
_map = ctypes.CFUNCTYPE(
    ctypes.c_int, _VOID, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, _VOID
)(("uc_mem_map_ptr", uclib))
_ctl = ctypes.CFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_uint32)(("uc_ctl", uclib))
_ctl_1 = ctypes.CFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_uint32, ctypes.c_uint64)(("uc_ctl", uclib))
_ctl_2 = ctypes.CFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64)(
    ("uc_ctl", uclib)
)
_read = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_int, _VOID)(("uc_reg_read", uclib))
_write = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, ctypes.c_int, _VOID)(("uc_reg_write", uclib))
_context_alloc = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, _VOID)(("uc_context_alloc", uclib))
_context_free = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID)(("uc_context_free", uclib))
_context_size = ctypes.PYFUNCTYPE(ctypes.c_size_t, _VOID)(("uc_context_size", uclib))
_context_save = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, _VOID)(("uc_context_save", uclib))
_context_restore = ctypes.PYFUNCTYPE(ctypes.c_int, _VOID, _VOID)(("uc_context_restore", uclib))


def _check(number: int) -> None:
    if number:
        raise UnicornError(number)


class SavedContext:
    """Saved registers of an engine.

    Attributes:
        context: Unicorn's handle of them.
        size: bytes that it points to.
    """

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self.context = _VOID()
        self.size = _context_size(handle)
        _check(_context_alloc(handle, ctypes.byref(self.context)))
        weakref.finalize(self, _context_free, self.context).atexit = False


class Emulator:
    """One engine of Unicorn; all its methods raise UnicornError for what it refuses.

    Attributes:
        handle: Unicorn's own.
    """

    def __init__(self, arch: int, mode: int) -> None:
        """Open it.

        Args:
            arch: UC_ARCH_...
            mode: UC_MODE_..., added up.

        Raises:
            EngineError: the library is not the one that its constants belong to.
        """
        major, minor = ctypes.c_int(), ctypes.c_int()
        uclib.uc_version(ctypes.byref(major), ctypes.byref(minor))
        if (major.value, minor.value) != (uc_const.UC_API_MAJOR, uc_const.UC_API_MINOR):
            raise EngineError(f"{_FILE} is of Unicorn {major.value}.{minor.value}")
        self.handle = _VOID()
        _check(_open(arch, mode, ctypes.byref(self.handle)))
        self._closing = weakref.finalize(self, _close, self.handle)
        self._closing.atexit = False

    def close(self) -> None:
        """Give its memory back now; nothing of it may be used again."""
        self._closing()

    def set_translations(self, memory: int) -> None:
        """Choose the room for translated code, before anything else.

        Args:
            memory: bytes that the guest may use; a small guest's code gets less.
        """
        size = min(max(memory // _TRANSLATED_PART, _LEAST_TRANSLATIONS), _TRANSLATIONS)
        _check(_ctl_1(self.handle, _request(uc_const.UC_CTL_TCG_BUFFER_SIZE, 1), size))

    def set_cpu_model(self, model: int) -> None:
        """Choose the processor, before anything else."""
        _check(_ctl_1(self.handle, _request(uc_const.UC_CTL_CPU_MODEL, 1), model))

    def set_page_size(self, size: int) -> None:
        """Choose the size of pages, in bytes, before anything else."""
        _check(_ctl_1(self.handle, _request(uc_const.UC_CTL_UC_PAGE_SIZE, 1), size))

    def use_own_translations(self) -> None:
        """Have virtual addresses translated by the hook for it, not by page tables."""
        request = _request(uc_const.UC_CTL_TLB_TYPE, 1)
        _check(_ctl_1(self.handle, request, uc_const.UC_TLB_VIRTUAL))

    def flush_translations(self) -> None:
        """Forget how addresses are translated."""
        _check(_ctl(self.handle, _request(uc_const.UC_CTL_TLB_FLUSH, 0)))

    def flush_code(self) -> None:
        """Forget all translated code."""
        _check(_ctl(self.handle, _request(uc_const.UC_CTL_TB_FLUSH, 0)))

    def remove_code(self, start: int, end: int) -> None:
        """Forget translated code of a range."""
        _check(_ctl_2(self.handle, _request(uc_const.UC_CTL_TB_REMOVE_CACHE, 2), start, end))

    def map_memory(self, address: int, size: int, perms: int, at: int) -> None:
        """Make memory of ours the guest's."""
        _check(_map(self.handle, address, size, perms, at))

    def run(self, begin: int, until: int) -> None:
        """Run from one address to another."""
        _check(_start(self.handle, begin, until, 0, 0))

    def read_register(self, number: int, key: tuple[int, ...] = (), size: int = 8) -> int:
        """The low bytes of a register; the key says which of those behind one number."""
        buffer = ctypes.create_string_buffer(_words(key), _WIDEST)
        _check(_read(self.handle, number, buffer))
        return int.from_bytes(buffer.raw[len(_words(key)) :][:size], "little")

    def write_register(
        self, number: int, value: int | tuple[int, ...], key: tuple[int, ...] = ()
    ) -> None:
        """Write a register; (selector, base, limit, flags) is the value of a table's."""
        if isinstance(value, tuple):
            words = struct.pack("@HQII", *value)
        else:
            words = _words(key) + (value & 2**64 - 1).to_bytes(8, "little")
        _check(_write(self.handle, number, ctypes.create_string_buffer(words, _WIDEST)))

    def save(self) -> SavedContext:
        """Save the registers."""
        saved = SavedContext(self.handle)
        _check(_context_save(self.handle, saved.context))
        return saved

    def restore(self, saved: SavedContext) -> None:
        """Put saved registers back."""
        _check(_context_restore(self.handle, saved.context))


def _request(kind: int, arguments: int) -> int:
    """A request of uc_ctl that changes something."""
    return _WRITES | arguments << 26 | kind


def _words(key: tuple[int, ...]) -> bytes:
    """A key as it stands before the value."""
    raw = struct.pack(f"={len(key)}I", *key)
    return raw.ljust(-(-len(raw) // 8) * 8, b"\0")
