"""The types that a file carries as BTF: a kernel's, a module's on top of its kernel's."""

from typing import Final

from engine.errors import ImageError, ModuleKernelError
from engine.image import headers
from engine.image.elf import ElfImage
from engine.image.kernel.btf import Btf
from engine.image.kernel.btftypes import BtfTypes

_KIND: Final = "types"


def btf_of(image: ElfImage) -> BtfTypes | None:
    """The types of a file, read once; None where it carries none.

    Raises:
        ImageError: they are damaged, or a module's belong to another kernel.
    """
    return image.once(_BtfFile).types


class _BtfFile:
    """The types of one file, or the reason why they cannot be read."""

    def __init__(self, image: ElfImage) -> None:
        self._types: BtfTypes | None = None
        self._error: ImageError | None = None
        section = image.section(headers.BTF)
        if section is None or not section.size:
            return
        try:
            self._types = BtfTypes(_read(image, image.section_data(section)))
        except ImageError as error:
            self._error = error

    @property
    def types(self) -> BtfTypes | None:
        if self._error is not None:
            raise type(self._error)(str(self._error))
        return self._types


def _read(image: ElfImage, data: bytes) -> Btf:
    base = None
    # A module made apart from its kernel has names and sizes of that kernel's types with it.
    apart = image.section(".BTF.base")
    if apart is not None and apart.size:
        base = Btf(image.section_data(apart), f"{image.name}: .BTF.base")
    elif image.section(".gnu.linkonce.this_module") is not None:
        kernel = btf_of(image.kernel) if image.kernel is not None else None
        if kernel is None:
            raise ModuleKernelError(
                f"{image.name}: .BTF: types of a module need those of its kernel"
            )
        base = kernel.btf
    kept = image.kept if base is None else None
    index = kept.columns(_KIND) if kept is not None else None
    types = Btf(data, image.name, base, index)
    if kept is not None and index is None:
        kept.keep_columns(_KIND, types.index.parts)
    return types
